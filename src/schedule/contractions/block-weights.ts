/**
 * Products with quantised weights: a panel of 8 columns is read 16 bytes at a time. Its 8-bit integers, or 4-bit ones less
 * their zero points, are moved to the highest of four bytes by one instruction, so that another gives them, with their
 * sign, as float32 in units of a power of two; less 8-bit zero points they are multiplied, and at the end of a block the
 * sums are scaled. For one row this is bound by that arithmetic, which four rows share.
 */
import { present } from "../../core/assert.ts";
import { isSymbolic } from "../../core/dim.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { toNumbers, type Tensor } from "../../core/tensor.ts";
import { add, binary, bitcast, cast, constant, f32x4, i16x8, i32, i32x4, i8x16, madd, mul, shift, sub, type Axis, type Buffer, type Expr, type Type } from "../../kernel/expr.ts";
import type { PackSpec, Weight } from "../../kernel/program.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import type { MatMulStructure, QuantizedMatrix } from "../../kernel/structure.ts";
import { packedLength } from "../../memory/pack.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, splatAt, type KernelBuilder } from "../builder.ts";
import type { PanelColumns } from "./gemm.ts";
import type { Accumulators, ARows } from "./tile.ts";

/** How the integers of a panel become numbers. */
export interface BlockWeights {
  readonly kind: "blocks";
  /** 4: two steps in a byte; 16: float16, all finite. */
  readonly bits: 4 | 8 | 16;
  /** Weights of 4 bits have no sign yet: their zero points are above 0. */
  readonly unsigned: boolean;
  readonly depth: number;
  readonly block: number;
  /** Panels of int16 zero points, less what weights were packed less, one every block and column; or one for all. */
  readonly zeros: Buffer | number;
  /** Panels of float32 scales, alike; float16 has none. */
  readonly scales?: Buffer;
}

export interface PackedBlocks { readonly kind: BlockWeights; readonly at: (into: Stmt[], positions: ReadonlyMap<Axis, Expr>) => PanelColumns }

/** Columns of a panel. */
export const panelWidth = 8;

const panelBytesOf = ({ bits, depth }: BlockWeights): number => (bits === 4 ? Math.ceil(depth / 2) : (depth * bits) / 8) * panelWidth;
const panelsAt = (b: KernelBuilder, kind: BlockWeights, of: Buffer) => (into: Stmt[]): PanelColumns =>
  ({ kind: "panels", pointer: b.let(into, "panels", addressOf(of)), width: panelWidth, panelBytes: panelBytesOf(kind), stepBytes: panelWidth, alone: true });

/** Panels of finite float16, which `of` holds. */
export function halfWeights(b: KernelBuilder, of: Buffer, depth: number): PackedBlocks {
  const kind: BlockWeights = { kind: "blocks", bits: 16, unsigned: false, depth, block: depth, zeros: 0 };
  return { kind, at: panelsAt(b, kind, of) };
}

/** Packs the weights of a structure that has quantised ones, if all is known when compiling. */
export function packBlockWeights(b: KernelBuilder, s: MatMulStructure): PackedBlocks | undefined {
  const { quantized: q } = s, depth = s.k.extent, n = s.n.extent;
  if (!q || isSymbolic(depth) || isSymbolic(n) || depth === 0 || n === 0) return undefined;
  const weight = known(b, q.weight), scales = known(b, q.scales), zeros = q.zeros && known(b, q.zeros);
  if (!weight || !scales || (q.zeros && !zeros)) return undefined;
  const blocks = Math.ceil(depth / q.block), block = Math.min(q.block, depth);
  const span = b.context.contents(weight.weight, range), points = zeros ? b.context.contents(zeros.weight, range) : [0, 0] as const;
  if (!span || !points) return undefined;
  const { bits, middle, unsigned } = packing(span, points, block % 2 === 0 || blocks === 1);
  const spec = bits === 8 ? panels(depth, n, q, weight, "int8", middle) : nibbles(depth, n, q, weight, middle);
  const of = b.packed(weight.weight, spec, bits === 8 ? "int8" : "uint8", packedLength([], spec));
  const scaleSpec = panels(blocks, n, q, scales, "float32"), zeroSpec = zeros && panels(blocks, n, q, zeros, "int16", middle);
  const kind: BlockWeights = {
    kind: "blocks", bits, unsigned, depth, block,
    scales: b.packed(scales.weight, scaleSpec, "float32", packedLength([], scaleSpec)),
    zeros: zeros && zeroSpec && points[0] !== points[1] ? b.packed(zeros.weight, zeroSpec, "int16", packedLength([], zeroSpec)) : points[0] - middle,
  };
  return { kind, at: panelsAt(b, kind, of) };
}

