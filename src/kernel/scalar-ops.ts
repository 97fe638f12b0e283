/**
 * The arithmetic of the kernel language on single values, as the header of expr.ts defines it: what the interpreter
 * executes and what constant folding must agree with. i64 and u64 are bigints, every other scalar is a number
 * (bool 0 or 1, u32 not negative). Results are rounded or wrapped to the scalar type.
 */
import { assertNever, invariant } from "../core/assert.ts";
import type { BinaryOp, Scalar, UnaryOp } from "./expr.ts";

export type NumberScalar = Exclude<Scalar, "i64" | "u64">;
export type WideScalar = "i64" | "u64";
export const isWide = (s: Scalar): s is WideScalar => s === "i64" || s === "u64";
export const isFloatScalar = (s: Scalar): s is "f32" | "f64" => s === "f32" || s === "f64";

/** Rounds or wraps a number to a scalar type. Integers given to integer types wrap. */
export function roundNumber(s: NumberScalar): (x: number) => number {
  switch (s) {
    case "f32": return Math.fround;
    case "f64": return (x) => x;
    case "i32": return (x) => x | 0;
    case "u32": return (x) => x >>> 0;
    case "i16": return (x) => (x << 16) >> 16;
    case "u16": return (x) => x & 0xffff;
    case "i8": return (x) => (x << 24) >> 24;
    case "u8": return (x) => x & 0xff;
    case "bool": return (x) => (x !== 0 ? 1 : 0);
    default: return assertNever(s);
  }
}
/** Wraps a bigint to 64 bits. */
export const wrapWide = (s: WideScalar): ((x: bigint) => bigint) => (s === "i64" ? (x) => BigInt.asIntN(64, x) : (x) => BigInt.asUintN(64, x));

export function numberUnary(op: UnaryOp, s: NumberScalar): (x: number) => number {
  const round = roundNumber(s);
  switch (op) {
    case "neg": return (x) => round(-x);
    case "abs": return s === "f32" || s === "f64" ? Math.abs : (x) => round(Math.abs(x));
    case "not": return s === "bool" ? (x) => (x === 0 ? 1 : 0) : (x) => round(~x);
    case "isnan": return (x) => (Number.isNaN(x) ? 1 : 0);
    case "isinf": return (x) => (x === Infinity || x === -Infinity ? 1 : 0);
    default: {
      invariant(isFloatScalar(s), `${op} of ${s}`);
      const f = floatFunction(op);
      return (x) => round(f(x));
    }
  }
}
function floatFunction(op: Exclude<UnaryOp, "neg" | "abs" | "not" | "isnan" | "isinf">): (x: number) => number {
  switch (op) {
    case "sqrt": return Math.sqrt;
    case "floor": return Math.floor;
    case "ceil": return Math.ceil;
    case "trunc": return Math.trunc;
    case "nearest": return nearestEven;
    case "exp": case "decay": return Math.exp;
    case "log": return Math.log;
    case "tanh": return Math.tanh;
    case "erf": return erf;
    case "gelu": return gelu;
    case "silu": return silu;
    case "sin": return Math.sin;
    case "cos": return Math.cos;
    case "tan": return Math.tan;
    case "asin": return Math.asin;
    case "acos": return Math.acos;
    case "atan": return Math.atan;
    case "sinh": return Math.sinh;
    case "cosh": return Math.cosh;
    case "asinh": return Math.asinh;
    case "acosh": return Math.acosh;
    case "atanh": return Math.atanh;
    default: return assertNever(op);
  }
}

/** Rounds half to even; keeps the sign of zero. */
export function nearestEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  const rounded = rest < 0.5 ? floor : rest > 0.5 ? floor + 1 : floor % 2 === 0 ? floor : floor + 1;
  return rounded === 0 && (x < 0 || Object.is(x, -0)) ? -0 : Number.isFinite(x) ? rounded : x;
}

