/**
 * com.microsoft's GroupQueryAttention: key heads shared by groups of query heads, rotary positions, a cache that each of
 * the batch has filled to a length of its own, windows, soft caps and sinks. Compiled as RotaryEmbedding, AppendToCache
 * and FlashAttention.
 */
import { dimEqual, dimExactDiv, dimMax, dimMul, dimSub, formatDim, formatShape, type Dim } from "../core/dim.ts";
import { dtypes } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GroupQueryAttention as evaluate } from "../evaluate/com-microsoft-group-query-attention.ts";
import { defineOp, float, int, optional, required, type ExpandContext, type ExpansionNode, type TypeInfo } from "../graph/op.ts";
import { AppendToCache } from "./append-to-cache.ts";
import { Add, Max, Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { elementsOf } from "./element-values.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { Range } from "./fill.ts";
import { FlashAttention } from "./flash-attention.ts";
import { headsApart, headsMerged, indicesAlong, sizeAlong } from "./heads.ts";
import { Identity } from "./identity.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { RotaryEmbedding } from "./rotary-embedding.ts";
import { Slice } from "./slice.ts";

interface Options {
  readonly num_heads: number; readonly kv_num_heads: number; readonly scale: number | undefined; readonly softcap: number; readonly do_rotary: number;
  readonly rotary_interleaved: number; readonly local_window_size: number; readonly smooth_softmax: number;
}

/** Depth of a head: of a query alone, or packed with keys and values. */
const depthOf = (query: TypeInfo, packed: boolean, { num_heads, kv_num_heads }: Pick<Options, "num_heads" | "kv_num_heads">): Dim | undefined =>
  dimExactDiv(query.shape[2] ?? 1, packed ? num_heads + 2 * kv_num_heads : num_heads);

export const GroupQueryAttention = defineOp({
  type: "GroupQueryAttention", domain: "com.microsoft", since: 1, evaluate, fusionKind: "opaque",
  inputs: {
    query: "required", key: "optional", value: "optional", past_key: "optional", past_value: "optional", seqlens_k: "required", total_sequence_length: "required",
    cos_cache: "optional", sin_cache: "optional", position_ids: "optional", attention_bias: "optional", head_sink: "optional", k_scale: "optional", v_scale: "optional",
  },
  attributes: {
    num_heads: required("int"), kv_num_heads: required("int"), scale: optional("float"), softcap: float(0), do_rotary: int(0), rotary_interleaved: int(0),
    local_window_size: int(-1), smooth_softmax: int(0), qk_output: int(0), k_quant_type: optional("string"), v_quant_type: optional("string"), kv_cache_bit_width: int(0),
  },
  infer({ query, key, value, past_key, past_value, total_sequence_length, cos_cache, sin_cache, k_scale, v_scale }, options, context) {
    const { num_heads, kv_num_heads, do_rotary } = options, [batch = 1, queries = 1] = query.shape;
    if (query.shape.length !== 3) context.fail("OF3010", `the query needs rank 3, got ${formatShape(query.shape)}`);
    if (!key !== !value || !past_key !== !past_value) context.fail("OF3001", "keys and values come together");
    if (num_heads < 1 || kv_num_heads < 1 || num_heads % kv_num_heads !== 0) context.fail("OF3012", `${num_heads} query heads cannot share ${kv_num_heads} key heads evenly`);
    if (k_scale || v_scale) context.fail("OF3012", "quantised caches are not supported", "export the model with a cache of floats");
    if (options.qk_output || context.outputCount > 3) context.fail("OF3012", "the scores as an output are not supported");
    if (do_rotary && (!cos_cache || !sin_cache)) context.fail("OF3001", "do_rotary needs cos_cache and sin_cache");
    const depth = depthOf(query, !key, options) ?? context.fail("OF3011", `${formatDim(query.shape[2] ?? 1)} elements do not divide into heads`);
    const total: Dim = elementsOf(total_sequence_length)?.[0] ?? context.fresh("total_length"), length = past_key ? dimMax(past_key.shape[2] ?? 0, total) : total;
    const cache: TypeInfo = { dtype: query.dtype, shape: [batch, kv_num_heads, length, depth] };
    return [{ dtype: query.dtype, shape: [batch, queries, dimMul(num_heads, depth)] }, cache, cache];
  },
  expand: (context, options) => expand(context, options),
});

function expand({ inputs, inputTypes, outputs }: ExpandContext, options: Options): readonly ExpansionNode[] | undefined {
  const [query, key, value, pastKey, pastValue, filled, total, cos, sin, positionIds, bias, headSink] = inputs, [q, , , , , , totalType, cosines] = inputTypes;
  const { num_heads: heads, kv_num_heads: keyHeads } = options, depth = q && depthOf(q, key === undefined, options), length = totalType && elementsOf(totalType)?.[0];
  if (!q || typeof depth !== "number") return undefined;
  const to = new Expansion(), tokens = length === undefined ? countedBy(to, total) : total, columns = (from: number, count: number): string => to.add(Slice, [query, listOf(from * depth), listOf((from + count) * depth), listOf(2)]);
  const apart = (x: string | undefined, from: number, count: number): string => headsApart(to, key === undefined ? columns(from, count) : x, count);
  // Tokens so far: those counted, less the new ones; a prompt that is shorter than its padding had none.
  const counted = to.add(Add, [to.add(Reshape, [to.add(Cast, [filled], { to: dtypes.int64.onnx }), listOf(-1)]), listOf(1)]);
  const before = to.add(Max, [to.add(Sub, [counted, sizeAlong(to, query, 1)]), listOf(0)]);
  const positions = positionIds ?? to.add(Add, [to.add(Unsqueeze, [before, listOf(1)]), indicesAlong(to, query, 1)]);
  const width = cosines?.shape[1], turned = (x: string): string =>
    (options.do_rotary ? to.add(RotaryEmbedding, [x, cos, sin, positions], { interleaved: options.rotary_interleaved, rotary_embedding_dim: typeof width === "number" ? 2 * width : 0 }) : x);
  const whole = pastKey === undefined && length !== undefined && dimEqual(dimSub(length, q.shape[1] ?? 1), 0);
  const cached = (past: string | undefined, now: string, output: string | undefined): string => {
    if (!whole) return to.add(AppendToCache, past === undefined ? [now, before, tokens] : [now, before, tokens, past], {}, output);
    return output === undefined ? now : to.add(Identity, [now], {}, output);
  };
  const keys = cached(pastKey, turned(apart(key, heads, keyHeads)), outputs[1]), values = cached(pastValue, apart(value, heads + keyHeads, keyHeads), outputs[2]);
  const sink = headSink ?? (options.smooth_softmax ? to.add(Identity, [fromNumbers(q.dtype, [heads], new Array<number>(heads).fill(0))]) : undefined);
  const sum = to.add(FlashAttention, [turned(apart(query, 0, heads)), keys, values, undefined, bias, undefined, whole ? undefined : before, undefined, sink], {
    scale: options.scale || 1 / Math.sqrt(depth), softcap: options.softcap, causal: 1, window: Math.max(0, options.local_window_size),
  });
  headsMerged(to, sum, outputs[0]);
  return to.nodes;
}

/** A number that only running tells as the length of a value that has so many elements, so that it is a size from there on. */
function countedBy(to: Expansion, total: string | undefined): string {
  const limit = to.add(Reshape, [to.add(Cast, [total], { to: dtypes.int64.onnx }), listOf()]);
  return sizeAlong(to, to.add(Range, [scalarOf("int64", 0), limit, scalarOf("int64", 1)]), 0);
}
