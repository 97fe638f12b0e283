/**
 * Executes a whole program by interpreting its kernels: the definition of what emitted code must do. Every storage has
 * memory of its own, filled with NaN bits at the start, so that a read before a write shows.
 */
import { invariant, present } from "../core/assert.ts";
import { evaluateDim, isSymbolic, symbolsOf, type Dim } from "../core/dim.ts";
import { checkValues } from "../core/value-check.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { bytesOf, rowMajorStrides, sizeOf, type Tensor } from "../core/tensor.ts";
import type { Buffer } from "./expr.ts";
import { interpret, type BufferPlace } from "./interpret.ts";
import type { LoopStep, Program, Step, Storage } from "./program.ts";

export interface InterpretOptions {
  /** Runs a host step; returns the results in the order of `step.outputs`. */
  readonly host?: (step: Extract<Step, { kind: "host" }>, inputs: readonly (Tensor | undefined)[]) => readonly Tensor[];
  /** Called after every step that ran. */
  readonly after?: (step: Step, read: (buffer: Buffer) => Tensor) => void;
}

/** Runs `program`, whose weights are all packed as "copy". Sizes are bound by the feeds; throws on missing ones. */
export function interpretProgram(program: Program, feeds: Readonly<Record<string, Tensor>>, options: InterpretOptions = {}): Record<string, Tensor> {
  const run = new ProgramRun(program, options);
  for (const input of program.inputs) run.feed(input.buffer, feeds[input.name] ?? present(input.default, `feed ${input.name}`));
  for (const w of program.weights) {
    if (!("input" in w.source)) run.write(w.buffer, w.source);
    invariant(w.pack.kind === "copy", `weight ${w.buffer.name} is packed`);
  }
  run.steps(program.steps);
  return Object.fromEntries(program.outputs.map((o) => [o.name, run.read(o.buffer)]));
}

class ProgramRun {
  readonly #program: Program;
  readonly #options: InterpretOptions;
  readonly #sizes = new Map<string, number>();
  readonly #addresses = new Map<Storage, number>();
  readonly #pending: { readonly buffer: Buffer; readonly tensor: Tensor }[] = [];
  #memory: Uint8Array<ArrayBuffer> = new Uint8Array();

  constructor(program: Program, options: InterpretOptions) {
    this.#program = program;
    this.#options = options;
  }
  #binding = (symbol: string): number => present(this.#sizes.get(symbol), `size ${symbol}`);
  #dim(d: Dim): number { return evaluateDim(d, this.#binding); }

