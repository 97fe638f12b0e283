/** CausalConvWithState: a convolution of each channel over its last tokens, the first of which an earlier call has left. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { stringOf } from "./read-attribute.ts";
import { at } from "./window.ts";

export const CausalConvWithState: Evaluate = ([input, weight, bias, pastState], attributes) => {
  const x = present(input, "input"), w = present(weight, "weight"), [batch = 0, channels = 0, length = 0] = x.dims, kernel = at(w.dims, 2), held = kernel - 1;
  const values = toNumbers(x), taps = toNumbers(w), shifts = bias && toNumbers(bias), past = pastState && toNumbers(pastState), activates = stringOf(attributes, "activation", "none") !== "none";
  const y = new Float64Array(batch * channels * length), state = new Float64Array(batch * channels * held);
  for (let row = 0; row < batch * channels; row++) {
    const token = (t: number): number => (t < held ? past?.[row * held + t] ?? 0 : values[row * length + t - held] ?? 0), c = row % channels;
    for (let t = 0; t < length; t++) {
      let sum = shifts?.[c] ?? 0;
      for (let k = 0; k < kernel; k++) sum += token(t + k) * (taps[c * kernel + k] ?? 0);
      y[row * length + t] = activates ? sum / (1 + Math.exp(-sum)) : sum;
    }
    for (let t = 0; t < held; t++) state[row * held + t] = token(length + t);
  }
  return [fromNumbers(x.dtype, x.dims, y), fromNumbers(x.dtype, [batch, channels, held], state)];
};
