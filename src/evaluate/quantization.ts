/** Rounding and saturation of quantised values, and which scale an element takes. */
import { integerRange, type DType } from "../core/dtype.ts";
import { rowMajorStrides } from "../core/tensor.ts";
import { at } from "./window.ts";

/** Nearest integer, halves to even. */
export function roundHalfEven(x: number): number {
  const floor = Math.floor(x), rest = x - floor;
  if (rest > 0.5 || (rest === 0.5 && floor % 2 !== 0)) return floor + 1;
  return floor;
}

/** Within an integer dtype's range; NaN gives the least value. */
export function saturate(x: number, dtype: DType): number {
  const [low, high] = integerRange(dtype);
  return Math.min(high, x >= low ? x : low);
}

/**
 * For a tensor of `dims`, the flat index of the scale that flat element i takes: one scale for all, one an index of `axis`,
 * or (block size > 0) a tensor of scales, one every `block` elements along `axis`.
 */
export function scaleIndex(dims: readonly number[], scaleDims: readonly number[], axis: number, block: number): (i: number) => number {
  if (scaleDims.every((d) => d === 1)) return () => 0;
  const along = axis < 0 ? axis + dims.length : axis;
  const strides = rowMajorStrides(dims);
  const index = (i: number, d: number): number => Math.floor(i / at(strides, d)) % at(dims, d);
  if (block === 0) return (i) => index(i, along);
  const scaleStrides = rowMajorStrides(scaleDims);
  return (i) => dims.reduce((sum, _, d) => sum + at(scaleStrides, d) * (d === along ? Math.floor(index(i, d) / block) : index(i, d)), 0);
}

/** An accumulator scaled, rounded and saturated, in float32 as the specification's reference does. */
export const requantize = (accumulator: number, scale: number, zeroPoint: number, dtype: DType): number =>
  saturate(roundHalfEven(Math.fround(Math.fround(accumulator) * scale)) + zeroPoint, dtype);
