/**
 * Builds WebAssembly modules: function types, functions with typed locals, variables, one memory, exports. Functions are lists of
 * instructions, so that the same function can be encoded and printed. Guarantees a well-formed encoding, not a valid
 * program: `WebAssembly.validate` checks that.
 */
import { invariant, present } from "../../core/assert.ts";
import { signed, unsigned, type Opcode } from "./opcodes.ts";

export type ValueType = "i32" | "i64" | "f32" | "f64" | "v128";
export interface FunctionType { readonly params: readonly ValueType[]; readonly results: readonly ValueType[] }

export type Instruction =
  | { readonly kind: "plain"; readonly op: Opcode; readonly relaxable?: true }
  | { readonly kind: "memory"; readonly op: Opcode; readonly offset: number; readonly lane?: number }
  | { readonly kind: "lane"; readonly op: Opcode; readonly lane: number }
  | { readonly kind: "local"; readonly op: "get" | "set" | "tee"; readonly index: number }
  | { readonly kind: "global"; readonly op: "get" | "set"; readonly index: number }
  | { readonly kind: "const"; readonly type: Exclude<ValueType, "v128">; readonly value: number | bigint; readonly relaxable?: true }
  | { readonly kind: "bytes"; readonly op: "v128.const" | "i8x16.shuffle"; readonly bytes: readonly number[] }
  | { readonly kind: "begin"; readonly op: "block" | "loop" | "if"; readonly result: ValueType | undefined }
  | { readonly kind: "else" } | { readonly kind: "end" }
  | { readonly kind: "branch"; readonly op: "br" | "br_if"; readonly depth: number }
  | { readonly kind: "call"; readonly target: number };

/** A function in the making. Instructions are appended in order. */
export class FunctionBuilder {
  readonly name: string;
  readonly type: FunctionType;
  readonly locals: ValueType[] = [];
  readonly instructions: Instruction[] = [];
  private readonly set: ReadonlyMap<string, Opcode>;

  constructor(name: string, type: FunctionType, set: ReadonlyMap<string, Opcode>) {
    this.name = name;
    this.type = type;
    this.set = set;
  }

  /** Declares a local and gives its index; parameters come first. */
  local(type: ValueType): number {
    this.locals.push(type);
    return this.type.params.length + this.locals.length - 1;
  }
  /** An instruction without immediates. */
  op(name: string): void {
    const op = this.opcode(name);
    invariant(op.immediates === "none", `${name} takes immediates`);
    this.instructions.push({ kind: "plain", op });
  }
  /** As `op`; an engine with relaxed SIMD may do better here (relax.ts). */
  relaxable(name: "f32x4.mul" | "f32x4.add"): void {
    this.instructions.push({ kind: "plain", op: this.opcode(name), relaxable: true });
  }
  /** 1 where the engine has relaxed SIMD, else 0. */
  relaxed(): void { this.instructions.push({ kind: "const", type: "i32", value: 0, relaxable: true }); }
  /** i32x4.relaxed_dot_i8x16_i7x16_add_s; code that other engines never reach, which is something else of its type there. */
  byteDot(): void {
    this.instructions.push({ kind: "plain", op: this.opcode("v128.bitselect"), relaxable: true });
    this.op("nop");
  }
  /** A load or store at a byte offset of at least 0. */
  memory(name: string, offset: number, lane?: number): void {
    invariant(Number.isInteger(offset) && offset >= 0 && offset < 2 ** 32, `offset ${offset}`);
    const op = this.opcode(name);
    invariant(op.immediates === (lane === undefined ? "memory" : "memoryLane"), `immediates of ${name}`);
    this.instructions.push(lane === undefined ? { kind: "memory", op, offset } : { kind: "memory", op, offset, lane });
  }
  lane(name: string, lane: number): void {
    this.instructions.push({ kind: "lane", op: this.opcode(name), lane });
  }
  get(index: number): void {
    const last = this.instructions.at(-1);
    if (last?.kind === "local" && last.op === "set" && last.index === index) this.instructions[this.instructions.length - 1] = { kind: "local", op: "tee", index };
    else this.instructions.push({ kind: "local", op: "get", index });
  }
  setLocal(index: number): void { this.instructions.push({ kind: "local", op: "set", index }); }
  tee(index: number): void { this.instructions.push({ kind: "local", op: "tee", index }); }
  getGlobal(index: number): void { this.instructions.push({ kind: "global", op: "get", index }); }
  setGlobal(index: number): void { this.instructions.push({ kind: "global", op: "set", index }); }
  constant(type: Exclude<ValueType, "v128">, value: number | bigint): void { this.instructions.push({ kind: "const", type, value }); }
  vector(bytes: readonly number[]): void {
    invariant(bytes.length === 16, `v128 of ${bytes.length} bytes`);
    this.instructions.push({ kind: "bytes", op: "v128.const", bytes });
  }
  shuffle(bytes: readonly number[]): void {
    invariant(bytes.length === 16 && bytes.every((b) => b >= 0 && b < 32), "shuffle picks 16 of 32 bytes");
    this.instructions.push({ kind: "bytes", op: "i8x16.shuffle", bytes });
  }
  begin(op: "block" | "loop" | "if", result?: ValueType): void { this.instructions.push({ kind: "begin", op, result }); }
  else(): void { this.instructions.push({ kind: "else" }); }
  end(): void { this.instructions.push({ kind: "end" }); }
  branch(op: "br" | "br_if", depth: number): void { this.instructions.push({ kind: "branch", op, depth }); }
  call(target: number): void { this.instructions.push({ kind: "call", target }); }

