/**
 * Evaluation of RoiAlign and MaxRoiPool. Positions are computed in float32, as runtimes do: where a sample falls outside
 * the image, and which pixels a bin holds, hang on their last bit.
 */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";

const f = Math.fround;

/** The two pixels around a sample and the weight of the second; undefined outside the image. */
function neighbours(v: number, size: number): readonly [number, number, number] | undefined {
  if (!(v >= -1 && v <= size)) return undefined;
  const x = Math.max(v, 0), low = Math.trunc(x);
  return low >= size - 1 ? [size - 1, size - 1, 0] : [low, low + 1, f(x - low)];
}

export const RoiAlign: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), rois = toNumbers(input(inputs, 1)), batchOf = toNumbers(input(inputs, 2));
  const [, channels = 1, height = 1, width = 1] = x.dims, values = toNumbers(x), count = batchOf.length;
  const oh = numberOf(attributes, "output_height", 1), ow = numberOf(attributes, "output_width", 1), ratio = numberOf(attributes, "sampling_ratio", 0);
  const scale = f(numberOf(attributes, "spatial_scale", 1)), half = stringOf(attributes, "coordinate_transformation_mode", "half_pixel") === "half_pixel";
  const average = stringOf(attributes, "mode", "avg") === "avg", out = new Float64Array(count * channels * oh * ow);
  for (let r = 0; r < count; r++) {
    const corner = (k: number): number => f(f((rois[r * 4 + k] ?? 0) * scale) - (half ? 0.5 : 0));
    const [left, top] = [corner(0), corner(1)], extent = (from: number, to: number): number => (half ? f(to - from) : Math.max(f(to - from), 1));
    const binH = f(extent(top, corner(3)) / oh), binW = f(extent(left, corner(2)) / ow);
    const [gridH, gridW] = ratio > 0 ? [ratio, ratio] : [Math.ceil(binH), Math.ceil(binW)];
    const place = (start: number, bin: number, size: number, i: number, n: number): number => f(f(start + f(i * bin)) + f(f(f(n + 0.5) * bin) / size));
    for (let c = 0; c < channels; c++) for (let i = 0; i < oh; i++) for (let j = 0; j < ow; j++) {
      const base = ((batchOf[r] ?? 0) * channels + c) * height * width;
      let total = 0, most = -Infinity;
      for (let a = 0; a < gridH; a++) for (let b = 0; b < gridW; b++) {
        const v = neighbours(place(top, binH, gridH, i, a), height), h = neighbours(place(left, binW, gridW, j, b), width);
        const parts = v && h ? [[v[0], h[0], (1 - v[2]) * (1 - h[2])], [v[0], h[1], (1 - v[2]) * h[2]], [v[1], h[0], v[2] * (1 - h[2])], [v[1], h[1], v[2] * h[2]]]
          .map(([y = 0, z = 0, w = 0]) => w * (values[base + y * width + z] ?? 0)) : [0];
        total += parts.reduce((s, p) => s + p, 0);
        most = Math.max(most, ...parts);
      }
      out[((r * channels + c) * oh + i) * ow + j] = average ? total / Math.max(gridH * gridW, 1) : gridH * gridW > 0 ? most : 0;
    }
  }
  return [fromNumbers(x.dtype, [count, channels, oh, ow], out)];
};

/** The greatest pixel of each bin of a region; a bin without pixels is 0. */
export const MaxRoiPool: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), list = input(inputs, 1), rois = toNumbers(list), values = toNumbers(x);
  const [, channels = 1, height = 1, width = 1] = x.dims, [count = 0] = list.dims, [oh = 1, ow = 1] = numbersOf(attributes, "pooled_shape") ?? [];
  const scale = f(numberOf(attributes, "spatial_scale", 1)), out = new Float64Array(count * channels * oh * ow);
  const round = (v: number): number => Math.sign(v) * Math.floor(Math.abs(v) + 0.5);
  for (let r = 0; r < count; r++) {
    const at = (k: number): number => round(f((rois[r * 5 + k] ?? 0) * scale)), base = (rois[r * 5] ?? 0) * channels;
    const [left, top] = [at(1), at(2)], binH = f(Math.max(at(4) - top + 1, 1) / oh), binW = f(Math.max(at(3) - left + 1, 1) / ow);
    const within = (v: number, size: number): number => Math.min(Math.max(v, 0), size);
    const span = (start: number, bin: number, i: number, size: number): readonly [number, number] => [within(Math.floor(f(i * bin)) + start, size), within(Math.ceil(f((i + 1) * bin)) + start, size)];
    for (let c = 0; c < channels; c++) for (let i = 0; i < oh; i++) for (let j = 0; j < ow; j++) {
      const [y0, y1] = span(top, binH, i, height), [x0, x1] = span(left, binW, j, width);
      let most = y1 > y0 && x1 > x0 ? -Infinity : 0;
      for (let y = y0; y < y1; y++) for (let z = x0; z < x1; z++) most = Math.max(most, values[((base + c) * height + y) * width + z] ?? 0);
      out[((r * channels + c) * oh + i) * ow + j] = most;
    }
  }
  return [fromNumbers(x.dtype, [count, channels, oh, ow], out)];
};