type Range = readonly [number, number];
/**
 * How many bits weights take, and what they are packed less: the zero point where signed integers of those bits hold the
 * difference, which then costs nothing; else for 4 bits the least of all weights and zero points, for 8 what makes them fit.
 */
function packing([low, high]: Range, [zero, last]: Range, inPairs: boolean): { readonly bits: 4 | 8; readonly middle: number; readonly unsigned: boolean } {
  const fits = (half: number, less: number): boolean => low - less >= -half && high - less < half;
  const least = Math.min(low, zero), one = zero === last;
  if (inPairs && one && fits(8, zero)) return { bits: 4, middle: zero, unsigned: false };
  if (inPairs && Math.max(high, last) - least < 16) return { bits: 4, middle: least, unsigned: true };
  return { bits: 8, middle: one && fits(128, zero) ? zero : fits(128, 0) ? 0 : low + 128, unsigned: false };
}

interface Known { readonly weight: Weight; readonly rows: number; readonly columns: number; readonly offset: number }

/** A constant matrix, with the distances of its elements. */
function known(b: KernelBuilder, buffer: Buffer): Known | undefined {
  const weight = b.context.weight(buffer), { strides: [rows = 0, columns = 0], offset } = b.layout(buffer);
  if (!weight || "input" in weight.source || isSymbolic(rows) || isSymbolic(columns) || isSymbolic(offset)) return undefined;
  return { weight, rows, columns, offset };
}
function range(t: Tensor): Range {
  const values = toNumbers(t);
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; i++) { low = Math.min(low, values[i] ?? 0); high = Math.max(high, values[i] ?? 0); }
  return [low, high];
}

const strides = (q: QuantizedMatrix, of: Known): { readonly k: number; readonly n: number } => (q.transposed ? { k: of.columns, n: of.rows } : { k: of.rows, n: of.columns });
const placed = (of: Known) => (of.offset === 0 ? {} : { offset: of.offset });

function panels(k: number, n: number, q: QuantizedMatrix, of: Known, as: DType, subtract = 0): PackSpec {
  const by = strides(q, of);
  return { kind: "panels", groups: 1, k, n, nr: panelWidth, kStep: 1, strideG: 0, strideK: [{ size: k, stride: by.k }], strideN: by.n, as, ...(subtract === 0 ? {} : { subtract }), ...placed(of) };
}
function nibbles(k: number, n: number, q: QuantizedMatrix, of: Known, middle: number): PackSpec {
  const by = strides(q, of);
  return { kind: "nibbles", k, n, strideK: by.k, strideN: by.n, middle, ...placed(of) };
}

/** One step of the contracted axis, by its number within a turn: its numbers less their zero points, in the block's units, two vectors of float32 a panel. */
interface Step { readonly index: number; readonly halves: readonly Expr[] }
export interface Block {
  /** The block's scales, for numbers in its units; none: the numbers are the weights. */
  readonly scales: readonly Expr[];
  /** Loops over the block: `one` for every step, then `after` for the steps of a turn. */
  steps(into: Stmt[], one: (into: Stmt[], step: Step) => void, after: (into: Stmt[], count: number) => void): void;
}

/** What the lowest of a weight's bits is worth where it stands: in the highest of four bytes, of 4 signed bits in its upper half. */
const unitOf = ({ bits, unsigned }: BlockWeights): number => (bits === 8 || unsigned ? 2 ** 24 : 2 ** 28);

/** Loops over the blocks of some panels side by side, whose first column is `column` and whose integers lie from `start` on. */
export function forBlocks(b: KernelBuilder, into: Stmt[], kind: BlockWeights, panels: number, column: Expr, start: Expr, body: (into: Stmt[], block: Block) => void): void {
  const { depth, block } = kind, blocks = Math.ceil(depth / block), whole = Math.floor(depth / block), rest = depth - whole * block, unit = unitOf(kind);
  const panel = column.kind === "const" ? constant(Number(column.value) / panelWidth, i32) : binary("shr", column, constant(3, i32));
  const weights = b.let(into, "pb", start), scales = kind.scales && panelOf(b, into, kind.scales, panel, blocks), zeros = typeof kind.zeros === "number" ? undefined : panelOf(b, into, kind.zeros, panel, blocks);
  const each = <T>(of: (p: number) => T): T[] => Array.from({ length: panels }, (_, p) => of(p));
  const one = (inner: Stmt[], steps: number): void => {
    const own = !scales ? [] : each((p) => [0, 16].map((offset) => b.let(inner, "scale", mul(loadAt(scales, p * blocks * panelWidth * 4 + offset, "float32", f32x4), constant(1 / unit, f32x4))))).flat();
    const points = each((p) => zerosOf(b, inner, kind, zeros, p * blocks * panelWidth * 2));
    body(inner, { scales: own, steps: (target, visit, after) => (kind.bits === 16 ? emitHalves : emitSteps)(b, target, kind, { weights, panelBytes: panelBytesOf(kind), zeros: points, steps }, visit, after) });
    if (scales) advance(inner, scales, constant(panelWidth * 4, i32));
    if (zeros) advance(inner, zeros, constant(panelWidth * 2, i32));
  };
  if (whole === 1) one(into, block);
  else b.loop(into, "block", 0, constant(whole, i32), 1, whole, (_, inner) => one(inner, block));
  if (rest > 0) one(into, rest);
}

