/** Evaluation of DeformConv over any number of spatial axes: a convolution that reads between pixels, at places moved by `offset`. */
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, rowMajorStrides, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf } from "./read-attribute.ts";

/** Multilinear interpolation in one plane; 0 outside. */
function between(values: ArrayLike<number>, base: number, sizes: readonly number[], strides: readonly number[], at: readonly number[]): number {
  let total = 0;
  for (let corner = 0; corner < 1 << sizes.length; corner++) {
    let weight = 1, place = base;
    for (let d = 0; d < sizes.length; d++) {
      const x = at[d] ?? 0, upper = (corner >> d) & 1, i = Math.floor(x) + upper, fraction = x - Math.floor(x);
      if (!(i >= 0 && i < (sizes[d] ?? 0))) weight = 0;
      else { weight *= upper ? fraction : 1 - fraction; place += i * (strides[d] ?? 0); }
    }
    if (weight !== 0) total += weight * (values[place] ?? 0);
  }
  return total;
}

/** The samples that the kernel's taps read: [N, channels · taps, output…], times the mask. */
function samples(x: Tensor, offset: Tensor, mask: Tensor | undefined, kernel: readonly number[], attributes: EvaluateAttributes): Float64Array {
  const spatial = x.dims.slice(2), rank = spatial.length, output = offset.dims.slice(2), places = sizeOf(output), taps = sizeOf(kernel);
  const list = (name: string, length: number, missing: number): readonly number[] => numbersOf(attributes, name) ?? new Array<number>(length).fill(missing);
  const strides = list("strides", rank, 1), dilations = list("dilations", rank, 1), pads = list("pads", 2 * rank, 0), groups = numberOf(attributes, "offset_group", 1);
  const [batch = 1, channels = 1] = x.dims, values = toNumbers(x), offsets = toNumbers(offset), masks = mask && toNumbers(mask);
  const [imageStrides, outputStrides, tapStrides] = [rowMajorStrides(spatial), rowMajorStrides(output), rowMajorStrides(kernel)], plane = sizeOf(spatial);
  return Float64Array.from({ length: batch * channels * taps * places }, (_, i) => {
    const p = i % places, tap = Math.floor(i / places) % taps, c = Math.floor(i / (places * taps)) % channels, n = Math.floor(i / (places * taps * channels));
    const group = n * groups + Math.floor(c / (channels / groups));
    const at = spatial.map((_size, d) => {
      const o = Math.floor(p / (outputStrides[d] ?? 1)) % (output[d] ?? 1), k = Math.floor(tap / (tapStrides[d] ?? 1)) % (kernel[d] ?? 1);
      return o * (strides[d] ?? 1) - (pads[d] ?? 0) + k * (dilations[d] ?? 1) + (offsets[((group * taps + tap) * rank + d) * places + p] ?? 0);
    });
    return between(values, (n * channels + c) * plane, spatial, imageStrides, at) * (masks ? masks[(group * taps + tap) * places + p] ?? 1 : 1);
  });
}

/** Inputs are X, W, offset, B, mask. */
export const DeformConv: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), w = input(inputs, 1), offset = input(inputs, 2), [, , , bias, mask] = inputs, kernel = w.dims.slice(2);
  const columns = samples(x, offset, mask, kernel, attributes), weights = toNumbers(w), biases = bias && toNumbers(bias);
  const [batch = 1, channels = 1] = x.dims, [outputs = 1, own = 1] = w.dims, groups = numberOf(attributes, "group", 1), taps = sizeOf(kernel), places = sizeOf(offset.dims.slice(2));
  return [fromNumbers(x.dtype, [batch, outputs, ...offset.dims.slice(2)], Float64Array.from({ length: batch * outputs * places }, (_, i) => {
    const p = i % places, o = Math.floor(i / places) % outputs, n = Math.floor(i / (places * outputs)), first = Math.floor(o / (outputs / groups)) * own;
    let total = biases ? biases[o] ?? 0 : 0;
    for (let c = 0; c < own; c++) for (let tap = 0; tap < taps; tap++)
      total += (weights[(o * own + c) * taps + tap] ?? 0) * (columns[((n * channels + first + c) * taps + tap) * places + p] ?? 0);
    return total;
  }))];
};
