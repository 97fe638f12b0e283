/**
 * What is known of an i32 expression's value, as sizes: interval arithmetic over sums, with a loop variable between 0
 * and its extent minus 1. Nothing is assumed of loaded data beyond its dtype.
 */
import { dimAdd, dimFloorDiv, dimMax, dimMin, dimMul, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { Expr } from "./expr.ts";
import { nonNegative, positive, type Bounds, type Linear } from "./linear.ts";

const unknown: Bounds = { lower: undefined, upper: undefined };
const storedBounds: Partial<Record<DType, Bounds>> = {
  int8: { lower: -128, upper: 127 }, uint8: { lower: 0, upper: 255 }, int16: { lower: -32768, upper: 32767 }, uint16: { lower: 0, upper: 65535 },
};

/** Bounds of an expression that is not a sum itself, from the bounds of its operands. */
export function atomBounds(e: Expr, of: (e: Expr) => Bounds): Bounds {
  switch (e.kind) {
    case "const": return typeof e.value === "number" ? { lower: e.value, upper: e.value } : unknown;
    case "dim": return { lower: e.dim, upper: e.dim };
    case "axis": return { lower: 0, upper: dimSub(e.axis.extent, 1) };
    case "load": return storedBounds[e.buffer.dtype] ?? unknown;
    case "select": return join(of(e.a), of(e.b));
    case "cast": return castBounds(e, of);
    case "binary": return binaryBounds(e.op, of(e.a), of(e.b));
    default: return unknown;
  }
}
function castBounds(e: Expr & { readonly kind: "cast" }, of: (e: Expr) => Bounds): Bounds {
  if (e.a.type.scalar === "bool") return { lower: 0, upper: 1 };
  if (e.a.kind === "cast" && e.a.type.scalar === "i64" && e.a.a.type.scalar === "i32") return of(e.a.a);
  return unknown;
}
function binaryBounds(op: string, a: Bounds, b: Bounds): Bounds {
  switch (op) {
    case "div": {
      if (a.lower === undefined || !nonNegative(a.lower) || b.lower === undefined || !positive(b.lower)) return unknown;
      return { lower: b.upper === undefined ? 0 : dimFloorDiv(a.lower, b.upper), upper: a.upper === undefined ? undefined : dimFloorDiv(a.upper, b.lower) };
    }
    // A size that turns out to be 0 divides nothing: the loops over it do not run.
    case "rem": {
      if (a.lower === undefined || !nonNegative(a.lower) || b.lower === undefined || !nonNegative(b.lower) || b.upper === undefined) return unknown;
      if (b.upper === 0) return { lower: 0, upper: 0 };
      const largest = dimSub(b.upper, 1);
      return { lower: 0, upper: a.upper !== undefined && nonNegative(dimSub(largest, a.upper)) ? a.upper : largest };
    }
    case "min": return { lower: both(a.lower, b.lower, dimMin), upper: a.upper === undefined ? b.upper : b.upper === undefined ? a.upper : dimMin(a.upper, b.upper) };
    case "max": return { lower: a.lower === undefined ? b.lower : b.lower === undefined ? a.lower : dimMax(a.lower, b.lower), upper: both(a.upper, b.upper, dimMax) };
    default: return unknown;
  }
}
const both = (a: Dim | undefined, b: Dim | undefined, f: (a: Dim, b: Dim) => Dim): Dim | undefined => (a === undefined || b === undefined ? undefined : f(a, b));
const join = (a: Bounds, b: Bounds): Bounds => ({ lower: both(a.lower, b.lower, dimMin), upper: both(a.upper, b.upper, dimMax) });

/** Bounds of a sum; undefined where a coefficient's sign or an atom's bound is not known. */
export function linearBounds(sum: Linear, of: (atom: Expr) => Bounds): Bounds {
  let lower: Dim | undefined = sum.constant, upper: Dim | undefined = sum.constant;
  for (const { atom, coefficient } of sum.terms) {
    const b = of(atom);
    const up = nonNegative(coefficient), down = !up && nonNegative(dimMul(coefficient, -1));
    const low: Dim | undefined = up ? b.lower : down ? b.upper : undefined;
    const high: Dim | undefined = up ? b.upper : down ? b.lower : undefined;
    lower = lower === undefined || low === undefined ? undefined : dimAdd(lower, dimMul(coefficient, low));
    upper = upper === undefined || high === undefined ? undefined : dimAdd(upper, dimMul(coefficient, high));
  }
  const wraps = [lower, upper].some((d) => d !== undefined && !isSymbolic(d) && Math.abs(d) > 2 ** 31);
  return wraps ? unknown : { lower, upper };
}
