/** Attention between the reshapes and transpositions that part and join its heads as onnxruntime's MultiHeadAttention. */
import { dimEqual, dimMul, isStatic, type Dim } from "../core/dim.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { Attributes } from "../graph/op.ts";
import { Expand, FlashAttention, KnownElements, MultiHeadAttention, Neg, Reshape, Transpose } from "../ops/index.ts";
import { knownElements } from "../ops/known-elements.ts";
import { anything, op, optionalInput, value, type Predicate } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse, type Editor, type Rule } from "../rewrite/rule.ts";
import { kernelFor, type Provider } from "./kernels.ts";

/** [batch, sequence, heads, depth] and [batch, heads, sequence, depth] into each other. */
const headsApart: Predicate<Attributes> = { wants: "perm [0, 2, 1, 3]", code: "other-axes", holds: ({ perm }) => Array.isArray(perm) && perm.join() === "0,2,1,3" };
const headed = <const N extends string>(name: N) => op(Transpose, [op(Reshape, [value(name), anything()], { shared: true })], { attributes: headsApart, shared: true });

const shapeOf = (v: Value): readonly Dim[] => v.type.shape;
const sameShape = (v: Value, dims: readonly (Dim | undefined)[]): boolean => shapeOf(v).length === dims.length && dims.every((d, i) => d !== undefined && dimEqual(d, shapeOf(v)[i] ?? -1));

/** The shape in which a mask of these scores is whole over queries and keys; undefined where it does not fit them. */
function scoresOf(mask: Value, [b, h, s, t]: readonly [Dim, Dim, Dim, Dim]): readonly [Dim, Dim, Dim, Dim] | undefined {
  const own = [...new Array<Dim>(Math.max(0, 4 - shapeOf(mask).length)).fill(1), ...shapeOf(mask)], scores = [b, h, s, t];
  if (own.length !== 4 || own.some((d, i) => d !== 1 && !dimEqual(d, scores[i] ?? -1))) return undefined;
  return [own[0] ?? 1, own[1] ?? 1, s, t];
}

/** The mask with an element for each query and key, which is what MultiHeadAttention takes. */
function whole(mask: Value, scores: readonly [Dim, Dim, Dim, Dim], edit: Editor): Value {
  const shape = scoresOf(mask, scores) ?? scores;
  if (sameShape(mask, shape)) return mask;
  // Axes that the mask has need not be said again, so that no size of theirs must be read.
  const own = [...new Array<Dim>(4 - shapeOf(mask).length).fill(1), ...shapeOf(mask)], missing = shape.map((d, i): Dim => (dimEqual(d, own[i] ?? 1) ? 1 : d));
  const target = isStatic(missing) ? edit.constant(fromNumbers("int64", [4], missing), `${mask.name}_shape`) : edit.insert(KnownElements, [], knownElements("int64", [4], missing), { name: `${mask.name}_shape` });
  return edit.insert(Expand, [mask, target], {}, { name: `${mask.name}_expanded` });
}

interface Masked { readonly mask?: readonly number[]; readonly dtype?: "float32" | "float64"; readonly causal?: number; readonly scale_position?: string; readonly heads?: number }
const build = ({ mask, dtype = "float32", causal = 0, scale_position = "post", heads = 2 }: Masked, after: (b: GraphBuilder, attended: Value, result: Value) => readonly Value[] = (_, __, result) => [result]) => (): Graph => {
  const b = new GraphBuilder();
  const apart = (name: string, count: number): Value => b.add(Transpose, [b.add(Reshape, [b.input(name, [2, 5, count * 4], dtype), b.int64(2, 5, count, 4)])], { perm: [0, 2, 1, 3] });
  const attended = b.add(FlashAttention, [apart("q", 2), apart("k", heads), apart("v", heads), ...(mask ? [b.input("mask", mask, dtype)] : [])], { scale: 0.5, causal, scale_position });
  const result = b.add(Reshape, [b.add(Transpose, [attended], { perm: [0, 2, 1, 3] }), b.int64(2, 5, 8)]);
  return b.build(...after(b, attended, result));
};

