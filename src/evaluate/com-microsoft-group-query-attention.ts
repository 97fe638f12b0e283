/** com.microsoft's GroupQueryAttention, by its definition: caches filled to a length of each of the batch, rotary positions behind it. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { headsApart, headsMerged, tensorOf, type Heads } from "./heads.ts";
import { FlashAttention } from "./onnxfuse-flash-attention.ts";
import { AppendToCache } from "./onnxfuse-append-to-cache.ts";
import { numberOf } from "./read-attribute.ts";
import { RotaryEmbedding } from "./rotary-embedding.ts";
import { at } from "./window.ts";

/** Heads `from` to `from` + `count` of those packed in [batch, sequence, all heads · depth]. */
function slice(all: Heads, from: number, count: number): Heads {
  const [batch, heads, sequence, depth] = all.dims, size = sequence * depth, data = new Float64Array(batch * count * size);
  for (let b = 0; b < batch; b++) data.set(all.data.subarray((b * heads + from) * size, (b * heads + from + count) * size), b * count * size);
  return { dims: [batch, count, sequence, depth], data };
}

export const GroupQueryAttention: Evaluate = ([query, key, value, pastKey, pastValue, lengths, total, cos, sin, positionIds, bias, headSink], attributes) => {
  const x = present(query, "query"), heads = numberOf(attributes, "num_heads"), keyHeads = numberOf(attributes, "kv_num_heads");
  const all = key ? undefined : headsApart(x, heads + 2 * keyHeads);
  const q = all ? slice(all, 0, heads) : headsApart(x, heads);
  const k = all ? slice(all, heads, keyHeads) : headsApart(present(key, "key"), keyHeads), v = all ? slice(all, heads + keyHeads, keyHeads) : headsApart(present(value, "value"), keyHeads);
  const [batch, , queries, depth] = q.dims, filled = toNumbers(present(lengths, "seqlens_k"));
  const before = Array.from({ length: batch }, (_, b) => Math.max(0, (filled[b] ?? 0) + 1 - queries)), offset = fromNumbers("int64", [batch], before);
  const positions = positionIds ?? fromNumbers("int64", [batch, queries], Array.from({ length: batch * queries }, (_, i) => (before[Math.floor(i / queries)] ?? 0) + (i % queries)));
  const turned = (h: Heads): Tensor => {
    const plain = tensorOf(h, "float64");
    if (!numberOf(attributes, "do_rotary", 0) || !cos || !sin) return plain;
    const options = { interleaved: numberOf(attributes, "rotary_interleaved", 0), num_heads: 0, rotary_embedding_dim: 2 * at(cos.dims, 1) };
    return present(RotaryEmbedding([plain, cos, sin, positions], options, { outputCount: 1 })[0], "rotated");
  };
  const cache = (past: Tensor | undefined, now: Tensor): Tensor => present(AppendToCache([now, offset, total, past], {}, { outputCount: 1 })[0], "cache");
  const keys = cache(pastKey, turned(k)), values = cache(pastValue, tensorOf(v, "float64"));
  const local = numberOf(attributes, "local_window_size", -1), smooth = numberOf(attributes, "smooth_softmax", 0) !== 0;
  const [y] = FlashAttention(
    [turned(q), keys, values, undefined, bias, undefined, offset, undefined, headSink ?? (smooth ? fromNumbers("float64", [heads], new Array<number>(heads).fill(0)) : undefined)],
    { scale: numberOf(attributes, "scale", 0) || 1 / Math.sqrt(depth), softcap: numberOf(attributes, "softcap", 0), causal: 1, window: Math.max(0, local) }, { outputCount: 1 });
  const cast = (t: Tensor): Tensor => fromNumbers(x.dtype, t.dims, toNumbers(t));
  return [headsMerged({ dims: [batch, heads, queries, depth], data: Float64Array.from(toNumbers(present(y, "result"))) }, x.dtype), cast(keys), cast(values)];
};
