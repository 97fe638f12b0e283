/** A loaded program: independent of every other session, used again and again, one run at a time. */
import type { Artifact } from "../artifact/artifact.ts";
import { formatDimJson, type DimJson } from "../core/dim-json.ts";
import type { PortJson } from "../artifact/manifest.ts";
import { fail, nearestName } from "../core/diagnostic.ts";
import { byteSize, viewBytes, type DType } from "../core/dtype.ts";
import { sizeOf, type Tensor as CoreTensor } from "../core/tensor.ts";
import { codeFor, instantiate, type Engine } from "../backends/wasm/load.ts";
import { Arena } from "./arena.ts";
import { Buffers } from "./buffers.ts";
import { bindFeeds, type BoundFeeds, type Fed, type Feeds } from "./feeds.ts";
import { Heap } from "./heap.ts";
import { prepareSteps, type StepObserver } from "./steps.ts";
import { Tensor, type Resident } from "./tensor.ts";
import { readData, Weights } from "./weights.ts";

export interface SessionOptions {
  /** Which code to use; by default the fastest this engine runs. */
  readonly engine?: Engine;
}

export interface RunOptions {
  /** Names of the outputs wanted; by default all. */
  readonly outputs?: readonly string[];
  /** Outputs that stay in WebAssembly memory, to be fed back without copying out; `dispose()` them when done. */
  readonly keep?: readonly string[];
  /** Told of each step after it ran. */
  readonly onStep?: StepObserver;
}

/** An input or output: sizes are numbers, or text where they depend on what is fed. */
export interface Port { readonly name: string; readonly dtype: DType; readonly dims: readonly (number | string)[] }

const port = (p: PortJson): Port => ({ name: p.name, dtype: p.dtype, dims: p.dims.map((d: DimJson) => (typeof d === "number" ? d : formatDimJson(d))) });

export class Session {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The model's metadata_props. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly #artifact: Artifact;
  readonly #heap: Heap;
  readonly #arena: Arena;
  readonly #buffers: Buffers;
  readonly #weights: Weights;
  readonly #run: (observer: StepObserver | undefined) => void;
  #last: Promise<unknown> = Promise.resolve();
  #disposed = false;

  private constructor(artifact: Artifact, heap: Heap, arena: Arena, buffers: Buffers, weights: Weights, run: (observer: StepObserver | undefined) => void) {
    const { manifest } = artifact;
    this.inputs = manifest.inputs.map(port);
    this.outputs = manifest.outputs.map(port);
    this.metadata = manifest.metadata;
    this.#artifact = artifact;
    this.#heap = heap;
    this.#arena = arena;
    this.#buffers = buffers;
    this.#weights = weights;
    this.#run = run;
  }

  /** Instantiates the code, fills the weights and loads host operators. */
  static async create(artifact: Artifact, options: SessionOptions = {}): Promise<Session> {
    const { manifest } = artifact;
    const instance = await instantiate(codeFor(artifact, options.engine));
    const heap = new Heap(instance.memory, manifest.memory.fixedEnd);
    const arena = new Arena(manifest.memory, heap);
    const buffers = new Buffers(manifest.buffers, arena, heap);
    const weights = new Weights(manifest, artifact.weights, heap);
    weights.fill();
    const run = await prepareSteps(manifest, { arena, buffers, instance, weights: artifact.weights });
    return new Session(artifact, heap, arena, buffers, weights, run);
  }

  /** Bytes of WebAssembly memory this session holds. */
  get memoryBytes(): number { return this.#heap.memory.buffer.byteLength; }

  /** Runs the program. Calls made while another runs wait for it. */
  run(feeds: Feeds, options: RunOptions = {}): Promise<Record<string, Tensor>> {
    const result = this.#last.then(() => this.#execute(feeds, options));
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Lets go of the code and its memory. Kept results can no longer be read. */
  dispose(): void { this.#disposed = true; }

  #execute(feeds: Feeds, options: RunOptions): Record<string, Tensor> {
    if (this.#disposed) fail("OF7008", "this session has been disposed");
    const { manifest } = this.#artifact;
    const wanted = this.#wanted(options);
    const bound = bindFeeds(manifest.inputs, feeds, this);
    this.#arena.begin(bound.symbols);
    this.#weights.override((name) => { const f = bound.fed.get(name); return f && this.#elements(name, f); });
    this.#writeInputs(bound);
    this.#run(options.onStep);
    const results: Record<string, Tensor> = {};
    for (const p of manifest.outputs) if (wanted.has(p.name)) results[p.name] = this.#result(p, options.keep?.includes(p.name) ?? false);
    return results;
  }

  #wanted(options: RunOptions): ReadonlySet<string> {
    const names = this.outputs.map((o) => o.name);
    for (const name of [...(options.outputs ?? []), ...(options.keep ?? [])]) {
      if (names.includes(name)) continue;
      const near = nearestName(name, names);
      fail("OF7007", `there is no output '${name}'`, { hint: near === undefined ? `the outputs are ${names.map((n) => `'${n}'`).join(", ")}` : `did you mean '${near}'?` });
    }
    return new Set(options.outputs ? [...options.outputs, ...(options.keep ?? [])] : names);
  }

  #writeInputs({ fed }: BoundFeeds): void {
    const { manifest, weights } = this.#artifact;
    for (const input of manifest.inputs) {
      const given = fed.get(input.name);
      if (!given) {
        if (input.default && !this.#isWeight(input.buffer)) this.#buffers.write(input.buffer, readData(input.default, weights));
      } else if (this.#isWeight(input.buffer)) continue;
      else if (isResident(given.data)) this.#buffers.writeFrom(input.buffer, given.data.address, given.dims);
      else this.#buffers.write(input.buffer, { dtype: input.dtype, dims: given.dims, data: given.data });
    }
  }

  /** Whether a buffer is a weight's memory, which `Weights` fills. */
  #isWeight(buffer: number): boolean {
    const { at } = this.#buffers.of(buffer);
    return typeof at === "number" && this.#artifact.manifest.weights.some((w) => at >= w.at && at < w.at + Math.max(w.bytes, 1));
  }

  #elements(name: string, f: Fed): CoreTensor {
    const dtype = this.inputs.find((i) => i.name === name)?.dtype ?? "float32";
    return { dtype, dims: f.dims, data: isResident(f.data) ? f.data.read() : f.data };
  }

  #result(p: PortJson, keep: boolean): Tensor {
    if (!keep || p.dtype === "string") {
      const t = this.#buffers.read(p.buffer);
      return new Tensor(t.dtype, t.data as never, t.dims);
    }
    const dims = this.#buffers.dims(p.buffer);
    const bytes = sizeOf(dims) * byteSize(p.dtype);
    const address = this.#heap.allocate(bytes);
    const kept = viewBytes(p.dtype, this.#heap.bytes.subarray(address, address + bytes));
    this.#buffers.readInto(p.buffer, dims, kept);
    return new Tensor(p.dtype, this.#resident(address, bytes, p.dtype), dims);
  }

  #resident(address: number, bytes: number, dtype: DType): Resident {
    let alive = true;
    return {
      owner: this, address, bytes,
      read: () => (this.#disposed || !alive ? fail("OF7012", "this tensor's memory has been given back") : viewBytes(dtype, this.#heap.bytes.slice(address, address + bytes))),
      free: () => { if (alive) this.#heap.free(address); alive = false; },
    };
  }
}

const isResident = (data: Fed["data"]): data is Resident => "owner" in data;
