/** Reading an operand at the indices of a larger result, by numpy's broadcasting. */
import { dimEqual, dimSub, type Dim } from "../core/dim.ts";
import { constant, dimExpr, i32, min, type Expr } from "../kernel/expr.ts";

/** The operand's indices: its axes are the last ones of the result's; size 1 reads 0, a size that may be 1 reads its last. */
export function broadcastIndices(operand: readonly Dim[], result: readonly Dim[], indices: readonly Expr[]): readonly Expr[] {
  const skip = indices.length - operand.length;
  return operand.map((size, d) => {
    const index = indices[d + skip] ?? constant(0, i32);
    if (size === 1) return constant(0, i32);
    if (typeof size === "number" || dimEqual(size, result[d + skip] ?? size)) return index;
    return min(index, dimExpr(dimSub(size, 1)));
  });
}
