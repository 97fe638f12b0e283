/**
 * Zeros padded before a Resize that repeats nearest elements by whole factors come after it, as many more, where
 * convolutions read the result: their kernels pad without a call. Elsewhere the Pad stays, as a smaller picture is padded.
 */
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import type { Attributes } from "../graph/op.ts";
import { elementsOf } from "../ops/element-values.ts";
import { Abs, Conv, Pad, Resize } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { anything, numberIn, op, optionalInput, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, refuse, type Verdict } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { resizingOf, wholeFactors } from "./resizing.ts";

interface Match { readonly x: Value; readonly pad: Node; readonly resize: Node }

function factorsOf({ resize }: Match): readonly number[] | Refusal {
  const resizing = resizingOf(resize);
  if (isRefusal(resizing)) return resizing;
  return wholeFactors(resizing) ?? refuse("not-whole-factors", `'${resize.name}' does not repeat nearest elements by whole factors`, "none: it blends or skips elements of the border");
}
/** Pads of each axis: starts, then ends. */
function padsOf({ x, pad }: Match): readonly number[] | Refusal {
  const [, pads, , axes] = pad.inputs, rank = x.type.shape.length, given = pads && elementsOf(typeWithConstant(pads));
  const at = axes ? elementsOf(typeWithConstant(axes)) : x.type.shape.map((_, i) => i), out = new Array<number>(2 * rank).fill(0);
  if (!given || !at?.every((a) => typeof a === "number") || !given.every((p) => typeof p === "number")) return refuse("not-constant", `the pads or axes of '${pad.name}' are computed`, "make them constant");
  for (const [i, axis] of at.entries()) {
    const d = Number(axis) < 0 ? Number(axis) + rank : Number(axis);
    out[d] = Number(given[i]);
    out[d + rank] = Number(given[i + at.length]);
  }
  return out;
}
/** Whether convolutions take the Pad: who else reads the result would have it padded at its larger size. */
function isTaken({ resize, pad }: Match): Verdict {
  const [result] = resize.outputs, filled = pad.inputs[2], other = result?.uses.find((u) => u.node.op !== Conv || u.index !== 0);
  if (other || !result || result.uses.length === 0 || result.resultOf.length > 0) return refuse("not-before-convolution", `${other ? `${other.node.op.type} '${other.node.name}'` : "the caller"} reads '${result?.name}'`, "none: the smaller picture is padded in less time");
  const zeros = pad.attributes["mode"] === "constant" && (!filled || (isConstant(filled) && numberIn(filled) === 0));
  return zeros || refuse("pad-mode", `'${pad.name}' pads by ${String(pad.attributes["mode"])}, or not with zeros`, "pad with zeros");
}

const nearest: Attributes = { coordinate_transformation_mode: "asymmetric", nearest_mode: "floor" };
interface Case { readonly pads?: readonly number[]; readonly fill?: number; readonly axes?: readonly number[]; readonly mode?: string; readonly scales?: readonly number[]; readonly resize?: Attributes; readonly computed?: boolean }
type More = (b: GraphBuilder, p: Value, r: Value) => Value;
const build = ({ pads = [0, 0, 1, 2, 0, 0, 0, 1], fill, axes, mode = "constant", scales = [1, 1, 2, 3], resize = {}, computed = false }: Case, more?: More) => () => {
  const b = new GraphBuilder(), x = b.input("x", ["n", 2, 4, 3]);
  const p = b.add(Pad, [x, computed ? b.input("pads", [8], "int64") : b.int64(...pads), fill, axes && b.int64(...axes)], { mode }), r = b.add(Resize, [p, undefined, b.numbers(scales)], resize);
  return b.build(b.add(Conv, [r, b.random([3, 2, 3, 3])]), ...(more ? [more(b, p, r)] : []));
};

export const padAfterResize = defineRule({
  name: "pad-after-resize",
  doc: "A Pad with zeros before a Resize that repeats nearest elements by whole factors, where convolutions read what that gives, moves behind the Resize, its pads times the factors, and from there into the convolutions.",
  match: op(Resize, [
    op(Pad, [value("x"), anything(), optionalInput(anything()), optionalInput(anything())], { as: "pad" }),
    optionalInput(anything()), optionalInput(anything()), optionalInput(anything()),
  ], { as: "resize" }) as Pattern<Match>,
  where: [
    (match) => { const factors = factorsOf(match); return isRefusal(factors) ? factors : true; },
    isTaken,
    (match) => { const pads = padsOf(match); return isRefusal(pads) ? pads : true; },
  ],
  numerics: exact,
  rewrite(match, edit) {
    const factors = factorsOf(match), pads = padsOf(match), { x, pad, resize } = match;
    if (isRefusal(factors)) return factors;
    if (isRefusal(pads)) return pads;
    const rank = factors.length, scales = edit.constant(fromNumbers("float32", [rank], factors), `${resize.name}_scales`);
    const resized = edit.insert(Resize, [x, undefined, scales], { ...resize.attributes, axes: undefined }, { name: resize.name });
    const scaled = fromNumbers("int64", [2 * rank], pads.map((p, i) => p * (factors[i % rank] ?? 1)));
    return edit.insert(Pad, [resized, edit.constant(scaled, `${pad.name}_pads`), pad.inputs[2]], { mode: pad.attributes["mode"] }, { name: pad.name });
  },
  example: build({}),
  examples: [
    build({ pads: [1, 0, 2, 1], axes: [-1, 2], fill: 0, resize: nearest }),
    build({ resize: { coordinate_transformation_mode: "half_pixel", nearest_mode: "round_prefer_ceil" } }, (b, _, r) => b.add(Conv, [r, b.random([1, 2, 1, 1])])),
  ],
  refuses: {
    "not-whole-factors": build({ resize: { mode: "linear" } }),
    "resize-mode": build({ resize: { mode: "linear", antialias: 1 } }),
    "not-before-convolution": build({}, (b, _, r) => b.add(Abs, [r])),
    "pad-mode": build({ mode: "edge" }),
    "not-constant": build({ computed: true }),
    "interior-value-used": build({}, (b, p) => b.add(Abs, [p])),
  },
});
