/** What a Resize with known sizes does along each axis, and factors by which a nearest one repeats whole elements. */
import { formatShape } from "../core/dim.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Node } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { growsByDivision, keeps, type ResizeAxis } from "../ops/resize-element.ts";
import { resizeAxes } from "../ops/resize.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

export interface Resizing {
  readonly node: Node;
  readonly axes: readonly ResizeAxis[];
  /** The result's sizes are given, not factors. */
  readonly bySizes: boolean;
}

/** A Resize whose axes are known when compiling and that does nothing beside: no crop, no antialiasing, no aspect ratio kept. */
export function resizingOf(node: Node): Resizing | Refusal {
  const [X, roi, scales, sizes] = node.inputs.map((v) => v && typeWithConstant(v)), { axes, antialias, keep_aspect_ratio_policy: policy } = node.attributes;
  const plain = !antialias && (policy === undefined || policy === "stretch") && node.attributes["coordinate_transformation_mode"] !== "tf_crop_and_resize";
  if (!X || !plain) return refuse("resize-mode", `'${node.name}' crops, filters or keeps the aspect ratio`, "none: it computes more than its result's elements from their neighbours");
  const known = resizeAxes({ X, roi, scales, sizes }, { axes: Array.isArray(axes) ? axes.map(Number) : undefined });
  const bySizes = !(scales?.constant && toNumbers(scales.constant).length > 0);
  if (!known || known.some((a) => a.scale === undefined)) return refuse("not-constant", `the factors of '${node.name}', ${formatShape(X.shape)} to ${formatShape(node.outputs[0]?.type.shape ?? [])}, are not known`, "give constant scales");
  return { node, axes: known, bySizes };
}

/** The factor of each axis where nearest elements are repeated so many times: element i is ⌊i / factor⌋. */
export function wholeFactors({ node, axes }: Resizing): readonly number[] | undefined {
  const { mode, coordinate_transformation_mode: transform, nearest_mode: rounding } = node.attributes;
  if (mode !== "nearest" || !growsByDivision(String(transform), String(rounding))) return undefined;
  const factors = axes.map((a) => (keeps(a) ? 1 : a.scale ?? NaN));
  return factors.every((f) => Number.isInteger(f) && f >= 1) ? factors : undefined;
}
