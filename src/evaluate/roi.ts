/**
 * Evaluation of RoiAlign and MaxRoiPool. Positions are computed in float32, as runtimes do: where a sample falls outside
 * the image, and which pixels a bin holds, hang on their last bit.
 */
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";

const f = Math.fround;

/** The two pixels around a sample along one axis, and the weight of the second. */
interface Sample { readonly low: number; readonly high: number; readonly weight: number }

/** Undefined outside the image. */
function neighbours(v: number, size: number): Sample | undefined {
  if (!(v >= -1 && v <= size)) return undefined;
  const x = Math.max(v, 0), low = Math.trunc(x);
  return low >= size - 1 ? { low: size - 1, high: size - 1, weight: 0 } : { low, high: low + 1, weight: f(x - low) };
}

/** The samples of every row and column of bins of a region [left, top, right, bottom]. */
function sampleGrid(roi: readonly number[], height: number, width: number, attributes: EvaluateAttributes): Record<"rows" | "columns", (Sample | undefined)[][]> {
  const scale = f(numberOf(attributes, "spatial_scale", 1)), half = stringOf(attributes, "coordinate_transformation_mode", "half_pixel") === "half_pixel";
  const ratio = numberOf(attributes, "sampling_ratio", 0);
  const axis = (k: number, bins: number, size: number): (Sample | undefined)[][] => {
    const [start, end] = [k, k + 2].map((i) => f(f((roi[i] ?? 0) * scale) - (half ? 0.5 : 0))), from = start ?? 0, span = f((end ?? 0) - from);
    const bin = f((half ? span : Math.max(span, 1)) / bins), count = ratio > 0 ? ratio : Math.max(Math.ceil(bin), 0);
    return Array.from({ length: bins }, (_, i) => Array.from({ length: count }, (_s, n) => neighbours(f(f(from + f(i * bin)) + f(f((n + 0.5) * bin) / count)), size)));
  };
  return { rows: axis(1, numberOf(attributes, "output_height", 1), height), columns: axis(0, numberOf(attributes, "output_width", 1), width) };
}

export const RoiAlign: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), rois = toNumbers(input(inputs, 1)), batchOf = toNumbers(input(inputs, 2));
  const [, channels = 1, height = 1, width = 1] = x.dims, values = toNumbers(x), average = stringOf(attributes, "mode", "avg") === "avg";
  const dims = [batchOf.length, channels, numberOf(attributes, "output_height", 1), numberOf(attributes, "output_width", 1)], [, , oh = 1, ow = 1] = dims;
  return [fromNumbers(x.dtype, dims, Float64Array.from({ length: sizeOf(dims) }, (_, at) => {
    const j = at % ow, i = Math.floor(at / ow) % oh, c = Math.floor(at / (ow * oh)) % channels, r = Math.floor(at / (ow * oh * channels));
    const { rows, columns } = sampleGrid([0, 1, 2, 3].map((k) => rois[r * 4 + k] ?? 0), height, width, attributes);
    const pixel = (y: number, z: number): number => values[(((batchOf[r] ?? 0) * channels + c) * height + y) * width + z] ?? 0;
    const samples = (rows[i] ?? []).flatMap((v) => (columns[j] ?? []).map((h) => (v && h
      ? [(1 - v.weight) * (1 - h.weight) * pixel(v.low, h.low), (1 - v.weight) * h.weight * pixel(v.low, h.high), v.weight * (1 - h.weight) * pixel(v.high, h.low), v.weight * h.weight * pixel(v.high, h.high)]
      : [0])));
    const parts = samples.flat();
    return average ? parts.reduce((a, b) => a + b, 0) / Math.max(samples.length, 1) : parts.length ? Math.max(...parts) : 0;
  }))];
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
