/**
 * The kernel language's expressions: typed, immutable, acyclic. Values are computed in one of the scalar types;
 * narrower dtypes are storage only: a load widens, a store rounds once.
 *
 * Semantics, for interpreter and every backend alike. Integers wrap. Integer `div` truncates toward zero and `rem` has
 * the sign of the dividend; dividing by zero gives 0 for both (never a trap). f32 operations round to f32 after each
 * operation. `min`/`max` propagate NaN and order -0 < +0 (as WebAssembly's). `pmin(a,b)` is `b < a ? b : a` and
 * `pmax(a,b)` is `a < b ? b : a`. Comparisons give `bool`; as lanes, a bool is a mask. `select` evaluates only the
 * chosen side when scalar. Casts float → integer saturate, NaN gives 0. `nearest` rounds half to even. A vector may be
 * shifted by a scalar i32 count. `pow` of floats is C's (1 for exponent 0 and for base 1); of integers it wraps.
 * `decay` is `exp` of what is at most 0, or NaN; of other values nothing is said. `gelu(x)` is x·(1 + erf(x/√2))/2.
 */
import type { Container } from "../core/container.ts";
import type { Dim } from "../core/dim.ts";
import { isSymbolic } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { invariant } from "../core/assert.ts";

export type Scalar = "bool" | "i8" | "u8" | "i16" | "u16" | "i32" | "u32" | "i64" | "u64" | "f32" | "f64";
/** i8, u8, i16 and u16 exist only as lanes of vectors (16 or 8 of them). */
export interface Type { readonly scalar: Scalar; readonly lanes: 1 | 2 | 4 | 8 | 16 }

/** A loop variable. Its identity is the object; `name` is for printing. Its values are at least 0 and below `extent`. */
export interface Axis { readonly name: string; readonly extent: Dim }

/** A region of memory a kernel reads or writes, addressed by logical indices. Identity is the object. */
export interface Buffer {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly Dim[];
  /** A sequence, an optional or a map. Kernels never read or write one, nor strings: only host steps and control flow do. */
  readonly container?: Container;
}

export type UnaryOp =
  | "neg" | "abs" | "sqrt" | "floor" | "ceil" | "trunc" | "nearest" | "not"
  | "exp" | "decay" | "log" | "tanh" | "erf" | "gelu" | "silu" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan"
  | "sinh" | "cosh" | "asinh" | "acosh" | "atanh" | "isnan" | "isinf";
export type BinaryOp =
  | "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "pmin" | "pmax" | "pow"
  | "and" | "or" | "xor" | "shl" | "shr" | "eq" | "ne" | "lt" | "le" | "gt" | "ge";
/** A fold with `pmax` from -∞ passes over NaN, which costs less than `max`: for folds whose users meet the NaN elsewhere. */
export type ReduceOp = "add" | "mul" | "max" | "min" | "pmax";

