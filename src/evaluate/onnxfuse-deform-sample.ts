/** Evaluation of DeformSample: the columns of a DeformConv, by the convolution with weights that pick one tap of one channel each. */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf } from "../core/tensor.ts";
import { DeformConv } from "./deform-conv.ts";
import { input } from "./map-elements.ts";
import { numbersOf } from "./read-attribute.ts";

/** Inputs are X, offset, mask. */
export const DeformSample: Evaluate = (inputs, attributes, context) => {
  const x = input(inputs, 0), kernel = numbersOf(attributes, "kernel_shape") ?? [], taps = sizeOf(kernel), channels = x.dims[1] ?? 1;
  const picks = new Float64Array(channels * taps * taps);
  for (let row = 0; row < channels * taps; row++) picks[row * taps + (row % taps)] = 1;
  const weights = fromNumbers(x.dtype, [channels * taps, 1, ...kernel], picks);
  return DeformConv([x, weights, input(inputs, 1), undefined, inputs[2]], { ...attributes, group: channels }, context);
};
