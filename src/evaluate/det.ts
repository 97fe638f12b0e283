/** Evaluation of Det: elimination with partial pivoting, in float64. */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";

function determinant(m: Float64Array, n: number): number {
  let product = 1;
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let r = k + 1; r < n; r++) if (Math.abs(m[r * n + k] ?? 0) > Math.abs(m[pivot * n + k] ?? 0)) pivot = r;
    if (pivot !== k) {
      product = -product;
      for (let c = k; c < n; c++) [m[k * n + c], m[pivot * n + c]] = [m[pivot * n + c] ?? 0, m[k * n + c] ?? 0];
    }
    const head = m[k * n + k] ?? 0;
    product *= head;
    if (head === 0) return product;
    for (let r = k + 1; r < n; r++) {
      const by = (m[r * n + k] ?? 0) / head;
      for (let c = k; c < n; c++) m[r * n + c] = (m[r * n + c] ?? 0) - by * (m[k * n + c] ?? 0);
    }
  }
  return product;
}

export const Det: Evaluate = (inputs) => {
  const x = input(inputs, 0), n = x.dims[x.dims.length - 1] ?? 1, dims = x.dims.slice(0, -2), values = toNumbers(x);
  return [fromNumbers(x.dtype, dims, Float64Array.from({ length: sizeOf(dims) }, (_, i) => determinant(Float64Array.from({ length: n * n }, (_v, k) => values[i * n * n + k] ?? 0), n)))];
};
