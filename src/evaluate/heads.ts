/** Heads of attention, apart and merged, and their caches, as numbers. */
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import type { DType } from "../core/dtype.ts";
import { at } from "./window.ts";

/** A tensor of [batch, heads, sequence, depth]. */
export interface Heads { readonly dims: readonly [number, number, number, number]; readonly data: Float64Array }

/** [batch, sequence, heads · depth] as [batch, heads, sequence, depth]; four axes stay. */
export function headsApart(t: Tensor, count: number): Heads {
  const x = toNumbers(t);
  if (t.dims.length === 4) return { dims: [at(t.dims, 0), at(t.dims, 1), at(t.dims, 2), at(t.dims, 3)], data: Float64Array.from(x) };
  const batch = at(t.dims, 0), sequence = at(t.dims, 1), depth = at(t.dims, 2) / count;
  const data = new Float64Array(x.length);
  for (let b = 0; b < batch; b++) for (let s = 0; s < sequence; s++) for (let h = 0; h < count; h++) for (let d = 0; d < depth; d++)
    data[((b * count + h) * sequence + s) * depth + d] = x[((b * sequence + s) * count + h) * depth + d] ?? 0;
  return { dims: [batch, count, sequence, depth], data };
}

/** past, then now, along the sequence. */
export function joined(past: Tensor | undefined, now: Heads): Heads {
  if (!past) return now;
  const before = headsApart(past, now.dims[1]), [batch, count, sequence, depth] = now.dims, length = before.dims[2] + sequence;
  const data = new Float64Array(batch * count * length * depth);
  for (let g = 0; g < batch * count; g++) {
    data.set(before.data.subarray(g * before.dims[2] * depth, (g + 1) * before.dims[2] * depth), g * length * depth);
    data.set(now.data.subarray(g * sequence * depth, (g + 1) * sequence * depth), (g * length + before.dims[2]) * depth);
  }
  return { dims: [batch, count, length, depth], data };
}

/** [batch, heads, sequence, depth] as [batch, sequence, heads · depth]. */
export function headsMerged({ dims: [batch, heads, sequence, depth], data }: Heads, dtype: DType): Tensor {
  const merged = new Float64Array(data.length);
  for (let b = 0; b < batch; b++) for (let h = 0; h < heads; h++) for (let s = 0; s < sequence; s++) for (let d = 0; d < depth; d++)
    merged[((b * sequence + s) * heads + h) * depth + d] = data[((b * heads + h) * sequence + s) * depth + d] ?? 0;
  return fromNumbers(dtype, [batch, sequence, heads * depth], merged);
}

/** A tensor of the dtype. */
export const tensorOf = ({ dims, data }: Heads, dtype: DType): Tensor => fromNumbers(dtype, dims, data);