export type Expr = { readonly type: Type } & (
  | { readonly kind: "const"; readonly value: number | bigint }
  /** The value of a loop variable (i32). */
  | { readonly kind: "axis"; readonly axis: Axis }
  /** A size known when the program runs (i32). */
  | { readonly kind: "dim"; readonly dim: Dim }
  /** A named value bound by a `let`. */
  | { readonly kind: "local"; readonly name: string }
  /**
   * One element at logical indices, or, with `along`, `type.lanes` consecutive ones: lane l reads at `indices`
   * with l added to index `along`. bool and integers of up to 16 bits widen to i32 (bool to bool), floats of up to 16 to f32.
   */
  | { readonly kind: "load"; readonly buffer: Buffer; readonly indices: readonly Expr[]; readonly along?: number }
  /** The byte address of an element (i32). */
  | { readonly kind: "address"; readonly buffer: Buffer; readonly indices: readonly Expr[] }
  /**
   * Memory of `dtype` at `pointer` + `offset` bytes. `splat` reads one element into every lane; otherwise
   * `type.lanes` consecutive elements. dtype widens to `type.scalar` (i8/u8/i16/u16 lanes read their own dtype).
   */
  | { readonly kind: "loadAt"; readonly pointer: Expr; readonly offset: number; readonly dtype: DType; readonly splat: boolean }
  | { readonly kind: "unary"; readonly op: UnaryOp; readonly a: Expr }
  | { readonly kind: "binary"; readonly op: BinaryOp; readonly a: Expr; readonly b: Expr }
  | { readonly kind: "select"; readonly condition: Expr; readonly a: Expr; readonly b: Expr }
  | { readonly kind: "cast"; readonly a: Expr }
  /** The same bits as another type of equal width. */
  | { readonly kind: "bitcast"; readonly a: Expr }
  /** a·b + c. `relaxed` may round once or twice, as the engine likes; otherwise twice. */
  | { readonly kind: "madd"; readonly a: Expr; readonly b: Expr; readonly c: Expr; readonly relaxed: boolean }
  | { readonly kind: "splat"; readonly a: Expr }
  /** A vector from `type.lanes` scalars. */
  | { readonly kind: "lanes"; readonly elements: readonly Expr[] }
  | { readonly kind: "extract"; readonly a: Expr; readonly lane: number }
  /** Bytes picked from the 32 bytes of a then b; 16 indices. */
  | { readonly kind: "shuffle"; readonly a: Expr; readonly b: Expr; readonly bytes: readonly number[] }
  /** The bytes of a that the lanes of b, an i8x16, name by their number; 0 where that is below 0 or above 15. */
  | { readonly kind: "swizzle"; readonly a: Expr; readonly b: Expr }
  /** i32x4 of pairwise sums of products of i16x8 lanes (i32x4.dot_i16x8_s). */
  | { readonly kind: "dot"; readonly a: Expr; readonly b: Expr }
  /** i32x4 c plus, lane by lane, the sum of four products of i8x16 lanes; those of b are not negative. Only where the engine is `relaxed`. */
  | { readonly kind: "byteDot"; readonly a: Expr; readonly b: Expr; readonly c: Expr }
  /** Whether the engine has relaxed SIMD (bool): kernels that do better with its instructions have a way for either. */
  | { readonly kind: "relaxed" }
  /** The low or high half of a's lanes, each twice as wide: i8→i16, u8→u16 or i16, i16→i32, u16→u32. */
  | { readonly kind: "extend"; readonly a: Expr; readonly half: "low" | "high" }
  /** Naive kernels only: folds `body` over `axes`, starting from `init`. Scheduling turns it into loops. */
  | { readonly kind: "reduce"; readonly op: ReduceOp; readonly axes: readonly Axis[]; readonly init: Expr; readonly body: Expr }
);

export const scalarType = (scalar: Scalar): Type => ({ scalar, lanes: 1 });
export const f32 = scalarType("f32"), f64 = scalarType("f64"), i32 = scalarType("i32"), i64 = scalarType("i64"), bool = scalarType("bool");
export const f32x4: Type = { scalar: "f32", lanes: 4 }, i32x4: Type = { scalar: "i32", lanes: 4 };
export const i16x8: Type = { scalar: "i16", lanes: 8 }, i8x16: Type = { scalar: "i8", lanes: 16 };

/** The scalar type that elements of a dtype are computed in. */
export function computeScalar(dtype: DType): Scalar {
  switch (dtype) {
    case "float32": case "float16": case "bfloat16":
    case "float8e4m3fn": case "float8e4m3fnuz": case "float8e5m2": case "float8e5m2fnuz": case "float8e8m0": case "float4e2m1":
      return "f32";
    case "float64": return "f64";
    case "int8": case "int16": case "int32": case "uint8": case "uint16": case "int4": case "uint4": case "int2": case "uint2": return "i32";
    case "uint32": return "u32";
    case "int64": return "i64";
    case "uint64": return "u64";
    case "bool": return "bool";
    case "string": return invariant(false, "strings are not computed in kernels") as never;
  }
}

