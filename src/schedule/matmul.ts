/**
 * Matrix products as register-tiled loops. Constant right operands are packed into panels when compiling; others are
 * read in place where their columns are contiguous, or gathered into panels. Left operands are read in place at any
 * strides; computed ones (dequantised, index maps) are gathered a block of rows at a time.
 */
import { present } from "../core/assert.ts";
import { dimCeilDiv, dimEqual, dimMul, isSymbolic, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import { binary, constant, i32, min, sub, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import type { PackSpec } from "../kernel/program.ts";
import type { Stmt } from "../kernel/stmt.ts";
import type { EpilogueStore, MatMulStructure } from "../kernel/structure.ts";
import { affineAccess, bytesAlong, mentions, plus, sizeValue, substituteAxes, times, toIndex, type AffineAccess } from "./affine.ts";
import { addressOf, type KernelBuilder } from "./builder.ts";
import { collapses, collapsibleAxes, Epilogue } from "./epilogue.ts";
import { emitFill } from "./fill.ts";
import { emitGemm, type DirectRows, type GatheredRows, type PanelColumns, type RowColumns } from "./gemm.ts";
import { packedLength } from "../memory/pack.ts";
import { rowValues } from "./rows.ts";

/** Loops for a float32 product; undefined for other accumulators. */
export function scheduleMatMul(b: KernelBuilder, structure: MatMulStructure): Stmt | undefined {
  if (structure.accumulator.type.scalar !== "f32") return undefined;
  const s = withoutUnitAxes(structure);
  const { rows, outer } = splitRows(b, s);
  const body: Stmt[] = [];
  const positions = new Map<Axis, Expr>();
  const packed = packWeight(b, s);
  nest(b, body, outer, positions, (into) => {
    const bound = boundOperands(s, positions);
    const operandB = packed ? packed(into, positions) : activationColumns(b, into, s, bound.b, positions);
    emitGemm(b, into, {
      kind: { kind: "float" },
      rows: rows.reduce<Dim>((n, a) => dimMul(n, a.extent), 1), columns: s.n.extent, steps: s.k.extent,
      a: leftRows(b, into, s, bound.a, rows, positions), b: operandB,
      epilogue: new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows, column: s.n, positions }),
    });
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
    ...s, batch: s.batch.filter((a) => a.extent !== 1), a: change(s.a), b: change(s.b),
    stores: s.stores.map((x): EpilogueStore => ({ ...x, indices: x.indices.map(change), value: change(x.value) })),
  };
}

/** The axes whose rows form one tall matrix, and those that are looped over outside. */
function splitRows(b: KernelBuilder, s: MatMulStructure): { rows: readonly Axis[]; outer: readonly Axis[] } {
  const candidates = [...s.batch, s.m];
  const memo = new Map<Axis, boolean>();
  const inB = (a: Axis): boolean => memo.get(a) ?? (memo.set(a, mentions(s.b, new Set([a]))), memo.get(a) ?? false);
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

/** Loops over axes, binding each to its loop variable. */
export function nest(b: KernelBuilder, into: Stmt[], axes: readonly Axis[], positions: Map<Axis, Expr>, body: (into: Stmt[]) => void): void {
  const [axis, ...rest] = axes;
  if (!axis) return body(into);
  b.loop(into, axis.name, 0, toIndex(axis.extent), 1, axis.extent, (value, inner) => {
    positions.set(axis, value);
    nest(b, inner, rest, positions, body);
  });
}

function boundOperands(s: MatMulStructure, positions: ReadonlyMap<Axis, Expr>): { a: Expr; b: Expr } {
  return { a: substituteAxes(s.a, positions), b: substituteAxes(s.b, positions) };
}

function leftRows(b: KernelBuilder, into: Stmt[], s: MatMulStructure, a: Expr, rows: readonly Axis[], positions: ReadonlyMap<Axis, Expr>): DirectRows | GatheredRows {
  const access = directAccess(b, a, new Set([...rows, s.k]));
  const innermost = present(rows[rows.length - 1], "row axis");
  const collapsed = access !== undefined && rows.every((axis, i) => i === 0 || collapses(access, present(rows[i - 1], "row axis"), axis));
  if (access && collapsed) return { kind: "direct", pointer: b.let(into, "baseA", access.base), rowBytes: bytesAlong(access, innermost), stepBytes: bytesAlong(access, s.k) };
  return {
    kind: "gathered", depth: s.k.extent,
    fill(body, row, to) {
      const at = new Map<Axis, Expr>([...positions, ...rowValues(rows, row)]);
      emitFill(b, body, { to, dtype: "float32", value: a, along: s.k, count: s.k.extent, positions: at });
    },
  };
}

/** Packs a constant right operand; gives its panels at the batch axes bound where they are asked for. */
function packWeight(b: KernelBuilder, s: MatMulStructure): ((into: Stmt[], positions: ReadonlyMap<Axis, Expr>) => PanelColumns) | undefined {
  const right = s.b;
  if (right.kind !== "load") return undefined;
  const weight = b.context.weight(right.buffer);
  const groups = s.batch.filter((a) => mentions(right, new Set([a])));
  const spec = weight && panelSpec(b, right.buffer, right.indices, s, groups);
  if (!weight || !spec) return undefined;
  const width = spec.nr === 4 ? 4 : 8;
  const panelBytes = spec.k * width * 4, groupBytes = Math.ceil(spec.n / width) * panelBytes;
  const packed = b.packed(weight, spec, "float32", packedLength([], spec));
  return (into, positions) => {
    const group = groups.reduce<Expr>((g, a) => plus(times(g, toIndex(a.extent)), present(positions.get(a), "group axis")), constant(0, i32));
    return { kind: "panels", pointer: b.let(into, "panels", plus(addressOf(packed), times(group, groupBytes))), width, panelBytes, stepBytes: width * 4 };
  };
}

type PanelSpec = Extract<PackSpec, { kind: "panels" }>;

function panelSpec(b: KernelBuilder, buffer: Buffer, indices: readonly Expr[], s: MatMulStructure, groups: readonly Axis[]): PanelSpec | undefined {
  if (!["float32", "float16", "bfloat16"].includes(buffer.dtype)) return undefined;
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
export function constantOffset(indices: readonly Expr[], axes: ReadonlySet<Axis>, layout: { readonly strides: readonly Dim[]; readonly offset: Dim }): number | undefined {
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

/** A right operand that is not constant. */
function activationColumns(b: KernelBuilder, into: Stmt[], s: MatMulStructure, right: Expr, positions: ReadonlyMap<Axis, Expr>): PanelColumns | RowColumns {
  const access = directAccess(b, right, new Set([s.n, s.k]));
  if (access && dimEqual(bytesAlong(access, s.n), 4)) return { kind: "rows", pointer: b.let(into, "baseB", access.base), stepBytes: bytesAlong(access, s.k) };
  return gatherPanels(b, into, s, right, positions);
}

function gatherPanels(b: KernelBuilder, into: Stmt[], s: MatMulStructure, right: Expr, positions: ReadonlyMap<Axis, Expr>): PanelColumns {
  const width = 8;
  const panels = dimCeilDiv(s.n.extent, width), panelBytes = dimMul(s.k.extent, width * 4);
  const buffer = b.temporary("panels", "float32", [panels, s.k.extent, width]);
  const start = b.let(into, "panels", addressOf(buffer));
  const columns = b.letIndex(into, "columns", toIndex(s.n.extent));
  b.loop(into, "pack", 0, columns, width, s.n.extent, (n, body) => {
    const to = b.let(body, "panel", plus(start, times(binary("shr", n, constant(3, i32)), toIndex(panelBytes))));
    const count = b.let(body, "count", min(constant(width, i32), sub(columns, n)));
    b.loop(body, "k", 0, toIndex(s.k.extent), 1, s.k.extent, (k, inner) =>
      emitFill(b, inner, { to: b.let(inner, "to", plus(to, times(k, width * 4))), dtype: "float32", value: right, along: s.n, from: n, count, positions: new Map([...positions, [s.k, k]]) }));
  });
  return { kind: "panels", pointer: start, width, panelBytes, stepBytes: width * 4 };
}