/** erf by the series 2/√π·e^(−x²)·Σ 2ⁿx^(2n+1)/(2n+1)!!, all of whose terms have one sign. */
export function erf(x: number): number {
  if (Number.isNaN(x) || x === 0) return x;
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  let term = a, sum = a;
  for (let n = 1; term > sum * 1e-18; n++) {
    term *= (2 * a * a) / (2 * n + 1);
    sum += term;
  }
  return Math.sign(x) * Math.min(1, (2 / Math.sqrt(Math.PI)) * Math.exp(-a * a) * sum);
}

/** x·(1 + erf(x/√2))/2 */
const silu = (x: number): number => x / (1 + Math.exp(-x));
const gelu = (x: number): number => x * 0.5 * (1 + erf(x * Math.SQRT1_2));

export function wideUnary(op: UnaryOp, s: WideScalar): (x: bigint) => bigint {
  const wrap = wrapWide(s);
  switch (op) {
    case "neg": return (x) => wrap(-x);
    case "abs": return (x) => wrap(x < 0n ? -x : x);
    case "not": return (x) => wrap(~x);
    default: return invariant(false, `${op} of ${s}`) as never;
  }
}

/** Comparisons give 0 or 1; the other operations give a value of the operands' scalar. */
export function numberBinary(op: BinaryOp, s: NumberScalar): (a: number, b: number) => number {
  const round = roundNumber(s);
  const float = isFloatScalar(s);
  switch (op) {
    case "add": return (a, b) => round(a + b);
    case "sub": return (a, b) => round(a - b);
    case "mul": return float ? (a, b) => round(a * b) : (a, b) => round(Math.imul(a, b));
    case "div": return float ? (a, b) => round(a / b) : (a, b) => (b === 0 ? 0 : round(Math.trunc(a / b)));
    case "rem": return float ? (a, b) => round(a % b) : (a, b) => (b === 0 ? 0 : round(a % b));
    case "min": return Math.min;
    case "max": return Math.max;
    case "pmin": return (a, b) => (b < a ? b : a);
    case "pmax": return (a, b) => (a < b ? b : a);
    case "pow": return float ? (a, b) => round(floatPower(a, b)) : (a, b) => round(Number(BigInt.asIntN(32, integerPower(BigInt(a), BigInt(b)))));
    case "and": return (a, b) => round(a & b);
    case "or": return (a, b) => round(a | b);
    case "xor": return (a, b) => round(a ^ b);
    case "shl": return (a, b) => round(a << shiftCount(s, b));
    case "shr": return s === "u32" ? (a, b) => a >>> shiftCount(s, b) : (a, b) => round(a >> shiftCount(s, b));
    case "eq": case "ne": case "lt": case "le": case "gt": case "ge": return comparison<number>(op);
    default: return assertNever(op);
  }
}
const shiftCount = (s: NumberScalar, b: number): number => b & (s === "i8" || s === "u8" ? 7 : s === "i16" || s === "u16" ? 15 : 31);

function comparison<T extends number | bigint>(op: "eq" | "ne" | "lt" | "le" | "gt" | "ge"): (a: T, b: T) => number {
  switch (op) {
    case "eq": return (a, b) => (a === b ? 1 : 0);
    case "ne": return (a, b) => (a !== b ? 1 : 0);
    case "lt": return (a, b) => (a < b ? 1 : 0);
    case "le": return (a, b) => (a <= b ? 1 : 0);
    case "gt": return (a, b) => (a > b ? 1 : 0);
    case "ge": return (a, b) => (a >= b ? 1 : 0);
    default: return assertNever(op);
  }
}

