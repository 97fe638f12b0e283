/** Matrix products of integers: MatMulInteger (int32 sums) and QLinearMatMul (requantised). */
import { defineOp, type Operand, type TypeInfo } from "../graph/op.ts";
import type { Dim } from "../core/dim.ts";
import { sub, type Expr, computeScalar } from "../kernel/expr.ts";
import { MatMulInteger as evaluateInteger } from "../evaluate/matmul.ts";
import { QLinearMatMul as evaluateQLinear } from "../evaluate/qlinear.ts";
import { checkType } from "./element-wise.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { anchorMatrixProduct, inferMatrixProduct, matrixProduct, matrixProductSum, type MatrixElement, type MatrixProduct } from "./matrix-product.ts";
import { checkQuantized, isSingle, requantized, single, zeroPointAt } from "./quantization.ts";

/** An element less its zero point: one for all, one a row (of A) or column (of B), or one a row or column of each matrix. */
function shifted(zero: Operand | undefined, per: "rows" | "columns"): MatrixElement {
  return (matrix, indices) => {
    const own = indices[indices.length - (per === "rows" ? 2 : 1)];
    if (!zero || zero.shape.length <= 1 || isSingle(zero)) return sub(matrix.at(...indices), zeroPointAt(zero, own));
    return sub(matrix.at(...indices), zero.at(...broadcastIndices(zero.shape, matrix.shape, indices)));
  };
}

const productOf = (A: Operand, B: Operand, aZero: Operand | undefined, bZero: Operand | undefined): MatrixProduct =>
  matrixProduct(A, B, shifted(aZero, "rows"), shifted(bZero, "columns"));

export const MatMulInteger = defineOp({
  type: "MatMulInteger",
  domain: "",
  since: 10,
  inputs: { A: "required", B: "required", a_zero_point: "optional", b_zero_point: "optional" }, oneType: [["A", "a_zero_point"], ["B", "b_zero_point"]],
  attributes: {},
  fusionKind: "contraction",
  infer: ({ A, B }, _, context) => {
    for (const [name, t] of Object.entries({ A, B })) if (computeScalar(t.dtype) !== "i32" || t.dtype === "bool") context.fail("OF3013", `input '${name}' is ${t.dtype}, must be an integer of 8 bits`);
    return [{ dtype: "int32", shape: inferMatrixProduct(A, B, context) }];
  },
  evaluate: evaluateInteger,
  lower({ A, B, a_zero_point, b_zero_point }) {
    const product = productOf(A, B, a_zero_point, b_zero_point);
    return [(...indices) => matrixProductSum(product, indices)];
  },
  anchor: ({ A, B, a_zero_point, b_zero_point }) => anchorMatrixProduct(productOf(A, B, a_zero_point, b_zero_point), "i32", (accumulator) => accumulator),
});

interface Requantization { readonly a_scale: Operand; readonly b_scale: Operand; readonly y_scale: Operand; readonly y_zero_point: Operand }

/** The scale at the result's indices. */
function scaleOf(scale: Operand, result: readonly Dim[], indices: readonly Expr[], axis: number): Expr {
  if (isSingle(scale)) return single(scale);
  const own = indices[axis];
  return scale.shape.length === 1 && own ? scale.at(own) : scale.at(...broadcastIndices(scale.shape, result, indices));
}

function finish(accumulator: Expr, indices: readonly Expr[], A: TypeInfo, result: readonly Dim[], r: Requantization): Expr {
  const column = indices.length - 1, row = A.shape.length === 1 ? -1 : indices.length - 2;
  return requantized(accumulator, scaleOf(r.a_scale, result, indices, row), scaleOf(r.b_scale, result, indices, column),
    single(r.y_scale), zeroPointAt(r.y_zero_point, undefined), r.y_zero_point.dtype);
}

export const QLinearMatMul = defineOp({
  type: "QLinearMatMul",
  domain: "",
  since: 10,
  inputs: {
    a: "required", a_scale: "required", a_zero_point: "required", b: "required", b_scale: "required", b_zero_point: "required",
    y_scale: "required", y_zero_point: "required",
  }, oneType: [["a", "a_zero_point"], ["a_scale", "b_scale", "y_scale"], ["b", "b_zero_point"]],
  attributes: {},
  fusionKind: "contraction",
  infer: ({ a, b, a_scale, b_scale, y_scale, a_zero_point, b_zero_point, y_zero_point }, _, context) => {
    for (const [name, t] of Object.entries({ a_scale, b_scale, y_scale })) checkType(context, t, name, "float");
    for (const [name, t] of Object.entries({ a, b, a_zero_point, b_zero_point })) checkType(context, t, name, "integer");
    return [{ dtype: checkQuantized(y_zero_point.dtype, context), shape: inferMatrixProduct(a, b, context) }];
  },
  evaluate: evaluateQLinear,
  lower({ a, b, a_zero_point, b_zero_point, ...rest }, _, { outputs }) {
    const product = productOf(a, b, a_zero_point, b_zero_point), shape = outputs[0]?.shape ?? [];
    return [(...indices) => finish(matrixProductSum(product, indices), indices, a, shape, rest)];
  },
  anchor({ a, b, a_zero_point, b_zero_point, ...rest }, _, { outputs }) {
    const shape = outputs[0]?.shape ?? [];
    return anchorMatrixProduct(productOf(a, b, a_zero_point, b_zero_point), "i32", (accumulator, indices) => finish(accumulator, indices, a, shape, rest));
  },
});
