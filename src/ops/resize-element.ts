/** One element of a resized tensor. Coordinates are float32 expressions over the index; where a table of positions has a closed form in integers, that is taken. */
import { dimEqual, type Dim } from "../core/dim.ts";
import type { Operand } from "../graph/op.ts";
import { add, and, cast, constant, dimExpr, div, f32, ge, gt, lift, lt, max, min, mul, or, select, sub, unary, type Expr } from "../kernel/expr.ts";
import { minusDim, origin } from "./index-map.ts";

/** An axis: `scale` is absent where it is result / size, known only at run time. */
export interface ResizeAxis {
  readonly size: Dim;
  readonly result: Dim;
  readonly scale: number | undefined;
  readonly roi: readonly [number, number];
  /** The scale is given, and the result rounded down: corners are aligned with those of size · scale. */
  readonly scaled: boolean;
}
export interface ResizeChoice {
  readonly mode: string;
  readonly coordinate_transformation_mode: string;
  readonly nearest_mode: string;
  readonly cubic_coeff_a: number;
  readonly exclude_outside: number;
  readonly extrapolation_value: number;
}
interface Tap { readonly index: Expr; readonly weight: Expr }

const number = (d: Dim): Expr => (typeof d === "number" ? constant(d, f32) : cast(dimExpr(d), "f32"));

/** The element at `indices`: axes that keep their size read straight through. */
export function resizedElement(x: Operand, axes: readonly ResizeAxis[], choice: ResizeChoice, indices: readonly Expr[]): Expr {
  const crop = choice.coordinate_transformation_mode === "tf_crop_and_resize";
  const outside: Expr[] = [];
  const taps = axes.map((axis, d): readonly Tap[] => {
    const i = indices[d] ?? origin;
    if (keeps(axis) && !crop) return [{ index: i, weight: constant(1, f32) }];
    if (choice.mode === "nearest" && !crop) return [{ index: nearest(i, axis, choice), weight: constant(1, f32) }];
    const at = coordinate(choice.coordinate_transformation_mode, i, axis);
    if (crop) outside.push(or(lt(at, 0), gt(at, lessOne(axis.size))));
    if (choice.mode === "nearest") return [{ index: clampIndex(cast(rounded(choice.nearest_mode, at, axis), "i32"), axis.size), weight: constant(1, f32) }];
    return choice.mode === "linear" ? linear(at, axis) : cubic(at, axis, choice);
  });
  const value = combine(x, taps, []);
  const [first, ...rest] = outside;
  return first ? select(rest.reduce(or, first), lift(choice.extrapolation_value, value.type), value) : value;
}
/** Whether an axis is read straight through. */
export const keeps = ({ size, result, scale }: ResizeAxis): boolean => dimEqual(size, result) && (scale === undefined || scale === 1);
/** d − 1 in float32. */
const lessOne = (d: Dim): Expr => (typeof d === "number" ? constant(d - 1, f32) : sub(number(d), 1));

/** Σ over the taps of each axis in turn, innermost last. */
function combine(x: Operand, taps: readonly (readonly Tap[])[], chosen: readonly Expr[]): Expr {
  const [along, ...rest] = taps;
  if (!along) return x.at(...chosen);
  const terms = along.map((t) => { const v = combine(x, rest, [...chosen, t.index]); return along.length === 1 ? v : mul(v, cast(t.weight, v.type.scalar)); });
  return terms.reduce(add);
}

/** Whether the mode's coordinate, rounded, is ⌊i/s⌋ when growing by a whole factor s: the middles of pixels never fall on ties. */
export const growsByDivision = (transform: string, nearestMode: string): boolean =>
  transform === "asymmetric" ? nearestMode === "floor" || nearestMode === "simple" : transform === "half_pixel" && nearestMode.startsWith("round");

function nearest(i: Expr, axis: ResizeAxis, { coordinate_transformation_mode: transform, nearest_mode: mode }: ResizeChoice): Expr {
  const { scale } = axis;
  if (scale !== undefined && Number.isInteger(scale) && growsByDivision(transform, mode)) return clampIfNeeded(div(i, scale), axis, scale);
  const step = scale === undefined ? NaN : 1 / scale;
  if (Number.isInteger(step) && Math.fround(1 / step) === scale && (step & (step - 1)) === 0 && transform === "asymmetric") return mul(i, step);
  return clampIndex(cast(rounded(mode, coordinate(transform, i, axis), axis), "i32"), axis.size);
}
/** ⌊i/s⌋ stays inside where the result is no longer than s times the input. */
const clampIfNeeded = (index: Expr, { size, result }: ResizeAxis, scale: number): Expr =>
  typeof size === "number" && typeof result === "number" && result > size * scale ? clampIndex(index, size) : index;
