/**
 * Matrix products as register-tiled loops. Constant right operands are packed into panels when compiling; others are
 * read in place where their columns are contiguous, or gathered into panels. Left operands are read in place at any
 * strides; computed ones (dequantised, index maps) are gathered a block of rows at a time.
 */
import { present } from "../../core/assert.ts";
import { dimCeilDiv, dimEqual, dimFloorDiv, dimMul, dimProduct, isSymbolic, type Dim } from "../../core/dim.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { binary, constant, i32, min, sub, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { PanelSpec } from "../../kernel/program.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { EpilogueStore, MatMulStructure } from "../../kernel/structure.ts";
import { affineAccess, bytesAlong, mentions, plus, sizeValue, substituteAxes, times, toIndex, type AffineAccess } from "../loops/affine.ts";
import { addressOf, storeAt, type KernelBuilder } from "../builder.ts";
import { collapses, collapsibleAxes, Epilogue } from "./epilogue.ts";
import { halfWeights, packBlockWeights, type PackedBlocks } from "./block-weights.ts";
import { asByte, byteShift, eitherEngine, emitBytes, quadPanels, sumBehind, sumOfBytes, termsAt } from "./byte-dots.ts";
import { emitFill } from "../fill.ts";
import { emitGemm, type DirectRows, type DotColumns, type GatheredRows, type PanelColumns, type RowColumns } from "./gemm.ts";
import { packedLength } from "../../memory/pack.ts";
import { emitWiden, integerOperand, knownZeroPoints, packedDtype, splatZero } from "./integer.ts";
import { rowValues } from "../loops/rows.ts";
import type { TileKind } from "./tile.ts";

/** How the operands are multiplied: float32, or 8-bit integers as pairs of int16. */
interface Multiplication {
  readonly kind: TileKind;
  /** Steps of the contracted axis, and elements of a gathered row. */
  readonly steps: Dim;
  readonly depth: Dim;
  /** Engines with relaxed SIMD multiply quads of bytes. */
  readonly quads?: boolean;
}

/** Loops for a product of float32, perhaps with quantised weights, or of 8-bit integers into int32; undefined for others. */
export function scheduleMatMul(b: KernelBuilder, structure: MatMulStructure): Stmt | undefined {
  const s = withoutUnitAxes(structure);
  const integer = s.accumulator.type.scalar === "i32";
  if (s.accumulator.type.scalar !== "f32" && !(integer && integerOperand(s.a) && integerOperand(s.b))) return undefined;
  const { rows, outer } = splitRows(b, s);
  const body: Stmt[] = [];
  const positions = new Map<Axis, Expr>();
  const blocks = packBlockWeights(b, s) ?? packHalves(b, s), packed = blocks ?? packWeight(b, s, rows);
  const others = (s.others ?? []).map((o) => packWeight(b, { ...s, b: o.b }, rows));
  if (others.length > 0 && (integer || blocks || !packed || others.some((o) => o === undefined))) return undefined;
  const pairs = dimCeilDiv(s.k.extent, 2);
  const how: Multiplication = blocks ? { kind: blocks.kind, steps: s.k.extent, depth: s.k.extent } : integer ? { kind: { kind: "pairs", b: packed && "dtype" in packed ? packed.dtype : "int16" }, steps: pairs, depth: dimMul(pairs, 2), quads: packed !== undefined && "quads" in packed && packed.quads } : { kind: { kind: "float" }, steps: s.k.extent, depth: s.k.extent };
  const product = dimFloorDiv(dimProduct([...rows.map((a) => a.extent), s.n.extent, s.k.extent]), 2);
  nest(b, body, outer, positions, product, (into) => {
    const bound = boundOperands(s, positions);
    const direct = integer ? undefined : directRows(b, into, s, bound.a, rows);
    const gemm = (target: Stmt[], operandB: PanelColumns | RowColumns | DotColumns): void => emitGemm(b, target, {
      kind: how.kind, rows: rows.reduce<Dim>((n, a) => dimMul(n, a.extent), 1), columns: s.n.extent, steps: how.steps,
      a: direct ?? gatheredRows(b, s, bound.a, how, rows, positions), b: operandB,
      others: others.flatMap((o) => (o ? [o.at(target, positions)] : [])),
      epilogue: new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, others: (s.others ?? []).map((o) => o.accumulator.name), rows, column: s.n, positions }),
    });
    if (packed) gemm(into, packed.at(into, positions));
    else activationColumns(b, into, s, bound.b, how, positions, !direct || dimEqual(direct.stepBytes, 4), rows, gemm, outer.length === 0);
  });
  return { kind: "block", body };
}

