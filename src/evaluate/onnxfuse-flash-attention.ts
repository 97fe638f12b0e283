/** Scaled dot-product attention: softmax(scale · q·kᵀ + mask) · v, in float64, as the unfused operators define it. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** Sizes of [batch, heads, rows, columns], leading ones missing. */
const four = (t: Tensor): number[] => [...new Array<number>(4 - t.dims.length).fill(1), ...t.dims];

export const FlashAttention: Evaluate = ([Q, K, V, mask], attributes) => {
  const q = present(Q, "Q"), k = present(K, "K"), v = present(V, "V");
  const [batch = 1, heads = 1, queries = 1, depth = 1] = four(q), [, keyHeads = 1, keys = 1] = four(k), width = at(four(v), 3);
  const qs = toNumbers(q), ks = toNumbers(k), vs = toNumbers(v), ms = mask && toNumbers(mask), maskDims = mask && four(mask);
  const scale = numberOf(attributes, "scale");
  const maskAt = (b: number, h: number, s: number, t: number): number => {
    if (!ms || !maskDims) return 0;
    const index = [b, h, s, t].reduce((flat, i, d) => flat * at(maskDims, d) + (at(maskDims, d) === 1 ? 0 : i), 0);
    return ms[index] ?? 0;
  };
  const y = new Float64Array(batch * heads * queries * width);
  for (let b = 0; b < batch; b++) for (let h = 0; h < heads; h++) {
    const head = b * keyHeads + Math.floor(h / (heads / keyHeads));
    for (let s = 0; s < queries; s++) {
      const row = (b * heads + h) * queries + s;
      const scores = Float64Array.from({ length: keys }, (_, t) => {
        let dot = 0;
        for (let d = 0; d < depth; d++) dot += (qs[row * depth + d] ?? 0) * (ks[(head * keys + t) * depth + d] ?? 0);
        return dot * scale + maskAt(b, h, s, t);
      });
      const most = scores.reduce((a, c) => Math.max(a, c), -Infinity);
      const weights = scores.map((x) => Math.exp(x - most));
      const total = weights.reduce((a, c) => a + c, 0);
      for (let t = 0; t < keys; t++) for (let e = 0; e < width; e++)
        y[row * width + e] = (y[row * width + e] ?? 0) + ((weights[t] ?? 0) / total) * (vs[(head * keys + t) * width + e] ?? 0);
    }
  }
  return [fromNumbers(q.dtype, [...q.dims.slice(0, -1), width], y)];
};
