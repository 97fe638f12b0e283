/** Heads of attention in expansions: merged heads, [batch, sequence, heads · depth], taken apart to [batch, heads, sequence, depth] and back. */
import { dimExactDiv, formatDim, formatShape, type Dim } from "../core/dim.ts";
import type { InferContext, TypeInfo } from "../graph/op.ts";
import { listOf, scalarOf, type Expansion } from "./expansion.ts";
import { Range } from "./fill.ts";
import { Reshape, Squeeze } from "./reshape.ts";
import { Shape } from "./shape.ts";
import { Transpose } from "./transpose.ts";

const swapHeads = { perm: [0, 2, 1, 3] } as const;

/** Sizes of [batch, heads, sequence, depth]; merged heads are taken apart. Reports ranks and sizes that do not fit. */
export function headSizes(t: TypeInfo, count: number | undefined, context: InferContext, attribute: string): readonly [Dim, Dim, Dim, Dim] {
  const [a = 1, b = 1, c = 1, d = 1] = t.shape;
  if (t.shape.length === 4) return [a, b, c, d];
  if (t.shape.length !== 3) context.fail("OF3010", `heads need rank 3 or 4, got ${formatShape(t.shape)}`);
  if (!count || count < 1) context.fail("OF3003", `merged heads need ${attribute}`);
  return [a, count, b, dimExactDiv(c, count) ?? context.fail("OF3011", `${formatDim(c)} elements do not divide into ${count} heads`)];
}

/** [batch, sequence, heads · depth] → [batch, heads, sequence, depth]. */
export const headsApart = (to: Expansion, x: string | undefined, heads: number): string =>
  to.add(Transpose, [to.add(Reshape, [x, listOf(0, 0, heads, -1)])], swapHeads);

/** [batch, heads, sequence, depth] → [batch, sequence, heads · depth]. */
export const headsMerged = (to: Expansion, x: string | undefined, output?: string): string =>
  to.add(Reshape, [to.add(Transpose, [x], swapHeads), listOf(0, 0, -1)], {}, output);

/** The size of one axis, as a list of one int64. */
export const sizeAlong = (to: Expansion, x: string | undefined, axis: number): string => to.add(Shape, [x], { start: axis, end: axis + 1 });

/** The indices along an axis: int64 from 0. */
export const indicesAlong = (to: Expansion, x: string | undefined, axis: number): string =>
  to.add(Range, [scalarOf("int64", 0), to.add(Squeeze, [sizeAlong(to, x, axis), listOf(0)]), scalarOf("int64", 1)]);