/** The zero points of a block's columns: of 4-bit weights as bytes, for 16 weights or (`spread`) every other one of 8; else as float32 in the block's units. */
interface Zeros { readonly bytes?: Expr; readonly spread?: Expr; readonly halves?: readonly Expr[] }
function zerosOf(b: KernelBuilder, into: Stmt[], kind: BlockWeights, at: Expr | undefined, offset: number): Zeros {
  const { zeros, bits } = kind, unit = unitOf(kind);
  if (typeof zeros === "number") {
    if (zeros === 0) return {};
    return bits === 4 ? { bytes: constant(zeros, i8x16), spread: constant(zeros, i8x16) } : { halves: [0, 1].map(() => constant(zeros * unit, f32x4)) };
  }
  const points = b.let(into, "zero", loadAt(at ?? addressOf(zeros), offset, "int16", i16x8));
  if (bits === 4) {
    const spread = bitcast(points, i8x16), twice = Array.from({ length: 16 }, (_, i) => 2 * (i % panelWidth));
    return { spread, bytes: b.let(into, "zero", { kind: "shuffle", a: spread, b: spread, bytes: twice, type: i8x16 }) };
  }
  return { halves: (["low", "high"] as const).map((half) => b.let(into, "zero", mul(cast({ kind: "extend", a: points, half, type: i32x4 }, "f32"), constant(unit, f32x4)))) };
}

function panelOf(b: KernelBuilder, into: Stmt[], buffer: Buffer, panel: Expr, blocks: number): Expr {
  return b.let(into, "pq", plus(addressOf(buffer), times(panel, blocks * panelWidth * byteSize(buffer.dtype))));
}

interface Run { readonly weights: Expr; readonly panelBytes: number; readonly zeros: readonly Zeros[]; readonly steps: number }

function emitSteps(b: KernelBuilder, into: Stmt[], { bits, unsigned }: BlockWeights, { weights, panelBytes, zeros, steps }: Run, visit: (into: Stmt[], step: Step) => void, after: (into: Stmt[], count: number) => void): void {
  const each = 8 / bits, turn = 2 * each, turns = Math.floor(steps / turn);
  /** A step's weights, of every panel: its bytes are `apart` from each other, from byte `from` on. */
  const one = (body: Stmt[], bytes: readonly Expr[], from: number, apart: number, index: number): void => visit(body, {
    index, halves: bytes.flatMap((v, p) => [0, 1].map((half) => {
      const value = cast(onTop(v, from + 4 * half * apart, apart), "f32"), zero = zeros[p]?.halves?.[half];
      return b.let(body, "b", zero ? sub(value, zero) : value);
    })),
  });
  /** Vectors of bytes for steps of even and odd numbers. */
  const parts = (body: Stmt[], v: Expr, zero: Expr | undefined): readonly Expr[] =>
    (bits === 8 ? [v] : nibblesOf(v, unsigned)).map((x) => b.let(body, "v", zero ? sub(x, zero) : x));
  if (turns > 0) b.loop(into, "k", 0, constant(turns, i32), 1, turns, (_, body) => {
    const parities = zeros.map((z, p) => parts(body, loadAt(weights, p * panelBytes, "int8", i8x16), z.bytes));
    for (const part of [0, 1]) for (let parity = 0; parity < each; parity++) one(body, parities.map((of) => present(of[parity], "parity")), part * panelWidth, 1, part * each + parity);
    advance(body, weights, constant(2 * panelWidth, i32));
    after(body, turn);
  });
  for (let done = turns * turn; done < steps; done += each) {
    const parities = zeros.map((z, p) => parts(into, bitcast(loadAt(weights, p * panelBytes, "int8", i16x8), i8x16), z.spread)), count = Math.min(each, steps - done);
    for (let parity = 0; parity < count; parity++) one(into, parities.map((of) => present(of[parity], "parity")), 0, 2, parity);
    advance(into, weights, constant(panelWidth, i32));
    after(into, count);
  }
}