export const fuseAttention = (provider: Provider): Rule => defineRule({
  name: "fuse-attention",
  doc: "Attention over heads that are parted and joined again by Reshape and Transpose becomes com.microsoft.MultiHeadAttention on the values before and after; a mask that is broadcast is expanded to all queries and keys.",
  match: op(Reshape, [
    op(Transpose, [op(FlashAttention, [headed("q"), headed("k"), headed("v"), optionalInput(value("mask"))], { as: "attention" })], { attributes: headsApart }),
    anything(),
  ]),
  where: [
    ({ q }) => kernelFor(provider, MultiHeadAttention, q),
    ({ attention: { attributes: { softcap, window, least, empty_rows: empty, scale_position: at }, name } }) => (softcap === 0 && window === 0 && least === -Infinity && empty === "nan" && at !== "last") || refuse("other-score", `'${name}' caps, windows, limits or scales the whole of its scores, or knows rows without weights`, "leave these out"),
    ({ q, k, v, attention }, root) => {
      const [heads] = [attention.inputs[0], attention.inputs[1]].map((x) => x && shapeOf(x)[1]), [, keyHeads] = [attention.inputs[0], attention.inputs[1]].map((x) => x && shapeOf(x)[1]);
      const fits = [[q, attention.inputs[0]], [k, attention.inputs[1]], [v, attention.inputs[2]], [root.outputs[0], attention.outputs[0]]].every(([flat, apart]) => {
        const [b, h, s, d] = apart ? shapeOf(apart) : [];
        return flat && h !== undefined && d !== undefined && sameShape(flat, [b, s, dimMul(h, d)]);
      });
      return (fits && typeof heads === "number" && heads === keyHeads) || refuse("shape", `the heads of '${attention.name}' are not those of [batch, sequence, heads x depth], one key for each query head`, "leave it as it is");
    },
    ({ attention, mask }) => {
      const [b, h, s] = attention.inputs[0] ? shapeOf(attention.inputs[0]) : [], [, , t] = attention.inputs[1] ? shapeOf(attention.inputs[1]) : [];
      if (attention.attributes["causal"] === 1 && !(s !== undefined && t !== undefined && dimEqual(s, t))) return refuse("causal", `'${attention.name}' hides keys by positions that do not start together`, "leave it as it is");
      return !mask || scoresOf(mask, [b ?? 1, h ?? 1, s ?? 1, t ?? 1]) !== undefined || refuse("mask-shape", `'${mask.name}' is not a mask of [batch, heads, queries, keys]`, "give it these axes, or 1");
    },
  ],
  numerics: reassociates(3e-5),
  rewrite({ q, k, v, attention, ...rest }, edit) {
    const { mask } = rest as { readonly mask?: Value }, [b = 1, heads = 1, s = 1] = attention.inputs[0] ? shapeOf(attention.inputs[0]) : [], [, , t = 1] = attention.inputs[1] ? shapeOf(attention.inputs[1]) : [];
    return edit.insert(MultiHeadAttention, mask ? [q, k, v, undefined, undefined, whole(mask, [b, heads, s, t], edit)] : [q, k, v], { num_heads: Number(heads), scale: Number(attention.attributes["scale"]), ...(attention.attributes["causal"] === 1 ? { unidirectional: 1 } : {}) });
  },
  example: build({}),
  examples: [build({ mask: [2, 2, 5, 5] }), build({ mask: [2, 1, 1, 5] }), build({ mask: [5, 5] }), build({ causal: 1 })],
  refuses: {
    "no-kernel": build({ dtype: "float64" }),
    "other-score": build({ scale_position: "last" }),
    "shape": build({ heads: 1 }),
    "interior-value-used": build({}, (b, attended, result) => [result, b.add(Neg, [attended])]),
  },
});
