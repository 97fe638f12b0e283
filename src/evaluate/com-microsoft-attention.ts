/** com.microsoft's Attention and MultiHeadAttention, by their definitions; the scores in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { headsApart, headsMerged, joined, tensorOf, type Heads } from "./heads.ts";
import { multiply, planMatMul } from "./matmul.ts";
import { FlashAttention } from "./onnxfuse-flash-attention.ts";
import { numberOf, numbersOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** What a mask of lengths, or of zeros where keys are hidden, adds to the scores of [batch, 1, queries, keys]. */
function maskOf(mask: Tensor | undefined, [batch, queries, keys]: readonly [number, number, number], hidden: number): Tensor | undefined {
  if (!mask) return undefined;
  const values = toNumbers(mask), rank = mask.dims.length, dims = [batch, 1, queries, keys];
  const visible = (b: number, s: number, t: number): boolean => {
    if (rank === 1) return t < (values[b] ?? 0) && (values.length !== 2 * batch || t >= (values[batch + b] ?? 0));
    if (rank === 2) return (values[b * keys + t] ?? 0) > 0;
    if (rank === 3) return (values[(b * queries + s) * keys + t] ?? 0) > 0;
    const size = at(mask.dims, 3);
    return (values[(b * size + keys - queries + s) * size + t] ?? 0) > 0;
  };
  return fromNumbers("float64", dims, Float64Array.from({ length: sizeOf(dims) }, (_, i) => (visible(Math.floor(i / (queries * keys)), Math.floor(i / keys) % queries, i % keys) ? 0 : hidden)));
}

interface Parts { readonly q: Heads; readonly k: Heads; readonly v: Heads; readonly mask: Tensor | undefined; readonly bias: Tensor | undefined; /** Keys of the cache, before the first query's own. */ readonly past: number }

/** softmax(scale · q·kᵀ + bias + mask) · v, heads merged; unidirectional attention hides the keys behind a query's own. */
function attend({ q, k, v, mask, bias, past }: Parts, attributes: EvaluateAttributes, like: Tensor): Tensor {
  const wide = (h: Heads): Tensor => tensorOf(h, "float64"), [, , queries, depth] = q.dims, keys = k.dims[2];
  const hidden = maskOf(mask, [q.dims[0], queries, keys], numberOf(attributes, "mask_filter_value"));
  const offset = fromNumbers("int64", [1], [past]);
  const [y] = FlashAttention([wide(q), wide(k), wide(v), hidden, bias, undefined, offset],
    { scale: numberOf(attributes, "scale", 0) || 1 / Math.sqrt(depth), causal: numberOf(attributes, "unidirectional") }, { outputCount: 1 });
  return headsMerged({ dims: [q.dims[0], q.dims[1], queries, v.dims[3]], data: Float64Array.from(toNumbers(present(y, "result"))) }, like.dtype);
}

/** A slice of a bias on every row of [batch, sequence, width]. */
function biased(x: Tensor, bias: Tensor | undefined, from: number): Tensor {
  if (!bias) return x;
  const values = toNumbers(x), b = toNumbers(bias), width = at(x.dims, x.dims.length - 1);
  return fromNumbers("float64", x.dims, Float64Array.from(values, (v, i) => v + (b[from + (i % width)] ?? 0)));
}

/** Columns of [batch, sequence, columns]. */
function columns(x: Tensor, from: number, count: number): Tensor {
  const values = toNumbers(x), width = at(x.dims, 2), dims = [at(x.dims, 0), at(x.dims, 1), count];
  return fromNumbers("float64", dims, Float64Array.from({ length: sizeOf(dims) }, (_, i) => values[Math.floor(i / count) * width + from + (i % count)] ?? 0));
}

/** One of the parts packed into [batch, sequence, heads, parts, depth], heads merged. */
function unpacked(x: Tensor, part: number): Tensor {
  const [batch = 0, sequence = 0, heads = 0, parts = 1, depth = 0] = x.dims, values = toNumbers(x), dims = [batch, sequence, heads * depth];
  return fromNumbers("float64", dims, Float64Array.from({ length: sizeOf(dims) }, (_, i) => values[(Math.floor(i / depth) * parts + part) * depth + (i % depth)] ?? 0));
}

export const MultiHeadAttention: Evaluate = ([query, key, value, bias, mask, attentionBias, pastKey, pastValue], attributes) => {
  const given = present(query, "query"), count = numberOf(attributes, "num_heads"), packed = given.dims.length === 5;
  const plainQuery = packed ? unpacked(given, 0) : given, width = at(plainQuery.dims, 2);
  const k = packed ? unpacked(given, 1) : key?.dims.length === 5 ? unpacked(key, 0) : present(key, "key");
  const v = packed ? unpacked(given, 2) : key?.dims.length === 5 ? unpacked(key, 1) : present(value, "value");
  const own = (x: Tensor, from: number): Heads => (x.dims.length === 4 ? headsApart(x, count) : headsApart(biased(x, bias, from), count));
  const keys = joined(pastKey, own(k, width)), values = joined(pastValue, own(v, 2 * width));
  return [attend({ q: own(plainQuery, 0), k: keys, v: values, mask, bias: attentionBias, past: pastKey?.dims[2] ?? 0 }, attributes, given), tensorOf(keys, given.dtype), tensorOf(values, given.dtype)];
};

/** Half of a cache [2, batch, heads, sequence, depth]. */
function halfOf(past: Tensor | undefined, half: number): Tensor | undefined {
  if (!past) return undefined;
  const dims = past.dims.slice(1), size = sizeOf(dims);
  return fromNumbers("float64", dims, Float64Array.from(toNumbers(past)).subarray(half * size, (half + 1) * size));
}

/** Attention over a projection [batch, sequence, query, key and value], and its cache. */
export function attendProjected(product: Tensor, like: Tensor, { mask, past, bias }: { readonly mask: Tensor | undefined; readonly past: Tensor | undefined; readonly bias: Tensor | undefined }, attributes: EvaluateAttributes): readonly Tensor[] {
  const total = at(product.dims, 2), count = numberOf(attributes, "num_heads");
  const [dq = 0, dk = 0, dv = 0] = numbersOf(attributes, "qkv_hidden_sizes") ?? [total / 3, total / 3, total / 3];
  const own = (from: number, size: number): Heads => headsApart(columns(product, from, size), count);
  const k = joined(halfOf(past, 0), own(dq, dk)), v = joined(halfOf(past, 1), own(dq + dk, dv)), cache = new Float64Array(k.data.length + v.data.length);
  cache.set(k.data);
  cache.set(v.data, k.data.length);
  return [attend({ q: own(0, dq), k, v, mask, bias, past: past?.dims[3] ?? 0 }, attributes, like), fromNumbers(like.dtype, [2, ...k.dims], k.dims[3] === v.dims[3] ? cache : new Float64Array(2 * k.data.length))];
}

export const Attention: Evaluate = ([input, weights, bias, mask, past, attentionBias], attributes) => {
  const x = present(input, "input"), w = present(weights, "weights"), plan = planMatMul(x.dims, w.dims);
  const product = biased(fromNumbers("float64", plan.dims, multiply(toNumbers(x), toNumbers(w), plan)), bias, 0);
  return attendProjected(product, x, { mask, past, bias: attentionBias }, attributes);
};
