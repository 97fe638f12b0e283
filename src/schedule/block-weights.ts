/**
 * Products with quantised weights: a panel of 8 columns is read as 8-bit integers, or two steps at a time as 4-bit ones,
 * less its zero points in int16, widened to float32 and multiplied; at the end of a block the sums are scaled. For one row
 * this is bound by the arithmetic of widening, which four rows share.
 */
import { isSymbolic } from "../core/dim.ts";
import { byteSize, type DType } from "../core/dtype.ts";
import { toNumbers, type Tensor } from "../core/tensor.ts";
import { add, binary, cast, constant, f32x4, i16x8, i32, i32x4, madd, shift, sub, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import type { PackSpec, Weight } from "../kernel/program.ts";
import { assign, type Stmt } from "../kernel/stmt.ts";
import type { MatMulStructure, QuantizedMatrix } from "../kernel/structure.ts";
import { packedLength } from "../memory/pack.ts";
import { plus, times, toIndex } from "./affine.ts";
import { addressOf, loadAt, splatAt, type KernelBuilder } from "./builder.ts";
import type { PanelColumns } from "./gemm.ts";
import type { Accumulators, ARows } from "./tile.ts";

/** How the integers of a panel become numbers. */
export interface BlockWeights {
  readonly kind: "blocks";
  /** 4: two steps in a byte. */
  readonly bits: 4 | 8;
  readonly dtype: DType;
  readonly depth: number;
  readonly block: number;
  /** Panels of int16 zero points, one every block and column; or one for all. */
  readonly zeros: Buffer | number;
  /** Panels of float32 scales, alike. */
  readonly scales: Buffer;
}

interface Packed { readonly kind: BlockWeights; readonly at: (into: Stmt[], positions: ReadonlyMap<Axis, Expr>) => PanelColumns }

/** Columns of a panel. */
export const panelWidth = 8;

/** Packs the weights of a structure that has quantised ones, if all is known when compiling. */
export function packBlockWeights(b: KernelBuilder, s: MatMulStructure): Packed | undefined {
  const { quantized: q } = s, depth = s.k.extent, n = s.n.extent;
  if (!q || isSymbolic(depth) || isSymbolic(n) || depth === 0 || n === 0) return undefined;
  const weight = known(b, q.weight), scales = known(b, q.scales), zeros = q.zeros && known(b, q.zeros);
  if (!weight || !scales || (q.zeros && !zeros)) return undefined;
  const blocks = Math.ceil(depth / q.block), block = Math.min(q.block, depth);
  const [low, high] = range(weight.source), least = high - low < 16 && (block % 2 === 0 || blocks === 1) ? low : undefined;
  const spec = least === undefined ? panels(depth, n, q, weight, weight.weight.buffer.dtype) : nibbles(depth, n, q, weight, least);
  const dtype = least === undefined ? weight.weight.buffer.dtype : "uint8", bits = least === undefined ? 8 : 4;
  const of = b.packed(weight.weight, spec, dtype, packedLength([], spec));
  const scaleSpec = panels(blocks, n, q, scales, "float32");
  const kind: BlockWeights = {
    kind: "blocks", bits, dtype, depth, block,
    scales: b.packed(scales.weight, scaleSpec, "float32", packedLength([], scaleSpec)),
    zeros: zeros ? zeroPanels(b, zeros, blocks, n, q, least ?? 0) : -(least ?? 0),
  };
  const panelBytes = (bits === 4 ? Math.ceil(depth / 2) : depth) * panelWidth;
  return { kind, at: (into) => ({ kind: "panels", pointer: b.let(into, "panels", addressOf(of)), width: panelWidth, panelBytes, stepBytes: panelWidth, alone: true }) };
}

/** Zero points less the least weight: one number where they are all the same. */
function zeroPanels(b: KernelBuilder, zeros: Known, blocks: number, n: number, q: QuantizedMatrix, least: number): Buffer | number {
  const [low, high] = range(zeros.source);
  if (low === high) return low - least;
  const spec: PackSpec = { ...panels(blocks, n, q, zeros, "int16"), ...(least === 0 ? {} : { subtract: least }) };
  return b.packed(zeros.weight, spec, "int16", packedLength([], spec));
}

interface Known { readonly weight: Weight; readonly source: Tensor; readonly rows: number; readonly columns: number; readonly offset: number }

/** A constant matrix, with the distances of its elements. */
function known(b: KernelBuilder, buffer: Buffer): Known | undefined {
  const weight = b.context.weight(buffer), { strides: [rows = 0, columns = 0], offset } = b.layout(buffer);
  if (!weight || "input" in weight.source || isSymbolic(rows) || isSymbolic(columns) || isSymbolic(offset)) return undefined;
  return { weight, source: weight.source, rows, columns, offset };
}
function range(t: Tensor): readonly [number, number] {
  const values = toNumbers(t);
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; i++) { low = Math.min(low, values[i] ?? 0); high = Math.max(high, values[i] ?? 0); }
  return [low, high];
}

