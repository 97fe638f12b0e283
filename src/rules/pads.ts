/** Pad nodes in front of windows: which pads they add to a window's own, if they can be merged at all. */
import type { Node, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { elementsOf } from "../ops/element-values.ts";
import { Pad } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { anything, numberIn, op, optionalInput, value, type Pattern } from "../rewrite/pattern.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

/** A padded value; the Pad stays where others read it too. */
export const padded = op(Pad, [value("x"), anything(), optionalInput(anything()), optionalInput(anything())], { as: "pad", shared: true }) as Pattern<{ readonly x: Value; readonly pad: Node }>;

/** The `pads` attribute of a window node with those of the Pad before it added: starts, then ends of spatial axes. */
export function mergedPads(pad: Node, window: Node, fill: number): readonly number[] | Refusal {
  const [x, pads, filled, axes] = pad.inputs;
  const rank = x?.type.shape.length ?? 0;
  if (pad.attributes["mode"] !== "constant") return refuse("pad-mode", `'${pad.name}' pads by ${String(pad.attributes["mode"])}`, "pad with a constant");
  const value = filled ? (isConstant(filled) ? numberIn(filled) : NaN) : 0;
  if (value !== fill) return refuse("pad-value", `'${pad.name}' pads with ${filled && !isConstant(filled) ? `the computed '${filled.name}'` : value}, '${window.name}' with ${fill}`, `pad with ${fill}`);
  const autoPad = window.attributes["auto_pad"];
  if (autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER") return refuse("auto-pad", `'${window.name}' pads by ${autoPad}`, "give explicit pads");
  const amounts = pads && elementsOf(typeWithConstant(pads)), at = axes ? elementsOf(typeWithConstant(axes)) : Array.from({ length: rank }, (_, i) => i);
  if (!amounts?.every((p): p is number => typeof p === "number") || !at?.every((a): a is number => typeof a === "number"))
    return refuse("not-constant", `the pads or axes of '${pad.name}' are computed`, "make them constant");
  const own = window.attributes["pads"], spatial = rank - 2;
  const out = Array.from({ length: 2 * spatial }, (_, i) => (Array.isArray(own) && autoPad !== "VALID" ? Number(own[i]) : 0));
  for (const [i, axis] of at.entries()) {
    const d = (axis < 0 ? axis + rank : axis) - 2, begin = amounts[i] ?? 0, end = amounts[i + at.length] ?? 0;
    if (begin < 0 || end < 0) return refuse("negative-pad", `'${pad.name}' crops axis ${d + 2} by ${Math.min(begin, end)}`, "use Slice to crop");
    if (d < 0 && (begin || end)) return refuse("pad-axes", `'${pad.name}' pads axis ${d + 2}, which is not a spatial one`, "pad spatial axes only");
    if (d < 0) continue;
    out[d] = (out[d] ?? 0) + begin;
    out[d + spatial] = (out[d + spatial] ?? 0) + end;
  }
  return out;
}
