/** Collapsed axes: one index that runs over several axes, outermost first. */
import { present } from "../../core/assert.ts";
import { dimProduct } from "../../core/dim.ts";
import { constant, div, i32, rem, type Axis, type Expr } from "../../kernel/expr.ts";
import { toIndex } from "./affine.ts";

/** The value of each axis at a collapsed index. */
export function rowValues(axes: readonly Axis[], row: Expr): ReadonlyMap<Axis, Expr> {
  const out = new Map<Axis, Expr>();
  axes.forEach((axis, d) => {
    if (axis.extent === 1) { out.set(axis, constant(0, i32)); return; }
    const inside = dimProduct(axes.slice(d + 1).map((a) => a.extent));
    const quotient = inside === 1 ? row : div(row, toIndex(inside));
    out.set(axis, d === 0 ? quotient : rem(quotient, toIndex(present(axis, "axis").extent)));
  });
  return out;
}