  feed(buffer: Buffer, tensor: Tensor): void {
    invariant(tensor.dims.length === buffer.shape.length, `${buffer.name} has rank ${buffer.shape.length}`);
    this.#bind(buffer, tensor);
    this.#pending.push({ buffer, tensor });
  }
  #bind(buffer: Buffer, tensor: Tensor): void {
    buffer.shape.forEach((d, i) => {
      const only = isSymbolic(d) && d.terms.length === 1 ? d.terms[0] : undefined;
      const atom = only?.coefficient === 1 && only.atoms.length === 1 ? only.atoms[0] : undefined;
      if (atom?.kind === "symbol" && !this.#sizes.has(atom.name)) this.#sizes.set(atom.name, tensor.dims[i] ?? 0);
    });
  }
  /** The address of a storage, given memory when first asked for: its size may only then be known. */
  #address(storage: Storage): number {
    let address = this.#addresses.get(storage);
    if (address === undefined) {
      address = this.#memory.length;
      const grown = new Uint8Array(address + Math.ceil(this.#dim(storage.bytes) / 64) * 64 + 64).fill(0xff);
      grown.set(this.#memory);
      this.#memory = grown;
      this.#addresses.set(storage, address);
    }
    return address;
  }
  #place(buffer: Buffer): BufferPlace {
    const placement = present(this.#program.placements.get(buffer), `placement of ${buffer.name}`);
    const address = this.#address(placement.storage) + this.#dim(placement.layout.offset) * byteSize(buffer.dtype);
    return { address, strides: placement.layout.strides.map((s) => this.#dim(s)) };
  }

  write(buffer: Buffer, tensor: Tensor): void {
    const { address, strides } = this.#place(buffer);
    const size = byteSize(buffer.dtype), bytes = bytesOf(tensor);
    eachElement(tensor.dims, strides, (from, to) => this.#memory.set(bytes.subarray(from * size, (from + 1) * size), address + to * size));
  }
  read(buffer: Buffer): Tensor {
    const { address, strides } = this.#place(buffer);
    const dims = buffer.shape.map((d) => this.#dim(d));
    const size = byteSize(buffer.dtype), bytes = new Uint8Array(sizeOf(dims) * size);
    eachElement(dims, strides, (to, from) => bytes.set(this.#memory.subarray(address + from * size, address + (from + 1) * size), to * size));
    return { dtype: buffer.dtype, dims, data: viewBytes(buffer.dtype, bytes) };
  }

  steps(steps: readonly Step[]): void {
    for (const { buffer, tensor } of this.#pending.splice(0)) this.write(buffer, tensor);
    for (const step of steps) {
      this.#step(step);
      this.#options.after?.(step, (b) => this.read(b));
    }
  }
  #step(step: Step): void {
    switch (step.kind) {
      case "call": {
        const { kernel } = step;
        const places = new Map([...kernel.inputs, ...kernel.outputs, ...kernel.scratch].map((b) => [b, this.#place(b)]));
        interpret(kernel, this.#memory.buffer, places, this.#binding);
        return;
      }
      case "host": {
        const results = present(this.#options.host, "a way to run host steps")(step, step.inputs.map((b) => b && this.read(b)));
        step.outputs.forEach((buffer, i) => { if (buffer) this.#put(buffer, present(results[i], `result ${i}`)); });
        return;
      }
      case "if": {
        const { condition } = step;
        const taken = "predicate" in condition ? this.#dim(condition.predicate) : this.read(condition).data[0];
        this.steps(Number(taken) !== 0 ? step.then : step.else);
        return;
      }
      case "move": {
        const values = step.moves.map((m) => this.read(m.from));
        step.moves.forEach((m, i) => this.#put(m.to, present(values[i], m.from.name)));
        return;
      }
      case "check": {
        const cells = (b: Buffer): BigInt64Array => this.read(b).data as BigInt64Array;
        return checkValues({ ...step, low: cells(step.low), high: cells(step.high), sizes: step.sizes.map((d) => this.#dim(d)) });
      }
      case "loop": return this.#loop(step);
    }
  }
  #loop({ count, condition, next, iteration, body, carry, stack }: LoopStep): void {
    const holds = (b: Buffer | undefined): boolean => b === undefined || Number(this.read(b).data[0]) !== 0;
    const trips = count === undefined ? Infinity : "size" in count ? this.#dim(count.size) : Number(this.read(count).data[0]);
    let carried = carry.map((c) => this.read(c.initial));
    const slices = stack.map((): Tensor[] => []);
    const around = new Map(this.#sizes);
    for (let i = 0, going = holds(condition); going && i < trips; i++) {
      if (iteration) this.write(iteration, { dtype: "int64", dims: [], data: BigInt64Array.of(BigInt(i)) });
      carry.forEach((c, n) => this.#put(c.input, present(carried[n], c.input.name)));
      this.steps(body);
      going = holds(next);
      carried = carry.map((c) => this.read(c.next));
      stack.forEach((s, n) => slices[n]?.push(this.read(s.from)));
      this.#forget(around);
    }
    carry.forEach((c, n) => c.result && this.#put(c.result, present(carried[n], c.input.name)));
    stack.forEach((s, n) => {
      const list = slices[n] ?? [];
      const dims = list[0]?.dims ?? s.to.shape.slice(1).map((d) => (this.#knows(d) ? this.#dim(d) : 0));
      const bytes = new Uint8Array(list.length * sizeOf(dims) * byteSize(s.to.dtype));
      list.forEach((t, k) => bytes.set(bytesOf(t), k * bytesOf(t).length));
      this.#put(s.to, { dtype: s.to.dtype, dims: [list.length, ...dims], data: viewBytes(s.to.dtype, bytes) });
    });
  }
  #put(buffer: Buffer, tensor: Tensor): void {
    this.#bind(buffer, tensor);
    this.write(buffer, tensor);
  }
  #knows(d: Dim): boolean { return [...symbolsOf(d)].every((s) => this.#sizes.has(s)); }
  /** Takes sizes back that were bound since, and the memory that lay by them. */
  #forget(around: ReadonlyMap<string, number>): void {
    for (const name of [...this.#sizes.keys()]) if (!around.has(name)) this.#sizes.delete(name);
    for (const storage of [...this.#addresses.keys()]) if (!this.#knows(storage.bytes)) this.#addresses.delete(storage);
  }
}

/** Calls `visit` with the row-major and the strided index of every element. */
function eachElement(dims: readonly number[], strides: readonly number[], visit: (dense: number, strided: number) => void): void {
  const dense = rowMajorStrides(dims);
  for (let i = 0, n = sizeOf(dims); i < n; i++) {
    let at = 0;
    dims.forEach((d, axis) => { at += (Math.floor(i / (dense[axis] ?? 1)) % d) * (strides[axis] ?? 0); });
    visit(i, at);
  }
}