/** Axes of extent 1 become index 0, except the row and column axes themselves. */
function withoutUnitAxes(s: MatMulStructure): MatMulStructure {
  const zero = constant(0, i32);
  const fixed = new Map<Axis, Expr>(s.batch.filter((a) => a.extent === 1).map((a) => [a, zero]));
  if (s.m.extent === 1) fixed.set(s.m, zero);
  if (fixed.size === 0) return s;
  const memo = new Map<Expr, Expr>();
  const change = (e: Expr): Expr => substituteAxes(e, fixed, memo);
  return {
    ...s, batch: s.batch.filter((a) => a.extent !== 1), a: change(s.a), b: change(s.b), ...(s.others ? { others: s.others.map((o) => ({ ...o, b: change(o.b) })) } : {}),
    stores: s.stores.map((x): EpilogueStore => ({ ...x, indices: x.indices.map(change), value: change(x.value) })),
  };
}

/** The axes whose rows form one tall matrix, and those that are looped over outside. */
function splitRows(b: KernelBuilder, s: MatMulStructure): { rows: readonly Axis[]; outer: readonly Axis[] } {
  const candidates = [...s.batch, s.m];
  const memo = new Map<Axis, boolean>();
  const inB = (a: Axis): boolean => memo.get(a) ?? (memo.set(a, [s.b, ...(s.others ?? []).map((o) => o.b)].some((e) => mentions(e, new Set([a])))), memo.get(a) ?? false);
  let first = candidates.length - 1;
  while (first > 0 && !inB(present(candidates[first - 1], "batch axis"))) first--;
  const free = candidates.slice(first);
  const left = directAccess(b, s.a, new Set([...free, s.k]));
  const also = left ? [left] : [];
  const rows = s.m.extent === 1 && free.length > 1 ? free.slice(0, -1) : free;
  const count = collapsibleAxes(rows, s.n, s.stores, (x) => b.layout(x), also);
  const chosen = rows.slice(rows.length - count);
  return { rows: chosen, outer: candidates.filter((a) => !chosen.includes(a) && a.extent !== 1) };
}

/** A plain float32 read that is affine in the axes. */
function directAccess(b: KernelBuilder, e: Expr, axes: ReadonlySet<Axis>): AffineAccess | undefined {
  return e.kind === "load" && e.buffer.dtype === "float32" ? affineAccess(e.buffer, e.indices, axes, b.layout(e.buffer)) : undefined;
}

/** Loops over axes, binding each to its loop variable, around some `work`. */
function nest(b: KernelBuilder, into: Stmt[], axes: readonly Axis[], positions: Map<Axis, Expr>, work: Dim, body: (into: Stmt[]) => void): void {
  const [axis, ...rest] = axes;
  if (!axis) return body(into);
  b.parallel(into, axis.name, axis.extent, 1, dimProduct([...rest.map((a) => a.extent), work]), (value, inner) => {
    positions.set(axis, value);
    nest(b, inner, rest, positions, work, body);
  });
}

function boundOperands(s: MatMulStructure, positions: ReadonlyMap<Axis, Expr>): { a: Expr; b: Expr } {
  return { a: substituteAxes(s.a, positions), b: substituteAxes(s.b, positions) };
}

/** The left operand where it lies; undefined when it is computed, or its rows do not follow each other. */
function directRows(b: KernelBuilder, into: Stmt[], s: MatMulStructure, a: Expr, rows: readonly Axis[]): DirectRows | undefined {
  const access = directAccess(b, a, new Set([...rows, s.k]));
  const innermost = present(rows[rows.length - 1], "row axis");
  if (!access || !rows.every((axis, i) => i === 0 || collapses(access, present(rows[i - 1], "row axis"), axis))) return undefined;
  return { kind: "direct", pointer: b.let(into, "baseA", access.base), rowBytes: bytesAlong(access, innermost), stepBytes: bytesAlong(access, s.k) };
}

