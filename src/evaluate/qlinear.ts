/** QLinearConv and QLinearMatMul: exact integer sums, requantised in float32. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { addBias, convChannels, lessZeroPoint, outputDims } from "./conv.ts";
import { convolve } from "./convolve.ts";
import { lessMatrixZeroPoint, multiply, planMatMul } from "./matmul.ts";
import { requantize } from "./quantization.ts";
import { numberOf } from "./read-attribute.ts";
import { at, windows } from "./window.ts";

/** a · b / y in float32. */
const combined = (a: number, b: number, y: number): number => Math.fround(Math.fround(a * b) / y);

export const QLinearConv: Evaluate = ([X, xScale, xZero, W, wScale, wZero, yScale, yZero, B], attributes) => {
  const x = present(X, "x"), w = present(W, "w"), zero = present(yZero, "y_zero_point");
  const g = windows(x.dims.slice(2), w.dims.slice(2), attributes);
  const c = convChannels(x, w, numberOf(attributes, "group"));
  const dims = outputDims(c, g), plane = sizeOf(dims.slice(2)), channels = at(dims, 1);
  const y = convolve(lessZeroPoint(x, xZero), lessZeroPoint(w, wZero), c, g);
  addBias(y, B, dims);
  const xs = scalar(xScale), ws = toNumbers(present(wScale, "w_scale")), ys = scalar(yScale), z = scalar(zero);
  const out = y.map((v, i) => {
    const channel = Math.floor(i / plane) % channels;
    return requantize(v, combined(xs, ws[ws.length === 1 ? 0 : channel] ?? 1, ys), z, zero.dtype);
  });
  return [fromNumbers(zero.dtype, dims, out)];
};

const scalar = (t: Tensor | undefined): number => toNumbers(present(t, "scale or zero point"))[0] ?? 0;

export const QLinearMatMul: Evaluate = ([A, aScale, aZero, B, bScale, bZero, yScale, yZero]) => {
  const a = present(A, "a"), b = present(B, "b"), zero = present(yZero, "y_zero_point");
  const plan = planMatMul(a.dims, b.dims);
  const y = multiply(lessMatrixZeroPoint(a, aZero, "rows"), lessMatrixZeroPoint(b, bZero, "columns"), plan);
  const rows = present(aScale, "a_scale"), columns = present(bScale, "b_scale");
  const as = toNumbers(rows), bs = toNumbers(columns), ys = scalar(yScale), z = scalar(zero);
  const pick = (values: ArrayLike<number>, dims: readonly number[], stack: number, size: number, index: number): number =>
    values[values.length === 1 ? 0 : dims.length <= 1 ? index : stack * size + index] ?? 1;
  const out = y.map((v, i) => {
    const column = i % plan.n, row = Math.floor(i / plan.n) % plan.m, stack = Math.floor(i / (plan.n * plan.m));
    return requantize(v, combined(pick(as, rows.dims, stack, plan.m, row), pick(bs, columns.dims, stack, plan.n, column), ys), z, zero.dtype);
  });
  return [fromNumbers(zero.dtype, plan.dims, out)];
};
