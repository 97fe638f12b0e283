/**
 * com.microsoft's Attention and MultiHeadAttention: projections and heads in their packed forms, masks of lengths or
 * zeros, caches. Both are compiled as FlashAttention and the operators around it.
 */
import { dimAdd, dimExactDiv, dimMul, formatDim, formatShape, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/com-microsoft-attention.ts";
import { defineOp, float, int, optional, required, type ExpandContext, type ExpansionNode, type InferContext, type TypeInfo } from "../graph/op.ts";
import { Add } from "./arithmetic.ts";
import { Concat } from "./concat.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { FlashAttention } from "./flash-attention.ts";
import { Gather } from "./gather.ts";
import { headsApart, headSizes, headsMerged, sizeAlong } from "./heads.ts";
import { Identity } from "./identity.ts";
import { additiveMask, checkLengthMask } from "./length-masks.ts";
import { MatMul } from "./matmul.ts";
import { inferMatrixProduct } from "./matrix-product.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { Slice } from "./slice.ts";
import { Transpose } from "./transpose.ts";

interface Options { readonly num_heads: number; readonly scale: number | undefined; readonly mask_filter_value: number; readonly unidirectional: number }
interface Parts { readonly query: string; readonly key: string; readonly value: string; readonly depth: number; readonly batch: Dim; readonly past: string | undefined }

/** FlashAttention over heads that are apart, with what onnxruntime adds to its scores; the result has its heads merged. */
function attend(to: Expansion, parts: Parts, mask: string | undefined, maskType: TypeInfo | undefined, bias: string | undefined, dtype: TypeInfo["dtype"], options: Options, output: string | undefined): void {
  const { query, key, value, depth, past } = parts;
  const added = mask !== undefined && maskType ? additiveMask(to, mask, maskType, parts, options.mask_filter_value, dtype) : undefined;
  const offset = options.unidirectional && past !== undefined ? sizeAlong(to, past, 2) : undefined;
  headsMerged(to, to.add(FlashAttention, [query, key, value, added, bias, undefined, offset], { scale: options.scale || 1 / Math.sqrt(depth), causal: options.unidirectional }), output);
}

/** past, then now, along the sequence. */
function withPast(to: Expansion, past: string | undefined, now: string, output: string | undefined): string {
  if (past !== undefined) return to.add(Concat, [past, now], { axis: 2 }, output);
  return output === undefined ? now : to.add(Identity, [now], {}, output);
}

const checkScores = (context: InferContext, bias: TypeInfo | undefined): void => {
  if (bias && bias.shape.length !== 4) context.fail("OF3010", `the attention bias needs rank 4, got ${formatShape(bias.shape)}`);
};

/** Reports inputs and outputs of shared caches and of scores, which are not supported. */
function refuseSharedCache(context: InferContext, ...given: readonly (TypeInfo | undefined)[]): void {
  if (given.some((t) => t !== undefined)) context.fail("OF3012", "caches that past and present share are not supported", "export the model with caches that grow");
}

interface HeadInputs { readonly query: TypeInfo; readonly key: TypeInfo | undefined; readonly value: TypeInfo | undefined }

/** [batch, heads, sequence, depth] of query, key and value in each packing. */
function packedSizes({ query, key, value }: HeadInputs, heads: number, context: InferContext): { readonly q: readonly Dim[]; readonly k: readonly Dim[]; readonly v: readonly Dim[] } {
  const five = (t: TypeInfo, parts: number): readonly Dim[] => {
    const [b = 1, s = 1, n = 1, p = 1, d = 1] = t.shape;
    if (p !== parts || (typeof n === "number" && n !== heads)) context.fail("OF3011", `${formatShape(t.shape)} does not pack ${parts} parts of ${heads} heads`);
    return [b, heads, s, d];
  };
  if (query.shape.length === 5) { const all = five(query, 3); return { q: all, k: all, v: all }; }
  const q = headSizes(query, heads, context, "num_heads");
  if (!key) return context.fail("OF3001", "the key is missing", "pack it with the query, or give it");
  if (key.shape.length === 5) { const both = five(key, 2); return { q, k: both, v: both }; }
  if (!value) return context.fail("OF3001", "the value is missing", "pack it with the key, or give it");
  return { q, k: headSizes(key, heads, context, "num_heads"), v: headSizes(value, heads, context, "num_heads") };
}

export const MultiHeadAttention = defineOp({
  type: "MultiHeadAttention", domain: "com.microsoft", since: 1, evaluate: evaluate.MultiHeadAttention, fusionKind: "opaque",
  inputs: {
    query: "required", key: "optional", value: "optional", bias: "optional", key_padding_mask: "optional", attention_bias: "optional",
    past_key: "optional", past_value: "optional", past_sequence_length: "optional", cache_indirection: "optional",
  },
  attributes: { num_heads: required("int"), mask_filter_value: float(-10000), scale: optional("float"), unidirectional: int(0) },
  infer({ query, key, value, key_padding_mask, attention_bias, past_key, past_value, past_sequence_length, cache_indirection }, { num_heads }, context) {
    const { q, k, v } = packedSizes({ query, key, value }, num_heads, context), [batch = 1, heads = 1, queries = 1] = q, [, , , width = 1] = v;
    checkLengthMask(key_padding_mask, batch, context);
    checkScores(context, attention_bias);
    refuseSharedCache(context, past_sequence_length, cache_indirection);
    if (!past_key !== !past_value) context.fail("OF3001", "past_key and past_value come together");
    if (context.outputCount > 3) context.fail("OF3012", "the scores as an output are not supported");
    const keys = dimAdd(past_key?.shape[2] ?? 0, k[2] ?? 1), present = (d: Dim): TypeInfo => ({ dtype: query.dtype, shape: [batch, heads, keys, d] });
    return [{ dtype: query.dtype, shape: [batch, queries, dimMul(heads, width)] }, present(k[3] ?? 1), present(width)];
  },
  expand: (context, options) => expandMultiHead(context, options),
});

function expandMultiHead({ inputs, inputTypes, outputs }: ExpandContext, options: Options): readonly ExpansionNode[] | undefined {
  const [query, key, value, bias, mask, scores, pastKey, pastValue] = inputs, [q, k, , biasType, maskType] = inputTypes, heads = options.num_heads;
  if (!q) return undefined;
  const packed = q.shape.length === 5, depth = packed ? q.shape[4] : dimExactDiv(q.shape[2] ?? 1, heads);
  if (typeof depth !== "number" || (biasType && typeof biasType.shape[0] !== "number")) return undefined;
  const to = new Expansion(), hidden = heads * depth;
  const biased = (x: string | undefined, from: number, end: number, shape?: readonly number[]): string => {
    if (bias === undefined) return x ?? "";
    const own = to.add(Slice, [bias, listOf(from), listOf(end), listOf(0)]);
    return to.add(Add, [x, shape ? to.add(Reshape, [own, listOf(...shape)]) : own]);
  };
  const packedPart = (x: string | undefined, part: number): string =>
    to.add(Transpose, [biased(to.add(Gather, [x, scalarOf("int64", part)], { axis: 3 }), part * hidden, (part + 1) * hidden, [heads, depth])], { perm: [0, 2, 1, 3] });
  const keyPart = (part: number): string => to.add(Transpose, [to.add(Gather, [key, scalarOf("int64", part)], { axis: 3 })], { perm: [0, 2, 1, 3] });
  const own = (x: string | undefined, i: number, from: number, end: number): string => (inputTypes[i]?.shape.length === 4 ? x ?? "" : headsApart(to, biased(x, from, end), heads));
  const packedKey = k?.shape.length === 5, last = 2 ** 31 - 1;
  const [first = "", second = "", third = ""] = packed ? [0, 1, 2].map((i) => packedPart(query, i))
    : packedKey ? [own(query, 0, 0, hidden), keyPart(0), keyPart(1)] : [own(query, 0, 0, hidden), own(key, 1, hidden, 2 * hidden), own(value, 2, 2 * hidden, last)];
  const keys = withPast(to, pastKey, second, outputs[1]), values = withPast(to, pastValue, third, outputs[2]);
  attend(to, { query: first, key: keys, value: values, depth, batch: q.shape[0] ?? 1, past: pastKey }, mask, maskType, scores, q.dtype, options, outputs[0]);
  return to.nodes;
}

/** Columns of the projection that are query, key and value. */
function projectedSizes(width: Dim, given: readonly number[] | undefined): readonly [Dim, Dim, Dim] | undefined {
  if (given?.length === 3) { const [q = 0, k = 0, v = 0] = given; return [q, k, v]; }
  const third = dimExactDiv(width, 3);
  return third === undefined ? undefined : [third, third, third];
}

export const MicrosoftAttention = defineOp({
  type: "Attention", domain: "com.microsoft", since: 1, evaluate: evaluate.Attention, fusionKind: "opaque",
  inputs: { input: "required", weights: "required", bias: "optional", mask_index: "optional", past: "optional", attention_bias: "optional", past_sequence_length: "optional" },
  attributes: {
    num_heads: required("int"), unidirectional: int(0), qkv_hidden_sizes: optional("ints"), mask_filter_value: float(-10000), scale: optional("float"),
    do_rotary: int(0), past_present_share_buffer: int(0), rotary_embedding_dim: int(0),
  },
  infer({ input, weights, mask_index, past, attention_bias, past_sequence_length }, { num_heads, qkv_hidden_sizes, do_rotary }, context) {
    if (input.shape.length !== 3 || weights.shape.length !== 2) context.fail("OF3010", `needs an input of rank 3 and weights of rank 2, got ${formatShape(input.shape)} and ${formatShape(weights.shape)}`);
    if (do_rotary) context.fail("OF3012", "do_rotary is not supported", "use RotaryEmbedding and MultiHeadAttention");
    refuseSharedCache(context, past_sequence_length);
    const [batch = 1, queries = 1, width = 1] = inferMatrixProduct(input, weights, context), sizes = projectedSizes(width, qkv_hidden_sizes);
    if (!sizes) return context.fail("OF3011", `${formatDim(width)} columns are not query, key and value`, "give qkv_hidden_sizes");
    checkLengthMask(mask_index, batch, context);
    checkScores(context, attention_bias);
    if (typeof sizes[0] === "number" && sizes[0] % num_heads !== 0) context.fail("OF3011", `${sizes[0]} columns do not divide into ${num_heads} heads`);
    const depth = dimExactDiv(sizes[1], num_heads) ?? 1, keys = dimAdd(past?.shape[3] ?? 0, queries);
    return [{ dtype: input.dtype, shape: [batch, queries, sizes[2]] }, { dtype: input.dtype, shape: [2, batch, num_heads, keys, depth] }];
  },
  expand: (context, options) => expandAttention(context, options),
});

function expandAttention({ inputs, inputTypes, outputs }: ExpandContext, options: Options & { readonly qkv_hidden_sizes: readonly number[] | undefined }): readonly ExpansionNode[] | undefined {
  const [input, weights, bias, mask, past, scores] = inputs, [x, w, , maskType] = inputTypes;
  const [dq, dk, dv] = projectedSizes(w?.shape[1] ?? 1, options.qkv_hidden_sizes) ?? [];
  if (!x || typeof dq !== "number" || typeof dk !== "number" || typeof dv !== "number") return undefined;
  const to = new Expansion(), product = to.add(MatMul, [input, weights]), all = bias === undefined ? product : to.add(Add, [product, bias]);
  attendProjected(to, { all, sizes: [dq, dk, dv], mask, maskType, past, scores, batch: x.shape[0] ?? 1, dtype: x.dtype, outputs }, options);
  return to.nodes;
}

export interface Projected {
  /** [batch, sequence, query, key and value]. */
  readonly all: string;
  readonly sizes: readonly [number, number, number];
  readonly mask: string | undefined;
  readonly maskType: TypeInfo | undefined;
  readonly past: string | undefined;
  readonly scores: string | undefined;
  readonly batch: Dim;
  readonly dtype: TypeInfo["dtype"];
  readonly outputs: readonly (string | undefined)[];
}
/** Attention over a projection that holds query, key and value side by side. */
export function attendProjected(to: Expansion, { all, sizes: [dq, dk, dv], mask, maskType, past, scores, batch, dtype, outputs }: Projected, options: Options): void {
  const own = (from: number, size: number): string => headsApart(to, to.add(Slice, [all, listOf(from), listOf(from + size), listOf(2)]), options.num_heads);
  const half = (i: number): string | undefined => (past === undefined ? undefined : to.add(Gather, [past, scalarOf("int64", i)], { axis: 0 }));
  const pastKey = half(0), keys = withPast(to, pastKey, own(dq, dk), undefined), values = withPast(to, half(1), own(dq + dk, dv), undefined);
  if (outputs[1] !== undefined) to.add(Concat, [to.add(Unsqueeze, [keys, listOf(0)]), to.add(Unsqueeze, [values, listOf(0)])], { axis: 0 }, outputs[1]);
  attend(to, { query: own(0, dq), key: keys, value: values, depth: dq / options.num_heads, batch, past: pastKey }, mask, maskType, scores, dtype, options, outputs[0]);
}
