/**
 * The standard Attention operator: heads apart or merged, a key-value cache, masks, causality, soft caps. It is compiled
 * as the operators it stands for, FlashAttention at the heart where nothing else reads the scores.
 */
import { dimAdd, dimExactDiv, dimMul, formatDim, formatShape, type Dim } from "../core/dim.ts";
import { defineOp, int, optional, float, type ExpandContext, type ExpansionNode, type InferContext, type TypeInfo } from "../graph/op.ts";
import { Attention as evaluate } from "../evaluate/attention.ts";
import { Add, Div, Mul, Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Concat } from "./concat.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { Range } from "./fill.ts";
import { FlashAttention } from "./flash-attention.ts";
import { Identity } from "./identity.ts";
import { Less, LessOrEqual } from "./logic.ts";
import { MatMul } from "./matmul.ts";
import { Reshape, Squeeze, Unsqueeze } from "./reshape.ts";
import { Shape } from "./shape.ts";
import { Softmax } from "./softmax.ts";
import { Transpose } from "./transpose.ts";
import { Tanh } from "./unary-math.ts";
import { Where } from "./where.ts";

interface Options {
  readonly is_causal: number;
  readonly kv_num_heads: number | undefined;
  readonly q_num_heads: number | undefined;
  readonly qk_matmul_output_mode: number;
  readonly scale: number | undefined;
  readonly softcap: number;
}

/** [batch, heads, sequence, depth], with merged heads taken apart. */
function headsOf(t: TypeInfo, count: number | undefined, context: InferContext): readonly [Dim, Dim, Dim, Dim] {
  const [a = 1, b = 1, c = 1, d = 1] = t.shape;
  if (t.shape.length === 4) return [a, b, c, d];
  if (t.shape.length !== 3) context.fail("OF3010", `query, key and value need rank 3 or 4, got ${formatShape(t.shape)}`);
  if (!count) context.fail("OF3003", "merged heads need q_num_heads and kv_num_heads");
  return [a, count, b, dimExactDiv(c, count) ?? context.fail("OF3011", `${formatDim(c)} elements do not divide into ${count} heads`)];
}

export const Attention = defineOp({
  type: "Attention",
  domain: "",
  since: 23,
  inputs: { Q: "required", K: "required", V: "required", attn_mask: "optional", past_key: "optional", past_value: "optional", nonpad_kv_seqlen: "optional" },
  attributes: {
    is_causal: int(0), kv_num_heads: optional("int"), q_num_heads: optional("int"), qk_matmul_output_mode: int(0), scale: optional("float"),
    softcap: float(0), softmax_precision: optional("int"),
  },
  fusionKind: "opaque",
  infer({ Q, K, V, past_key, past_value }, options, context) {
    const [batch, heads, queries] = headsOf(Q, options.q_num_heads, context);
    const [, keyHeads, newKeys, depth] = headsOf(K, options.kv_num_heads, context), [, , , width] = headsOf(V, options.kv_num_heads, context);
    if (!past_key !== !past_value) context.fail("OF3001", "past_key and past_value come together");
    const keys = past_key ? dimAdd(past_key.shape[2] ?? 0, newKeys) : newKeys;
    const merged = Q.shape.length === 3;
    return [
      { dtype: Q.dtype, shape: merged ? [batch, queries, dimMul(heads, width)] : [batch, heads, queries, width] },
      { dtype: K.dtype, shape: [batch, keyHeads, keys, depth] }, { dtype: V.dtype, shape: [batch, keyHeads, keys, width] },
      { dtype: Q.dtype, shape: [batch, heads, queries, keys] },
    ];
  },
  evaluate,
  expand: (context, options) => new AttentionExpansion(context, options).nodes(),
});

/** Builds the parts of one Attention node. */
class AttentionExpansion {
  readonly #to = new Expansion();
  readonly #context: ExpandContext;
  readonly #options: Options;
  constructor(context: ExpandContext, options: Options) {
    this.#context = context;
    this.#options = options;
  }

