/**
 * A Resize of a Resize is one: where both repeat nearest elements by whole factors, whose product repeats them as often
 * (⌊⌊i / a⌋ / b⌋ = ⌊i / ab⌋), and where they resize different axes in the same way, since each axis is resized on its own.
 */
import { isFloat } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { isStatic } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { Attributes } from "../graph/op.ts";
import { Abs, Resize } from "../ops/index.ts";
import { keeps } from "../ops/resize-element.ts";
import { anything, op, optionalInput, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse, type Editor, type Verdict } from "../rewrite/rule.ts";
import { sameAttributes } from "./siblings.ts";
import type { Refusal } from "../rewrite/site.ts";
import { resizingOf, wholeFactors, type Resizing } from "./resizing.ts";

const rest = [optionalInput(anything()), optionalInput(anything()), optionalInput(anything())] as const;
interface Match { readonly x: Value; readonly first: Node; readonly second: Node }
/** The two, as far as their factors are known. */
interface Pair { readonly first: Resizing; readonly second: Resizing }
function pairOf({ first, second }: Match): Pair | Refusal {
  const inner = resizingOf(first), outer = resizingOf(second);
  return isRefusal(inner) ? inner : isRefusal(outer) ? outer : { first: inner, second: outer };
}
/** The factors of both where these compose. */
function productOf({ first, second }: Pair): readonly number[] | undefined {
  const inner = wholeFactors(first), outer = wholeFactors(second);
  return inner && outer && inner.map((f, d) => f * (outer[d] ?? 1));
}

/** Attributes of a Resize to whose inputs all axes belong. */
const overAll = ({ attributes }: Node): { readonly attributes: Attributes } => ({ attributes: { ...attributes, axes: undefined } });

function compose(pair: Pair): Verdict {
  const { first, second } = pair, { node } = second, { mode } = node.attributes;
  if (productOf(pair)) return true;
  const both = first.axes.findIndex((a, d) => !keeps(a) && !keeps(second.axes[d] ?? a));
  if (both >= 0) return refuse("same-axis", `both resize axis ${both}, by ${first.axes[both]?.scale} and by ${second.axes[both]?.scale} in mode ${String(mode)}`, "none: what is interpolated twice, or rounded to other elements twice, is not what one step gives");
  if (!sameAttributes(overAll(first.node), overAll(node))) return refuse("modes-differ", `'${first.node.name}' and '${node.name}' place or interpolate elements differently`, "resize both axes in one mode");
  if (mode === "cubic") return refuse("more-reads", "each element of the result would read 16 elements, where the two read 8", "none: it is cheaper in two steps");
  if (mode !== "nearest" && !isFloat(node.outputs[0]?.type.dtype ?? "float32")) return refuse("dtype", `what '${first.node.name}' gives is rounded to integers`, "none: it would be rounded once only");
  if (first.bySizes !== second.bySizes || (second.bySizes && !isStatic(node.outputs[0]?.type.shape ?? []))) return refuse("sizes", `one of '${first.node.name}' and '${node.name}' is given a size, which is not the other one's factor or is not known`, "give both factors");
  return true;
}

function merged(pair: Pair, x: Value, edit: Editor): Value {
  const { first, second } = pair, { attributes } = overAll(second.node), name = edit.root.name, rank = second.axes.length;
  if (!productOf(pair) && second.bySizes) return edit.insert(Resize, [x, undefined, undefined, edit.constant(fromNumbers("int64", [rank], second.axes.map((a) => Number(a.result))), `${name}_sizes`)], attributes);
  const factors = productOf(pair) ?? second.axes.map((a, d) => (keeps(a) ? first.axes[d]?.scale : a.scale) ?? 1);
  return edit.insert(Resize, [x, undefined, edit.constant(fromNumbers("float32", [rank], factors), `${name}_scales`)], attributes);
}

interface Step { readonly scales?: readonly number[]; readonly sizes?: readonly number[]; readonly mode?: Attributes }
const asymmetric: Attributes = { coordinate_transformation_mode: "asymmetric", nearest_mode: "floor" }, linear: Attributes = { mode: "linear" };
const resized = (b: GraphBuilder, x: Value, { scales, sizes, mode = {} }: Step): Value =>
  b.add(Resize, [x, undefined, scales && b.numbers(scales), sizes && b.int64(...sizes)], mode);
const build = (first: Step, second: Step, { dims = [1, 2, "h", 3], dtype = "float32", more }: { readonly dims?: readonly (number | string)[]; readonly dtype?: "float32" | "int32"; readonly more?: (b: GraphBuilder, inner: Value) => Value } = {}) => () => {
  const b = new GraphBuilder(), inner = resized(b, b.input("x", dims, dtype), first);
  return b.build(resized(b, inner, second), ...(more ? [more(b, inner)] : []));
};
const known = { dims: [1, 2, 4, 3] };

export const mergeResizes = defineRule({
  name: "merge-resizes",
  doc: "Resize after Resize becomes one: where both repeat nearest elements by whole factors, and where they resize different axes in the same way.",
  stage: "merge",
  match: op(Resize, [op(Resize, [value("x"), ...rest], { as: "first" }), ...rest], { as: "second" }) as Pattern<Match>,
  where: [(match) => { const pair = pairOf(match); return isRefusal(pair) ? pair : compose(pair); }],
  numerics: reassociates(1e-5),
  rewrite(match, edit) {
    const pair = pairOf(match);
    return isRefusal(pair) ? pair : merged(pair, match.x, edit);
  },
  example: build({ scales: [1, 1, 2, 2] }, { scales: [1, 1, 2, 3], mode: asymmetric }),
  examples: [
    build({ sizes: [1, 2, 8, 6], mode: asymmetric }, { scales: [3, 1], mode: { ...asymmetric, axes: [2, 3] } }, known),
    build({ scales: [1, 1, 1, 1.7], mode: linear }, { scales: [1, 1, 0.6, 1], mode: linear }, known),
    build({ sizes: [1, 2, 7, 3], mode: linear }, { sizes: [1, 2, 7, 8], mode: linear }, known),
    build({ scales: [1, 1, 0.5, 1] }, { scales: [1, 1, 1, 2.5] }),
  ],
  refuses: {
    "resize-mode": build({ scales: [1, 1, 2, 2] }, { scales: [1, 1, 0.5, 0.5], mode: { ...linear, antialias: 1 } }),
    "not-constant": build({ sizes: [1, 2, 8, 6], mode: asymmetric }, { scales: [1, 1, 2, 2], mode: asymmetric }),
    "same-axis": build({ scales: [1, 1, 2, 1], mode: linear }, { scales: [1, 1, 2, 1], mode: linear }),
    "modes-differ": build({ scales: [1, 1, 2, 1], mode: linear }, { scales: [1, 1, 1, 1.5] }),
    "more-reads": build({ scales: [1, 1, 2, 1], mode: { mode: "cubic" } }, { scales: [1, 1, 1, 2], mode: { mode: "cubic" } }),
    dtype: build({ scales: [1, 1, 2, 1], mode: linear }, { scales: [1, 1, 1, 2], mode: linear }, { dtype: "int32" }),
    sizes: build({ scales: [1, 1, 2.5, 1], mode: linear }, { sizes: [1, 2, 10, 7], mode: linear }, known),
    "interior-value-used": build({ scales: [1, 1, 2, 2] }, { scales: [1, 1, 2, 2] }, { more: (b, inner) => b.add(Abs, [inner]) }),
  },
});
