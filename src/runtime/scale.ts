/** Weights that were stored as int8 times scales. */
import { numericData, rowMajorStrides, type Tensor } from "../core/tensor.ts";

/** Integers times scales, whose sizes are theirs or 1. */
export function scale(source: Tensor, scales: Tensor, to: Float32Array): void {
  const from = numericData(source) as Int8Array, by = numericData(scales) as Float32Array;
  const rank = source.dims.length, own = rowMajorStrides(scales.dims), strides = scales.dims.map((d, i) => (d === 1 ? 0 : (own[i] ?? 0)));
  const inner = source.dims[rank - 1] ?? 1, step = strides[rank - 1] ?? 0, index = source.dims.map(() => 0);
  for (let i = 0, at = 0; i < to.length;) {
    for (let x = 0; x < inner; x++, i++) to[i] = (from[i] ?? 0) * (by[at + x * step] ?? 0);
    for (let d = rank - 2; d >= 0; d--) {
      const size = source.dims[d] ?? 1, n = (index[d] ?? 0) + 1;
      at += strides[d] ?? 0;
      index[d] = n;
      if (n < size) break;
      at -= (strides[d] ?? 0) * size;
      index[d] = 0;
    }
  }
}
