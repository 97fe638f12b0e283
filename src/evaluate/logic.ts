/** Evaluation of comparisons, logic, bit operations and selection on broadcast operands. */
import { invariant } from "../core/assert.ts";
import { dtypes, type DType } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { copier, input, mapElements, mapNumbers, zipElements } from "./map-elements.ts";
import { broadcastDims, broadcastSources } from "../core/strided.ts";
import { numberOf, stringOf } from "./read-attribute.ts";

const bit = (x: boolean): bigint => (x ? 1n : 0n);
const comparison = (float: (x: number, y: number) => boolean, integer: (x: bigint, y: bigint) => boolean): Evaluate => (inputs) =>
  [zipElements(input(inputs, 0), input(inputs, 1), (x, y) => (float(x, y) ? 1 : 0), (x, y) => bit(integer(x, y)), "bool")];

export const Less: Evaluate = comparison((x, y) => x < y, (x, y) => x < y);
export const LessOrEqual: Evaluate = comparison((x, y) => x <= y, (x, y) => x <= y);
export const Greater: Evaluate = comparison((x, y) => x > y, (x, y) => x > y);
export const GreaterOrEqual: Evaluate = comparison((x, y) => x >= y, (x, y) => x >= y);
const equalNumbers: Evaluate = comparison((x, y) => x === y, (x, y) => x === y);
export const Equal: Evaluate = (inputs, attributes, context) =>
  input(inputs, 0).dtype === "string" ? [equalStrings(input(inputs, 0), input(inputs, 1))] : equalNumbers(inputs, attributes, context);

function equalStrings(a: Tensor, b: Tensor): Tensor {
  const dims = broadcastDims(a.dims, b.dims);
  const j = broadcastSources(b.dims, dims);
  return fromNumbers("bool", dims, Array.from(broadcastSources(a.dims, dims), (at, n) => (a.data[at] === b.data[j[n] ?? 0] ? 1 : 0)));
}

const logic = (f: (x: bigint, y: bigint) => bigint): Evaluate => (inputs) =>
  [zipElements(input(inputs, 0), input(inputs, 1), () => invariant(false, "floats have no bits") as never, f)];
export const And: Evaluate = logic((x, y) => x & y);
export const Or: Evaluate = logic((x, y) => x | y);
export const Xor: Evaluate = logic((x, y) => x ^ y);
export const BitwiseAnd: Evaluate = logic((x, y) => x & y);
export const BitwiseOr: Evaluate = logic((x, y) => x | y);
export const BitwiseXor: Evaluate = logic((x, y) => x ^ y);
export const BitwiseNot: Evaluate = (inputs) => [mapElements(input(inputs, 0), (x) => x, (x) => ~x)];
export const Not: Evaluate = (inputs) => [mapElements(input(inputs, 0), (x) => x, (x) => 1n - x)];

/** Shifting by the width of the type or more gives 0. */
export const BitShift: Evaluate = (inputs, attributes, context) => {
  const left = stringOf(attributes, "direction") === "LEFT", width = BigInt(bitWidth(input(inputs, 0).dtype));
  return logic((x, n) => (n >= width ? 0n : left ? x << n : x >> n))(inputs, attributes, context);
};
const bitWidth = (dtype: DType): number => 8 * dtypes[dtype].size;

export const IsNaN: Evaluate = (inputs) => [mapNumbers(input(inputs, 0), (x) => (Number.isNaN(x) ? 1 : 0), "bool")];
export const IsInf: Evaluate = (inputs, attributes) => {
  const positive = numberOf(attributes, "detect_positive") !== 0, negative = numberOf(attributes, "detect_negative") !== 0;
  return [mapNumbers(input(inputs, 0), (x) => ((x === Infinity && positive) || (x === -Infinity && negative) ? 1 : 0), "bool")];
};

export const Where: Evaluate = (inputs) => {
  const condition = input(inputs, 0), a = input(inputs, 1), b = input(inputs, 2);
  const dims = broadcastDims(condition.dims, a.dims, b.dims);
  const i = broadcastSources(a.dims, dims), j = broadcastSources(b.dims, dims), chosen = toNumbers(condition);
  const out = zeros(a.dtype, dims), fromA = copier(a, out), fromB = copier(b, out);
  broadcastSources(condition.dims, dims).forEach((at, n) => (chosen[at] ? fromA(i[n] ?? 0, n) : fromB(j[n] ?? 0, n)));
  return [out];
};