/** A comparison of 64-bit integers, or undefined when `op` is none. */
export function wideCompare(op: BinaryOp): ((a: bigint, b: bigint) => number) | undefined {
  switch (op) {
    case "eq": case "ne": case "lt": case "le": case "gt": case "ge": return comparison<bigint>(op);
    default: return undefined;
  }
}
export function wideBinary(op: BinaryOp, s: WideScalar): (a: bigint, b: bigint) => bigint {
  const wrap = wrapWide(s);
  switch (op) {
    case "add": return (a, b) => wrap(a + b);
    case "sub": return (a, b) => wrap(a - b);
    case "mul": return (a, b) => wrap(a * b);
    case "div": return (a, b) => (b === 0n ? 0n : wrap(a / b));
    case "rem": return (a, b) => (b === 0n ? 0n : a % b);
    case "min": case "pmin": return (a, b) => (b < a ? b : a);
    case "max": case "pmax": return (a, b) => (a < b ? b : a);
    case "pow": return (a, b) => wrap(integerPower(a, b));
    case "and": return (a, b) => a & b;
    case "or": return (a, b) => a | b;
    case "xor": return (a, b) => a ^ b;
    case "shl": return (a, b) => wrap(a << (b & 63n));
    case "shr": return (a, b) => a >> (b & 63n);
    default: return invariant(false, `${op} of ${s} is a comparison`) as never;
  }
}

/** C's pow, which differs from JavaScript's where the base is ±1. */
const floatPower = (a: number, b: number): number => (a === 1 || (a === -1 && (b === Infinity || b === -Infinity)) ? 1 : a ** b);

/** aᵇ modulo 2⁶⁴. A negative exponent gives 0, except that 1⁻ⁿ is 1 and (−1)⁻ⁿ is ±1. */
function integerPower(a: bigint, b: bigint): bigint {
  if (b < 0n) return a === 1n ? 1n : a === -1n ? (b % 2n === 0n ? 1n : -1n) : 0n;
  let result = 1n, base = a, left = b;
  while (left > 0n) {
    if (left & 1n) result = BigInt.asIntN(64, result * base);
    base = BigInt.asIntN(64, base * base);
    left >>= 1n;
  }
  return result;
}

/** number → number conversions. */
export function castNumber(from: NumberScalar, to: NumberScalar): (x: number) => number {
  if (to === "bool") return (x) => (x !== 0 ? 1 : 0);
  if (!isFloatScalar(from) || isFloatScalar(to)) return roundNumber(to);
  const [low, high] = integerRange(to);
  return (x) => (Number.isNaN(x) ? 0 : x <= low ? low : x >= high ? high : Math.trunc(x) + 0);
}
export function integerRange(s: Exclude<NumberScalar, "f32" | "f64" | "bool">): readonly [number, number] {
  switch (s) {
    case "i32": return [-(2 ** 31), 2 ** 31 - 1];
    case "u32": return [0, 2 ** 32 - 1];
    case "i16": return [-32768, 32767];
    case "u16": return [0, 65535];
    case "i8": return [-128, 127];
    case "u8": return [0, 255];
    default: return assertNever(s);
  }
}
/** number → 64-bit integer. */
export function castToWide(from: NumberScalar, to: WideScalar): (x: number) => bigint {
  if (!isFloatScalar(from)) return (x) => wrapWide(to)(BigInt(x));
  const [low, high] = to === "i64" ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
  return (x) => {
    if (Number.isNaN(x)) return 0n;
    if (!Number.isFinite(x)) return x < 0 ? low : high;
    const whole = BigInt(Math.trunc(x));
    return whole < low ? low : whole > high ? high : whole;
  };
}
/** 64-bit integer → number; to f32 with a single rounding. */
export function castFromWide(to: NumberScalar): (x: bigint) => number {
  if (to === "bool") return (x) => (x !== 0n ? 1 : 0);
  if (to === "f64") return Number;
  if (to === "f32") return wideToFloat32;
  const round = roundNumber(to);
  return (x) => round(Number(BigInt.asIntN(32, x)));
}
function wideToFloat32(x: bigint): number {
  const a = x < 0n ? -x : x;
  if (a < 2n ** 53n) return Math.fround(Number(x));
  // Keeps 40 or more leading bits and a sticky bit, so that the conversion to f64 is exact and f32 rounds once.
  const sticky = (a >> 24n) | ((a & 0xffffffn) !== 0n ? 1n : 0n);
  return Math.fround((x < 0n ? -1 : 1) * Number(sticky) * 2 ** 24);
}