const strides = (q: QuantizedMatrix, of: Known): { readonly k: number; readonly n: number } => (q.transposed ? { k: of.columns, n: of.rows } : { k: of.rows, n: of.columns });
const placed = (of: Known) => (of.offset === 0 ? {} : { offset: of.offset });

function panels(k: number, n: number, q: QuantizedMatrix, of: Known, as: DType): PackSpec {
  const by = strides(q, of);
  return { kind: "panels", groups: 1, k, n, nr: panelWidth, kStep: 1, strideG: 0, strideK: [{ size: k, stride: by.k }], strideN: by.n, as, ...placed(of) };
}
function nibbles(k: number, n: number, q: QuantizedMatrix, of: Known, least: number): PackSpec {
  const by = strides(q, of);
  return { kind: "nibbles", k, n, strideK: by.k, strideN: by.n, least, ...placed(of) };
}

/** One step of the contracted axis: its 8 numbers less their zero points as two vectors of float32. */
interface Step { readonly index: 0 | 1; readonly halves: readonly Expr[] }
export interface Block {
  /** Address of the block's scales. */
  readonly scales: Expr;
  /** Loops over the block: `one` for every step, then `after` for the one or two steps done. */
  steps(into: Stmt[], one: (into: Stmt[], step: Step) => void, after: (into: Stmt[], count: 1 | 2) => void): void;
}

/** Loops over the blocks of a panel, whose first column is `column` and whose integers lie from `start` on. */
export function forBlocks(b: KernelBuilder, into: Stmt[], kind: BlockWeights, column: Expr, start: Expr, body: (into: Stmt[], block: Block) => void): void {
  const { depth, block } = kind, blocks = Math.ceil(depth / block), whole = Math.floor(depth / block), rest = depth - whole * block;
  const panel = column.kind === "const" ? constant(Number(column.value) / panelWidth, i32) : binary("shr", column, constant(3, i32));
  const weights = b.let(into, "pb", start), scales = panelOf(b, into, kind.scales, panel, blocks), zeros = typeof kind.zeros === "number" ? undefined : panelOf(b, into, kind.zeros, panel, blocks);
  const one = (inner: Stmt[], steps: number): void => {
    const zero = zeros ? b.let(inner, "zero", loadAt(zeros, 0, "int16", i16x8)) : kind.zeros === 0 ? undefined : constant(Number(kind.zeros), i16x8);
    body(inner, { scales, steps: (target, visit, after) => emitSteps(b, target, kind, { weights, zero, steps }, visit, after) });
    advance(inner, scales, constant(panelWidth * 4, i32));
    if (zeros) advance(inner, zeros, constant(panelWidth * 2, i32));
  };
  if (whole === 1) one(into, block);
  else b.loop(into, "block", 0, constant(whole, i32), 1, whole, (_, inner) => one(inner, block));
  if (rest > 0) one(into, rest);
}

function panelOf(b: KernelBuilder, into: Stmt[], buffer: Buffer, panel: Expr, blocks: number): Expr {
  return b.let(into, "pq", plus(addressOf(buffer), times(panel, blocks * panelWidth * byteSize(buffer.dtype))));
}

