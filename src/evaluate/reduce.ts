/** Reductions over axes, by their definitions: float64 for floats, exact integers for integers; an integer's logarithms and roots as Cast has them. */
import { present } from "../core/assert.ts";
import { isInteger, type DType } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromBigInts, fromNumbers, toBigInts, toNumbers } from "../core/tensor.ts";
import { castTensor } from "./cast.ts";
import { axisGroups, groupOf, positiveAxes } from "./axis-groups.ts";
import { integersOf, numberOf } from "./read-attribute.ts";

interface Reduction {
  readonly floats: (row: Float64Array) => number;
  /** Exact, before wrapping to the dtype; absent where the float form decides. */
  readonly integers?: (row: readonly bigint[], dtype: DType) => bigint;
}

function reduction({ floats, integers }: Reduction): Evaluate {
  return ([X, A], attributes) => {
    const x = present(X, "data"), rank = x.dims.length;
    const given = A ? positiveAxes(integersOf(A), rank) : [];
    const none = given.length === 0 && numberOf(attributes, "noop_with_empty_axes") !== 0;
    const axes = given.length > 0 || none ? given : x.dims.map((_, d) => d);
    const keep = numberOf(attributes, "keepdims") !== 0;
    const dims = keep ? x.dims.map((d, i) => (axes.includes(i) ? 1 : d)) : x.dims.filter((_, i) => !axes.includes(i));
    const groups = axisGroups(x.dims, axes);
    if (integers && isInteger(x.dtype)) {
      const values = toBigInts(x);
      return [fromBigInts(x.dtype, dims, groups.starts.map((start) => integers(groups.steps.map((s) => values[start + s] ?? 0n), x.dtype)))];
    }
    const values = toNumbers(x);
    return [castTensor(fromNumbers("float64", dims, groups.starts.map((_, g) => floats(groupOf(values, groups, g)))), x.dtype)];
  };
}

const abs = (v: bigint): bigint => (v < 0n ? -v : v);
const bits = (dtype: DType): bigint => BigInt(/\d+/.exec(dtype)?.[0] ?? "8");
const lowest = (dtype: DType): bigint => (dtype.startsWith("uint") ? 0n : -(2n ** (bits(dtype) - 1n)));
const highest = (dtype: DType): bigint => (dtype.startsWith("uint") ? 2n ** bits(dtype) : 2n ** (bits(dtype) - 1n)) - 1n;
const add = (row: Float64Array): number => row.reduce((a, b) => a + b, 0);
const sumOfSquares = (row: Float64Array): number => row.reduce((a, b) => a + b * b, 0);
const greatest = (row: Float64Array): number => row.reduce((a, b) => Math.max(a, b), -Infinity);

export const ReduceSum: Evaluate = reduction({ floats: add, integers: (row) => row.reduce((a, b) => a + b, 0n) });
export const ReduceMean: Evaluate = reduction({ floats: (row) => add(row) / row.length, integers: (row) => (row.length ? row.reduce((a, b) => a + b, 0n) / BigInt(row.length) : 0n) });
export const ReduceMax: Evaluate = reduction({ floats: greatest, integers: (row, d) => row.reduce((a, b) => (b > a ? b : a), lowest(d)) });
export const ReduceMin: Evaluate = reduction({ floats: (row) => row.reduce((a, b) => Math.min(a, b), Infinity), integers: (row, d) => row.reduce((a, b) => (b < a ? b : a), highest(d)) });
export const ReduceProd: Evaluate = reduction({ floats: (row) => row.reduce((a, b) => a * b, 1), integers: (row) => row.reduce((a, b) => a * b, 1n) });
export const ReduceL1: Evaluate = reduction({ floats: (row) => row.reduce((a, b) => a + Math.abs(b), 0), integers: (row) => row.reduce((a, b) => a + abs(b), 0n) });
export const ReduceL2: Evaluate = reduction({ floats: (row) => Math.sqrt(sumOfSquares(row)) });
export const ReduceLogSum: Evaluate = reduction({ floats: (row) => Math.log(add(row)) });
export const ReduceLogSumExp: Evaluate = reduction({
  floats: (row) => {
    const m = greatest(row), shift = Number.isFinite(m) ? m : 0;
    return shift + Math.log(row.reduce((a, b) => a + Math.exp(b - shift), 0));
  },
});
export const ReduceSumSquare: Evaluate = reduction({ floats: sumOfSquares, integers: (row) => row.reduce((a, b) => a + b * b, 0n) });
