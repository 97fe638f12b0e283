/**
 * Threads of a session: shared memory, an instance of the code for each, and workers that take part in every segment
 * (backends/wasm/thread-protocol.ts). Loaded only by sessions that ask for more than one thread. Results are those of one
 * thread, bit for bit; a thread that comes late, or never, only leaves more work to the others.
 */
import type { CodeSource, Instance } from "../backends/wasm/load.ts";
import { splice } from "../backends/wasm/splice.ts";
import { fail, type Diagnostic } from "../core/diagnostic.ts";
import { control, messageBytes } from "../memory/control.ts";
import type { Heap } from "./heap.ts";
import { Pace } from "./pace.ts";
import { browserThread, nodeThread } from "./thread-source.ts";

export interface ThreadOptions {
  readonly threads?: number;
  readonly workerUrl?: string | URL;
}
/** Threads, or a warning that says why there are none. */
export interface Started {
  readonly threads?: Threads;
  readonly warnings: readonly Diagnostic[];
}

/** Why a session has one thread only. */
const alone = (reason: string, hint: string): Started => ({ warnings: [{ code: "OF7040", message: `the session runs on one thread: ${reason}`, hint }] });

const pageBytes = 65536;
/** Paces kept at a time. */
const remembered = 256;
/** Largest sizes of a shared memory to ask for, in pages: engines reserve the whole of it. */
const mostPages = [65536, 32768, 16384, 8192];

/**
 * Compiles an artifact's code for threads and starts them. `code` is the plain code for this engine; `compile` and
 * `instanceOf` are the runtime's own way from code to instances, which is not loaded twice.
 */
