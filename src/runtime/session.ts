/** A loaded program: independent of every other session, used again and again, one run at a time. */
import type { WeightStream } from "../artifact/arriving.ts";
import { formatDimJson, type DimJson } from "../core/dim-json.ts";
import type { Manifest, PortJson } from "../artifact/manifest.ts";
import { isHeld, type Container } from "../core/container.ts";
import { atRank } from "../core/datum.ts";
import { DiagnosticError, fail, nearestName, type Diagnostic } from "../core/diagnostic.ts";
import { byteSize, viewBytes, type DType } from "../core/dtype.ts";
import { sizeOf, type Tensor as CoreTensor } from "../core/tensor.ts";
import { codeFor, compileCode, instanceOf, instantiate, type CodeSource, type Engine } from "../backends/wasm/load.ts";
import { align } from "../memory/place.ts";
import { Arena } from "./arena.ts";
import { Buffers } from "./buffers.ts";
import { checkRunOptions } from "./check-run-options.ts";
import { Constants } from "./constants.ts";
import { bindFeeds, type BoundFeeds, type Fed, type Feeds } from "./feeds.ts";
import type { GivenOutputs, GivenTensors } from "./given-outputs.ts";
import { Heap } from "./heap.ts";
import { prepareSteps } from "./steps.ts";
import { checkSizes } from "./size-checks.ts";
import type { States } from "./states.ts";
import { elementsOf, isTensorLike, Tensor, type Resident } from "./tensor.ts";
import type { Threads } from "./threads.ts";
import { resultOf, type RunValue } from "./run-values.ts";
import type { Run, StepObserver } from "./watch.ts";
import { preparationFor, Weights } from "./weights.ts";

export interface SessionOptions {
  /** Which code to use; by default the fastest this engine runs. */
  readonly engine?: Engine;
  /**
   * How many threads compute; 1 unless said. Results are the same, bit for bit. Where memory cannot be shared (pages that
   * are not cross-origin isolated), it is 1, with a warning in `session.warnings`. `dispose()` ends the threads.
   */
  readonly threads?: number;
  /** Where browsers find `onnxfuse/runtime/worker`, for pages whose policy allows no workers from Blobs. */
  readonly workerUrl?: string | URL;
}

export interface RunOptions {
  /** Names of the outputs wanted; by default all but those that only carry a state to the next run. */
  readonly outputs?: readonly string[];
  /** Outputs that stay in WebAssembly memory, to be fed back without copying out; `dispose()` them when done. */
  readonly keep?: readonly string[];
  /**
   * Tensors around typed arrays of yours, by output name: results are written there, and `run` gives these tensors. For
   * large results this saves what new memory costs. An array may be fed in the same run.
   */
  readonly into?: GivenTensors;
  /** Told of each step after it ran. */
  readonly onStep?: StepObserver;
  /** Milliseconds after which the run is given up with OF7017, at its next step or iteration. By default it may take what it takes. */
  readonly timeLimit?: number;
}

/** An input or output: sizes are numbers, or text where they depend on what is fed. */
export interface Port {
  readonly name: string;
  readonly dtype: DType;
  readonly dims: readonly (number | string)[];
  /** How many of the last `dims` an output has, where that depends on what is fed. */
  readonly rank?: string;
  /** A sequence, an optional or a map; then `dtype` is that of the tensors in it. */
  readonly container?: Container;
}

/** What a session runs on. */
interface Machine {
  readonly manifest: Manifest;
  readonly heap: Heap;
  readonly arena: Arena;
  readonly buffers: Buffers;
  readonly weights: Weights;
  readonly constants: Constants;
  readonly run: Run;
  /** Absent where the program has none; what keeps them is loaded where it has. */
  readonly states: States | undefined;
  readonly threads: Threads | undefined;
}

const port = (p: PortJson): Port => ({ name: p.name, dtype: p.dtype, dims: p.dims.map((d: DimJson) => (typeof d === "number" ? d : formatDimJson(d))), ...(p.rank === undefined ? {} : { rank: formatDimJson(p.rank) }), ...(p.container ? { container: p.container } : {}) });

