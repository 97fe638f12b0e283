/** Matrix products of integers with a float result (com.microsoft), by their definitions. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { broadcastSources } from "../core/strided.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { lessMatrixZeroPoint, multiply, planMatMul } from "./matmul.ts";
import { Transpose } from "./movement.ts";
import { quantized } from "./com-microsoft-qlinear.ts";
import { DynamicQuantizeLinear } from "./quantize.ts";
import { numberOf } from "./read-attribute.ts";

interface Operand { readonly of: Tensor; readonly scale: Tensor; readonly zero: Tensor | undefined }

/** (Σ (a − zero)(b − zero) + sums) · factor · scales + bias, rounded to float32; `sums` are broadcast, `bias` is one a column, or less. */
function product(a: Operand, b: Operand, sums: Tensor | undefined, bias: Tensor | undefined, factor = 1): Tensor {
  const plan = planMatMul(a.of.dims, b.of.dims);
  const y = multiply(lessMatrixZeroPoint(a.of, a.zero, "rows"), lessMatrixZeroPoint(b.of, b.zero, "columns"), plan);
  const unit = toNumbers(a.scale)[0] ?? 1, scales = toNumbers(b.scale), before = sums && toNumbers(sums), after = bias && toNumbers(bias);
  const from = sums && broadcastSources(sums.dims, plan.dims);
  const out = y.map((v, i) => {
    const ofColumn = (of: ArrayLike<number>): number => of[of.length === 1 ? 0 : i % plan.n] ?? 0;
    return (v + (before?.[from?.[i] ?? 0] ?? 0)) * factor * unit * ofColumn(scales) + (after ? ofColumn(after) : 0);
  });
  return fromNumbers("float32", plan.dims, out);
}

export const MatMulIntegerToFloat: Evaluate = ([A, B, aScale, bScale, aZero, bZero, bias]) => [product(
  { of: present(A, "A"), scale: present(aScale, "a_scale"), zero: aZero }, { of: present(B, "B"), scale: present(bScale, "b_scale"), zero: bZero }, undefined, bias)];

export const DynamicQuantizeMatMul: Evaluate = ([A, B, bScale, bZero, bias]) => {
  const [a, scale, zero] = DynamicQuantizeLinear([present(A, "A")], {}, { outputCount: 3 });
  return [product({ of: present(a, "A quantised"), scale: present(scale, "its scale"), zero }, { of: present(B, "B"), scale: present(bScale, "b_scale"), zero: bZero }, undefined, bias)];
};

export const QGemm: Evaluate = ([A, aScale, aZero, B, bScale, bZero, C, yScale, yZero], attributes) => {
  const given = (t: Tensor | undefined, name: string, flag: string): Tensor =>
    (numberOf(attributes, flag) ? present(Transpose([present(t, name)], { perm: [1, 0] }, { outputCount: 1 })[0], name) : present(t, name));
  const y = product(
    { of: given(A, "A", "transA"), scale: present(aScale, "a_scale"), zero: aZero },
    { of: given(B, "B", "transB"), scale: present(bScale, "b_scale"), zero: bZero }, C, undefined, numberOf(attributes, "alpha"));
  return [yScale ? quantized(y, yScale, yZero, present(yZero, "y_zero_point").dtype) : y];
};