interface Run { readonly weights: Expr; readonly zero: Expr | undefined; readonly steps: number }

function emitSteps(b: KernelBuilder, into: Stmt[], kind: BlockWeights, { weights, zero, steps }: Run, visit: (into: Stmt[], step: Step) => void, after: (into: Stmt[], count: 1 | 2) => void): void {
  const pair = kind.bits === 4, count = pair ? 2 : 1, loops = Math.floor(steps / count);
  const one = (body: Stmt[], q: Expr, index: 0 | 1): void => {
    const less = zero ? b.let(body, "q", sub(q, zero)) : q;
    visit(body, { index, halves: (["low", "high"] as const).map((half) => b.let(body, "b", cast({ kind: "extend", a: less, half, type: i32x4 }, "f32"))) });
  };
  const some = (body: Stmt[], done: 1 | 2): void => {
    const v = b.let(body, "v", loadAt(weights, 0, kind.dtype, i16x8));
    one(body, pair ? b.let(body, "q", binary("and", v, constant(15, i16x8))) : v, 0);
    if (done === 2) one(body, b.let(body, "q", shift("shr", v, 4)), 1);
    advance(body, weights, constant(panelWidth, i32));
    after(body, done);
  };
  if (loops > 0) b.loop(into, "k", 0, constant(loops, i32), 1, loops, (_, body) => some(body, count));
  if (steps % count > 0) some(into, 1);
}

/** Adds the whole contracted axis to the accumulators of one panel: totals += scale · Σ a · (q − zero), block by block. */
export function accumulateBlocks(b: KernelBuilder, into: Stmt[], kind: BlockWeights, totals: Accumulators, a: ARows, column: Expr, start: Expr): void {
  const rows = a.pointers.map((p) => b.let(into, "pa", p));
  // A single row has sums of its own for odd steps, so that additions do not wait for each other.
  const chains = kind.bits === 4 && totals.length === 1 ? 2 : 1;
  forBlocks(b, into, kind, column, start, (body, block) => {
    const sums = totals.map((row) => row.map(() => Array.from({ length: chains }, () => b.let(body, "sum", constant(0, f32x4)))));
    block.steps(body, (inner, { index, halves }) => sums.forEach((row, r) => {
      const x = b.let(inner, "a", elementOfA(a, rows, r, index));
      row.forEach((parts, j) => { const sum = parts[index % chains], y = halves[j]; if (sum?.kind === "local" && y) inner.push(assign(sum.name, madd(x, y, sum, b.relaxed))); });
    }), (inner, count) => { for (const row of rows) advance(inner, row, times(toIndex(a.stepBytes), count)); });
    const scales = [0, 16].map((offset) => b.let(body, "scale", loadAt(block.scales, offset, "float32", f32x4)));
    totals.forEach((row, r) => row.forEach((total, j) => {
      const [first, ...more] = sums[r]?.[j] ?? [], scale = scales[j];
      if (total.kind === "local" && first && scale) body.push(assign(total.name, madd(more.reduce((x, y) => add(x, y), first), scale, total, b.relaxed)));
    }));
  });
}

/** A's element in every lane, of row r, `step` steps on. */
function elementOfA(a: ARows, rows: readonly Expr[], r: number, step: number): Expr {
  const row = rows[a.rowBytes === undefined ? r : 0] ?? constant(0, i32), before = a.rowBytes === undefined ? 0 : r * a.rowBytes;
  if (step === 0) return splatAt(row, before, "float32", f32x4);
  return isSymbolic(a.stepBytes) ? splatAt(plus(row, toIndex(a.stepBytes)), before, "float32", f32x4) : splatAt(row, before + a.stepBytes, "float32", f32x4);
}

/** Moves a pointer on. */
export function advance(into: Stmt[], pointer: Expr, by: Expr): void {
  if (pointer.kind === "local") into.push(assign(pointer.name, add(pointer, by)));
}
