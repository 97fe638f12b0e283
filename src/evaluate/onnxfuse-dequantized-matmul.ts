/** A · W for a matrix W of integers with a scale (and zero point) every block of the contracted axis, in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { multiply, planMatMul } from "./matmul.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

export const DequantizedMatMul: Evaluate = ([A, W, Scales, Zeros], attributes) => {
  const a = present(A, "A"), w = present(W, "W"), transposed = numberOf(attributes, "transB") !== 0, block = numberOf(attributes, "block_size");
  const k = at(w.dims, transposed ? 1 : 0), n = at(w.dims, transposed ? 0 : 1), blocks = Math.ceil(k / block);
  const q = toNumbers(w), s = toNumbers(present(Scales, "scales")), z = Zeros && toNumbers(Zeros);
  const b = Float64Array.from({ length: k * n }, (_, i) => {
    const row = Math.floor(i / n), column = i % n, own = Math.floor(row / block);
    const scale = transposed ? column * blocks + own : own * n + column;
    return ((q[transposed ? column * k + row : i] ?? 0) - (z?.[scale] ?? 0)) * (s[scale] ?? 0);
  });
  const plan = planMatMul(a.dims, [k, n]);
  return [fromNumbers(a.dtype, plan.dims, multiply(toNumbers(a), b, plan))];
};
