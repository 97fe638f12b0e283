/**
 * RoiAlign as the runtime runs it: where a region's samples lie and their weights are found once for all channels, along
 * each axis by itself. The results are those of the naive evaluation.
 */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, stringOf } from "./read-attribute.ts";
import { sampleGrid, type Sample } from "./roi.ts";

export const RoiAlign: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), rois = toNumbers(input(inputs, 1)), batchOf = toNumbers(input(inputs, 2));
  const [, channels = 1, height = 1, width = 1] = x.dims, values = toNumbers(x), count = batchOf.length, average = stringOf(attributes, "mode", "avg") === "avg";
  const oh = numberOf(attributes, "output_height", 1), ow = numberOf(attributes, "output_width", 1), out = new Float64Array(count * channels * oh * ow);
  for (let r = 0; r < count; r++) {
    const grid = sampleGrid([0, 1, 2, 3].map((k) => rois[r * 4 + k] ?? 0), height, width, attributes);
    for (let c = 0; c < channels; c++) {
      const base = ((batchOf[r] ?? 0) * channels + c) * height * width, to = (r * channels + c) * oh * ow;
      for (let i = 0; i < oh; i++) for (let j = 0; j < ow; j++) out[to + i * ow + j] = binOf(values, base, width, grid.rows[i] ?? [], grid.columns[j] ?? [], average);
    }
  }
  return [fromNumbers(x.dtype, [count, channels, oh, ow], out)];
};

/** The mean, or the greatest weighted pixel, of the samples of one bin. */
function binOf(values: ArrayLike<number>, base: number, width: number, rows: readonly (Sample | undefined)[], columns: readonly (Sample | undefined)[], average: boolean): number {
  let total = 0, most = rows.length * columns.length > 0 ? -Infinity : 0;
  for (const v of rows) for (const h of columns) {
    if (!v || !h) { most = Math.max(most, 0); continue; }
    const above = base + v.low * width, below = base + v.high * width, up = 1 - v.weight, left = 1 - h.weight;
    const a = up * left * (values[above + h.low] ?? 0), b = up * h.weight * (values[above + h.high] ?? 0);
    const c = v.weight * left * (values[below + h.low] ?? 0), d = v.weight * h.weight * (values[below + h.high] ?? 0);
    if (average) total += a + b + c + d;
    else most = Math.max(most, a, b, c, d);
  }
  return average ? total / Math.max(rows.length * columns.length, 1) : most;
}
