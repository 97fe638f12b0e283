/** The standard Attention operator, by its definition, in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { broadcastSources } from "../core/strided.ts";
import { headsApart, joined } from "./heads.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** What a mask adds to each score of [batch, heads, queries, keys]; keys past the mask's end are not seen. */
function maskOf(mask: Tensor | undefined, dims: readonly number[]): (i: number) => number {
  if (!mask) return () => 0;
  const width = at(mask.dims, mask.dims.length - 1), keys = at(dims, 3), values = toNumbers(mask);
  const from = broadcastSources(mask.dims, [...dims.slice(0, 3), width]);
  return (i) => {
    const t = i % keys;
    if (t >= width) return -Infinity;
    const v = values[from[Math.floor(i / keys) * width + t] ?? 0] ?? 0;
    return mask.dtype === "bool" ? (v ? 0 : -Infinity) : v;
  };
}

export const Attention: Evaluate = ([Q, K, V, mask, pastKey, pastValue, lengths], attributes) => {
  const query = present(Q, "Q");
  const q = headsApart(query, numberOf(attributes, "q_num_heads", 0)), keyHeads = numberOf(attributes, "kv_num_heads", 0);
  const k = joined(pastKey, headsApart(present(K, "K"), keyHeads)), v = joined(pastValue, headsApart(present(V, "V"), keyHeads));
  const [batch, count, queries, depth] = q.dims, keys = k.dims[2], width = v.dims[3], past = pastKey ? at(pastKey.dims, 2) : 0;
  const scale = numberOf(attributes, "scale", 1 / Math.sqrt(depth)), softcap = numberOf(attributes, "softcap", 0);
  const causal = numberOf(attributes, "is_causal", 0) !== 0, mode = numberOf(attributes, "qk_matmul_output_mode", 0);
  const scoreDims = [batch, count, queries, keys], added = maskOf(mask, scoreDims), limits = lengths && toNumbers(lengths);
  const y = new Float64Array(batch * count * queries * width), seen = new Float64Array(sizeOf(scoreDims));
  for (let row = 0; row < batch * count * queries; row++) {
    const s = row % queries, h = Math.floor(row / queries) % count, b = Math.floor(row / (queries * count));
    const head = b * k.dims[1] + Math.floor(h / (count / k.dims[1]));
    const raw = Float64Array.from({ length: keys }, (_, t) => {
      let dot = 0;
      for (let d = 0; d < depth; d++) dot += (q.data[row * depth + d] ?? 0) * (k.data[(head * keys + t) * depth + d] ?? 0);
      return dot * scale;
    });
    const offset = limits ? (limits[b] ?? keys) - queries : past;
    const capped = softcap > 0 ? raw.map((x) => softcap * Math.tanh(x / softcap)) : raw;
    const masked = capped.map((x, t) => (causal && t > s + offset) || (limits && t >= (limits[b] ?? keys)) ? -Infinity : x + added(row * keys + t));
    const most = masked.reduce((a, c) => Math.max(a, c), -Infinity), e = masked.map((x) => Math.exp(x - most)), total = e.reduce((a, c) => a + c, 0);
    const weights = e.map((x) => x / total);
    seen.set(mode === 0 ? raw : mode === 1 ? capped : mode === 2 ? masked : weights, row * keys);
    for (let t = 0; t < keys; t++) for (let d = 0; d < width; d++) y[row * width + d] = (y[row * width + d] ?? 0) + (weights[t] ?? 0) * (v.data[(head * keys + t) * width + d] ?? 0);
  }
  const merged = new Float64Array(y.length);
  if (query.dims.length === 3) for (let i = 0; i < y.length; i++) {
    const d = i % width, s = Math.floor(i / width) % queries, h = Math.floor(i / (width * queries)) % count, b = Math.floor(i / (width * queries * count));
    merged[((b * queries + s) * count + h) * width + d] = y[i] ?? 0;
  }
  const of = (dims: readonly number[], data: Float64Array): Tensor => fromNumbers(query.dtype, dims, data);
  return [
    query.dims.length === 3 ? of([batch, queries, count * width], merged) : of([batch, count, queries, width], y),
    of(k.dims, k.data), of(v.dims, v.data), of(scoreDims, seen),
  ];
};
