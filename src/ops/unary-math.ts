/** Unary mathematical functions. */
import { dimMax, dimMul, type Dim } from "../core/dim.ts";
import { isFloat, type DType } from "../core/dtype.ts";
import * as evaluate from "../evaluate/unary-math.ts";
import type { OpDef } from "../graph/op.ts";
import { div, ge, gt, le, lift, lt, select, unary, type Expr, type UnaryOp } from "../kernel/expr.ts";
import { unaryOp } from "./element-wise.ts";

/** What is known to be whole stays. */
const whole = (x: Dim): Dim => x;
/** Kernels of float64 lose the digits of large angles; the host does not. */
const notDouble = (dtype: DType): boolean => dtype !== "float64";
const by = (op: UnaryOp) => (x: Expr): Expr => unary(op, x);

export const Exp: OpDef = unaryOp("Exp", 6, "float", evaluate.Exp, by("exp"));
export const Log: OpDef = unaryOp("Log", 6, "float", evaluate.Log, by("log"));
export const Sqrt: OpDef = unaryOp("Sqrt", 6, "float", evaluate.Sqrt, by("sqrt"));
export const Reciprocal: OpDef = unaryOp("Reciprocal", 6, "float", evaluate.Reciprocal, (x) => div(1, x));
/** Of an integer, truncated: float64's erf is 1 from 6 on. */
export const Erf: OpDef = unaryOp("Erf", 9, "numeric", evaluate.Erf, (x, dtype) => (isFloat(dtype) ? unary("erf", x) : select(ge(x, 6), 1, dtype.startsWith("uint") ? lift(0, x.type) : select(le(x, -6), -1, lift(0, x.type)))), () => undefined);
export const Floor: OpDef = unaryOp("Floor", 6, "float", evaluate.Floor, by("floor"), whole);
export const Ceil: OpDef = unaryOp("Ceil", 6, "float", evaluate.Ceil, by("ceil"), whole);
export const Round: OpDef = unaryOp("Round", 11, "float", evaluate.Round, by("nearest"), whole);
export const Sin: OpDef = unaryOp("Sin", 7, "float", evaluate.Sin, by("sin"), undefined, notDouble);
export const Cos: OpDef = unaryOp("Cos", 7, "float", evaluate.Cos, by("cos"), undefined, notDouble);
export const Tan: OpDef = unaryOp("Tan", 7, "float", evaluate.Tan, by("tan"), undefined, notDouble);
export const Asin: OpDef = unaryOp("Asin", 7, "float", evaluate.Asin, by("asin"));
export const Acos: OpDef = unaryOp("Acos", 7, "float", evaluate.Acos, by("acos"));
export const Atan: OpDef = unaryOp("Atan", 7, "float", evaluate.Atan, by("atan"));
export const Sinh: OpDef = unaryOp("Sinh", 9, "float", evaluate.Sinh, by("sinh"));
export const Cosh: OpDef = unaryOp("Cosh", 9, "float", evaluate.Cosh, by("cosh"));
export const Asinh: OpDef = unaryOp("Asinh", 9, "float", evaluate.Asinh, by("asinh"));
export const Acosh: OpDef = unaryOp("Acosh", 9, "float", evaluate.Acosh, by("acosh"));
export const Atanh: OpDef = unaryOp("Atanh", 9, "float", evaluate.Atanh, by("atanh"));
export const Tanh: OpDef = unaryOp("Tanh", 6, "float", evaluate.Tanh, by("tanh"));
export const Neg: OpDef = unaryOp("Neg", 6, "signed", evaluate.Neg, by("neg"), (x) => dimMul(-1, x));
/** Unsigned values stay. */
export const Abs: OpDef = unaryOp("Abs", 6, "numeric", evaluate.Abs, (x, dtype) => (dtype.startsWith("uint") ? x : unary("abs", x)), (x) => dimMax(x, dimMul(-1, x)));
/** NaN and zeros of either sign stay. */
export const Sign: OpDef = unaryOp("Sign", 9, "numeric", evaluate.Sign, (x, dtype) => select(gt(x, 0), 1, isFloat(dtype) || !dtype.startsWith("uint") ? select(lt(x, 0), -1, x) : x));