/** What the builders below accept where an expression is expected: a number takes the other operand's type. */
export type ExprLike = Expr | number | bigint;

/** A constant, rounded to f32 where that is its type. */
export const constant = (value: number | bigint, type: Type): Expr => ({ kind: "const", value: type.scalar === "f32" ? Math.fround(Number(value)) : value, type });
export const axisOf = (axis: Axis): Expr => ({ kind: "axis", axis, type: i32 });
/** A size as an i32 expression. */
export const dimExpr = (dim: Dim): Expr => (isSymbolic(dim) ? { kind: "dim", dim, type: i32 } : constant(dim, i32));
export const local = (name: string, type: Type): Expr => ({ kind: "local", name, type });
/** Lifts a number to a constant of the given type. */
export const lift = (x: ExprLike, type: Type = i32): Expr => (typeof x === "object" ? x : constant(type.scalar === "i64" || type.scalar === "u64" ? BigInt(x) : x, type));
/** Lifts an index: number or Dim to i32. */
export const index = (x: Expr | Dim): Expr => (typeof x === "number" || x.kind === "dim" && !("type" in x) ? dimExpr(x as Dim) : (x as Expr));

export const load = (buffer: Buffer, indices: readonly Expr[]): Expr => {
  invariant(indices.length === buffer.shape.length, `${buffer.name} has rank ${buffer.shape.length}, got ${indices.length} indices`);
  return { kind: "load", buffer, indices, type: scalarType(computeScalar(buffer.dtype)) };
};

export const unary = (op: UnaryOp, a: Expr): Expr => ({ kind: "unary", op, a, type: op === "isnan" || op === "isinf" ? { scalar: "bool", lanes: a.type.lanes } : a.type });
const comparisons: ReadonlySet<BinaryOp> = new Set<BinaryOp>(["eq", "ne", "lt", "le", "gt", "ge"]);
export function binary(op: BinaryOp, a: ExprLike, b: ExprLike): Expr {
  const typed = typeof a === "object" ? a : typeof b === "object" ? b : undefined;
  const type = typed?.type ?? i32;
  const x = lift(a, type), y = lift(b, type);
  invariant(x.type.scalar === y.type.scalar && x.type.lanes === y.type.lanes, `${op} of ${formatType(x.type)} and ${formatType(y.type)}`);
  return { kind: "binary", op, a: x, b: y, type: comparisons.has(op) ? { scalar: "bool", lanes: x.type.lanes } : x.type };
}
export const add = (a: ExprLike, b: ExprLike): Expr => binary("add", a, b);
export const sub = (a: ExprLike, b: ExprLike): Expr => binary("sub", a, b);
export const mul = (a: ExprLike, b: ExprLike): Expr => binary("mul", a, b);
export const div = (a: ExprLike, b: ExprLike): Expr => binary("div", a, b);
export const rem = (a: ExprLike, b: ExprLike): Expr => binary("rem", a, b);
export const min = (a: ExprLike, b: ExprLike): Expr => binary("min", a, b);
export const max = (a: ExprLike, b: ExprLike): Expr => binary("max", a, b);
export const lt = (a: ExprLike, b: ExprLike): Expr => binary("lt", a, b);
export const le = (a: ExprLike, b: ExprLike): Expr => binary("le", a, b);
export const gt = (a: ExprLike, b: ExprLike): Expr => binary("gt", a, b);
export const ge = (a: ExprLike, b: ExprLike): Expr => binary("ge", a, b);
export const eq = (a: ExprLike, b: ExprLike): Expr => binary("eq", a, b);
export const and = (a: ExprLike, b: ExprLike): Expr => binary("and", a, b);
export const or = (a: ExprLike, b: ExprLike): Expr => binary("or", a, b);
export const exp = (a: Expr): Expr => unary("exp", a);
/** e^a of an `a` that is never above 0. */
export const decay = (a: Expr): Expr => unary("decay", a);
export const sqrt = (a: Expr): Expr => unary("sqrt", a);
export const neg = (a: Expr): Expr => unary("neg", a);

