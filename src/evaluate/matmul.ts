/** MatMul, Gemm and MatMulInteger, by their definitions. */
import { present } from "../core/assert.ts";
import { is64 } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromBigInts, fromNumbers, sizeOf, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** How a product of stacks of matrices is laid out: for each result matrix, where its operands start. */
export interface MatMulPlan {
  readonly dims: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Offsets in elements, one pair a result matrix. */
  readonly starts: readonly (readonly [number, number])[];
}

/** numpy's rules: 1-D operands are a row or a column, leading axes broadcast. */
export function planMatMul(a: readonly number[], b: readonly number[]): MatMulPlan {
  const left = a.length === 1 ? [1, ...a] : a, right = b.length === 1 ? [...b, 1] : b;
  const m = at(left, left.length - 2), k = at(left, left.length - 1), n = at(right, right.length - 1);
  const rank = Math.max(left.length, right.length) - 2;
  const stackA = left.slice(0, -2), stackB = right.slice(0, -2);
  const size = (stack: readonly number[], d: number): number => stack[d - rank + stack.length] ?? 1;
  const stack = Array.from({ length: rank }, (_, d) => (size(stackA, d) === 1 ? size(stackB, d) : size(stackA, d)));
  const starts = Array.from({ length: sizeOf(stack) }, (_, flat): readonly [number, number] => {
    let rest = flat, i = 0, j = 0, strideA = m * k, strideB = k * n;
    for (let d = rank - 1; d >= 0; d--) {
      const index = rest % at(stack, d);
      rest = Math.floor(rest / at(stack, d));
      if (size(stackA, d) !== 1) i += index * strideA;
      if (size(stackB, d) !== 1) j += index * strideB;
      strideA *= size(stackA, d);
      strideB *= size(stackB, d);
    }
    return [i, j];
  });
  const dims = [...stack, ...(a.length === 1 ? [] : [m]), ...(b.length === 1 ? [] : [n])];
  return { dims, m, n, k, starts };
}

/** The product in float64: exact for integers up to 2^53. */
export function multiply(a: ArrayLike<number>, b: ArrayLike<number>, { m, n, k, starts }: MatMulPlan): Float64Array {
  const y = new Float64Array(starts.length * m * n);
  starts.forEach(([i, j], s) => {
    for (let row = 0; row < m; row++) for (let p = 0; p < k; p++) {
      const left = a[i + row * k + p] ?? 0, from = j + p * n, to = (s * m + row) * n;
      for (let column = 0; column < n; column++) y[to + column] = (y[to + column] ?? 0) + left * (b[from + column] ?? 0);
    }
  });
  return y;
}

function multiplyExactly(a: readonly bigint[], b: readonly bigint[], { m, n, k, starts }: MatMulPlan): bigint[] {
  return starts.flatMap(([i, j]) => Array.from({ length: m * n }, (_, flat) => {
    const row = Math.floor(flat / n), column = flat % n;
    let sum = 0n;
    for (let p = 0; p < k; p++) sum += (a[i + row * k + p] ?? 0n) * (b[j + p * n + column] ?? 0n);
    return sum;
  }));
}

const wrap = (dtype: Tensor["dtype"], v: bigint): bigint => (dtype === "uint64" ? BigInt.asUintN(64, v) : BigInt.asIntN(64, v));

export const MatMul: Evaluate = ([A, B]) => {
  const a = present(A, "A"), b = present(B, "B");
  const plan = planMatMul(a.dims, b.dims);
  if (is64(a.dtype) || a.dtype === "int32" || a.dtype === "uint32")
    return [fromBigInts(a.dtype, plan.dims, multiplyExactly(toBigInts(a), toBigInts(b), plan).map((v) => wrap(a.dtype, v)))];
  return [fromNumbers(a.dtype, plan.dims, multiply(toNumbers(a), toNumbers(b), plan))];
};

/** The elements of a matrix, transposed. */
function transposed(t: Tensor): Float64Array {
  const x = toNumbers(t), rows = at(t.dims, 0), columns = at(t.dims, 1);
  return Float64Array.from({ length: rows * columns }, (_, i) => x[(i % rows) * columns + Math.floor(i / rows)] ?? 0);
}

export const Gemm: Evaluate = ([A, B, C], attributes) => {
  const a = present(A, "A"), b = present(B, "B");
  const transA = numberOf(attributes, "transA") !== 0, transB = numberOf(attributes, "transB") !== 0;
  const m = at(a.dims, transA ? 1 : 0), k = at(a.dims, transA ? 0 : 1), n = at(b.dims, transB ? 0 : 1);
  const y = multiply(transA ? transposed(a) : toNumbers(a), transB ? transposed(b) : toNumbers(b), { dims: [m, n], m, n, k, starts: [[0, 0]] });
  const alpha = numberOf(attributes, "alpha"), beta = numberOf(attributes, "beta");
  // As BLAS has it: C times 0 is not read, whatever it holds.
  const c = C && beta !== 0 ? toNumbers(C) : undefined;
  const rows = C?.dims[C.dims.length - 2] ?? 1, columns = C?.dims[C.dims.length - 1] ?? 1;
  for (let i = 0; i < y.length; i++) {
    const bias = c ? beta * (c[(rows === 1 ? 0 : Math.floor(i / n)) * columns + (columns === 1 ? 0 : i % n)] ?? 0) : 0;
    y[i] = alpha * (y[i] ?? 0) + bias;
  }
  return [fromNumbers(a.dtype, [m, n], y)];
};

/**
 * Elements less their zero points: one for all, one for each index along the last axis but one (`rows`) or along the last
 * axis (`columns`), or a tensor of the operand's rank with size 1 along the axis summed over.
 */
export function lessMatrixZeroPoint(t: Tensor, zeroPoint: Tensor | undefined, per: "rows" | "columns"): ArrayLike<number> {
  const x = toNumbers(t);
  if (!zeroPoint) return x;
  const z = toNumbers(zeroPoint);
  const columns = at(t.dims, t.dims.length - 1), rows = t.dims[t.dims.length - 2] ?? 1;
  return Float64Array.from(x, (v, i) => {
    const row = Math.floor(i / columns) % rows, column = i % columns, stack = Math.floor(i / (rows * columns));
    if (z.length === 1) return v - (z[0] ?? 0);
    const per1 = per === "rows" ? row : column, size = per === "rows" ? rows : columns;
    return v - (z[zeroPoint.dims.length <= 1 ? per1 : stack * size + per1] ?? 0);
  });
}

export const MatMulInteger: Evaluate = ([A, B, aZero, bZero]) => {
  const a = present(A, "A"), b = present(B, "B");
  const plan = planMatMul(a.dims, b.dims);
  return [fromNumbers("int32", plan.dims, multiply(lessMatrixZeroPoint(a, aZero, "rows"), lessMatrixZeroPoint(b, bZero, "columns"), plan))];
};
