/**
 * Executes a whole program by interpreting its kernels: the definition of what emitted code must do. Every storage has
 * memory of its own, filled with NaN bits at the start, so that a read before a write shows.
 */
import { invariant, present } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import { asTensor, atRank, isTensor, type Datum } from "../core/datum.ts";
import { evaluateDim, isSymbolic, symbolsOf, type Dim } from "../core/dim.ts";
import { checkValues } from "../core/value-check.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { bytesOf, rowMajorStrides, sizeOf, stringsOf, type Tensor } from "../core/tensor.ts";
import type { Buffer } from "./expr.ts";
import { interpret, type BufferPlace } from "./interpret.ts";
import type { LoopStep, Program, ProgramOutput, Step, Storage } from "./program.ts";

export interface InterpretOptions {
  /** Runs a host step; returns the results in the order of `step.outputs`. */
  readonly host?: (step: Extract<Step, { kind: "host" }>, inputs: readonly (Datum | undefined)[]) => readonly Datum[];
  /** Called after every step that ran. */
  readonly after?: (step: Step, read: (buffer: Buffer) => Datum) => void;
}

/** As `interpretProgramData`, for a program whose results are tensors. */
export function interpretProgram(program: Program, feeds: Readonly<Record<string, Datum>>, options: InterpretOptions = {}): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(interpretProgramData(program, feeds, options)).map(([name, d]) => [name, asTensor(d, name)]));
}

/** Runs `program`, whose weights are all packed as "copy". Sizes are bound by the feeds; throws on missing ones. */
export function interpretProgramData(program: Program, feeds: Readonly<Record<string, Datum>>, options: InterpretOptions = {}): Record<string, Datum> {
  const run = new ProgramRun(program, options);
  for (const input of program.inputs) run.feed(input.buffer, feeds[input.name] ?? (input.buffer.container?.kind === "optional" ? null : present(input.default, `feed ${input.name}`)));
  for (const w of program.weights) {
    if (!("input" in w.source)) run.store(w.buffer, w.source);
    invariant(w.pack.kind === "copy", `weight ${w.buffer.name} is packed`);
  }
  run.steps(program.steps);
  return Object.fromEntries(program.outputs.map((o) => [o.name, run.result(o)]));
}

class ProgramRun {
  readonly #program: Program;
  readonly #options: InterpretOptions;
  readonly #sizes = new Map<string, number>();
  readonly #addresses = new Map<Storage, number>();
  readonly #pending: { readonly buffer: Buffer; readonly datum: Datum }[] = [];
  /** What has no place in memory. */
  readonly #held = new Map<Buffer, Datum>();
  #memory: Uint8Array<ArrayBuffer> = new Uint8Array();

  constructor(program: Program, options: InterpretOptions) {
    this.#program = program;
    this.#options = options;
  }
  #binding = (symbol: string): number => present(this.#sizes.get(symbol), `size ${symbol}`);
  #dim(d: Dim): number { return evaluateDim(d, this.#binding); }

  feed(buffer: Buffer, datum: Datum): void {
    invariant(!isTensor(datum) || buffer.container || datum.dims.length === buffer.shape.length, `${buffer.name} has rank ${buffer.shape.length}`);
    this.#bind(buffer, datum);
    this.#pending.push({ buffer, datum });
  }
  #bind(buffer: Buffer, datum: Datum): void {
    if (buffer.container) return;
    const tensor = asTensor(datum, buffer.name);
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

  /** The value, whatever it is. */
  take(buffer: Buffer): Datum {
    if (!isHeld(buffer)) return this.read(buffer);
    const datum = this.#held.get(buffer);
    invariant(datum !== undefined, `${buffer.name} is read before it is written`);
    return datum;
  }
  store(buffer: Buffer, datum: Datum): void {
    if (isHeld(buffer)) this.#held.set(buffer, datum);
    else this.write(buffer, asTensor(datum, buffer.name));
  }
  #number(buffer: Buffer): number { return Number(asTensor(this.take(buffer), buffer.name).data[0]); }
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

  result({ buffer, rank }: ProgramOutput): Datum {
    return atRank(this.take(buffer), rank === undefined ? undefined : this.#dim(rank));
  }

  steps(steps: readonly Step[]): void {
    for (const { buffer, datum } of this.#pending.splice(0)) this.store(buffer, datum);
    for (const step of steps) {
      this.#step(step);
      this.#options.after?.(step, (b) => this.take(b));
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
        const results = present(this.#options.host, "a way to run host steps")(step, step.inputs.map((b) => b && this.take(b)));
        step.outputs.forEach((buffer, i) => {
          const result = results[i];
          invariant(!buffer || result !== undefined, `${step.op} has no result ${i}`);
          if (buffer && result !== undefined) this.#put(buffer, result);
        });
        return;
      }
      case "if": {
        const { condition } = step;
        const taken = "predicate" in condition ? this.#dim(condition.predicate) : this.#number(condition);
        this.steps(Number(taken) !== 0 ? step.then : step.else);
        return;
      }
      case "move": {
        const values = step.moves.map((m) => atRank(this.take(m.from), m.to.container ? undefined : m.to.shape.length));
        step.moves.forEach((m, i) => this.#put(m.to, values[i] ?? null));
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
    const holds = (b: Buffer | undefined): boolean => b === undefined || this.#number(b) !== 0;
    const trips = count === undefined ? Infinity : "size" in count ? this.#dim(count.size) : this.#number(count);
    let carried = carry.map((c) => this.take(c.initial));
    const slices = stack.map((): Tensor[] => []);
    const around = new Map(this.#sizes);
    for (let i = 0, going = holds(condition); going && i < trips; i++) {
      if (iteration) this.write(iteration, { dtype: "int64", dims: [], data: BigInt64Array.of(BigInt(i)) });
      carry.forEach((c, n) => this.#put(c.input, carried[n] ?? null));
      this.steps(body);
      going = holds(next);
      carried = carry.map((c) => this.take(c.next));
      stack.forEach((s, n) => slices[n]?.push(asTensor(this.take(s.from))));
      this.#forget(around);
    }
    carry.forEach((c, n) => c.result && this.#put(c.result, carried[n] ?? null));
    stack.forEach((s, n) => {
      const list = slices[n] ?? [];
      const dims = list[0]?.dims ?? s.to.shape.slice(1).map((d) => (this.#knows(d) ? this.#dim(d) : 0));
      if (s.to.dtype === "string") { this.#put(s.to, { dtype: "string", dims: [list.length, ...dims], data: list.flatMap(stringsOf) }); return; }
      const bytes = new Uint8Array(list.length * sizeOf(dims) * byteSize(s.to.dtype));
      list.forEach((t, k) => bytes.set(bytesOf(t), k * bytesOf(t).length));
      this.#put(s.to, { dtype: s.to.dtype, dims: [list.length, ...dims], data: viewBytes(s.to.dtype, bytes) });
    });
  }
  #put(buffer: Buffer, datum: Datum): void {
    this.#bind(buffer, datum);
    this.store(buffer, datum);
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