export class Session {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** Inputs that need not be fed: each takes what `output` was in the run before. */
  readonly states: readonly { readonly input: string; readonly output: string }[];
  /** The model's metadata_props. */
  readonly metadata: Readonly<Record<string, string>>;
  /** How many threads compute. */
  readonly threads: number;
  /** What is not as it was asked for. */
  readonly warnings: readonly Diagnostic[];
  /** Undefined once disposed. */
  #machine: Machine | undefined;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(machine: Machine, warnings: readonly Diagnostic[]) {
    this.threads = machine.threads?.count ?? 1;
    this.warnings = warnings;
    const { manifest } = machine;
    this.inputs = manifest.inputs.map(port);
    this.outputs = manifest.outputs.map(port);
    this.states = (manifest.states ?? []).map(({ input, output }) => ({ input, output }));
    this.metadata = manifest.metadata;
    this.#machine = machine;
  }

  /** Instantiates the code, reads the weights to their places, and what comes after them by `rest`; loads host operators. */
  static async create(program: CodeSource, weights: WeightStream, options: SessionOptions, rest: () => Promise<void>): Promise<Session> {
    return guarded(async () => {
      const { code, relaxed } = codeFor(program, options.engine);
      const { threads, warnings } = (options.threads ?? 1) > 1 ? await (await import("./threads.ts")).startThreads(program, code, options, compileCode, instanceOf) : { warnings: [] };
      try {
        const machine = await Session.#machineOf(program, code, relaxed, threads, weights);
        await rest();
        return new Session(machine, warnings);
      } catch (e) {
        threads?.end();
        throw e;
      }
    });
  }

  static async #machineOf({ manifest }: CodeSource, code: Uint8Array, relaxed: boolean, threads: Threads | undefined, stream: WeightStream): Promise<Machine> {
    const [instance, preparation] = await Promise.all([threads?.instance ?? instantiate(code), preparationFor(manifest, relaxed)]);
    instance.warmUp();
    const heap = new Heap(instance.memory, manifest.memory.fixedEnd);
    const arena = new Arena(manifest.memory, heap, threads);
    const constants = new Constants();
    const weights = new Weights(manifest, constants, heap, preparation, relaxed);
    await weights.fill(stream);
    const buffers = new Buffers(manifest.buffers, arena, heap, new Map(manifest.held?.map((h) => [h.buffer, constants.read(h.data)])));
    const run = await prepareSteps(manifest, { arena, buffers, instance, constants });
    const states = manifest.states && new (await import("./states.ts")).States(manifest, heap);
    return { manifest, heap, arena, buffers, weights, constants, run, threads, states };
  }

  /** Bytes of WebAssembly memory this session holds. */
  get memoryBytes(): number { return this.#machine?.heap.memory.buffer.byteLength ?? 0; }

  /**
   * Runs the program. Calls made while another runs wait for it. Results are tensors, unless `outputs` says that one is a
   * sequence (an array), an optional (null where it holds nothing) or a map (a Map); then name their types: `run<{ y: Tensor[] }>`.
   */
  run<R extends Readonly<Record<string, RunValue>> = Record<string, Tensor>>(feeds: Feeds, options: RunOptions = {}): Promise<R> {
    return this.#queue(async () => {
      checkRunOptions(options);
      const { manifest } = this.#open(), wanted = this.#wanted(options);
      const given = options.into && new (await import("./given-outputs.ts")).GivenOutputs(manifest.outputs, options.into, options.keep ?? [], { Tensor, elementsOf, isTensorLike, isHeld });
      return this.#execute(feeds, options, wanted, given) as R;
    });
  }

  /** The states as they are after the runs called so far, by input: fed to a run, they go on from there. */
  state(): Promise<Record<string, Tensor>> {
    return this.#queue(() => Object.fromEntries(Object.entries(this.#open().states?.read() ?? {}).map(([name, t]) => [name, Tensor.of(t)])));
  }
  /** Forgets the states, after the runs called so far: the next run begins anew. */
  reset(): Promise<void> { return this.#queue(() => this.#open().states?.reset()); }

  #queue<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(() => guarded(work));
    this.#last = result.catch(() => undefined);
    return result;
  }
  #open(): Machine { return this.#machine ?? fail("OF7008", "this session has been disposed"); }

  /** Lets go of the code and its memory, and ends its threads. Kept results can no longer be read. */
  dispose(): void {
    this.#machine?.threads?.end();
    this.#machine = undefined;
  }

  #execute(feeds: Feeds, options: RunOptions, wanted: ReadonlySet<string>, given: GivenOutputs | undefined): Record<string, RunValue> {
    const machine = this.#open(), { manifest, states } = machine;
    const bound = bindFeeds(manifest.inputs, feeds, this, manifest.checks, states), fed = new Set(bound.fed.keys()), known = bound.symbols.size;
    states?.reserve(bound.symbols, fed);
    machine.arena.begin(bound.symbols);
    machine.weights.override((name) => { const f = bound.fed.get(name); return f && this.#elements(name, f); });
    try {
      writeInputs(machine, bound);
      states?.write(machine.buffers, bound.states, fed);
      runSteps(machine, options);
      // What feeds bind was looked at before; this is for sizes that running told.
      if (machine.arena.symbols.size > known) checkSizes(manifest.checks ?? [], machine.arena.symbols);
      given?.check(manifest.outputs, (p) => resultDims(machine, p));
      states?.take(machine.buffers);
      return Object.fromEntries(manifest.outputs.filter((p) => wanted.has(p.name)).map((p) => [p.name, given?.write(p, machine.buffers) ?? this.#result(machine, p, options.keep?.includes(p.name) ?? false)]));
    } finally {
      machine.buffers.release();
    }
  }

  #wanted(options: RunOptions): ReadonlySet<string> {
    const names = this.outputs.map((o) => o.name), placed = [...(options.keep ?? []), ...Object.keys(options.into ?? {})];
    for (const name of [...(options.outputs ?? []), ...placed]) {
      if (names.includes(name)) continue;
      const near = nearestName(name, names);
      fail("OF7007", `there is no output '${name}'`, { hint: near === undefined ? `the outputs are ${names.map((n) => `'${n}'`).join(", ")}` : `did you mean '${near}'?` });
    }
    return new Set([...(options.outputs ?? names.filter((n) => !this.states.some((s) => s.output === n))), ...placed]);
  }

  #elements(name: string, f: Fed): CoreTensor {
    const dtype = this.inputs.find((i) => i.name === name)?.dtype ?? "float32";
    return { dtype, dims: f.dims, data: isResident(f.data) ? f.data.read() : f.data };
  }

  /** What is held has no memory to stay in, and is given as it is. */
  #result(machine: Machine, p: PortJson, keep: boolean): RunValue {
    const { buffers, heap } = machine, rank = rankOf(machine, p);
    if (!keep || isHeld(p)) return resultOf(atRank(buffers.readDatum(p.buffer), rank));
    const dims = buffers.dims(p.buffer);
    const bytes = sizeOf(dims) * byteSize(p.dtype);
    const address = heap.allocate(bytes);
    const kept = viewBytes(p.dtype, heap.bytes.subarray(address, address + bytes));
    buffers.readInto(p.buffer, dims, kept);
    return new Tensor(p.dtype, this.#resident(address, bytes, p.dtype), resultDims(machine, p));
  }

  #resident(address: number, bytes: number, dtype: DType): Resident {
    let alive = true;
    return {
      owner: this, address, bytes,
      read: () => {
        const heap = alive ? this.#machine?.heap : undefined;
        return heap ? viewBytes(dtype, heap.bytes.slice(address, address + bytes)) : fail("OF7012", "this tensor's memory has been given back");
      },
      free: () => { if (alive) this.#machine?.heap.free(address); alive = false; },
    };
  }
}

const rankOf = ({ arena }: Machine, p: PortJson): number | undefined => (p.rank === undefined ? undefined : arena.size(p.rank));
function resultDims(machine: Machine, p: PortJson): readonly number[] {
  const dims = machine.buffers.dims(p.buffer), rank = rankOf(machine, p);
  return rank === undefined ? dims : dims.slice(dims.length - rank);
}

const isResident = (data: Fed["data"]): data is Resident => "owner" in data;

function writeInputs(machine: Machine, { fed, held }: BoundFeeds): void {
  const { manifest, constants, buffers } = machine;
  for (const input of manifest.inputs) {
    const datum = held.get(input.name);
    if (datum !== undefined) { buffers.writeDatum(input.buffer, datum); continue; }
    if (isWeight(machine, input.buffer)) continue;
    const given = fed.get(input.name);
    if (!given) { if (input.default) buffers.write(input.buffer, constants.read(input.default)); }
    else if (isResident(given.data)) buffers.writeFrom(input.buffer, given.data.address, given.dims);
    else buffers.write(input.buffer, { dtype: input.dtype, dims: given.dims, data: given.data });
  }
}

/** Whether a buffer is a weight's memory, which `Weights` fills. */
function isWeight({ manifest, buffers }: Machine, buffer: number): boolean {
  const { at } = buffers.of(buffer);
  return typeof at === "number" && at < firstArenaByte(manifest.memory);
}
/** Weights lie between the table and the arena. */
const firstArenaByte = ({ table, slots, weightBytes }: Manifest["memory"]): number => table + align(4 * slots) + weightBytes;

/**
 * What an artifact's program does on its own behalf: an error in it that is no diagnostic means that the parts of the
 * artifact, each well-formed, do not fit together (an address past the memory, an operator given another type). OF6008.
 */
async function guarded<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (e) {
    if (e instanceof DiagnosticError || !(e instanceof Error)) throw e;
    throw Object.assign(new DiagnosticError([{ code: "OF6008", message: `the artifact's program does not hold together: ${e.message}`, hint: "compile the model again; if that does not help, this is a bug in onnxfuse" }]), { cause: e });
  }
}

/** Runs the steps; what WebAssembly refuses to compute (an integer divided by zero) is OF7015. */
function runSteps(machine: Machine, { onStep, timeLimit }: RunOptions): void {
  try {
    machine.run({ observer: onStep, until: timeLimit === undefined ? undefined : performance.now() + timeLimit });
  } catch (e) {
    if (e instanceof WebAssembly.RuntimeError) fail("OF7015", `the program cannot compute this: ${e.message}`, { hint: "check the values that are fed" });
    throw e;
  }
}
