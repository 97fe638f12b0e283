/** Reductions of an operand over some of its axes, as the normalising operators use them. */
import { dimProduct, type Dim } from "../core/dim.ts";
import type { InferContext, Operand } from "../graph/op.ts";
import { cast, constant, dimExpr, div, freshAxes, mul, reduceOver, sub, type Axis, type Expr, type ReduceOp, type Type } from "../kernel/expr.ts";
import { operand } from "./window.ts";

/** An axis counted from the front; reports one that the rank does not have. */
export function axisWithin(axis: number, rank: number, context: InferContext): number {
  if (axis < -rank || axis >= rank) context.fail("OF3012", `axis ${axis} is outside a tensor of rank ${rank}`);
  return axis < 0 ? axis + rank : axis;
}

/** Reduces `of(indices)` over `axes`, with fresh loop axes where none are given; the other indices stay as given. */
export function overAxes(op: ReduceOp, shape: readonly Dim[], axes: readonly number[], indices: readonly Expr[], of: (indices: readonly Expr[]) => Expr, own = loopAxes(shape, axes)): Expr {
  if (axes.length === 0) return of(indices);
  return reduceOver(op, own, (...taps) => {
    const full = [...indices];
    axes.forEach((a, i) => { full[a] = operand(taps, i); });
    return of(full);
  });
}

/** Loop axes of their own that run over `axes`. */
export const loopAxes = (shape: readonly Dim[], axes: readonly number[]): readonly Axis[] => freshAxes(axes.map((a) => operand(shape, a)));

/** How many elements `axes` span, as a number of `type`. */
export function countOf(shape: readonly Dim[], axes: readonly number[], type: Type): Expr {
  const count = dimProduct(axes.map((a) => operand(shape, a)));
  if (typeof count !== "number") return cast(dimExpr(count), type.scalar);
  return constant(type.scalar === "i64" || type.scalar === "u64" ? BigInt(count) : count, type);
}

/** Mean of `of(indices)` over `axes`. */
export function meanOver(shape: readonly Dim[], axes: readonly number[], indices: readonly Expr[], of: (indices: readonly Expr[]) => Expr): Expr {
  const total = overAxes("add", shape, axes, indices, of);
  return div(total, countOf(shape, axes, total.type));
}

/** Mean and (population) variance of X over `axes` at `indices`, in two passes. */
export function momentsOver(X: Operand, axes: readonly number[], indices: readonly Expr[]): { mean: Expr; variance: Expr } {
  const mean = meanOver(X.shape, axes, indices, (i) => X.at(...i));
  const variance = meanOver(X.shape, axes, indices, (i) => {
    const centred = sub(X.at(...i), mean);
    return mul(centred, centred);
  });
  return { mean, variance };
}

/** The axes from `first` to the last. */
export const axesFrom = (first: number, rank: number): number[] => Array.from({ length: Math.max(0, rank - first) }, (_, i) => first + i);