  nodes(): readonly ExpansionNode[] | undefined {
    const { inputs, inputTypes, outputs } = this.#context, [q, k, v] = inputTypes, options = this.#options;
    if (!q || !k || !v) return undefined;
    const to = this.#to, merged = q.shape.length === 3;
    const query = this.#apart(inputs[0], q, options.q_num_heads);
    const key = this.#withPast(inputs[4], this.#apart(inputs[1], k, options.kv_num_heads), outputs[1]);
    const value = this.#withPast(inputs[5], this.#apart(inputs[2], v, options.kv_num_heads), outputs[2]);
    const heads = merged ? options.q_num_heads : q.shape[1], keyHeads = k.shape.length === 3 ? options.kv_num_heads : k.shape[1];
    const depth = merged ? dimExactDiv(q.shape[2] ?? 1, options.q_num_heads ?? 1) : q.shape[3];
    if (typeof depth !== "number" || typeof heads !== "number" || typeof keyHeads !== "number" || !this.#maskFits(k)) return undefined;
    const mask = this.#mask(query, key, q), scale = options.scale ?? 1 / Math.sqrt(depth);
    const result = merged ? undefined : outputs[0];
    const simple = options.softcap === 0 && outputs[3] === undefined;
    const sum = simple
      ? to.add(FlashAttention, mask === undefined ? [query, key, value] : [query, key, value, mask], { scale }, result)
      : this.#spelledOut({ query, key, value, mask, scale, group: heads / keyHeads, keyHeads, depth, dtype: q.dtype }, result);
    if (merged) to.add(Reshape, [to.add(Transpose, [sum], { perm: [0, 2, 1, 3] }), listOf(0, 0, -1)], {}, outputs[0]);
    return to.nodes;
  }

  /** Merged heads apart: [batch, sequence, heads · depth] → [batch, heads, sequence, depth]. */
  #apart(x: string | undefined, type: TypeInfo, heads: number | undefined): string {
    if (type.shape.length === 4) return x ?? "";
    return this.#to.add(Transpose, [this.#to.add(Reshape, [x, listOf(0, 0, heads ?? 1, -1)])], { perm: [0, 2, 1, 3] });
  }
  #withPast(past: string | undefined, now: string, output: string | undefined): string {
    if (past !== undefined) return this.#to.add(Concat, [past, now], { axis: 2 }, output);
    return output === undefined ? now : this.#to.add(Identity, [now], {}, output);
  }

  /** A mask narrower than the keys would have to be padded. */
  #maskFits(k: TypeInfo): boolean {
    const mask = this.#context.inputTypes[3], past = this.#context.inputTypes[4]?.shape[2] ?? 0;
    const keys = dimAdd(k.shape[k.shape.length - 2] ?? 1, past), width = mask?.shape[mask.shape.length - 1];
    return !mask || width === 1 || typeof width !== "number" || typeof keys !== "number" || width === keys;
  }

  /** The additive mask of all that hides keys; undefined where nothing does. */
  #mask(query: string, key: string, q: TypeInfo): string | undefined {
    const to = this.#to, { inputs, inputTypes } = this.#context, { dtype } = q;
    const hidden = (visible: string): string => to.add(Where, [visible, scalarOf(dtype, 0), scalarOf(dtype, -Infinity)]);
    const length = (of: string): string => to.add(Squeeze, [to.add(Shape, [of], { start: 2, end: 3 }), listOf(0)]);
    const range = (of: string): string => to.add(Range, [scalarOf("int64", 0), length(of), scalarOf("int64", 1)]);
    const parts: string[] = [];
    if (inputs[3] !== undefined) parts.push(inputTypes[3]?.dtype === "bool" ? hidden(inputs[3]) : inputs[3]);
    const limits = inputs[6] === undefined ? undefined : to.add(Unsqueeze, [to.add(Cast, [inputs[6]], { to: 7 }), listOf(1, 2, 3)]);
    if (this.#options.is_causal) {
      const rows = to.add(Unsqueeze, [range(query), listOf(1)]);
      const past = inputs[4] === undefined ? undefined : length(inputs[4]);
      const offset = limits ? to.add(Sub, [limits, length(query)]) : past;
      parts.push(hidden(to.add(LessOrEqual, [range(key), offset === undefined ? rows : to.add(Add, [rows, offset])])));
    }
    if (limits) parts.push(hidden(to.add(Less, [range(key), limits])));
    return parts.reduce<string | undefined>((sum, part) => (sum === undefined ? part : to.add(Add, [sum, part])), undefined);
  }

  /** Product, soft cap, mask, softmax and product, for scores that are capped or read. */
  #spelledOut(p: Parts, result: string | undefined): string {
    const to = this.#to, { softcap, qk_matmul_output_mode: mode } = this.#options, read = this.#context.outputs[3];
    const scores = (x: string, stage: number): string => (read !== undefined && mode === stage ? this.#together(x, p, read) : x);
    const grouped = p.group > 1;
    const query = grouped ? to.add(Reshape, [p.query, listOf(0, p.keyHeads, p.group, -1, p.depth)]) : p.query;
    const apart = (x: string): string => (grouped ? to.add(Unsqueeze, [x, listOf(2)]) : x);
    const keys = to.add(Transpose, [apart(p.key)], { perm: grouped ? [0, 1, 2, 4, 3] : [0, 1, 3, 2] });
    const raw = to.add(Mul, [to.add(MatMul, [query, keys]), scalarOf(p.dtype, p.scale)]);
    scores(raw, 0);
    const cap = scalarOf(p.dtype, softcap);
    const capped = softcap > 0 ? to.add(Mul, [to.add(Tanh, [to.add(Div, [raw, cap])]), cap]) : raw;
    scores(capped, 1);
    const masked = p.mask === undefined ? capped : to.add(Add, [capped, this.#grouped(p)]);
    scores(masked, 2);
    const weights = to.add(Softmax, [masked], { axis: -1 });
    scores(weights, 3);
    const sum = to.add(MatMul, [weights, apart(p.value)], {}, grouped ? undefined : result);
    return grouped ? this.#together(sum, p, result) : sum;
  }

  /** The mask over [batch, key heads, group, queries, keys], where heads are grouped. */
  #grouped(p: Parts): string | undefined {
    const mask = this.#context.inputTypes[3];
    if (p.group === 1 || p.mask === undefined) return p.mask;
    if (mask?.shape.length !== 4 && this.#context.inputs[6] === undefined) return p.mask;
    if (mask?.shape.length !== 4 || mask.shape[1] === 1) return this.#to.add(Unsqueeze, [p.mask, listOf(2)]);
    return this.#to.add(Reshape, [p.mask, this.#shape([0, p.keyHeads, p.group], p.mask, 2)]);
  }

  /** Groups of heads as heads again. */
  #together(x: string, p: Parts, output: string | undefined): string {
    const to = this.#to;
    if (p.group === 1) return to.add(Identity, [x], {}, output);
    return to.add(Reshape, [x, this.#shape([0, p.keyHeads * p.group], x, 3)], {}, output);
  }
  /** Sizes to reshape to: these, then those of `of` from axis `from` on. */
  #shape(sizes: readonly number[], of: string, from: number): string {
    return this.#to.add(Concat, [listOf(...sizes), this.#to.add(Shape, [of], { start: from })], { axis: 0 });
  }
}

interface Parts {
  readonly query: string; readonly key: string; readonly value: string; readonly mask: string | undefined;
  readonly scale: number; readonly group: number; readonly keyHeads: number; readonly depth: number; readonly dtype: TypeInfo["dtype"];
}
