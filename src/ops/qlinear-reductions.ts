/**
 * Elements of quantised reductions, computed on the integers themselves: a softmax subtracts the greatest integer before
 * it scales, a mean adds integers exactly and scales their sum, as onnxruntime's kernels do. One loop reads 8 bits and
 * writes 8 bits, and nothing is dequantised in memory between them.
 */
import { present } from "../core/assert.ts";
import type { ElementFunction, Operand, TypeInfo } from "../graph/op.ts";
import { cast, constant, decay, div, f32, i32, mul, reduce, sub, type Expr } from "../kernel/expr.ts";
import { overAxes } from "./axis-reduction.ts";
import { numbersKnown } from "./element-values.ts";
import { poolWindows, tapCount, taps, type PoolOptions } from "./pool.ts";
import { isSingle, quantized, single, zeroPointAt } from "./quantization.ts";
import { softmaxAxes } from "./softmax.ts";
import { operand, readWindow } from "./window.ts";

/** The operands of a quantised operator of one value. */
export interface QuantizedUnary<T> { readonly X: T; readonly X_scale: T; readonly X_zero_point: T | undefined; readonly Y_scale: T; readonly Y_zero_point: T | undefined }

/** Inputs by name as operands of one value. */
export function quantizedUnary<T extends object>(inputs: Readonly<Record<string, T | readonly T[] | undefined>>): QuantizedUnary<T> {
  const optional = (name: string): T | undefined => { const given = inputs[name]; return isOne(given) ? given : undefined; };
  const one = (name: string): T => present(optional(name), name);
  return { X: one("X"), X_scale: one("X_scale"), X_zero_point: optional("X_zero_point"), Y_scale: one("Y_scale"), Y_zero_point: optional("Y_zero_point") };
}
const isOne = <T>(given: T | readonly T[] | undefined): given is T => given !== undefined && !Array.isArray(given);

/** Whether scales and zero points are one for the whole tensor. */
export const singleScales = ({ X_scale, X_zero_point, Y_scale, Y_zero_point }: QuantizedUnary<TypeInfo>): boolean =>
  [X_scale, X_zero_point, Y_scale, Y_zero_point].every((t) => !t || isSingle(t));
/** Whether the scale is known to be above 0: only then does the order of integers tell that of what they stand for. */
export const keepsOrder = ({ X_scale }: QuantizedUnary<TypeInfo>): boolean => { const s = numbersKnown(X_scale)?.[0]; return s !== undefined && s > 0 && Number.isFinite(s); };

/** Windows in which an element stands on average, at most, so that reading it as a byte in each is cheaper than once as a float for all. */
const mostWindows = 4;
export function standsInFew({ kernel_shape, strides }: PoolOptions): boolean {
  return kernel_shape.reduce((n, size, d) => n * (size / (strides?.[d] ?? 1)), 1) <= mostWindows;
}

/** `steps` of the result, rounded. */
const rounded = (steps: Expr, { X, Y_zero_point }: QuantizedUnary<Operand>): Expr => quantized(steps, zeroPointAt(Y_zero_point, undefined), X.dtype);
const scaleOf = (scale: Operand): Expr => cast(single(scale), "f32");

/** exp((q − most) · scale) over the sum of these, whose reciprocal is taken in steps of the result. */
export function softmaxElement(of: QuantizedUnary<Operand>, options: { readonly axis: number; readonly flatten: number }): ElementFunction {
  const { X } = of, axes = softmaxAxes(options, X.shape.length);
  return (...indices) => {
    const at = (i: readonly Expr[]): Expr => cast(X.at(...i), "i32");
    const most = overAxes("max", X.shape, axes, indices, at);
    const power = (i: readonly Expr[]): Expr => decay(mul(cast(sub(at(i), most), "f32"), scaleOf(of.X_scale)));
    return rounded(mul(power(indices), div(1, mul(overAxes("add", X.shape, axes, indices, power), scaleOf(of.Y_scale)))), of);
  };
}

/** (Σ q − zero for each that is inside) · scale over the number of elements that count. */
export function averageElement(of: QuantizedUnary<Operand>, options: PoolOptions & { readonly count_include_pad: number }, channelsLast: boolean): ElementFunction {
  const { X } = of, rank = X.shape.length;
  const before = channelsLast ? [...X.shape.slice(0, 1), ...X.shape.slice(-1), ...X.shape.slice(1, -1)] : X.shape;
  const windows = poolWindows({ shape: before }, options);
  return (...indices) => {
    const place = channelsLast ? indices.slice(1, -1) : indices.slice(2), n = operand(indices, 0), c = operand(indices, channelsLast ? rank - 1 : 1);
    const zero = zeroPointAt(of.X_zero_point, undefined);
    const read = (p: readonly Expr[]): Expr => cast(channelsLast ? X.at(n, ...p, c) : X.at(n, c, ...p), "i32");
    const sum = reduce("add", taps(windows), (...k) => readWindow(windows, place, k, read, 0), constant(0, i32));
    const total = sub(sum, mul(zero, tapCount(windows, place, false, i32)));
    return rounded(mul(cast(total, "f32"), div(div(scaleOf(of.X_scale), scaleOf(of.Y_scale)), tapCount(windows, place, options.count_include_pad !== 0, f32))), of);
  };
}
