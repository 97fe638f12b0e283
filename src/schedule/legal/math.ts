/**
 * Replaces operations that no instruction does by arithmetic: elementary functions (math-f32.ts, math-f64.ts), powers,
 * remainders of floats, and operations that vectors lack, which are done lane by lane.
 */
import { invariant } from "../../core/assert.ts";
import { binary, cast, constant, div, i32, mul, select, unary, type BinaryOp, type Expr, type Scalar, type Type, type UnaryOp } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { mapExpr, mapStmtExprs, someExprOf } from "../../kernel/traverse.ts";
import { acoshF64, acosF64, asinF64, asinhF64, atanF64, atanhF64, cosF64, coshF64, erfF64, expF64, geluF64, logF64, powF32, powF64, remF64, siluF64, sinF64, sinhF64, tanF64, tanhF64 } from "./math-f64.ts";
import { erfF32, expF32, expOfNegativeF32, geluF32, logF32, onePlusErfF32, onePlusExpF32, siluF32, tanhF32 } from "./math-f32.ts";

/** The kernel with only operations that every target has as instructions. Scalars and vectors give the same bits. */
export function legalizeMath(kernel: Kernel): Kernel {
  if (!someExprOf(kernel.body, needsMath)) return kernel;
  const sums = new Map<Expr, Expr>(), memo = new Map<Expr, Expr>();
  return { ...kernel, body: mapStmtExprs(kernel.body, (e) => mapExpr(mapExpr(e, sumNode, sums), legalNode, memo)) };
}

/** Whether an operation has no instruction of its own. */
function needsMath(e: Expr): boolean {
  switch (e.kind) {
    case "unary": return !instructions.has(e.op);
    case "binary": {
      const { scalar, lanes } = e.a.type;
      switch (e.op) {
        case "pow": return true;
        case "rem": return lanes > 1 || scalar === "f32" || scalar === "f64";
        case "div": return lanes > 1 && scalar !== "f32" && scalar !== "f64";
        case "shl": case "shr": return e.b.type.lanes > 1;
        default: return false;
      }
    }
    case "cast": return e.type.lanes > 1 && !hasVectorCast(e.a.type.scalar, e.type.scalar);
    default: return false;
  }
}
const instructions: ReadonlySet<UnaryOp> = new Set<UnaryOp>(["neg", "abs", "sqrt", "floor", "ceil", "trunc", "nearest", "not", "isnan", "isinf"]);

/** Functions of float32 that cost less where they stand: 1 + e^±x, 1 + erf(x). */
function sumNode(e: Expr): Expr {
  if (e.kind !== "binary" || e.op !== "add" || e.type.scalar !== "f32") return e;
  const other = isOne(e.a) ? e.b : isOne(e.b) ? e.a : undefined;
  if (other?.kind !== "unary") return e;
  return other.op === "exp" ? onePlusExpF32(...signed(other.a)) : other.op === "erf" ? onePlusErfF32(other.a) : e;
}
const isOne = (e: Expr): boolean => (e.kind === "splat" ? isOne(e.a) : e.kind === "const" && e.value === 1);
/** x, or what it is the negative of, and the sign. */
const signed = (x: Expr): [Expr, 1 | -1] => (x.kind === "unary" && x.op === "neg" ? [x.a, -1] : [x, 1]);

/** One operation whose operands are legal already. */
function legalNode(e: Expr): Expr {
  if (e.kind === "unary") return legalUnary(e.op, e.a);
  if (e.kind === "binary") return legalBinary(e, e.op, e.a, e.b);
  if (e.kind === "cast" && e.type.lanes > 1 && !hasVectorCast(e.a.type.scalar, e.type.scalar)) return byLanes(e.type, [e.a], ([x]) => cast(x ?? e.a, e.type.scalar));
  return e;
}

function legalUnary(op: UnaryOp, a: Expr): Expr {
  const original = unary(op, a);
  switch (op) {
    case "neg": case "abs": case "sqrt": case "floor": case "ceil": case "trunc": case "nearest": case "not": case "isnan": case "isinf": return original;
    default:
  }
  if (a.type.scalar === "f32") {
    switch (op) {
      case "exp": return expF32(...signed(a));
      case "decay": return expOfNegativeF32(a);
      case "log": return logF32(a);
      case "tanh": return tanhF32(a);
      case "erf": return erfF32(a);
      case "gelu": return geluF32(a);
      case "silu": return siluF32(a);
      default: return byLanes(a.type, [a], ([x]) => cast(functionF64(op)(cast(x ?? a, "f64"), true), "f32"));
    }
  }
  return byLanes(a.type, [a], ([x]) => functionF64(op)(x ?? a));
}

