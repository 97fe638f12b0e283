/** Evaluation of unary mathematical functions, element by element in float64. */
import type { Evaluate } from "../core/evaluate.ts";
import { erf } from "./erf.ts";
import { input, mapElements, mapNumbers } from "./map-elements.ts";

const floatFunction = (f: (x: number) => number): Evaluate => (inputs) => [mapNumbers(input(inputs, 0), f)];
const numericFunction = (float: (x: number) => number, integer: (x: bigint) => bigint): Evaluate => (inputs) => [mapElements(input(inputs, 0), float, integer)];

/** Half to even, keeping the sign of zero. */
function roundHalfEven(x: number): number {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 52) return x;
  const floor = Math.floor(x), rest = x - floor;
  const y = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
  return y === 0 && (x < 0 || Object.is(x, -0)) ? -0 : y;
}

export const Exp: Evaluate = floatFunction(Math.exp);
export const Log: Evaluate = floatFunction(Math.log);
export const Sqrt: Evaluate = floatFunction(Math.sqrt);
export const Reciprocal: Evaluate = floatFunction((x) => 1 / x);
/** Of integers, truncated. */
export const Erf: Evaluate = floatFunction(erf);
export const Floor: Evaluate = floatFunction(Math.floor);
export const Ceil: Evaluate = floatFunction(Math.ceil);
export const Round: Evaluate = floatFunction(roundHalfEven);
export const Sin: Evaluate = floatFunction(Math.sin);
export const Cos: Evaluate = floatFunction(Math.cos);
export const Tan: Evaluate = floatFunction(Math.tan);
export const Asin: Evaluate = floatFunction(Math.asin);
export const Acos: Evaluate = floatFunction(Math.acos);
export const Atan: Evaluate = floatFunction(Math.atan);
export const Sinh: Evaluate = floatFunction(Math.sinh);
export const Cosh: Evaluate = floatFunction(Math.cosh);
export const Asinh: Evaluate = floatFunction(Math.asinh);
export const Acosh: Evaluate = floatFunction(Math.acosh);
export const Atanh: Evaluate = floatFunction(Math.atanh);
export const Tanh: Evaluate = floatFunction(Math.tanh);
export const Neg: Evaluate = numericFunction((x) => -x, (x) => -x);
export const Abs: Evaluate = numericFunction(Math.abs, (x) => (x < 0n ? -x : x));
export const Sign: Evaluate = numericFunction((x) => (x > 0 ? 1 : x < 0 ? -1 : x), (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n));
