/** Conv, ConvTranspose and ConvInteger, by their definitions. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { convolve, convolveTransposed, type Channels } from "./convolve.ts";
import { numberOf } from "./read-attribute.ts";
import { at, transposedWindows, windows, type Geometry } from "./window.ts";

export const outputDims = (c: Channels, g: Geometry): number[] => [c.batch, c.groups * c.outputs, ...g.output.slice(3 - g.rank)];

/** The channels of a convolution, with weights [M, C / groups, kernel…]. */
export function convChannels(x: Tensor, w: Tensor, groups: number): Channels {
  return { batch: at(x.dims, 0), groups, inputs: at(w.dims, 1), outputs: at(w.dims, 0) / groups };
}

/** Adds bias[channel] to y of [batch, channels, …]. */
export function addBias(y: Float64Array, bias: Tensor | undefined, dims: readonly number[]): void {
  if (!bias) return;
  const b = toNumbers(bias), channels = at(dims, 1), plane = sizeOf(dims.slice(2));
  for (let i = 0; i < y.length; i++) y[i] = (y[i] ?? 0) + (b[Math.floor(i / plane) % channels] ?? 0);
}

export const Conv: Evaluate = ([X, W, B], attributes) => {
  const x = present(X, "X"), w = present(W, "W");
  const g = windows(x.dims.slice(2), w.dims.slice(2), attributes);
  const c = convChannels(x, w, numberOf(attributes, "group"));
  const dims = outputDims(c, g);
  const y = convolve(toNumbers(x), toNumbers(w), c, g);
  addBias(y, B, dims);
  return [fromNumbers(x.dtype, dims, y)];
};

export const ConvTranspose: Evaluate = ([X, W, B], attributes) => {
  const x = present(X, "X"), w = present(W, "W");
  const g = transposedWindows(x.dims.slice(2), w.dims.slice(2), attributes);
  const groups = numberOf(attributes, "group");
  const c = { batch: at(x.dims, 0), groups, inputs: at(x.dims, 1) / groups, outputs: at(w.dims, 1) };
  const dims = outputDims(c, g);
  const y = convolveTransposed(toNumbers(x), toNumbers(w), c, g);
  addBias(y, B, dims);
  return [fromNumbers(x.dtype, dims, y)];
};

/** Elements less the zero point of their place: one for all, or one an index of axis 0. */
export function lessZeroPoint(t: Tensor, zeroPoint: Tensor | undefined): ArrayLike<number> {
  const x = toNumbers(t);
  if (!zeroPoint) return x;
  const z = toNumbers(zeroPoint), plane = sizeOf(t.dims.slice(1));
  return Float64Array.from(x, (v, i) => v - (z[z.length === 1 ? 0 : Math.floor(i / plane)] ?? 0));
}

export const ConvInteger: Evaluate = ([X, W, xZero, wZero], attributes) => {
  const x = present(X, "x"), w = present(W, "w");
  const g = windows(x.dims.slice(2), w.dims.slice(2), attributes);
  const c = convChannels(x, w, numberOf(attributes, "group"));
  return [fromNumbers("int32", outputDims(c, g), convolve(lessZeroPoint(x, xZero), lessZeroPoint(w, wZero), c, g))];
};