type Transcendental = Exclude<UnaryOp, "neg" | "abs" | "sqrt" | "floor" | "ceil" | "trunc" | "nearest" | "not" | "isnan" | "isinf">;
/** A function of float64; `single` says that the argument is a float32 value. */
function functionF64(op: Transcendental): (x: Expr, single?: boolean) => Expr {
  switch (op) {
    case "exp": case "decay": return expF64;
    case "log": return logF64;
    case "tanh": return tanhF64;
    case "erf": return erfF64;
    case "gelu": return geluF64;
    case "silu": return siluF64;
    case "sin": return sinF64;
    case "cos": return cosF64;
    case "tan": return tanF64;
    case "asin": return asinF64;
    case "acos": return acosF64;
    case "atan": return atanF64;
    case "sinh": return sinhF64;
    case "cosh": return coshF64;
    case "asinh": return asinhF64;
    case "acosh": return acoshF64;
    case "atanh": return atanhF64;
  }
}

function legalBinary(e: Expr, op: BinaryOp, a: Expr, b: Expr): Expr {
  const { type } = a;
  const float = type.scalar === "f32" || type.scalar === "f64";
  if (op === "pow") {
    invariant(float, `pow of ${type.scalar}`);
    return floatPower(a, b);
  }
  if (op === "rem" && float) return byLanes(type, [a, b], ([x, y]) => cast(remF64(cast(x ?? a, "f64"), cast(y ?? b, "f64")), type.scalar));
  if ((op === "div" || op === "rem") && !float && type.lanes > 1) return byLanes(type, [a, b], ([x, y]) => binary(op, x ?? a, y ?? b));
  if ((op === "shl" || op === "shr") && b.type.lanes > 1) {
    if (b.kind === "const") return { kind: "binary", op, a, b: constant(Number(b.value), i32), type };
    if (b.kind === "splat" && b.type.scalar === "i32") return { kind: "binary", op, a, b: b.a, type };
    return byLanes(type, [a, b], ([x, y]) => binary(op, x ?? a, y ?? b));
  }
  return e;
}

function floatPower(a: Expr, b: Expr): Expr {
  const exponent = b.kind === "const" ? Number(b.value) : b.kind === "splat" && b.a.kind === "const" ? Number(b.a.value) : undefined;
  switch (exponent) {
    case 1: return a;
    case 2: return mul(a, a);
    case 3: return mul(mul(a, a), a);
    case -1: return div(constant(1, a.type), a);
    // pow(-∞, ½) is +∞ and pow(-0, ½) is +0.
    case 0.5: return select(binary("eq", a, constant(-Infinity, a.type)), constant(Infinity, a.type), unary("sqrt", binary("add", a, constant(0, a.type))));
    default: return byLanes(a.type, [a, b], ([x, y]) => (a.type.scalar === "f64" ? powF64(x ?? a, y ?? b) : cast(powF32(cast(x ?? a, "f64"), cast(y ?? b, "f64")), "f32")));
  }
}

/** Applies `f` to scalars, or to every lane. */
function byLanes(type: Type, operands: readonly Expr[], f: (operands: readonly Expr[]) => Expr): Expr {
  if (type.lanes === 1) return f(operands);
  const elements = Array.from({ length: type.lanes }, (_, lane) => f(operands.map((o): Expr => (o.kind === "splat" ? o.a : o.kind === "const" ? constant(o.value, { scalar: o.type.scalar, lanes: 1 }) : { kind: "extract", a: o, lane, type: { scalar: o.type.scalar, lanes: 1 } }))));
  return { kind: "lanes", elements, type };
}

/** Whether vectors of 4 or more lanes convert with instructions. */
function hasVectorCast(from: Scalar, to: Scalar): boolean {
  if (from === to || from === "bool" || to === "bool") return true;
  const words: readonly Scalar[] = ["i32", "u32", "f32"];
  return (words.includes(from) && words.includes(to)) || (sameWidth(from, to));
}
const sameWidth = (a: Scalar, b: Scalar): boolean => [["i8", "u8"], ["i16", "u16"], ["i64", "u64"]].some((pair) => pair.includes(a) && pair.includes(b));
