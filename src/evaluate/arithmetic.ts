/**
 * Evaluation of arithmetic on broadcast operands. Integer division truncates; dividing an integer by zero gives 0.
 */
import type { Evaluate } from "../core/evaluate.ts";
import { isFloat, type DType } from "../core/dtype.ts";
import { fromNumbers, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { input, wrapped, zipElements } from "./map-elements.ts";
import { broadcastDims, broadcastSources } from "../core/strided.ts";
import { numberOf } from "./read-attribute.ts";

type FloatOp = (x: number, y: number) => number;
type IntegerOp = (x: bigint, y: bigint) => bigint;

const binary = (float: FloatOp, integer: IntegerOp): Evaluate => (inputs) => [zipElements(input(inputs, 0), input(inputs, 1), float, integer)];

export const Add: Evaluate = binary((x, y) => x + y, (x, y) => x + y);
export const Sub: Evaluate = binary((x, y) => x - y, (x, y) => x - y);
export const Mul: Evaluate = binary((x, y) => x * y, (x, y) => x * y);
export const Div: Evaluate = binary((x, y) => x / y, (x, y) => (y === 0n ? 0n : x / y));

export const Mod: Evaluate = (inputs, attributes) => {
  const truncated = numberOf(attributes, "fmod") !== 0;
  const remainder: IntegerOp = (x, y) => (y === 0n ? 0n : x % y);
  const floored: IntegerOp = (x, y) => { const r = remainder(x, y); return r !== 0n && r < 0n !== y < 0n ? r + y : r; };
  return [zipElements(input(inputs, 0), input(inputs, 1), (x, y) => x % y, truncated ? remainder : floored)];
};

export const Pow: Evaluate = (inputs) => {
  const base = input(inputs, 0), exponent = input(inputs, 1);
  const dims = broadcastDims(base.dims, exponent.dims);
  const i = broadcastSources(base.dims, dims), j = broadcastSources(exponent.dims, dims);
  if (isFloat(base.dtype) || isFloat(exponent.dtype)) {
    const x = toNumbers(base), y = toNumbers(exponent);
    return [fromNumbers(base.dtype, dims, Float64Array.from(i, (at, n) => power(x[at] ?? 0, y[j[n] ?? 0] ?? 0)))];
  }
  const x = toBigInts(base), y = toBigInts(exponent);
  return [wrapped(base.dtype, dims, Array.from(i, (at, n) => integerPower(x[at] ?? 0n, y[j[n] ?? 0] ?? 0n)))];
};
/** IEEE pow: where JavaScript's ** gives NaN for 1 to an infinite or NaN power and (−1)^±∞, the result is 1. */
const power = (x: number, y: number): number => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y);
/** A negative exponent gives the truncated fraction: 0, except for bases 1 and −1. */
function integerPower(x: bigint, y: bigint): bigint {
  if (y >= 0n) {
    let result = 1n, base = x;
    for (let left = y; left > 0n; left >>= 1n) {
      if (left & 1n) result = BigInt.asUintN(64, result * base);
      base = BigInt.asUintN(64, base * base);
    }
    return result;
  }
  return x === 1n ? 1n : x === -1n ? (y % 2n === 0n ? 1n : -1n) : 0n;
}

/** Folds any number of broadcast operands: floats in float64 throughout, rounded once at the end. */
function fold(inputs: readonly (Tensor | undefined)[], float: FloatOp, integer: IntegerOp, finish: (x: number, count: number) => number = (x) => x): readonly Tensor[] {
  const tensors = inputs.filter((t): t is Tensor => t !== undefined);
  const first = input(tensors, 0), dims = broadcastDims(...tensors.map((t) => t.dims));
  const sources = tensors.map((t) => broadcastSources(t.dims, dims));
  const dtype: DType = first.dtype;
  if (isFloat(dtype)) {
    const values = tensors.map(toNumbers);
    const element = (at: number): number => values.slice(1).reduce((sum, v, k) => float(sum, v[sources[k + 1]?.[at] ?? 0] ?? 0), values[0]?.[sources[0]?.[at] ?? 0] ?? 0);
    return [fromNumbers(dtype, dims, Float64Array.from(sources[0] ?? [], (_, at) => finish(element(at), tensors.length)))];
  }
  const values = tensors.map(toBigInts);
  const element = (at: number): bigint => values.slice(1).reduce((sum, v, k) => integer(sum, v[sources[k + 1]?.[at] ?? 0] ?? 0n), values[0]?.[sources[0]?.[at] ?? 0] ?? 0n);
  return [wrapped(dtype, dims, Array.from(sources[0] ?? [], (_, at) => element(at)))];
}

export const Sum: Evaluate = (inputs) => fold(inputs, (x, y) => x + y, (x, y) => x + y);
export const Mean: Evaluate = (inputs) => fold(inputs, (x, y) => x + y, (x, y) => x + y, (x, count) => x / count);
/** NaN wins. */
export const Max: Evaluate = (inputs) => fold(inputs, Math.max, (x, y) => (x > y ? x : y));
export const Min: Evaluate = (inputs) => fold(inputs, Math.min, (x, y) => (x < y ? x : y));