function gatheredRows(b: KernelBuilder, s: MatMulStructure, a: Expr, how: Multiplication, rows: readonly Axis[], positions: ReadonlyMap<Axis, Expr>): GatheredRows {
  const k = s.k.extent;
  return {
    kind: "gathered", depth: how.depth,
    fill(body, row, to) {
      const at = new Map<Axis, Expr>([...positions, ...rowValues(rows, row)]);
      if (how.kind.kind !== "pairs") { emitFill(b, body, { to, dtype: "float32", value: a, along: s.k, count: k, positions: at }); return; }
      const pairs = (inner: Stmt[]): void => {
        if (!widenRow(b, inner, s, substituteAxes(a, at), to)) emitFill(b, inner, { to, dtype: "int16", value: a, along: s.k, count: k, positions: at });
        padPair(b, inner, k, plus(to, times(toIndex(k), 2)));
      };
      if (how.quads) eitherEngine(body, (inner) => byteRow(b, inner, s, a, at, to), pairs);
      else pairs(body);
    },
  };
}

/** A row as bytes, and their sum behind them. */
function byteRow(b: KernelBuilder, into: Stmt[], s: MatMulStructure, a: Expr, positions: ReadonlyMap<Axis, Expr>, to: Expr): void {
  const { load: element } = present(integerOperand(a), "integer operand"), { dtype } = element.buffer, count = Number(s.k.extent);
  const access = affineAccess(element.buffer, element.indices.map((e) => substituteAxes(e, positions)), new Set([s.k]), b.layout(element.buffer));
  if (access && dimEqual(bytesAlong(access, s.k), 1)) emitBytes(b, into, b.let(into, "from", access.base), dtype, to, constant(count, i32));
  else emitFill(b, into, { to, dtype: "int8", value: asByte(element, dtype), along: s.k, count, positions });
  into.push(storeAt(sumBehind(to, count), 0, "int32", sumOfBytes(b, into, to, count)));
}

/** A row of bytes that follow each other, less a zero point that is the same for all of them. */
function widenRow(b: KernelBuilder, into: Stmt[], s: MatMulStructure, a: Expr, to: Expr): boolean {
  const operand = integerOperand(a), axes = new Set([s.k]);
  const access = operand && affineAccess(operand.load.buffer, operand.load.indices, axes, b.layout(operand.load.buffer));
  if (!operand || !access || mentions(operand.zero, axes) || !dimEqual(bytesAlong(access, s.k), 1)) return false;
  const zero = b.letIndex(into, "zero", operand.zero);
  emitWiden(b, into, b.let(into, "from", access.base), operand.load.buffer.dtype, to, toIndex(s.k.extent), zero, splatZero(b, into, zero));
  return true;
}

/** The second element of the last pair, where the contracted axis ends in the middle of it. */
function padPair(b: KernelBuilder, into: Stmt[], k: Dim, at: Expr): void {
  if (!isSymbolic(k) && k % 2 === 0) return;
  const pad = storeAt(at, 0, "int16", constant(0, i32));
  if (!isSymbolic(k)) into.push(pad);
  else into.push({ kind: "if", condition: binary("eq", binary("and", toIndex(k), constant(1, i32)), constant(1, i32)), then: pad });
}

/** A constant right operand that is to stay in float16. */
function packHalves(b: KernelBuilder, s: MatMulStructure): PackedBlocks | undefined {
  if (s.b.kind !== "load" || s.others || s.batch.some((a) => mentions(s.b, new Set([a])))) return undefined;
  const weight = b.context.weight(s.b.buffer), spec = weight?.stored?.as === "float16" && weight.stored.resident ? panelSpec(b, s.b.buffer, s.b.indices, s, []) : undefined;
  if (!weight || !spec || spec.nr !== 8 || spec.k === 0) return undefined;
  return halfWeights(b, b.packed(weight, { ...spec, as: "float16" }, "float16", packedLength([], spec)), spec.k);
}

interface PackedOperand { readonly dtype: DType; readonly quads: boolean; readonly at: (into: Stmt[], positions: ReadonlyMap<Axis, Expr>) => PanelColumns }

