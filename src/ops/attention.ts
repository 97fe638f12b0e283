/**
 * The standard Attention operator: heads apart or merged, a key-value cache, masks, causality, soft caps. It is compiled
 * as the operators it stands for, FlashAttention at the heart where nothing else reads the scores.
 */
import { dimAdd, dimExactDiv, dimMul } from "../core/dim.ts";
import { defineOp, int, optional, float, type ExpandContext, type ExpansionNode, type TypeInfo } from "../graph/op.ts";
import { Attention as evaluate } from "../evaluate/attention.ts";
import { Add, Div, Mul, Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { causalOffset } from "./causal-mask.ts";
import { Concat } from "./concat.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { FlashAttention } from "./flash-attention.ts";
import { headsApart, headSizes, headsMerged, indicesAlong, sizeAlong } from "./heads.ts";
import { Identity } from "./identity.ts";
import { Less, LessOrEqual } from "./logic.ts";
import { MatMul } from "./matmul.ts";
import { Pad } from "./pad.ts";
import { checkSameType, checkType } from "./element-wise.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
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

export const Attention = defineOp({
  type: "Attention",
  domain: "",
  since: 23,
  inputs: { Q: "required", K: "required", V: "required", attn_mask: "optional", past_key: "optional", past_value: "optional", nonpad_kv_seqlen: "optional" }, integers: ["nonpad_kv_seqlen"], oneType: [["Q", "K", "past_key"], ["V", "past_value"]],
  attributes: {
    is_causal: int(0), kv_num_heads: optional("int"), q_num_heads: optional("int"), qk_matmul_output_mode: int(0), scale: optional("float"),
    softcap: float(0), softmax_precision: optional("int"),
  },
  fusionKind: "opaque",
  infer({ Q, K, V, past_key, past_value }, options, context) {
    for (const [name, t] of Object.entries({ Q, K, V })) checkType(context, t, name, "float");
    checkSameType(context, [Q, K]);
    const [batch, heads, queries] = headSizes(Q, options.q_num_heads, context, "q_num_heads");
    const [, keyHeads, newKeys, depth] = headSizes(K, options.kv_num_heads, context, "kv_num_heads"), [, , , width] = headSizes(V, options.kv_num_heads, context, "kv_num_heads");
    if (!past_key !== !past_value) context.fail("OF3001", "past_key and past_value come together");
    const mode = options.qk_matmul_output_mode;
    if (mode < 0 || mode > 3) context.fail("OF3012", `qk_matmul_output_mode must be 0 to 3, got ${mode}`);
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
    const apart = (x: string | undefined, type: TypeInfo, heads: number | undefined): string => (type.shape.length === 4 ? x ?? "" : headsApart(to, x, heads ?? 1));
    const query = apart(inputs[0], q, options.q_num_heads);
    const key = this.#withPast(inputs[4], apart(inputs[1], k, options.kv_num_heads), outputs[1]);
    const value = this.#withPast(inputs[5], apart(inputs[2], v, options.kv_num_heads), outputs[2]);
    const heads = merged ? options.q_num_heads : q.shape[1], keyHeads = k.shape.length === 3 ? options.kv_num_heads : k.shape[1];
    const depth = merged ? dimExactDiv(q.shape[2] ?? 1, options.q_num_heads ?? 1) : q.shape[3];
    if (typeof depth !== "number" || typeof heads !== "number" || typeof keyHeads !== "number") return undefined;
    const given = this.#maskOverKeys(k), scale = options.scale ?? 1 / Math.sqrt(depth), result = merged ? undefined : outputs[0];
    const sum = outputs[3] === undefined ? this.#flash({ query, key, value, given, scale }, result)
      : this.#spelledOut({ query, key, value, mask: this.#mask(given, query, key, q), scale, group: heads / keyHeads, keyHeads, depth, dtype: q.dtype }, result);
    if (merged) headsMerged(to, sum, outputs[0]);
    return to.nodes;
  }

  #withPast(past: string | undefined, now: string, output: string | undefined): string {
    if (past !== undefined) return this.#to.add(Concat, [past, now], { axis: 2 }, output);
    return output === undefined ? now : this.#to.add(Identity, [now], {}, output);
  }

  /** The mask as given, over all keys: those past its end are hidden. */
  #maskOverKeys(k: TypeInfo): string | undefined {
    const to = this.#to, mask = this.#context.inputTypes[3], past = this.#context.inputTypes[4]?.shape[2] ?? 0, name = this.#context.inputs[3];
    const keys = dimAdd(k.shape[k.shape.length - 2] ?? 1, past), rank = mask?.shape.length ?? 0, width = mask?.shape[rank - 1];
    if (!mask || width === 1 || typeof width !== "number" || typeof keys !== "number" || width >= keys) return name;
    const pads = listOf(...new Array<number>(2 * rank - 1).fill(0), keys - width);
    return to.add(Pad, [name, pads, scalarOf(mask.dtype, mask.dtype === "bool" ? 0 : -Infinity)], { mode: "constant" });
  }

  /** Attention in one operator, which hides keys by their positions. */
  #flash({ query, key, value, given, scale }: { query: string; key: string; value: string; given: string | undefined; scale: number }, result: string | undefined): string {
    const to = this.#to, { inputs, inputTypes } = this.#context, { is_causal, softcap } = this.#options, [, , , , past, , limit] = inputs;
    const chooses = inputTypes[3]?.dtype === "bool", hidden = is_causal || limit !== undefined ? undefined : causalOffset(inputTypes[3]?.constant, false);
    if (hidden !== undefined) return to.add(FlashAttention, hidden === 0 ? [query, key, value] : [query, key, value, undefined, undefined, undefined, listOf(hidden)], { scale, softcap, causal: 1 }, result);
    const offset = !is_causal ? undefined : limit !== undefined ? to.add(Sub, [limit, sizeAlong(to, query, 2)]) : past === undefined ? undefined : sizeAlong(to, past, 2);
    return to.add(FlashAttention, [query, key, value, chooses ? undefined : given, undefined, chooses ? given : undefined, offset, limit],
      { scale, softcap, causal: is_causal, ...(chooses ? { fill: -Infinity, fill_where: 0 } : {}) }, result);
  }

  /** The additive mask of all that hides keys; undefined where nothing does. */
  #mask(given: string | undefined, query: string, key: string, q: TypeInfo): string | undefined {
    const to = this.#to, { inputs, inputTypes } = this.#context, { dtype } = q;
    const hidden = (visible: string): string => to.add(Where, [visible, scalarOf(dtype, 0), scalarOf(dtype, -Infinity)]);
    const range = (of: string): string => indicesAlong(to, of, 2);
    const parts: string[] = [];
    if (given !== undefined) parts.push(inputTypes[3]?.dtype === "bool" ? hidden(given) : given);
    const limits = inputs[6] === undefined ? undefined : to.add(Unsqueeze, [to.add(Cast, [inputs[6]], { to: 7 }), listOf(1, 2, 3)]);
    if (this.#options.is_causal) {
      const rows = to.add(Unsqueeze, [range(query), listOf(1)]);
      const past = inputs[4] === undefined ? undefined : sizeAlong(to, inputs[4], 2);
      const offset = limits ? to.add(Sub, [limits, sizeAlong(to, query, 2)]) : past;
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
