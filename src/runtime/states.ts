/**
 * Values that a session keeps from run to run: what a run gave as an output, the next one takes as an input. Nothing of
 * them passes through JavaScript. One that grows lies where kernels read it, in a block with room along its axis: a run
 * writes only what is new, and the block doubles when it is full. Others are copied within memory. Until a run has ended
 * well, the values are those before it; sizes that nothing tells are 0 before the first run, and elements are 0.
 */
import type { Manifest, PortJson, StateJson } from "../artifact/manifest.ts";
import { invariant } from "../core/assert.ts";
import { evaluateDimJson } from "../core/dim-json.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { sizeOf, zeros, type Tensor } from "../core/tensor.ts";
import type { Buffers } from "./buffers.ts";
import type { Heap } from "./heap.ts";

/** Where a state lies, and how far its parts along the axes before the growing one are apart. */
interface Block { readonly at: number; readonly bytes: number; readonly capacity: number }
interface State {
  readonly json: StateJson;
  readonly input: PortJson;
  readonly output: PortJson;
  block: Block | undefined;
  /** Sizes of the value; undefined before the first run. */
  dims: readonly number[] | undefined;
}
type Growing = State & { readonly json: { readonly grows: NonNullable<StateJson["grows"]> } };
const isGrowing = (s: State): s is Growing => s.json.grows !== undefined;

export class States {
  readonly #states: readonly State[];
  readonly #heap: Heap;
  readonly #table: number;

  constructor({ states = [], inputs, outputs, memory }: Manifest, heap: Heap) {
    const find = (ports: readonly PortJson[], name: string): PortJson => {
      const port = ports.find((p) => p.name === name);
      invariant(port, `there is no '${name}'`);
      return port;
    };
    this.#states = states.map((json) => ({ json, input: find(inputs, json.input), output: find(outputs, json.output), block: undefined, dims: undefined }));
    this.#heap = heap;
    this.#table = memory.table;
  }

  /** Whether an input need not be fed. */
  holds(input: string): boolean { return this.#states.some((s) => s.input.name === input); }
  /** Sizes of an input's value; undefined before the first run. */
  dimsOf(input: string): readonly number[] | undefined { return this.#states.find((s) => s.input.name === input)?.dims; }
  isNext(output: string): boolean { return this.#states.some((s) => s.output.name === output); }

  /** Makes room for what a run with these sizes adds, and gives the sizes of the rooms. `fed` are inputs whose value is replaced. */
  reserve(symbols: Map<string, number>, fed: ReadonlySet<string>): void {
    const growing = this.#states.filter(isGrowing);
    for (const capacity of new Set(growing.map((s) => s.json.grows.capacity))) this.#reserveGroup(capacity, growing.filter((s) => s.json.grows.capacity === capacity), symbols, fed);
    const table = new DataView(this.#heap.memory.buffer);
    for (const { json: { grows: { at } }, block } of growing) if (typeof at === "object") table.setUint32(this.#table + 4 * at.slot, block?.at ?? 0, true);
  }

  /** States with one capacity grow together, or not at all. */
  #reserveGroup(name: string, states: readonly Growing[], symbols: Map<string, number>, fed: ReadonlySet<string>): void {
    const needed = Math.max(1, ...states.map(({ json: { grows }, output }) => evaluateDimJson(output.dims[grows.axis] ?? 1, symbols) ?? 0));
    const before = Math.max(0, ...states.map((s) => s.block?.capacity ?? 0));
    const capacity = needed <= before ? before : Math.max(needed, 2 * before);
    symbols.set(name, capacity);
    const bytes = states.map((s) => evaluateDimJson(s.json.grows.bytes, symbols) ?? 0);
    const short = states.flatMap((s, i) => (s.block?.capacity === capacity && s.block.bytes >= (bytes[i] ?? 0) ? [] : [{ state: s, bytes: bytes[i] ?? 0 }]));
    const blocks: Block[] = [];
    try {
      for (const s of short) blocks.push({ at: this.#heap.allocate(s.bytes), bytes: s.bytes, capacity });
    } catch (e) {
      for (const b of blocks) this.#heap.free(b.at);
      throw e;
    }
    short.forEach(({ state }, i) => {
      const block = blocks[i];
      if (block && state.block && state.dims && !fed.has(state.input.name)) this.#move(state, state.dims, state.block, block);
      if (state.block) this.#heap.free(state.block.at);
      state.block = block;
    });
  }

  #move({ json: { grows }, input }: Growing, dims: readonly number[], from: Block, to: Block): void {
    const row = sizeOf(dims.slice(grows.axis + 1)) * byteSize(input.dtype), run = row * (dims[grows.axis] ?? 0), { bytes } = this.#heap;
    for (let i = 0; i < sizeOf(dims.slice(0, grows.axis)); i++) bytes.copyWithin(to.at + i * row * to.capacity, from.at + i * row * from.capacity, from.at + i * row * from.capacity + run);
  }

  /** Writes the inputs that are not fed where kernels read them; `dims` are their sizes. What was fed to a growing one is its value from now on. */
  write(buffers: Buffers, dims: ReadonlyMap<string, readonly number[]>, fed: ReadonlySet<string>): void {
    for (const s of this.#states) {
      const own = dims.get(s.input.name);
      if (isGrowing(s) && fed.has(s.input.name)) s.dims = buffers.dims(s.input.buffer);
      if (!own || fed.has(s.input.name)) continue;
      if (!s.dims) buffers.write(s.input.buffer, zeros(s.input.dtype, own));
      else if (!isGrowing(s) && s.block) buffers.writeFrom(s.input.buffer, s.block.at, own);
    }
  }

  /** Takes over what a run gave. */
  take(buffers: Buffers): void {
    for (const s of this.#states) {
      const dims = buffers.dims(s.output.buffer);
      if (!isGrowing(s)) this.#copy(s, dims, buffers);
      s.dims = dims;
    }
  }
  #copy(state: State, dims: readonly number[], buffers: Buffers): void {
    const { dtype, buffer } = state.output, bytes = sizeOf(dims) * byteSize(dtype);
    if (!state.block || state.block.bytes < bytes) {
      const block = { at: this.#heap.allocate(bytes), bytes, capacity: 0 };
      if (state.block) this.#heap.free(state.block.at);
      state.block = block;
    }
    buffers.readInto(buffer, dims, viewBytes(dtype, this.#heap.bytes.subarray(state.block.at, state.block.at + bytes)));
  }

  /** Copies of the values by input; those of which there is none yet are left out. */
  read(): Readonly<Record<string, Tensor>> {
    return Object.fromEntries(this.#states.flatMap((s): [string, Tensor][] => (s.dims && s.block ? [[s.input.name, this.#valueOf(s, s.dims, s.block)]] : [])));
  }
  #valueOf(state: State, dims: readonly number[], { at, capacity }: Block): Tensor {
    const { dtype } = state.input, out = new Uint8Array(sizeOf(dims) * byteSize(dtype)), { bytes } = this.#heap;
    const axis = isGrowing(state) ? state.json.grows.axis : 0, outer = sizeOf(dims.slice(0, axis)), run = outer === 0 ? 0 : out.length / outer;
    const apart = isGrowing(state) ? capacity * sizeOf(dims.slice(axis + 1)) * byteSize(dtype) : run;
    for (let i = 0; i < outer; i++) out.set(bytes.subarray(at + i * apart, at + i * apart + run), i * run);
    return { dtype, dims, data: viewBytes(dtype, out) };
  }

  /** Forgets all values; their memory stays for the next ones. */
  reset(): void { for (const s of this.#states) s.dims = undefined; }
}
