/** Scales and zero points: which one an element takes, and rounding to a quantised dtype. */
import { invariant } from "../core/assert.ts";
import type { Dim } from "../core/dim.ts";
import { bitsOf, integerRange, isInteger, type DType } from "../core/dtype.ts";
import type { InferContext, Operand, TypeInfo } from "../graph/op.ts";
import { add, binary, bitcast, cast, constant, div, f32, i32, mul, sub, type Expr } from "../kernel/expr.ts";
import { numbersKnown } from "./element-values.ts";
import { operand } from "./window.ts";

/** Reports a dtype that values cannot be quantised to. */
export function checkQuantized(dtype: DType, context: InferContext): DType {
  return isInteger(dtype) && bitsOf(dtype) <= 16 ? dtype : context.fail("OF3013", `cannot quantise to ${dtype}`);
}

/**
 * A float32 value rounded half to even, shifted by the zero point (i32) and saturated; as i32. NaN gives the least value.
 * Limits are whole numbers, so that limiting before rounding gives the same.
 */
export function quantized(value: Expr, zeroPoint: Expr, dtype: DType): Expr {
  const [low, high] = integerRange(dtype);
  const limit = (end: number): Expr => cast(sub(constant(end, i32), zeroPoint), "f32");
  // Zero point and constant are one number to add.
  return add(nearestBits(binary("pmin", limit(high), binary("pmax", limit(low), value))), sub(zeroPoint, constant(roundingBits, i32)));
}

/** 1.5 · 2^23: a sum with it has no fraction bits left, so that the addition rounds half to even, and its low bits are the integer. */
const roundingSum = 1.5 * 2 ** 23, roundingBits = 0x4b400000;

/** A float32 between −2^22 and 2^22 rounded half to even, as i32, plus `roundingBits`. */
const nearestBits = (value: Expr): Expr => bitcast(add(value, constant(roundingSum, f32)), i32);

/** An i32 accumulator as a quantised value: acc · (a · b / y) in float32. */
export function requantized(accumulator: Expr, scaleA: Expr, scaleB: Expr, scaleY: Expr, zeroPoint: Expr, dtype: DType): Expr {
  return quantized(mul(cast(accumulator, "f32"), div(mul(scaleA, scaleB), scaleY)), zeroPoint, dtype);
}

/** The element of a tensor that has one element for all. A scale that is known to be 1 is the number itself: it costs nothing. */
export function single(of: Operand): Expr {
  const known = of.dtype === "float32" ? numbersKnown(of) : undefined;
  return known?.length === 1 && known[0] === 1 ? constant(1, f32) : of.at(...of.shape.map(() => constant(0, i32)));
}

/** Whether a scale or zero point is one for the whole tensor. */
export const isSingle = (of: TypeInfo): boolean => of.shape.every((d) => d === 1);

/** A zero point as i32: 0 where absent, a constant where all are known to be equal, else the one at `index` of its axis. */
export function zeroPointAt(of: Operand | undefined, index: Expr | undefined): Expr {
  const known = of ? numbersKnown(of) : [0], first = known?.[0];
  if (known && first !== undefined && known.every((v) => v === first)) return constant(first, i32);
  invariant(of, "an unknown zero point is an operand");
  return isSingle(of) || !index ? single(of) : of.at(index);
}

/** A scale: one for all, or the one at `index` of its axis. */
export const scaleAt = (of: Operand, index: Expr | undefined): Expr => (isSingle(of) || !index ? single(of) : of.at(index));

/** The scale's indices for an element of a tensor: for one scale, one an index of `axis`, or one every `block` along it. */
export function scaleIndices(scale: readonly Dim[], axis: number, block: number, indices: readonly Expr[]): readonly Expr[] {
  if (scale.length === 0) return [];
  if (block > 0) return indices.map((e, d) => (d === axis ? div(e, block) : e));
  return [scale[0] === 1 ? constant(0, i32) : operand(indices, axis)];
}
