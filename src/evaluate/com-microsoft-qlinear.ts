/** Operators on quantised values (com.microsoft), by their definitions: dequantise, compute, quantise. */
import { present } from "../core/assert.ts";
import { dtypes, type DType } from "../core/dtype.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import type { Tensor } from "../core/tensor.ts";
import { LeakyRelu, Sigmoid } from "./activation.ts";
import { Where } from "./logic.ts";
import { Concat, Transpose } from "./movement.ts";
import { AveragePool, GlobalAveragePool } from "./pool.ts";
import { DequantizeLinear, QuantizeLinear } from "./quantize.ts";
import { numberOf } from "./read-attribute.ts";
import { Softmax } from "./softmax.ts";

const one = { outputCount: 1 };
const first = (tensors: readonly Tensor[]): Tensor => present(tensors[0], "result");

/** The float32 values of a quantised tensor. */
export const dequantized = (x: Tensor | undefined, scale: Tensor | undefined, zero: Tensor | undefined): Tensor =>
  first(DequantizeLinear([present(x, "X"), present(scale, "scale"), zero], { axis: 0, block_size: 0 }, one));
/** Values quantised to a dtype. */
export const quantized = (x: Tensor, scale: Tensor | undefined, zero: Tensor | undefined, dtype: DType): Tensor =>
  first(QuantizeLinear([x, present(scale, "scale"), zero], { axis: 0, block_size: 0, output_dtype: dtypes[dtype].onnx }, one));

/** An operator of one operand between dequantising and quantising. */
const between = (of: (x: Tensor, attributes: EvaluateAttributes) => Tensor): Evaluate => ([X, xScale, xZero, yScale, yZero], attributes) =>
  [quantized(of(dequantized(X, xScale, xZero), attributes), yScale, yZero, present(X, "X").dtype)];

/** With channels in axis 1 where they are last. */
const channelsFirst = (of: Evaluate) => (x: Tensor, attributes: EvaluateAttributes): Tensor => {
  if (!numberOf(attributes, "channels_last", 0)) return first(of([x], attributes, one));
  const rank = x.dims.length, inner = Array.from({ length: rank - 2 }, (_, d) => d + 1);
  const turned = first(Transpose([x], { perm: [0, rank - 1, ...inner] }, one));
  return first(Transpose([first(of([turned], attributes, one))], { perm: [0, ...inner.map((d) => d + 1), 1] }, one));
};

export const QLinearSigmoid: Evaluate = between((x) => first(Sigmoid([x], {}, one)));
export const QLinearLeakyRelu: Evaluate = between((x, attributes) => first(LeakyRelu([x], attributes, one)));
export const QLinearSoftmax: Evaluate = between((x, attributes) =>
  first(Softmax([x], { axis: numberOf(attributes, "axis"), flatten: numberOf(attributes, "opset") < 13 ? 1 : 0 }, one)));
export const QLinearAveragePool: Evaluate = between(channelsFirst(AveragePool));
export const QLinearGlobalAveragePool: Evaluate = between(channelsFirst(GlobalAveragePool));

export const QLinearConcat: Evaluate = ([yScale, yZero, ...parts], attributes) => {
  const values: Tensor[] = [];
  for (let i = 0; i < parts.length; i += 3) values.push(dequantized(parts[i], parts[i + 1], parts[i + 2]));
  return [quantized(first(Concat(values, attributes, one)), yScale, yZero, present(yZero, "Y_zero_point").dtype)];
};

export const QLinearWhere: Evaluate = ([condition, X, xScale, xZero, Y, yScale, yZero, zScale, zZero]) => {
  const chosen = first(Where([condition, dequantized(X, xScale, xZero), dequantized(Y, yScale, yZero)], {}, one));
  return [quantized(chosen, zScale, zZero, present(X, "X").dtype)];
};