/** Packs a constant right operand; gives its panels at the batch axes bound where they are asked for. */
function packWeight(b: KernelBuilder, s: MatMulStructure, rows: readonly Axis[]): PackedOperand | undefined {
  const integer = s.accumulator.type.scalar === "i32" ? integerOperand(s.b) : undefined;
  const right = integer?.load ?? s.b;
  if (right.kind !== "load") return undefined;
  const weight = b.context.weight(right.buffer);
  const groups = s.batch.filter((a) => mentions(right, new Set([a])));
  const subtract = integer ? knownZeroPoints(b, integer.zero, new Set([s.n]), Number(s.n.extent)) : 0;
  const plain = weight && panelSpec(b, right.buffer, right.indices, s, groups);
  if (!weight || !plain || subtract === undefined || (typeof subtract !== "number" && plain.groups !== 1)) return undefined;
  const dtype = integer ? packedDtype(b, weight, subtract) : "float32";
  const pairs: PanelSpec = integer ? { ...plain, kStep: 2, as: dtype, ...(subtract === 0 ? {} : { subtract }) } : plain;
  const left = integer && integerOperand(s.a), shift = left && byteShift(left.load.buffer.dtype, left.zero, [...rows, s.k]);
  const quads = shift && quadPanels(b, weight, pairs), spec = quads?.spec ?? pairs;
  const width = spec.nr === 4 ? 4 : 8, stepBytes = width * spec.kStep * byteSize(dtype);
  const panelBytes = Math.ceil(spec.k / spec.kStep) * stepBytes, groupBytes = Math.ceil(spec.n / width) * panelBytes;
  const packed = b.packed(weight, spec, dtype, packedLength([], spec));
  return {
    dtype, quads: quads !== undefined,
    at: (into, positions) => {
      const group = groups.reduce<Expr>((g, a) => plus(times(g, toIndex(a.extent)), present(positions.get(a), "group axis")), constant(0, i32));
      return { kind: "panels", pointer: b.let(into, "panels", plus(addressOf(packed), times(group, groupBytes))), width, panelBytes, stepBytes, ...(quads ? { quads: { terms: termsAt(quads.terms, group, spec.n), shift: substituteAxes(shift, positions) } } : {}) };
    },
  };
}

function panelSpec(b: KernelBuilder, buffer: Buffer, indices: readonly Expr[], s: MatMulStructure, groups: readonly Axis[]): PanelSpec | undefined {
  if (!["float32", "float16", "bfloat16", "int8", "uint8"].includes(buffer.dtype)) return undefined;
  const axes = new Set([...groups, s.n, s.k]), layout = b.layout(buffer);
  const access = affineAccess(buffer, indices, axes, layout);
  const n = s.n.extent, k = s.k.extent;
  if (!access || isSymbolic(n) || isSymbolic(k)) return undefined;
  const size = byteSize(buffer.dtype);
  const stride = (a: Axis): number | undefined => { const d = bytesAlong(access, a); return isSymbolic(d) ? undefined : d / size; };
  const offset = constantOffset(indices, axes, layout);
  const strideN = stride(s.n), strideK = stride(s.k);
  const inner = groups[groups.length - 1];
  const nested = groups.every((a, i) => i === 0 || collapses(access, present(groups[i - 1], "group axis"), a));
  const strideG = inner ? stride(inner) : 0;
  const count = groups.reduce<Dim>((c, a) => dimMul(c, a.extent), 1);
  if (offset === undefined || strideN === undefined || strideK === undefined || strideG === undefined || !nested || isSymbolic(count)) return undefined;
  return { kind: "panels", groups: count, k, n, nr: n <= 4 ? 4 : 8, kStep: 1, strideG, strideK: [{ size: k, stride: strideK }], strideN, as: "float32", ...(offset === 0 ? {} : { offset }) };
}

/** Element offset of an access with its axes at 0, when nothing else varies in it. */
function constantOffset(indices: readonly Expr[], axes: ReadonlySet<Axis>, layout: { readonly strides: readonly Dim[]; readonly offset: Dim }): number | undefined {
  if (isSymbolic(layout.offset)) return undefined;
  let offset = layout.offset;
  const zero = new Map([...axes].map((a): [Axis, Expr] => [a, constant(0, i32)]));
  for (const [d, e] of indices.entries()) {
    const at = sizeValue(substituteAxes(e, zero)), stride = layout.strides[d] ?? 0;
    if (at === 0) continue;
    if (at === undefined || isSymbolic(at) || isSymbolic(stride)) return undefined;
    offset += at * stride;
  }
  return offset;
}

