/**
 * Algebra on expressions, exact in the kernel language's arithmetic: constants fold, i32 sums take a normal form
 * (linear.ts), divisions and remainders of sums split where bounds allow, comparisons are decided where bounds allow,
 * selects lose known and repeated conditions. Floating point changes only where every value, NaN and signed zero
 * included, stays the same.
 */
import { dimFloorDiv, dimMax, dimMin, dimMod, dimMul, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import { binary, bool, cast, constant, dimExpr, i32, type BinaryOp, type Expr, type Scalar } from "./expr.ts";
import { linearAdd, linearAtom, linearConstant, linearScale, linearSplit, linearSub, nonNegative, positive, type Bounds, type Linear } from "./linear.ts";
import { castFromWide, castNumber, castToWide, isFloatScalar, isWide, numberBinary, numberUnary, wideBinary, wideCompare, wideUnary, wrapWide } from "./scalar-ops.ts";

/** What the rules need of the table of shared expressions (share.ts). */
export interface Algebra {
  /** The shared, simplified form. */
  make(e: Expr): Expr;
  /** A shared i32 expression as a sum. */
  linear(e: Expr): Linear;
  fromLinear(sum: Linear): Expr;
  bounds(sum: Linear): Bounds;
}

type Binary = Extract<Expr, { kind: "binary" }>;
type Constant = Extract<Expr, { kind: "const" }>;
const isIndex = (e: Expr): boolean => e.type.scalar === "i32" && e.type.lanes === 1;
const isConst = (e: Expr): e is Constant => e.kind === "const";
const isValue = (e: Expr, value: number): boolean => isConst(e) && Object.is(Number(e.value), value);
const truth = (value: boolean): Expr => constant(value ? 1 : 0, bool);

/** A simpler expression with the same value, or undefined. Operands of `e` are shared already. */
export function simplifyNode(e: Expr, t: Algebra): Expr | undefined {
  if (e.type.lanes !== 1) return undefined;
  switch (e.kind) {
    case "axis": return e.axis.extent === 1 ? t.make(constant(0, i32)) : undefined;
    case "dim": return isSymbolic(e.dim) ? undefined : t.make(constant(e.dim, i32));
    case "unary": return simplifyUnary(e, t);
    case "binary": return simplifyBinary(e, t);
    case "cast": return simplifyCast(e, t);
    case "select": return simplifySelect(e, t);
    default: return undefined;
  }
}

function simplifyUnary(e: Extract<Expr, { kind: "unary" }>, t: Algebra): Expr | undefined {
  const { a } = e;
  if (isConst(a)) {
    const { scalar } = a.type;
    if (typeof a.value === "bigint") return isWide(scalar) && (e.op === "neg" || e.op === "abs" || e.op === "not") ? t.make(constant(wideUnary(e.op, scalar)(a.value), e.type)) : undefined;
    if (isWide(scalar)) return undefined;
    if (isFloatScalar(scalar) && !exactFloat.has(e.op)) return undefined;
    return t.make(constant(numberUnary(e.op, scalar)(a.value), e.type));
  }
  if (e.op === "neg" && isIndex(a)) return t.fromLinear(linearScale(t.linear(a), -1));
  if (e.op === "not" && e.type.scalar === "bool" && a.kind === "unary" && a.op === "not") return a.a;
  return undefined;
}
const exactFloat: ReadonlySet<string> = new Set(["neg", "abs", "sqrt", "floor", "ceil", "trunc", "nearest", "isnan", "isinf"]);

function simplifyBinary(e: Binary, t: Algebra): Expr | undefined {
  const { op, a, b } = e;
  if (isConst(a) && isConst(b)) return foldBinary(op, a, b, e, t);
  if (e.type.scalar === "bool" && a.type.scalar === "bool") return simplifyLogic(op, a, b, t);
  if (isIndex(a) && isIndex(b)) return simplifyIndex(e, t);
  if (a.type.scalar === "i64") return narrow(e, t);
  if (isFloatScalar(a.type.scalar)) {
    if (op === "mul" && isValue(b, 1)) return a;
    if (op === "mul" && isValue(a, 1)) return b;
    if (op === "div" && isValue(b, 1)) return a;
    if (op === "sub" && isValue(b, 0)) return a;
    if (op === "add" && isValue(b, -0)) return a;
    if (op === "add" && isValue(a, -0)) return b;
  }
  return undefined;
}

function foldBinary(op: BinaryOp, a: Constant, b: Constant, e: Binary, t: Algebra): Expr | undefined {
  const { scalar } = a.type;
  if (isWide(scalar)) {
    if (typeof a.value !== "bigint" || typeof b.value !== "bigint") return undefined;
    const compare = wideCompare(op);
    return t.make(compare ? constant(compare(a.value, b.value), e.type) : constant(wideBinary(op, scalar)(a.value, b.value), e.type));
  }
  if (typeof a.value !== "number" || typeof b.value !== "number" || op === "pow") return undefined;
  return t.make(constant(numberBinary(op, scalar)(a.value, b.value), e.type));
}

function simplifyLogic(op: BinaryOp, a: Expr, b: Expr, t: Algebra): Expr | undefined {
  if (op !== "and" && op !== "or") return undefined;
  if (a === b) return a;
  const absorbing = op === "and" ? 0 : 1;
  for (const [x, y] of [[a, b], [b, a]] as const) if (isConst(x)) return Number(x.value) === absorbing ? t.make(truth(absorbing === 1)) : y;
  return undefined;
}

/** Comparisons and sums of 64-bit values that are widened indices are done on the indices. */
function narrow(e: Binary, t: Algebra): Expr | undefined {
  const a = narrowed(e.a), b = narrowed(e.b);
  if (!a || !b) return undefined;
  if (wideCompare(e.op)) return t.make(binary(e.op, a, b));
  const sizes = [a, b].every((x) => x.kind === "const" || x.kind === "dim");
  return sizes && (e.op === "add" || e.op === "sub" || e.op === "mul" || e.op === "min" || e.op === "max") ? t.make(cast(binary(e.op, a, b), "i64")) : undefined;
}
function narrowed(e: Expr): Expr | undefined {
  if (e.kind === "cast" && e.a.type.scalar === "i32") return e.a;
  if (isConst(e) && e.value >= -(2 ** 31) && e.value < 2 ** 31) return constant(Number(e.value), i32);
  return undefined;
}

function simplifyIndex(e: Binary, t: Algebra): Expr | undefined {
  const { op, a, b } = e;
  switch (op) {
    case "add": return t.fromLinear(linearAdd(t.linear(a), t.linear(b)));
    case "sub": return t.fromLinear(linearSub(t.linear(a), t.linear(b)));
    case "mul": {
      const x = t.linear(a), y = t.linear(b);
      if (y.terms.length === 0) return t.fromLinear(linearScale(x, y.constant));
      if (x.terms.length === 0) return t.fromLinear(linearScale(y, x.constant));
      return undefined;
    }
    case "div": case "rem": return simplifyDivision(e, op, t);
    case "min": case "max": case "pmin": case "pmax": {
      const smaller = op === "min" || op === "pmin";
      const x = t.linear(a), y = t.linear(b);
      const { lower, upper } = t.bounds(linearSub(x, y));
      if (lower !== undefined && nonNegative(lower)) return smaller ? b : a;
      if (upper !== undefined && nonNegative(negated(upper))) return smaller ? a : b;
      if (x.terms.length + y.terms.length === 0) return t.make(dimExpr(smaller ? dimMin(x.constant, y.constant) : dimMax(x.constant, y.constant)));
      return undefined;
    }
    case "lt": return decide(b, a, 1, t);
    case "le": return decide(b, a, 0, t);
    case "gt": return decide(a, b, 1, t);
    case "ge": return decide(a, b, 0, t);
    case "eq": case "ne": {
      if (a === b) return t.make(truth(op === "eq"));
      const { lower, upper } = t.bounds(linearSub(t.linear(a), t.linear(b)));
      const apart = (lower !== undefined && positive(lower)) || (upper !== undefined && positive(negated(upper)));
      return apart ? t.make(truth(op === "ne")) : undefined;
    }
    default: return undefined;
  }
}
const negated = (d: Dim): Dim => dimMul(d, -1);

/** Whether a - b >= least, where bounds tell. */
function decide(a: Expr, b: Expr, least: number, t: Algebra): Expr | undefined {
  const { lower, upper } = t.bounds(linearSub(t.linear(a), t.linear(b)));
  if (lower !== undefined && nonNegative(dimSub(lower, least))) return t.make(truth(true));
  if (upper !== undefined && nonNegative(dimSub(least - 1, upper))) return t.make(truth(false));
  return undefined;
}

/** Division of a sum that is not negative by a positive size, so that truncation is the floor. */
function simplifyDivision(e: Binary, op: "div" | "rem", t: Algebra): Expr | undefined {
  const x = t.linear(e.a), y = t.linear(e.b);
  if (y.terms.length > 0) return undefined;
  const divisor = y.constant;
  if (divisor === 1) return op === "div" ? e.a : t.make(constant(0, i32));
  const { lower } = t.bounds(x);
  if (lower === undefined || !nonNegative(lower)) return undefined;
  if (x.terms.length === 0) {
    if (!positive(divisor)) return undefined;
    return t.make(dimExpr(op === "div" ? dimFloorDiv(x.constant, divisor) : dimMod(x.constant, divisor)));
  }
  const { quotient, rest } = linearSplit(x, divisor);
  const restBounds = t.bounds(rest), quotientBounds = t.bounds(quotient);
  const splits = restBounds.lower !== undefined && nonNegative(restBounds.lower) && quotientBounds.lower !== undefined && nonNegative(quotientBounds.lower);
  if (splits && restBounds.upper !== undefined && nonNegative(dimSub(dimSub(divisor, 1), restBounds.upper))) return t.fromLinear(op === "div" ? quotient : rest);
  if (splits && !isZero(quotient)) {
    const reduced = t.make(binary(op, t.fromLinear(rest), e.b));
    return op === "rem" ? reduced : t.fromLinear(linearAdd(quotient, t.linear(reduced)));
  }
  return nestedDivision(e, op, divisor, t);
}
const isZero = (sum: Linear): boolean => sum.terms.length === 0 && sum.constant === 0;

/** (x / a) / b = x / (a·b); (x mod a·b) mod b = x mod b; (x mod a·b) / b = (x / b) mod a. */
function nestedDivision(e: Binary, op: "div" | "rem", divisor: Dim, t: Algebra): Expr | undefined {
  const inner = e.a;
  if (inner.kind !== "binary" || !isIndex(inner)) return undefined;
  const by = t.linear(inner.b);
  const low = t.bounds(t.linear(inner.a)).lower;
  if (by.terms.length > 0 || low === undefined || !nonNegative(low) || !positive(by.constant) || !positive(divisor)) return undefined;
  if (op === "div" && inner.op === "div") return t.make(binary("div", inner.a, dimExpr(dimMul(by.constant, divisor))));
  if (inner.op !== "rem") return undefined;
  const { quotient, rest } = linearSplit(linearConstant(by.constant), divisor);
  if (!isZero(rest)) return undefined;
  if (op === "rem") return t.make(binary("rem", inner.a, e.b));
  return t.make(binary("rem", t.make(binary("div", inner.a, e.b)), dimExpr(quotient.constant)));
}

function simplifyCast(e: Extract<Expr, { kind: "cast" }>, t: Algebra): Expr | undefined {
  const { a } = e, to = e.type.scalar, from = a.type.scalar;
  if (to === from) return a;
  if (isConst(a)) return t.make(constant(castConstant(a.value, from, to), e.type));
  if (a.kind === "cast") {
    const source = a.a.type.scalar;
    if (source === to && keeps(source, from)) return a.a;
    if (source === "bool" && to !== "bool") return t.make(cast(a.a, to));
  }
  return undefined;
}
/** True where every value of `narrow` survives the way through `wide` and back. */
const keeps = (narrow: Scalar, wide: Scalar): boolean =>
  (narrow === "i32" && (wide === "i64" || wide === "f64")) || (narrow === "u32" && (wide === "i64" || wide === "u64" || wide === "f64")) || (narrow === "f32" && wide === "f64") || narrow === "bool";

function castConstant(value: number | bigint, from: Scalar, to: Scalar): number | bigint {
  if (typeof value === "bigint") {
    if (isWide(to)) return wrapWide(to)(value);
    return castFromWide(to)(value);
  }
  if (isWide(from)) return value;
  return isWide(to) ? castToWide(from, to)(value) : castNumber(from, to)(value);
}

function simplifySelect(e: Extract<Expr, { kind: "select" }>, t: Algebra): Expr | undefined {
  const { condition, a, b } = e;
  if (isConst(condition)) return Number(condition.value) !== 0 ? a : b;
  if (a === b) return a;
  if (condition.kind === "unary" && condition.op === "not") return t.make({ ...e, condition: condition.a, a: b, b: a });
  if (a.kind === "select" && a.condition === condition) return t.make({ ...e, a: a.a });
  if (b.kind === "select" && b.condition === condition) return t.make({ ...e, b: b.b });
  if (e.type.scalar === "bool" && isConst(a) && isConst(b)) return Number(a.value) !== 0 ? condition : t.make({ kind: "unary", op: "not", a: condition, type: bool });
  return undefined;
}

/** A shared i32 expression as a sum of its operands' sums. */
export function linearOf(e: Expr, of: (e: Expr) => Linear): Linear {
  if (isConst(e) && typeof e.value === "number") return linearConstant(e.value);
  if (e.kind === "dim") return linearConstant(e.dim);
  if (e.kind === "binary" && isIndex(e.a)) {
    const x = of(e.a), y = of(e.b);
    if (e.op === "add") return linearAdd(x, y);
    if (e.op === "sub") return linearSub(x, y);
    if (e.op === "mul" && y.terms.length === 0) return linearScale(x, y.constant);
  }
  return linearAtom(e);
}
