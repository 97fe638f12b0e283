/** Scaled dot-product attention: softmax(scale · q·kᵀ + mask) · v, in float64, as the unfused operators define it. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { broadcastSources } from "../core/strided.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** Sizes of [batch, heads, rows, columns], leading ones missing. */
const four = (t: Tensor): number[] => [...new Array<number>(4 - t.dims.length).fill(1), ...t.dims];

export const FlashAttention: Evaluate = ([Q, K, V, mask], attributes) => {
  const q = present(Q, "Q"), k = present(K, "K"), v = present(V, "V");
  const [batch = 1, heads = 1, queries = 1, depth = 1] = four(q), [, keyHeads = 1, keys = 1] = four(k), width = at(four(v), 3);
  const qs = toNumbers(q), ks = toNumbers(k), vs = toNumbers(v), ms = mask && toNumbers(mask);
  const maskOf = mask && broadcastSources(mask.dims, [batch, heads, queries, keys]);
  const scale = numberOf(attributes, "scale");
  const y = new Float64Array(batch * heads * queries * width);
  for (let b = 0; b < batch; b++) for (let h = 0; h < heads; h++) {
    const head = b * keyHeads + Math.floor(h / (heads / keyHeads));
    for (let s = 0; s < queries; s++) {
      const row = (b * heads + h) * queries + s;
      const scores = Float64Array.from({ length: keys }, (_, t) => {
        let dot = 0;
        for (let d = 0; d < depth; d++) dot += (qs[row * depth + d] ?? 0) * (ks[(head * keys + t) * depth + d] ?? 0);
        return dot * scale + (ms && maskOf ? (ms[maskOf[row * keys + t] ?? 0] ?? 0) : 0);
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
