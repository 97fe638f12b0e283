/**
 * QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, by their definitions in float32. The quotient is rounded to
 * the precision that the node names, else to the type of its scale.
 */
import { present } from "../core/assert.ts";
import { dtypeFromOnnx, isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { castTensor } from "./cast.ts";
import { numberOf } from "./read-attribute.ts";
import { roundHalfEven, saturate, scaleIndex } from "./quantization.ts";

export const QuantizeLinear: Evaluate = ([X, Scale, Zero], attributes) => {
  const x = present(X, "x"), scale = present(Scale, "y_scale"), s = toNumbers(scale), z = Zero && toNumbers(Zero);
  const dtype = Zero?.dtype ?? dtypeFromOnnx(numberOf(attributes, "output_dtype", 0)) ?? "uint8";
  const axis = numberOf(attributes, "axis"), block = numberOf(attributes, "block_size", 0);
  const scaleOf = scaleIndex(x.dims, scale.dims, axis, block), zeroOf = scaleIndex(x.dims, Zero?.dims ?? [], axis, block);
  const quotients = fromNumbers("float32", x.dims, Float64Array.from(toNumbers(x), (v, i) => v / (s[scaleOf(i)] ?? 1)));
  const precision = dtypeFromOnnx(numberOf(attributes, "precision", 0)) ?? scale.dtype;
  const rounded = toNumbers(precision === "float16" || precision === "bfloat16" ? castTensor(quotients, precision) : quotients);
  if (isFloat(dtype)) return [castTensor(fromNumbers("float32", x.dims, Float64Array.from(rounded, (v, i) => v + (z?.[zeroOf(i)] ?? 0))), dtype, { saturate: numberOf(attributes, "saturate", 1) !== 0, rounding: "up" })];
  return [fromNumbers(dtype, x.dims, Float64Array.from(rounded, (v, i) => saturate(roundHalfEven(v) + (z?.[zeroOf(i)] ?? 0), dtype)))];
};

export const DequantizeLinear: Evaluate = ([X, Scale, Zero], attributes) => {
  const x = present(X, "x"), scale = present(Scale, "x_scale"), s = toNumbers(scale), z = Zero && toNumbers(Zero);
  const axis = numberOf(attributes, "axis"), block = numberOf(attributes, "block_size", 0);
  const scaleOf = scaleIndex(x.dims, scale.dims, axis, block), zeroOf = scaleIndex(x.dims, Zero?.dims ?? [], axis, block);
  const y = Float64Array.from(toNumbers(x), (v, i) => Math.fround(Math.fround(v - (z?.[zeroOf(i)] ?? 0)) * (s[scaleOf(i)] ?? 1)));
  return [fromNumbers(dtypeFromOnnx(numberOf(attributes, "output_dtype", 0)) ?? scale.dtype, x.dims, y)];
};

/** uint8 over the range of x widened to hold 0; a tensor of zeros has scale 1. */
export const DynamicQuantizeLinear: Evaluate = ([X]) => {
  const x = present(X, "x"), values = toNumbers(x);
  let least = 0, most = 0;
  for (let i = 0; i < values.length; i++) {
    least = Math.min(least, values[i] ?? 0);
    most = Math.max(most, values[i] ?? 0);
  }
  const scale = least === most ? 1 : Math.fround(Math.fround(most - least) / 255);
  const zero = roundHalfEven(saturate(Math.fround(0 - Math.fround(least / scale)), "uint8"));
  const y = Float64Array.from(values, (v) => saturate(roundHalfEven(Math.fround(v / scale)) + zero, "uint8"));
  return [fromNumbers("uint8", x.dims, y), fromNumbers("float32", [], [scale]), fromNumbers("uint8", [], [zero])];
};
