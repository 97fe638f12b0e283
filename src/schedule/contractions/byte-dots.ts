/**
 * Integer contractions by dot products of four bytes, which engines with relaxed SIMD have and the others do in pairs of
 * int16. They are exact where one operand has 7 bits: weights no column of which spans more, less their least element.
 *
 * With a = byte + shift and w = quad + least, Σ a·w = Σ byte·quad + least·Σ byte + shift·Σ w: sums start at the last two
 * terms, for which rows of bytes have their sum with them. Every way gives the same integers.
 */
import { dimMul } from "../../core/dim.ts";
import { present } from "../../core/assert.ts";
import type { DType } from "../../core/dtype.ts";
import { add, binary, bitcast, byteDot, constant, i32, i32x4, i8x16, mul, relaxedEngine, scalarType, splat, sub, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { PanelSpec, Weight } from "../../kernel/program.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import { packedLength, spanSevenBits } from "../../memory/pack.ts";
import { addressOf, loadAt, splatAt, storeAt, type KernelBuilder } from "../builder.ts";
import { mentions, plus, times } from "../loops/affine.ts";
import { laneOf, type Accumulators, type BColumns, type QuadColumns } from "./tile.ts";

/** Bytes of a panel's terms. */
const termBytes = 64;

/** Statements for engines with relaxed SIMD, and for the others. */
export function eitherEngine(into: Stmt[], relaxed: (into: Stmt[]) => void, plain: (into: Stmt[]) => void): void {
  const then: Stmt[] = [], otherwise: Stmt[] = [];
  relaxed(then);
  plain(otherwise);
  into.push({ kind: "if", condition: relaxedEngine, then: { kind: "block", body: then }, else: { kind: "block", body: otherwise } });
}

/** What an element of A is more than the byte that stands for it; undefined where that varies over `axes`. */
export function byteShift(dtype: DType, zero: Expr, axes: readonly Axis[]): Expr | undefined {
  if (mentions(zero, new Set(axes))) return undefined;
  const middle = middleOf(dtype);
  return zero.kind === "const" ? constant(middle - Number(zero.value), i32) : sub(constant(middle, i32), zero);
}
const middleOf = (dtype: DType): number => (dtype === "uint8" ? 128 : 0);

/** The spec of panels that become quads, and their terms; undefined where pairs must do. */
export function quadPanels(b: KernelBuilder, weight: Weight, spec: PanelSpec): { readonly spec: PanelSpec; readonly terms: Buffer } | undefined {
  const padded = spec.strideK.some((a) => a.padded !== undefined && a.padded !== a.size);
  if (spec.as !== "int8" || spec.kStep !== 2 || spec.nr !== 8 || spec.k === 0 || spec.k % 4 !== 0 || padded) return undefined;
  if (!b.context.contents(weight, (t) => spanSevenBits(t, spec))) return undefined;
  const quads: PanelSpec = { ...spec, quads: true }, terms = { kind: "terms" as const, of: quads };
  return { spec: quads, terms: b.packed(weight, terms, "int32", packedLength([], terms)) };
}

/** The terms of a group of so many columns. */
export const termsAt = (terms: Buffer, group: Expr, columns: number): Expr => plus(addressOf(terms), times(group, Math.ceil(columns / 8) * termBytes));

/** The terms of the panel of this number and those after it. */
export const quadsFrom = (quads: QuadColumns, panel: Expr): QuadColumns => ({ ...quads, terms: plus(quads.terms, times(panel, termBytes)) });

/** Columns of a tile, given as pairs, as quads: a step is two of theirs. */
export function quadColumns(columns: BColumns): BColumns {
  const { offsets } = columns, first = offsets.map((_, v) => offsets[v - (v % 2)] ?? 0);
  return { pointer: columns.pointer, offsets: first.map((from, v) => from + (v % 2) * 16), stepBytes: dimMul(columns.stepBytes, 2) };
}

/** Gives a tile's sums what its products of bytes lack. `rowSum`: the address of a row's sum of bytes. */
export function startSums(b: KernelBuilder, into: Stmt[], accumulators: Accumulators, { terms, shift }: QuadColumns, rowSum: (row: number) => Expr): void {
  const at = b.letIndex(into, "terms", terms), term = (v: number, which: 0 | 1): Expr => loadAt(at, Math.floor(v / 2) * termBytes + (v % 2) * 16 + which * 32, "int32", i32x4);
  const none = shift.kind === "const" && Number(shift.value) === 0, shifts = none ? undefined : b.let(into, "shift", splat(shift, 4));
  const vectors = present(accumulators[0], "a tile's first row").map((_, v) => ({ least: b.let(into, "least", term(v, 1)), of: shifts && b.let(into, "shifted", mul(shifts, term(v, 0))) }));
  accumulators.forEach((row, i) => {
    const bytes = b.let(into, "bytes", splatAt(rowSum(i), 0, "int32", i32x4));
    row.forEach((acc, v) => {
      const { least, of } = present(vectors[v], "columns' terms"), lacking = mul(bytes, least);
      if (acc.kind === "local") into.push(assign(acc.name, of ? add(of, lacking) : lacking));
    });
  });
}

/** to[i] = the byte for from[i], `count` of them, a multiple of 4. */
export function emitBytes(b: KernelBuilder, into: Stmt[], from: Expr, dtype: DType, to: Expr, count: Expr): void {
  const flip = middleOf(dtype) === 0 ? 0 : 0x80808080 | 0, known = count.kind === "const" ? Number(count.value) : undefined;
  const put = (body: Stmt[], i: Expr, vector: boolean): void => {
    const v = loadAt(plus(from, i), 0, "int32", vector ? i32x4 : i32);
    body.push(storeAt(plus(to, i), 0, "int32", flip === 0 ? v : binary("xor", v, constant(flip, v.type))));
  };
  const whole = known === undefined ? b.let(into, "whole", binary("and", count, constant(-16, i32))) : constant(known & -16, i32);
  if (known === undefined || known >= 16) b.loop(into, "i", 0, whole, 16, longRun, (i, body) => put(body, i, true));
  // The last vector overlaps the one before.
  if (known !== undefined && known > 16 && known % 16 > 0) put(into, constant(known - 16, i32), true);
  else if (known === undefined || known % 16 > 0) b.loop(into, "i", whole, count, 4, longRun, (i, body) => put(body, i, false));
}
const longRun = 2 ** 28;

/** An element as the byte that stands for it. */
export const asByte = (element: Expr, dtype: DType): Expr => (middleOf(dtype) === 0 ? element : sub(element, middleOf(dtype)));

/** Σ of `count` bytes, a multiple of 4. */
export function sumOfBytes(b: KernelBuilder, into: Stmt[], from: Expr, count: number): Expr {
  const sum = b.let(into, "sum", constant(0, i32x4)), ones = constant(1, i8x16), whole = count & -16;
  const take = (body: Stmt[], bytes: Expr, by: Expr): void => { if (sum.kind === "local") body.push(assign(sum.name, byteDot(bytes, by, sum))); };
  if (whole > 0) b.loop(into, "i", 0, constant(whole, i32), 16, whole, (i, body) => take(body, loadAt(plus(from, i), 0, "int8", i8x16), ones));
  for (let at = whole; at < count; at += 4) take(into, bitcast(splatAt(from, at, "int32", i32x4), i8x16), firstQuad);
  return [1, 2, 3].reduce<Expr>((s, lane) => add(s, laneOf(sum, lane)), laneOf(sum, 0));
}
const firstQuad: Expr = { kind: "lanes", elements: Array.from({ length: 16 }, (_, i) => constant(i < 4 ? 1 : 0, scalarType("i8"))), type: i8x16 };

/** Half as many steps of twice the size. */
export const quadSteps = (steps: Expr): Expr => (steps.kind === "const" ? constant(Number(steps.value) / 2, i32) : binary("shr", steps, constant(1, i32)));

/** The address of a row's sum: behind its bytes, in room for as many int16. */
export const sumBehind = (row: Expr, depth: number): Expr => plus(row, depth);