export async function startThreads(program: CodeSource, code: Uint8Array, { threads: count = 1, workerUrl }: ThreadOptions, compile: (code: Uint8Array) => Promise<WebAssembly.Module>, instanceOf: (instance: WebAssembly.Instance) => Instance): Promise<Started> {
  const { manifest } = program, entry = manifest.code.find((c) => c.target === "wasm");
  if (entry?.threads === undefined) return alone("the program has no work for two", "nothing is lost: it is small");
  if (typeof SharedArrayBuffer === "undefined" || (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false) return alone("memory cannot be shared here", "serve the page with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp");
  const module = await compile(splice(code, program.section(entry.threads)) ?? fail("OF6004", "the artifact is inconsistent: its code for threads does not fit its code", { hint: "compile the model again" }));
  const memory = sharedMemory(Math.max(1, Math.ceil(manifest.memory.fixedEnd / pageBytes)));
  if (!memory) return alone("this engine has no room for a memory that can be shared", "use one thread");
  const instance = instanceOf(await WebAssembly.instantiate(module, { env: { memory } }));
  const workers: End[] = [];
  try {
    const start = await starter(workerUrl);
    for (let thread = 1; thread < count; thread++) workers.push(start({ module, memory, thread }));
  } catch (e) {
    for (const end of workers) end();
    return alone(`no worker can be started here (${e instanceof Error ? e.message : String(e)})`, "use one thread, or a page whose policy allows workers, or name a file for them with `workerUrl`");
  }
  return { threads: new Threads(instance, count, workers), warnings: [] };
}

function sharedMemory(initial: number): WebAssembly.Memory | undefined {
  for (const maximum of mostPages) {
    if (maximum < initial) break;
    try {
      return new WebAssembly.Memory({ initial, maximum, shared: true });
    } catch { /* A smaller one may do. */ }
  }
  return undefined;
}

/** Ends a worker. */
type End = () => void;
interface Start { readonly module: WebAssembly.Module; readonly memory: WebAssembly.Memory; readonly thread: number }

/** What starts workers, which keep no process alive. One that fails once it is started is missed by nobody. */
async function starter(workerUrl: string | URL | undefined): Promise<(start: Start) => End> {
  if (typeof Worker !== "undefined") {
    const url = workerUrl ?? URL.createObjectURL(new Blob([browserThread], { type: "text/javascript" }));
    return (start) => {
      const worker = new Worker(url);
      worker.postMessage(start, { transfer: [] });
      return () => { worker.terminate(); if (workerUrl === undefined) URL.revokeObjectURL(String(url)); };
    };
  }
  const node = await import(/* @vite-ignore */ "node:worker_threads");
  return (workerData) => {
    const worker = new node.Worker(nodeThread, { eval: true, workerData, execArgv: [], stdout: false });
    worker.on("error", () => undefined);
    worker.unref();
    return () => { void worker.terminate(); };
  };
}

export class Threads {
  readonly count: number;
  /** As the plain one's; a segment may run on all threads. */
  readonly instance: Instance;
  readonly #memory: WebAssembly.Memory;
  /** The control words: shared memory that grows leaves them where they are. */
  readonly #words: Int32Array;
  readonly #ends: readonly End[];
  #scratch: { readonly at: number; readonly bytes: number } | undefined;
  /** By sizes of about the same, and by segment. */
  readonly #paces = new Map<number, Pace[]>();
  /** Those of the sizes at hand; undefined where they are not known. */
  #now: Pace[] | undefined = [];

  constructor(instance: Instance, count: number, ends: readonly End[]) {
    this.count = count;
    this.#memory = instance.memory;
    this.#words = new Int32Array(this.#memory.buffer, 0, 16);
    this.#ends = ends;
    this.#set(control.threads, count);
    this.#set(control.mayWait, this.#mayWait() ? 1 : 0);
    this.instance = { ...instance, segment: (index) => this.#paced(index, this.#guarded(instance.segment(index))) };
  }

  /** Gives each thread besides the first so many `bytes` of working memory, or more; called before the first run, and when sizes have changed. */
  reserve(heap: Heap, needed: number): void {
    if (this.#words[control.message / 4] === 0) this.#set(control.message, heap.allocate(messageBytes));
    const bytes = Math.ceil(needed / 64) * 64;
    if (bytes === 0 || bytes <= (this.#scratch?.bytes ?? 0)) return;
    if (this.#scratch) heap.free(this.#scratch.at);
    this.#scratch = { at: heap.allocate(bytes * (this.count - 1)), bytes };
    this.#set(control.scratch, this.#scratch.at);
    this.#set(control.scratchBytes, bytes);
  }

  /** Sizes of the run to come, or of the rest of it; undefined where steps in it tell them. */
  meet(sizes: Iterable<number> | undefined): void {
    if (!sizes) { this.#now = undefined; return; }
    let key = 0;
    for (const n of sizes) key = (key * 33 + Math.clz32(n)) % Number.MAX_SAFE_INTEGER;
    this.#now = this.#paces.get(key);
    if (this.#now) return;
    if (this.#paces.size >= remembered) this.#paces.clear();
    this.#paces.set(key, (this.#now = []));
  }

  /** Ends all threads. */
  end(): void {
    const words = this.#words;
    Atomics.store(words, control.stop / 4, 1);
    Atomics.add(words, control.epoch / 4, 1);
    Atomics.notify(words, control.epoch / 4);
    for (const end of this.#ends) end();
  }

  #set(address: number, value: number): void { Atomics.store(this.#words, address / 4, value | 0); }

  /** Whether the thread that runs sessions may sleep: a browser's main thread may not. */
  #mayWait(): boolean {
    try {
      Atomics.wait(this.#words, control.mayWait / 4, 1, 0);
      return true;
    } catch {
      return false;
    }
  }

  /** Runs a segment on all threads, or on the first alone where that has been found to be quicker. */
  #paced(index: number, run: () => void): () => void {
    return () => {
      const pace = this.#now && (this.#now[index] ??= new Pace());
      this.#set(control.threads, pace?.alone() ? 1 : this.count);
      const start = performance.now();
      run();
      pace?.note(performance.now() - start);
    };
  }

  #guarded(run: () => void): () => void {
    return () => {
      try {
        run();
      } catch (e) {
        const message = this.#settle();
        throw message === undefined ? e : new WebAssembly.RuntimeError(message);
      }
    };
  }

  /** After a trap, here or in another thread: waits until nobody is in the region. What another thread said of it. */
  #settle(): string | undefined {
    const words = this.#words, at = { failed: control.failed / 4, open: control.open / 4, joined: control.joined / 4 };
    Atomics.compareExchange(words, at.failed, 0, 1);
    Atomics.store(words, at.open, 0);
    const sleeps = Atomics.load(words, control.mayWait / 4) === 1;
    for (let n = Atomics.load(words, at.joined); n > 0; n = Atomics.load(words, at.joined)) if (sleeps) Atomics.wait(words, at.joined, n, 1);
    const length = Atomics.exchange(words, at.failed, 0) - 1;
    const from = Atomics.load(words, control.message / 4);
    return length > 0 ? new TextDecoder().decode(new Uint8Array(this.#memory.buffer).slice(from, from + length)) : undefined;
  }
}
