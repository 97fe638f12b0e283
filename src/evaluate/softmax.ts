/** Softmax, LogSoftmax and Hardmax, by their definitions. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { axisGroups, groupOf, positiveAxes } from "./axis-groups.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

const overRows = (rows: (row: Float64Array) => Float64Array): Evaluate => ([X], attributes) => {
  const x: Tensor = present(X, "input"), values = toNumbers(x), rank = x.dims.length;
  const axis = at(positiveAxes([numberOf(attributes, "axis")], rank), 0);
  const axes = numberOf(attributes, "flatten", 0) ? x.dims.map((_, d) => d).filter((d) => d >= axis) : [axis];
  const groups = axisGroups(x.dims, axes), y = new Float64Array(values.length);
  groups.starts.forEach((start, g) => {
    const row = rows(groupOf(values, groups, g));
    groups.steps.forEach((step, e) => { y[start + step] = row[e] ?? NaN; });
  });
  return [fromNumbers(x.dtype, x.dims, y)];
};

const greatest = (row: Float64Array): number => row.reduce((a, b) => Math.max(a, b), -Infinity);

export const Softmax: Evaluate = overRows((row) => {
  const m = greatest(row), e = row.map((x) => Math.exp(x - m)), total = e.reduce((a, b) => a + b, 0);
  return e.map((x) => x / total);
});
export const LogSoftmax: Evaluate = overRows((row) => {
  const m = greatest(row), total = row.reduce((sum, x) => sum + Math.exp(x - m), 0);
  return row.map((x) => x - m - Math.log(total));
});
export const Hardmax: Evaluate = overRows((row) => {
  const first = row.indexOf(greatest(row));
  return row.map((_, i) => (i === first ? 1 : 0));
});
