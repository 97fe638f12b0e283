/** Index arithmetic of operators that move elements: i32 expressions over a result's indices. */
import { dimEqual, dimExactDiv, dimMul, dimSub, type Dim } from "../core/dim.ts";
import type { InferContext, Operand } from "../graph/op.ts";
import { add, cast, constant, dimExpr, div, i32, lt, mul, rem, select, type Expr } from "../kernel/expr.ts";

export const origin: Expr = constant(0, i32);

/** x + d, with nothing added where d is 0. */
export const plusDim = (x: Expr, d: Dim): Expr => (d === 0 ? x : add(x, dimExpr(d)));
/** x − d, with nothing subtracted where d is 0. */
export const minusDim = (x: Expr, d: Dim): Expr => (d === 0 ? x : typeof d === "number" ? add(x, -d) : add(x, dimExpr(dimSub(0, d))));
/** x · d */
export const timesDim = (x: Expr, d: Dim): Expr => (d === 1 ? x : mul(x, dimExpr(d)));

/** An index read from a tensor, counted from the front of an axis of `size`. */
export function indexFrom(value: Expr, size: Dim, mayBeNegative = true): Expr {
  const i = cast(value, "i32");
  return mayBeNegative ? select(lt(i, 0), add(i, dimExpr(size)), i) : i;
}

/** The axis counted from the front; reports OF3012 where it is out of range. */
export function axisIn(context: Pick<InferContext, "fail">, axis: number, rank: number): number {
  const a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank) context.fail("OF3012", `axis ${axis} is out of range for rank ${rank}`);
  return a;
}
export const frontAxis = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

/** The element of a tensor of one element. */
export const scalarOf = (t: Operand): Expr => t.at(...t.shape.map(() => origin));

/**
 * Where an element of shape `to` lies in `from`, both row-major of equal size. Axes are split into the smallest groups of
 * equal size, so that an axis that stays has no division.
 */
export function reshapedIndices(from: readonly Dim[], to: readonly Dim[], indices: readonly Expr[]): readonly Expr[] {
  const out: Expr[] = from.map(() => origin);
  for (const { source, target } of reshapeGroups(from, to)) {
    const [first, ...rest] = target;
    let linear = first === undefined ? origin : indices[first] ?? origin;
    for (const t of rest) linear = add(timesDim(linear, to[t] ?? 1), indices[t] ?? origin);
    for (let k = source.length - 1; k >= 0; k--) {
      const axis = source[k] ?? 0, size = dimExpr(from[axis] ?? 1);
      out[axis] = k === 0 ? linear : rem(linear, size);
      if (k > 0) linear = div(linear, size);
    }
  }
  return out;
}

/** Groups of axes (those of size 1 left out) with equal products, in order. */
export function reshapeGroups(from: readonly Dim[], to: readonly Dim[]): { source: number[]; target: number[] }[] {
  const wide = (shape: readonly Dim[]): number[] => shape.flatMap((d, i) => (d === 1 ? [] : [i]));
  const sources = wide(from), targets = wide(to);
  const groups: { source: number[]; target: number[] }[] = [];
  while (sources.length || targets.length) {
    const group = { source: [] as number[], target: [] as number[] };
    let a: Dim = 1, b: Dim = 1;
    const takeSource = (): void => { const axis = sources.shift(); if (axis !== undefined) { group.source.push(axis); a = dimMul(a, from[axis] ?? 1); } };
    const takeTarget = (): void => { const axis = targets.shift(); if (axis !== undefined) { group.target.push(axis); b = dimMul(b, to[axis] ?? 1); } };
    takeSource();
    takeTarget();
    while (!dimEqual(a, b) && (sources.length || targets.length)) {
      if (sources.length && (!targets.length || dimExactDiv(b, a) !== undefined)) takeSource();
      else if (targets.length && (!sources.length || dimExactDiv(a, b) !== undefined)) takeTarget();
      else { takeSource(); takeTarget(); }
    }
    groups.push(group);
  }
  return groups;
}
