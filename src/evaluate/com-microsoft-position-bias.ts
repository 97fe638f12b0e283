/** com.microsoft's biases by relative position, by their definitions: T5's buckets, and WavLM's gates. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** T5's bucket of a distance: one each up to half of the buckets, then by logarithm. */
function bucketOf(distance: number, buckets: number, most: number): number {
  const exact = Math.floor(buckets / 2);
  if (distance < exact) return distance;
  return Math.min(buckets - 1, exact + Math.floor((Math.fround(Math.log(Math.fround(distance / exact))) / Math.fround(Math.log(Math.fround(most / exact)))) * (buckets - exact)));
}

/** The table has the buckets of one head after the other, although its shape is [buckets, heads]. */
export const RelativePositionBias: Evaluate = ([table, queryLength, keyLength], attributes) => {
  const t = present(table, "bias_table"), values = toNumbers(t), [buckets = 1, heads = 1] = t.dims, both = numberOf(attributes, "is_bidirectional", 0) !== 0, most = numberOf(attributes, "max_distance");
  const queries = toNumbers(present(queryLength, "query_length"))[0] ?? 0, keys = toNumbers(present(keyLength, "key_length"))[0] ?? 0, own = both ? Math.floor(buckets / 2) : buckets;
  const chosen = (q: number, k: number): number => (both ? (k > q ? own : 0) + bucketOf(Math.abs(k - q), own, most) : bucketOf(Math.max(0, q - k), own, most));
  return [fromNumbers(t.dtype, [1, heads, queries, keys], Array.from({ length: heads * queries * keys }, (_, i) => {
    const head = Math.floor(i / (queries * keys)), q = Math.floor(i / keys) % queries;
    return values[head * buckets + chosen(q, i % keys)] ?? 0;
  }))];
};

export const GatedRelativePositionBias: Evaluate = ([queryLayer, queryBias, positions, weight, bias, eco], attributes) => {
  const x = present(queryLayer, "query_layer"), heads = numberOf(attributes, "num_heads"), [batch = 1, length = 1, hidden = 1] = x.dims, depth = hidden / heads, width = at(present(weight, "weight").dims, 1);
  const [q, qb, rel, w, b, a] = [x, queryBias, positions, weight, bias, eco].map((t) => toNumbers(present(t, "input"))), half = width / 2;
  const gate = (n: number, h: number, s: number, part: number): number => {
    let sum = 0;
    for (let j = part * half; j < (part + 1) * half; j++) {
      sum += b?.[j] ?? 0;
      for (let d = 0; d < depth; d++) sum += ((q?.[(n * length + s) * hidden + h * depth + d] ?? 0) + (qb?.[h * depth + d] ?? 0)) * (w?.[d * width + j] ?? 0);
    }
    return 1 / (1 + Math.exp(-sum));
  };
  const out = new Float64Array(batch * heads * length * length);
  for (let n = 0; n < batch; n++) for (let h = 0; h < heads; h++) for (let s = 0; s < length; s++) {
    const factor = gate(n, h, s, 0) * (gate(n, h, s, 1) * (a?.[h] ?? 0) - 1) + 2;
    for (let k = 0; k < length; k++) out[((n * heads + h) * length + s) * length + k] = factor * (rel?.[(h * length + s) * length + k] ?? 0);
  }
  return [fromNumbers(x.dtype, [batch, heads, length, length], out)];
};
