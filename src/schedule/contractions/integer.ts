/**
 * Operands of integer contractions: 8-bit elements less a zero point, widened to int16 so that pairs of them are
 * multiplied and summed exactly by one instruction.
 */
import { isSymbolic } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import { toNumbers, type Tensor } from "../../core/tensor.ts";
import { binary, bitcast, constant, i16x8, i32, splat, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import type { Weight } from "../../kernel/program.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { linearIn, mentions, plus, sizeValue, times } from "../loops/affine.ts";
import { loadAt, storeAt, type KernelBuilder } from "../builder.ts";

type Load = Extract<Expr, { kind: "load" }>;

/** load − zero, both of 8 bits, so that the difference fits int16. */
export interface IntegerOperand { readonly load: Load; readonly zero: Expr }

const isByte = (dtype: DType): boolean => dtype === "int8" || dtype === "uint8";
const fitsByte = (e: Expr): boolean => (e.kind === "load" ? isByte(e.buffer.dtype) : e.kind === "const" && Math.abs(Number(e.value)) <= 255);

/** Recognises an operand; undefined when it is something else. */
export function integerOperand(e: Expr): IntegerOperand | undefined {
  if (e.kind === "load") return isByte(e.buffer.dtype) ? { load: e, zero: constant(0, i32) } : undefined;
  if (e.kind !== "binary" || e.a.kind !== "load" || !isByte(e.a.buffer.dtype) || !fitsByte(e.b)) return undefined;
  if (e.op === "sub") return { load: e.a, zero: e.b };
  if (e.op === "add" && e.b.kind === "const") return { load: e.a, zero: constant(-Number(e.b.value), i32) };
  return undefined;
}

/**
 * The zero points of a constant weight: one for all, or one for each of `count` indices that `index` runs over (an
 * expression of `axes`). Undefined when they are known only at run time.
 */
export function knownZeroPoints(b: KernelBuilder, zero: Expr, axes: ReadonlySet<Axis>, count: number): number | readonly number[] | undefined {
  if (zero.kind === "const") return Number(zero.value);
  if (zero.kind !== "load") return undefined;
  const weight = b.context.weight(zero.buffer), layout = b.layout(zero.buffer);
  if (!weight || "input" in weight.source || isSymbolic(layout.offset) || layout.offset !== 0) return undefined;
  const values = b.context.contents(weight, (t) => Array.from(toNumbers(t)));
  if (values?.length === 1) return values[0];
  const varying = zero.indices.filter((e) => mentions(e, axes));
  const others = zero.indices.every((e) => varying.includes(e) || sizeValue(e) === 0);
  const [only] = varying;
  if (!only || varying.length !== 1 || !others || !linearIn(only, axes) || values?.length !== count) return undefined;
  return values;
}

/** The narrowest dtype that holds a weight less its zero points: int8 loads widen for free. */
export function packedDtype(b: KernelBuilder, weight: Weight, subtract: number | readonly number[]): "int8" | "int16" {
  const less = typeof subtract === "number" ? [subtract] : subtract;
  return b.context.contents(weight, (t) => {
    const [low, high] = range(t);
    return low - Math.max(...less) >= -128 && high - Math.min(...less) <= 127 ? "int8" : "int16";
  }) ?? "int16";
}
function range(t: Tensor): readonly [number, number] {
  const values = toNumbers(t);
  let low = 0, high = 0;
  for (let i = 0; i < values.length; i++) {
    const v = values[i] ?? 0;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}

/** A zero point in every lane of int16. */
export function splatZero(b: KernelBuilder, into: Stmt[], zero: Expr): Expr {
  if (zero.kind === "const") return constant(zero.value, i16x8);
  const twice = binary("or", binary("and", zero, constant(0xffff, i32)), binary("shl", zero, constant(16, i32)));
  return b.let(into, "zeros", bitcast(splat(twice, 4), i16x8));
}

/** to[i] (int16) = from[i] (8 bits) − zero for i < count. `zeros` is the zero point in vector form. What is left of a known count is a vector that overlaps the one before. */
export function emitWiden(b: KernelBuilder, into: Stmt[], from: Expr, dtype: DType, to: Expr, count: Expr, zero: Expr, zeros: Expr): void {
  const known = count.kind === "const" ? Number(count.value) : undefined;
  const whole = known === undefined ? b.let(into, "whole", binary("and", count, constant(-8, i32))) : constant(known & -8, i32);
  const vector = (body: Stmt[], i: Expr): void => {
    const v = loadAt(plus(from, i), 0, dtype, i16x8);
    body.push(storeAt(plus(to, times(i, 2)), 0, "int16", isZero(zero) ? v : sub(v, zeros)));
  };
  if (known === undefined || known >= 8) b.loop(into, "i", 0, whole, 8, longRun, (i, body) => vector(body, i));
  if (known !== undefined && known > 8 && known % 8 > 0) vector(into, constant(known - 8, i32));
  else if (known === undefined || known % 8 > 0) b.loop(into, "i", whole, count, 1, longRun, (i, body) => {
    const x = loadAt(plus(from, i), 0, dtype, i32);
    body.push(storeAt(plus(to, times(i, 2)), 0, "int16", isZero(zero) ? x : sub(x, zero)));
  });
}
const longRun = 2 ** 28;
const isZero = (e: Expr): boolean => e.kind === "const" && Number(e.value) === 0;