/** condition ? a : b; numbers take the other side's type. */
export function select(condition: Expr, a: ExprLike, b: ExprLike): Expr {
  const type = typeof a === "object" ? a.type : typeof b === "object" ? b.type : i32;
  return { kind: "select", condition, a: lift(a, type), b: lift(b, type), type };
}
export const cast = (a: Expr, scalar: Scalar): Expr => (a.type.scalar === scalar ? a : { kind: "cast", a, type: { scalar, lanes: a.type.lanes } });
/** Every lane shifted by the same constant. */
export const shift = (op: "shl" | "shr", a: Expr, by: number): Expr => ({ kind: "binary", op, a, b: constant(by, i32), type: a.type });
export const bitcast = (a: Expr, type: Type): Expr => ({ kind: "bitcast", a, type });
export const madd = (a: Expr, b: Expr, c: Expr, relaxed = true): Expr => ({ kind: "madd", a, b, c, relaxed, type: c.type });
/** c + the sums of four products of bytes each; those of b are of 7 bits. */
export const byteDot = (a: Expr, b: Expr, c: Expr): Expr => ({ kind: "byteDot", a, b, c, type: c.type });
/** Whether the engine has relaxed SIMD. */
export const relaxedEngine: Expr = { kind: "relaxed", type: bool };
export const splat = (a: Expr, lanes: Type["lanes"]): Expr => ({ kind: "splat", a, type: { scalar: a.type.scalar, lanes } });

/** Axes for a reduction, that no other one has. */
export const freshAxes = (extents: readonly Dim[]): readonly Axis[] => extents.map((extent, i): Axis => ({ name: `r${i}`, extent }));

/** Naive reduction of `body(...axes)` over fresh axes of the given extents. */
export const reduce = (op: ReduceOp, extents: readonly Dim[], body: (...k: Expr[]) => Expr, init?: ExprLike): Expr => reduceOver(op, freshAxes(extents), body, init);

/**
 * Naive reduction over given axes. An element function that is asked for several elements and reduces over the same axes
 * each time reads the same elements of its operands, which are then lowered once.
 */
export function reduceOver(op: ReduceOp, axes: readonly Axis[], body: (...k: Expr[]) => Expr, init?: ExprLike): Expr {
  const value = body(...axes.map(axisOf));
  return { kind: "reduce", op, axes, body: value, init: init === undefined ? reduceIdentity(op, value.type) : lift(init, value.type), type: value.type };
}
export const sum = (extents: readonly Dim[], body: (...k: Expr[]) => Expr): Expr => reduce("add", extents, body);

/** The neutral element of a reduction. */
export function reduceIdentity(op: ReduceOp, type: Type): Expr {
  const { scalar } = type;
  const wide = scalar === "i64" || scalar === "u64";
  switch (op) {
    case "add": return constant(wide ? 0n : 0, type);
    case "mul": return constant(wide ? 1n : 1, type);
    case "max": case "pmax": return constant(lowest(scalar), type);
    case "min": return constant(highest(scalar), type);
  }
}
function lowest(s: Scalar): number | bigint {
  switch (s) {
    case "f32": case "f64": return -Infinity;
    case "i64": return -(2n ** 63n);
    case "u64": return 0n;
    case "i32": return -(2 ** 31);
    case "i16": return -32768;
    case "i8": return -128;
    case "u32": case "u16": case "u8": case "bool": return 0;
  }
}
function highest(s: Scalar): number | bigint {
  switch (s) {
    case "f32": case "f64": return Infinity;
    case "i64": return 2n ** 63n - 1n;
    case "u64": return 2n ** 64n - 1n;
    case "i32": return 2 ** 31 - 1;
    case "u32": return 2 ** 32 - 1;
    case "i16": return 32767;
    case "u16": return 65535;
    case "i8": return 127;
    case "u8": return 255;
    case "bool": return 1;
  }
}

export const formatType = (t: Type): string => (t.lanes === 1 ? t.scalar : `${t.scalar}x${t.lanes}`);