/** Fewer rows than this are not worth packing a right operand for. */
const rowsToPack = 8;

/** A right operand that is not constant: in place where its columns follow each other, as dot products, or packed. */
function activationColumns(
  b: KernelBuilder, into: Stmt[], s: MatMulStructure, right: Expr, how: Multiplication, positions: ReadonlyMap<Axis, Expr>, contiguousRows: boolean,
  rows: readonly Axis[], gemm: (into: Stmt[], columns: PanelColumns | RowColumns | DotColumns) => void, once: boolean,
): void {
  const access = how.kind.kind === "float" ? directAccess(b, right, new Set([s.n, s.k])) : undefined;
  if (access && dimEqual(bytesAlong(access, s.n), 4)) { gemm(into, { kind: "rows", pointer: b.let(into, "baseB", access.base), stepBytes: bytesAlong(access, s.k) }); return; }
  const count = rows.reduce<Dim>((n, a) => dimMul(n, a.extent), 1);
  const packed = (body: Stmt[]): void => gemm(body, gatherPanels(b, body, s, right, how, positions, once && body === into));
  if (!access || !contiguousRows || !dimEqual(bytesAlong(access, s.k), 4)) { packed(into); return; }
  const dots = (body: Stmt[]): void => gemm(body, { kind: "dots", pointer: b.let(body, "baseB", access.base), columnBytes: bytesAlong(access, s.n) });
  if (!isSymbolic(count)) { (count < rowsToPack ? dots : packed)(into); return; }
  const few: Stmt[] = [], many: Stmt[] = [];
  dots(few);
  packed(many);
  into.push({ kind: "if", condition: binary("lt", toIndex(count), constant(rowsToPack, i32)), then: { kind: "block", body: few }, else: { kind: "block", body: many } });
}

/** Panels gathered once for the whole kernel, at its top, may be gathered and read by several threads. */
function gatherPanels(b: KernelBuilder, into: Stmt[], s: MatMulStructure, right: Expr, how: Multiplication, positions: ReadonlyMap<Axis, Expr>, once: boolean): PanelColumns {
  const width = 8, group = how.kind.kind === "float" ? 1 : 2;
  const dtype = group === 1 ? "float32" : "int16", step = group * byteSize(dtype), stepBytes = width * step;
  const panels = dimCeilDiv(s.n.extent, width), panelBytes = dimMul(how.steps, stepBytes);
  const shape = [panels, how.steps, width * group], buffer = once ? b.shared("panels", dtype, shape) : b.temporary("panels", dtype, shape);
  const start = b.let(into, "panels", addressOf(buffer));
  const columns = b.letIndex(into, "columns", toIndex(s.n.extent)), depth = b.letIndex(into, "depth", toIndex(s.k.extent));
  b.parallel(into, "pack", s.n.extent, width, once ? dimMul(s.k.extent, 3 * width) : undefined, (n, body) => {
    const to = b.let(body, "panel", plus(start, times(binary("shr", n, constant(3, i32)), toIndex(panelBytes))));
    const count = b.let(body, "count", min(constant(width, i32), sub(columns, n)));
    b.loop(body, "k", 0, depth, 1, s.k.extent, (k, inner) => {
      const at = group === 1 ? times(k, stepBytes) : plus(times(binary("shr", k, constant(1, i32)), stepBytes), times(binary("and", k, constant(1, i32)), byteSize(dtype)));
      emitFill(b, inner, { to: b.let(inner, "to", plus(to, at)), dtype, step, value: right, along: s.n, from: n, count, positions: new Map([...positions, [s.k, k]]) });
    });
    if (group === 2) b.loop(body, "pad", 0, constant(width, i32), 1, width, (j, inner) =>
      padPair(b, inner, s.k.extent, plus(plus(to, times(binary("shr", depth, constant(1, i32)), stepBytes)), plus(times(j, step), byteSize(dtype)))));
  });
  return { kind: "panels", pointer: start, width, panelBytes, stepBytes };
}
