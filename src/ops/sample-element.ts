/**
 * Reading a tensor between its elements: along each axis some taps with weights, combined over all axes. Where a tap is
 * outside it reads nothing, or what its padding says; an index is never outside where it is read, whatever data says.
 */
import type { Dim } from "../core/dim.ts";
import { add, and, cast, constant, div, dimExpr, eq, ge, gt, lt, max, min, mul, or, rem, select, sub, unary, type Expr, type Type } from "../kernel/expr.ts";
import { minusDim, timesDim } from "./index-map.ts";

/** What is read along one axis. Absent conditions hold, absent weights are 1. */
export interface SampleTap { readonly index: Expr; readonly inside?: Expr; readonly weight?: Expr }

/** Σ over the taps of all axes of weight · read(indices); 0 where a tap is outside. */
export function sampled(read: (indices: readonly Expr[]) => Expr, taps: readonly (readonly SampleTap[])[]): Expr {
  const along = (d: number, indices: readonly Expr[], inside: readonly Expr[]): Expr => {
    const own = taps[d];
    if (!own) {
      const value = read(indices), [first, ...rest] = inside;
      return first ? select(rest.reduce(and, first), value, constant(value.type.scalar === "i64" || value.type.scalar === "u64" ? 0n : 0, value.type)) : value;
    }
    const terms = own.map(({ index, inside: condition, weight }) => {
      const value = along(d + 1, [...indices, index], condition ? [...inside, condition] : inside);
      return weight ? mul(value, cast(weight, value.type.scalar)) : value;
    });
    return terms.reduce(add);
  };
  return along(0, [], []);
}

/** d as a number of `type`. */
export const sizeAs = (d: Dim, type: Type): Expr => (typeof d === "number" ? constant(d, type) : cast(dimExpr(d), type.scalar));

/** The two elements around `at`; those outside read nothing. */
export function linearTaps(at: Expr, tap: (index: Expr) => Pick<SampleTap, "index" | "inside">): readonly SampleTap[] {
  const floor = unary("floor", at), fraction = sub(at, floor), first = cast(floor, "i32");
  return [{ ...tap(first), weight: sub(1, fraction) }, { ...tap(add(first, 1)), weight: fraction }];
}

/** The four elements around `at`, by Keys' cubic convolution with a = −0.75. */
export function cubicTaps(at: Expr, tap: (index: Expr) => Pick<SampleTap, "index" | "inside">): readonly SampleTap[] {
  const a = -0.75, floor = unary("floor", at), s = sub(at, floor), first = cast(floor, "i32");
  const near = (t: Expr): Expr => add(mul(mul(sub(mul(t, a + 2), a + 3), t), t), 1);
  const far = (t: Expr): Expr => sub(mul(add(mul(sub(mul(t, a), 5 * a), t), 8 * a), t), 4 * a);
  return [far(add(s, 1)), near(s), near(sub(1, s)), far(sub(2, s))].map((weight, k) => ({ ...tap(add(first, k - 1)), weight }));
}

/** An index that reads nothing outside. */
export const orNothing = (index: Expr, size: Dim): Pick<SampleTap, "index" | "inside"> => ({ index, inside: and(ge(index, 0), lt(index, dimExpr(size))) });
const clamped = (index: Expr, size: Dim): Expr => min(max(index, 0), minusDim(dimExpr(size), 1));

/** How positions outside −1…1 are read. */
export interface Border { readonly padding: string; readonly corners: boolean }

/** An index brought inside by its padding. */
export function padded(index: Expr, size: Dim, { padding, corners }: Border): Pick<SampleTap, "index" | "inside"> {
  if (padding === "zeros") return orNothing(index, size);
  if (padding === "border") return { index: clamped(index, size) };
  const period = corners ? timesDim(minusDim(dimExpr(size), 1), 2) : timesDim(dimExpr(size), 2);
  const m = rem(add(rem(index, period), period), period);
  return { index: clamped(select(lt(m, dimExpr(size)), m, sub(corners ? period : sub(period, 1), m)), size) };
}

/** A coordinate between −1 and 1 in pixels, reflected at the borders where the padding says so; `round` for the nearest pixel. */
export function pixelCoordinate(x: Expr, size: Dim, border: Border, round: boolean): Expr {
  const { padding, corners } = border, n = sizeAs(size, x.type), last = typeof size === "number" ? constant(size - 1, x.type) : sub(n, 1);
  const exact = corners ? mul(div(add(x, 1), 2), last) : div(sub(mul(add(x, 1), n), 1), 2);
  const at = round ? unary("nearest", exact) : exact, low = constant(corners ? 0 : -0.5, x.type), high = corners ? last : sub(n, 0.5);
  return padding === "reflection" ? select(or(lt(at, low), gt(at, high)), reflected(at, low, high), at) : at;
}

/** A coordinate outside low…high folded back at the borders, once for every time the range goes into the distance. */
function reflected(x: Expr, low: Expr, high: Expr): Expr {
  const range = sub(high, low), below = lt(x, low), distance = select(below, sub(low, x), sub(x, high));
  const times = unary("trunc", div(distance, range)), rest = sub(distance, mul(times, range)), even = eq(mul(unary("trunc", div(times, 2)), 2), times);
  const fromLow = add(low, rest), fromHigh = sub(high, rest);
  return select(eq(range, 0), low, select(below, select(even, fromLow, fromHigh), select(even, fromHigh, fromLow)));
}
