/**
 * Accesses as affine functions of loop variables: element (i…) of a placed buffer, with indices linear in some axes,
 * moves by a constant number of elements when an axis moves by one. Scheduling uses it to walk buffers with pointers.
 */
import { dimAdd, dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { present } from "../../core/assert.ts";
import { byteSize } from "../../core/dtype.ts";
import { add, axisOf, constant, dimExpr, i32, mul, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import { mapExpr, operandsOf } from "../../kernel/traverse.ts";

/** Coefficients by axis; axes that are absent have 0. */
export type Coefficients = ReadonlyMap<Axis, Dim>;

export interface AffineAccess {
  readonly buffer: Buffer;
  /** Byte address with every analysed axis at 0. */
  readonly base: Expr;
  /** Bytes the address moves when an axis moves by one. */
  readonly bytes: Coefficients;
}

/** Bytes an access moves along `axis`. */
export const bytesAlong = (access: AffineAccess, axis: Axis): Dim => access.bytes.get(axis) ?? 0;

const none: Coefficients = new Map();

function combine(a: Coefficients, b: Coefficients, sign: 1 | -1): Coefficients {
  const out = new Map(a);
  for (const [axis, c] of b) out.set(axis, dimAdd(out.get(axis) ?? 0, dimMul(c, sign)));
  return out;
}

/** Coefficients of an i32 expression that is linear in `axes`; undefined where it is not. */
export function linearIn(e: Expr, axes: ReadonlySet<Axis>): Coefficients | undefined {
  if (e.kind === "axis") return axes.has(e.axis) ? new Map([[e.axis, 1]]) : none;
  if (e.kind === "binary") {
    const a = linearIn(e.a, axes), b = linearIn(e.b, axes);
    if (!a || !b) return undefined;
    if (a.size === 0 && b.size === 0) return none;
    switch (e.op) {
      case "add": return combine(a, b, 1);
      case "sub": return combine(a, b, -1);
      case "mul": {
        const [varying, factor] = a.size > 0 ? [a, e.b] : [b, e.a];
        if (a.size > 0 && b.size > 0) return undefined;
        const by = sizeValue(factor);
        return by === undefined ? undefined : new Map([...varying].map(([axis, c]): [Axis, Dim] => [axis, dimMul(c, by)]));
      }
      default: return undefined;
    }
  }
  return mentions(e, axes) ? undefined : none;
}

/** The size an expression stands for, when it is one. */
export function sizeValue(e: Expr): Dim | undefined {
  if (e.kind === "dim") return e.dim;
  return e.kind === "const" ? Number(e.value) : undefined;
}

/** True when a value depends on one of the axes. */
export function mentions(e: Expr, axes: ReadonlySet<Axis>, memo: Map<Expr, boolean> = new Map()): boolean {
  const known = memo.get(e);
  if (known !== undefined) return known;
  const found = e.kind === "axis" ? axes.has(e.axis) : operandsOf(e).some((c) => mentions(c, axes, memo));
  memo.set(e, found);
  return found;
}

/** Replaces loop variables by expressions, folding what becomes constant. */
export function substituteAxes(e: Expr, map: ReadonlyMap<Axis, Expr>, memo: Map<Expr, Expr> = new Map()): Expr {
  return mapExpr(e, (x) => (x.kind === "axis" ? map.get(x.axis) ?? x : foldIndex(x)), memo);
}

/** Folds i32 sums and products of constants, and neutral operands. */
export function foldIndex(e: Expr): Expr {
  if (e.kind !== "binary" || e.type.scalar !== "i32" || e.type.lanes !== 1) return e;
  const a = sizeValue(e.a), b = sizeValue(e.b);
  if (e.op === "add") {
    if (a === 0) return e.b;
    if (b === 0) return e.a;
    if (a !== undefined && b !== undefined) return sizeExpr(dimAdd(a, b));
  }
  if (e.op === "sub" && b === 0) return e.a;
  if (e.op === "mul") {
    if (a === 0 || b === 0) return constant(0, i32);
    if (a === 1) return e.b;
    if (b === 1) return e.a;
    if (a !== undefined && b !== undefined) return sizeExpr(dimMul(a, b));
  }
  if (e.op === "div" && b === 1) return e.a;
  if (e.op === "rem" && b === 1) return constant(0, i32);
  return e;
}
const sizeExpr = (d: Dim): Expr => (isSymbolic(d) ? dimExpr(d) : constant(d | 0, i32));

/** a + b and a · b for index expressions, folded. */
export const plus = (a: Expr, b: Expr | Dim): Expr => foldIndex(add(a, toIndex(b)));
export const times = (a: Expr, b: Expr | Dim): Expr => foldIndex(mul(a, toIndex(b)));
export const toIndex = (x: Expr | Dim): Expr => (typeof x === "number" ? constant(x, i32) : "terms" in x ? dimExpr(x) : x);

/** The access as affine in `axes`; undefined where an index is not linear in them. */
export function affineAccess(buffer: Buffer, indices: readonly Expr[], axes: ReadonlySet<Axis>, layout: Layout): AffineAccess | undefined {
  const bytes = new Map<Axis, Dim>();
  for (const [d, e] of indices.entries()) {
    const linear = linearIn(e, axes);
    if (!linear) return undefined;
    const stride = dimMul(present(layout.strides[d], `stride ${d} of ${buffer.name}`), byteSize(buffer.dtype));
    for (const [axis, c] of linear) {
      const total = dimAdd(bytes.get(axis) ?? 0, dimMul(c, stride));
      if (total === 0) bytes.delete(axis);
      else bytes.set(axis, total);
    }
  }
  const zero = new Map([...axes].map((axis): [Axis, Expr] => [axis, constant(0, i32)]));
  return { buffer, base: { kind: "address", buffer, indices: indices.map((e) => substituteAxes(e, zero)), type: i32 }, bytes };
}

/** A loop variable of its own. */
export const freshAxis = (name: string, extent: Dim): { readonly axis: Axis; readonly value: Expr } => {
  const axis: Axis = { name, extent };
  return { axis, value: axisOf(axis) };
};