/** Float16 that is finite, by what moves its exponent; 2^112 makes up for the difference of the exponents' zeros, also of denormals. */
function emitHalves(b: KernelBuilder, into: Stmt[], _kind: BlockWeights, { weights, panelBytes, zeros: panels, steps }: Run, visit: (into: Stmt[], step: Step) => void, after: (into: Stmt[], count: number) => void): void {
  b.loop(into, "k", 0, constant(steps, i32), 1, steps, (_, body) => {
    const halves = panels.flatMap((_z, p) => [0, 8].map((offset) => {
      const signed = shift("shl", loadAt(weights, p * panelBytes + offset, "int16", i32x4), 13);
      return b.let(body, "b", mul(bitcast(binary("and", signed, constant(0x8fffe000 - 2 ** 32, i32x4)), f32x4), constant(2 ** 112, f32x4)));
    }));
    visit(body, { index: 0, halves });
    advance(body, weights, constant(panelWidth * 2, i32));
    after(body, 1);
  });
}

/** The low and the high halves of bytes: signed ones at the top of their byte, others as numbers from 0 to 15. */
function nibblesOf(v: Expr, isUnsigned: boolean): readonly [Expr, Expr] {
  const words = bitcast(v, i16x8), masked = (x: Expr, mask: number): Expr => bitcast(binary("and", x, constant(mask, i16x8)), i8x16);
  return isUnsigned ? [masked(words, 0x0f0f), masked(shift("shr", words, 4), 0x0f0f)] : [masked(shift("shl", words, 4), 0xf0f0 - 0x10000), masked(words, 0xf0f0 - 0x10000)];
}

/** Four bytes of a vector, `apart` from each other, from number `from` on, each the highest of four whose others are 0. */
function onTop(v: Expr, from: number, apart: number): Expr {
  const numbers = Array.from({ length: 16 }, (_, i) => (i % 4 === 3 ? from + (i >> 2) * apart : -128));
  return { kind: "swizzle", a: v, b: { kind: "lanes", elements: numbers.map((n) => constant(n, i8)), type: i8x16 }, type: i32x4 };
}
const i8: Type = { scalar: "i8", lanes: 1 };

/** Adds the whole contracted axis to the accumulators of a panel, or of several: totals += scale · Σ a · (q − zero), block by block. */
export function accumulateBlocks(b: KernelBuilder, into: Stmt[], kind: BlockWeights, totals: Accumulators, a: ARows, column: Expr, start: Expr): void {
  const rows = a.pointers.map((p) => b.let(into, "pa", p));
  const panels = (totals[0]?.length ?? 2) / 2;
  // A single row of one panel has sums of its own for odd steps, so that additions do not wait for each other.
  const chains = totals.length * panels === 1 && kind.scales ? 2 : 1;
  forBlocks(b, into, kind, panels, column, start, (body, block) => {
    const sums = totals.map((row) => row.map((total) => (kind.scales ? Array.from({ length: chains }, () => b.let(body, "sum", constant(0, f32x4))) : [total])));
    block.steps(body, (inner, { index, halves }) => sums.forEach((row, r) => {
      const x = b.let(inner, "a", elementOfA(a, rows, r, index));
      row.forEach((parts, j) => { const sum = parts[index % chains], y = halves[j]; if (sum?.kind === "local" && y) inner.push(assign(sum.name, madd(x, y, sum, b.relaxed))); });
    }), (inner, count) => { for (const row of rows) advance(inner, row, times(toIndex(a.stepBytes), count)); });
    if (kind.scales) totals.forEach((row, r) => row.forEach((total, j) => {
      const [first, ...more] = sums[r]?.[j] ?? [], scale = block.scales[j];
      if (total.kind === "local" && first && scale) body.push(assign(total.name, madd(more.reduce((x, y) => add(x, y), first), scale, total, b.relaxed)));
    }));
  });
}

/** A's element in every lane, of row r, `step` steps on. */
function elementOfA(a: ARows, rows: readonly Expr[], r: number, step: number): Expr {
  const row = rows[a.rowBytes === undefined ? r : 0] ?? constant(0, i32), before = a.rowBytes === undefined ? 0 : r * a.rowBytes;
  if (step === 0) return splatAt(row, before, "float32", f32x4);
  return isSymbolic(a.stepBytes) ? splatAt(plus(row, times(toIndex(a.stepBytes), step)), before, "float32", f32x4) : splatAt(row, before + step * a.stepBytes, "float32", f32x4);
}

/** Moves a pointer on. */
export function advance(into: Stmt[], pointer: Expr, by: Expr): void {
  if (pointer.kind === "local") into.push(assign(pointer.name, add(pointer, by)));
}
