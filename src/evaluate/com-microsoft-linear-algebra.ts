/** Evaluation of com.microsoft's Inverse, by Gauss and Jordan with partial pivoting, and CDist. */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { stringOf } from "./read-attribute.ts";

/** A singular matrix has no finite inverse: its elements are infinite or NaN. */
function inverse(matrix: readonly number[], n: number): number[] {
  const rows = Array.from({ length: n }, (_, i) => [...matrix.slice(i * n, (i + 1) * n), ...Array.from({ length: n }, (_, j) => (i === j ? 1 : 0))]);
  const at = (i: number, j: number): number => rows[i]?.[j] ?? NaN;
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(at(i, k)) > Math.abs(at(pivot, k))) pivot = i;
    const [own, other] = [rows[k] ?? [], rows[pivot] ?? []];
    rows[k] = other;
    if (pivot !== k) rows[pivot] = own;
    const by = at(k, k), scaled = (rows[k] ?? []).map((v) => v / by);
    rows[k] = scaled;
    for (let i = 0; i < n; i++) {
      const factor = at(i, k);
      if (i !== k && factor !== 0) rows[i] = (rows[i] ?? []).map((v, j) => v - factor * (scaled[j] ?? 0));
    }
  }
  return rows.flatMap((row) => row.slice(n));
}

export const Inverse: Evaluate = (inputs) => {
  const x = input(inputs, 0), n = x.dims[x.dims.length - 1] ?? 1, values = Array.from(toNumbers(x)), size = n * n;
  return [fromNumbers(x.dtype, x.dims, Array.from({ length: size ? values.length / size : 0 }, (_, m) => inverse(values.slice(m * size, (m + 1) * size), n)).flat())];
};

export const CDist: Evaluate = (inputs, attributes) => {
  const a = input(inputs, 0), b = input(inputs, 1), x = toNumbers(a), y = toNumbers(b), width = a.dims[1] ?? 0, rows = a.dims[0] ?? 0, columns = b.dims[0] ?? 0;
  const isRoot = stringOf(attributes, "metric") === "euclidean";
  return [fromNumbers(a.dtype, [rows, columns], Array.from({ length: rows * columns }, (_, at) => {
    const i = Math.floor(at / columns), j = at % columns;
    let sum = 0;
    for (let k = 0; k < width; k++) sum += ((x[i * width + k] ?? 0) - (y[j * width + k] ?? 0)) ** 2;
    return isRoot ? Math.sqrt(sum) : sum;
  }))];
};