const clampIndex = (index: Expr, size: Dim): Expr => min(max(index, 0), minusDim(dimExpr(size), 1));

function coordinate(mode: string, i: Expr, { size, result, scale, roi: [start, end], scaled }: ResizeAxis): Expr {
  const x = cast(i, "f32"), by = scale === undefined ? div(number(result), number(size)) : constant(scale, f32);
  const last = lessOne(size), lastResult = lessOne(result);
  const lastCorner = !scaled || scale === undefined ? lastResult : typeof size === "number" ? constant(Math.fround(Math.fround(scale * size) - 1), f32) : sub(mul(number(size), by), 1);
  const middle = (): Expr => div(add(x, 0.5), by);
  const unlessSingle = (many: Expr, single: Expr): Expr => (typeof result === "number" ? (result > 1 ? many : single) : select(gt(dimExpr(result), 1), many, single));
  switch (mode) {
    case "asymmetric": return div(x, by);
    case "tf_half_pixel_for_nn": return middle();
    case "pytorch_half_pixel": return unlessSingle(sub(middle(), 0.5), constant(0, f32));
    case "align_corners": return unlessSingle(div(mul(x, last), lastCorner), constant(0, f32));
    case "half_pixel_symmetric": {
      const adjustment = div(number(result), mul(by, number(size)));
      const offset = mul(div(number(size), 2), sub(1, adjustment));
      return sub(add(offset, middle()), 0.5);
    }
    case "tf_crop_and_resize": {
      const from = mul(constant(start, f32), last), span = sub(constant(end, f32), constant(start, f32));
      return unlessSingle(add(from, div(mul(mul(x, span), last), lastResult)), mul(mul(add(constant(start, f32), constant(end, f32)), 0.5), last));
    }
    default: return sub(middle(), 0.5);
  }
}

function rounded(mode: string, x: Expr, { scale, size, result }: ResizeAxis): Expr {
  switch (mode) {
    case "floor": return unary("floor", x);
    case "ceil": return unary("ceil", x);
    case "round_prefer_ceil": return unary("floor", add(x, 0.5));
    case "simple": {
      if (scale !== undefined) return unary(scale < 1 ? "ceil" : "floor", x);
      return select(lt(dimExpr(result), dimExpr(size)), unary("ceil", x), unary("floor", x));
    }
    default: return unary("ceil", sub(x, 0.5));
  }
}

/** Two neighbours of the coordinate, clamped to the axis. */
function linear(at: Expr, { size }: ResizeAxis): readonly Tap[] {
  if (size === 1) return [{ index: origin, weight: constant(1, f32) }];
  const last = minusDim(dimExpr(size), 1);
  const x = min(max(at, 0), cast(last, "f32")), floor = unary("floor", x), fraction = sub(x, floor), first = cast(floor, "i32");
  return [{ index: first, weight: sub(1, fraction) }, { index: min(add(first, 1), last), weight: fraction }];
}

/** Four neighbours with Keys' cubic kernel. */
function cubic(at: Expr, { size }: ResizeAxis, { cubic_coeff_a: a, exclude_outside }: ResizeChoice): readonly Tap[] {
  const floor = unary("floor", at), s = sub(at, floor), first = cast(floor, "i32");
  const near = (t: Expr): Expr => add(mul(mul(sub(mul(t, a + 2), a + 3), t), t), 1);
  const far = (t: Expr): Expr => sub(mul(add(mul(sub(mul(t, a), 5 * a), t), 8 * a), t), 4 * a);
  const weights = [far(add(s, 1)), near(s), near(sub(1, s)), far(sub(2, s))];
  const places = weights.map((_, k) => add(first, k - 1));
  if (!exclude_outside) return places.map((p, k) => ({ index: clampIndex(p, size), weight: weights[k] ?? constant(0, f32) }));
  const kept = weights.map((w, k) => { const p = places[k] ?? origin; return select(and(ge(p, 0), lt(p, dimExpr(size))), w, 0); });
  const total = kept.reduce(add);
  return places.map((p, k) => ({ index: clampIndex(p, size), weight: div(kept[k] ?? constant(0, f32), total) }));
}
