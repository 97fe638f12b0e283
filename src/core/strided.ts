/** Walking tensors in memory: flat indices of strided and broadcast elements, in row-major order of what they make. */
import { fail } from "./diagnostic.ts";
import { checkElementCount } from "./dtype.ts";
import { rowMajorStrides, sizeOf } from "./tensor.ts";

/** Row-major over `dims`: offset + Σ index·stride. */
export function stridedIndices(dims: readonly number[], strides: readonly number[], offset = 0): Int32Array {
  checkElementCount(sizeOf(dims), 4);
  const out = new Int32Array(sizeOf(dims));
  const index = new Array<number>(dims.length).fill(0);
  let at = offset;
  for (let i = 0; i < out.length; i++) {
    out[i] = at;
    for (let d = dims.length - 1; d >= 0; d--) {
      const next = (index[d] ?? 0) + 1, stride = strides[d] ?? 0;
      at += stride;
      if (next < (dims[d] ?? 1)) { index[d] = next; break; }
      index[d] = 0;
      at -= next * stride;
    }
  }
  return out;
}

/** The numpy broadcast. Fails with OF7014 for sizes that do not broadcast, which only values that are fed can give. */
export function broadcastDims(...shapes: readonly (readonly number[])[]): number[] {
  const rank = Math.max(0, ...shapes.map((s) => s.length));
  return Array.from({ length: rank }, (_, d) => shapes.reduce((size, s) => {
    const own = s[d - rank + s.length] ?? 1;
    if (own !== size && own !== 1 && size !== 1) fail("OF7014", `shapes [${shapes.map((dims) => dims.join(", ")).join("] and [")}] do not broadcast`, { hint: "check the shapes and values that are fed" });
    return size === 1 ? own : size;
  }, 1));
}

/** For each element of a tensor of `to`, row-major, the flat index of the element of a tensor of `from` that broadcasts to it. */
export function broadcastSources(from: readonly number[], to: readonly number[]): Int32Array {
  const strides = rowMajorStrides(from), skip = to.length - from.length;
  return stridedIndices(to, to.map((_, d) => (d < skip || from[d - skip] === 1 ? 0 : strides[d - skip] ?? 0)));
}