  private opcode(name: string): Opcode {
    return present(this.set.get(name), `instruction ${name}`);
  }
}

export interface WasmFunction {
  readonly name: string;
  readonly type: FunctionType;
  readonly locals: readonly ValueType[];
  readonly instructions: readonly Instruction[];
}
export interface ModuleSpec {
  readonly functions: readonly WasmFunction[];
  /** Pages of 64 KiB; the memory is exported as `memory` and may grow. */
  readonly memoryPages: number;
  /** Functions exported, by index. */
  readonly exports: readonly { readonly name: string; readonly function: number }[];
  /** Mutable i32 variables, 0 at the start. */
  readonly globals?: number;
  /** The memory is shared by threads: imported, as `memory` of `env`, and of so many pages at most. */
  readonly sharedPages?: number;
}

const valueTypes: Readonly<Record<ValueType, number>> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b };
const constantOps: Readonly<Record<Exclude<ValueType, "v128">, number>> = { i32: 0x41, i64: 0x42, f32: 0x43, f64: 0x44 };
const structured = { block: 0x02, loop: 0x03, if: 0x04 } as const;
const branches = { br: 0x0c, br_if: 0x0d } as const;
const localOps = { get: 0x20, set: 0x21, tee: 0x22 } as const;
const globalOps = { get: 0x23, set: 0x24 } as const;

/** The module's bytes. `bodies`: its functions, where they have been encoded before. */
export function encodeModule(spec: ModuleSpec, bodies: readonly Uint8Array[] = spec.functions.map(encodeFunction)): Uint8Array<ArrayBuffer> {
  const count = unsigned(spec.functions.length);
  const size = bodies.reduce((n, b) => n + b.length, count.length);
  return concatenate([encodeHead(spec), [10, ...unsigned(size), ...count], ...bodies]);
}

/** All sections in front of the functions' bodies. */
export function encodeHead(spec: ModuleSpec): Uint8Array<ArrayBuffer> {
  const types = new Map<string, { index: number; bytes: number[] }>();
  const typeIndex = (t: FunctionType): number => {
    const bytes = [0x60, ...list(t.params.map((v) => [valueTypes[v]])), ...list(t.results.map((v) => [valueTypes[v]]))];
    const key = bytes.join();
    const known = types.get(key) ?? { index: types.size, bytes };
    types.set(key, known);
    return known.index;
  };
  const declared = spec.functions.map((f) => unsigned(typeIndex(f.type)));
  const sections: [number, readonly (readonly number[] | Uint8Array)[]][] = [
    [1, [...types.values()].map((t) => t.bytes)],
    [2, spec.sharedPages === undefined ? [] : [[...text("env"), ...text("memory"), 0x02, 0x03, ...unsigned(spec.memoryPages), ...unsigned(spec.sharedPages)]]],
    [3, declared],
    [5, spec.sharedPages === undefined ? [[0x00, ...unsigned(spec.memoryPages)]] : []],
    [6, Array.from({ length: spec.globals ?? 0 }, () => [0x7f, 0x01, 0x41, 0x00, 0x0b])],
    [7, [[...text("memory"), 0x02, 0x00], ...spec.exports.map((e) => [...text(e.name), 0x00, ...unsigned(e.function)])]],
  ];
  const chunks: (readonly number[] | Uint8Array)[] = [[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]];
  for (const [id, entries] of sections) {
    if (entries.length === 0) continue;
    const count = unsigned(entries.length);
    const size = entries.reduce((n, e) => n + e.length, count.length);
    chunks.push([id, ...unsigned(size), ...count], ...entries);
  }
  return concatenate(chunks);
}

/** A function's body with its size in front: equal bytes and type mean equal functions. */
export function encodeFunction(f: WasmFunction): Uint8Array { return encodeBody(f).bytes; }

/** A function's body with its size in front, and where in it the instructions lie that are `relaxable`. */
export interface EncodedBody { readonly bytes: Uint8Array; readonly relaxable: readonly number[] }

export function encodeBody(f: WasmFunction): EncodedBody {
  const body: number[] = list(runs(f.locals).map(([type, count]) => [...unsigned(count), valueTypes[type]])), relaxable: number[] = [];
  for (const instruction of f.instructions) {
    if ((instruction.kind === "plain" || instruction.kind === "const") && instruction.relaxable) relaxable.push(body.length);
    encodeInstruction(instruction, body);
  }
  body.push(0x0b);
  const size = unsigned(body.length);
  return { bytes: concatenate([size, body]), relaxable: relaxable.map((at) => at + size.length) };
}

function encodeInstruction(i: Instruction, out: number[]): void {
  switch (i.kind) {
    case "plain": append(out, i.op.bytes); return;
    case "memory":
      append(out, i.op.bytes);
      out.push(i.op.align);
      appendUnsigned(out, i.offset);
      if (i.lane !== undefined) out.push(i.lane);
      return;
    case "lane": append(out, i.op.bytes); out.push(i.lane); return;
    case "local": out.push(localOps[i.op]); appendUnsigned(out, i.index); return;
    case "global": out.push(globalOps[i.op]); appendUnsigned(out, i.index); return;
    case "const": out.push(constantOps[i.type]); appendConstant(out, i.type, i.value); return;
    case "bytes": out.push(0xfd, i.op === "v128.const" ? 12 : 13); append(out, i.bytes); return;
    case "begin": out.push(structured[i.op], i.result === undefined ? 0x40 : valueTypes[i.result]); return;
    case "else": out.push(0x05); return;
    case "end": out.push(0x0b); return;
    case "branch": out.push(branches[i.op]); appendUnsigned(out, i.depth); return;
    case "call": out.push(0x10); appendUnsigned(out, i.target); return;
  }
}
function append(out: number[], bytes: ArrayLike<number>): void { for (let i = 0; i < bytes.length; i++) out.push(bytes[i] ?? 0); }
function appendUnsigned(out: number[], n: number): void {
  for (; n >= 128; n = Math.floor(n / 128)) out.push((n % 128) | 128);
  out.push(n);
}
function appendSigned(out: number[], n: number): void {
  for (; n < -64 || n >= 64; n >>= 7) out.push((n & 127) | 128);
  out.push(n & 127);
}
function appendConstant(out: number[], type: Exclude<ValueType, "v128">, value: number | bigint): void {
  if (type === "i32") {
    invariant(typeof value === "bigint" || Number.isInteger(value), `i32.const ${value}`);
    return appendSigned(out, typeof value === "number" ? value | 0 : Number(BigInt.asIntN(32, value)));
  }
  if (type === "i64") return append(out, signed(BigInt.asIntN(64, BigInt(value))));
  const view = new DataView(new ArrayBuffer(type === "f32" ? 4 : 8));
  if (type === "f32") view.setFloat32(0, Number(value), true);
  else view.setFloat64(0, Number(value), true);
  append(out, new Uint8Array(view.buffer));
}

const list = (entries: readonly (readonly number[])[]): number[] => [...unsigned(entries.length), ...entries.flat()];
const text = (s: string): number[] => { const bytes = [...new TextEncoder().encode(s)]; return [...unsigned(bytes.length), ...bytes]; };
function runs(types: readonly ValueType[]): [ValueType, number][] {
  const out: [ValueType, number][] = [];
  for (const t of types) {
    const last = out.at(-1);
    if (last && last[0] === t) last[1]++;
    else out.push([t, 1]);
  }
  return out;
}
/** All bytes, one after the other. */
export function concatenate(chunks: readonly (readonly number[] | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(chunks.reduce((n, c) => n + c.length, 0));
  let at = 0;
  for (const c of chunks) {
    out.set(c, at);
    at += c.length;
  }
  return out;
}
