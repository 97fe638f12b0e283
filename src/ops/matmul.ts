/** Matrix product of any rank, by numpy's rules. */
import { defineOp } from "../graph/op.ts";
import { computeScalar } from "../kernel/expr.ts";
import { MatMul as evaluate } from "../evaluate/matmul.ts";
import { checkType } from "./element-wise.ts";
import { anchorMatrixProduct, inferMatrixProduct, matrixProduct, matrixProductSum } from "./matrix-product.ts";

export const MatMul = defineOp({
  type: "MatMul",
  domain: "",
  since: 1,
  inputs: { A: "required", B: "required" },
  attributes: {},
  fusionKind: "contraction",
  infer({ A, B }, _, context) {
    checkType(context, A, "A", "numeric");
    if (A.dtype !== B.dtype) context.fail("OF3013", `operands have different types, ${A.dtype} and ${B.dtype}`);
    return [{ dtype: A.dtype, shape: inferMatrixProduct(A, B, context) }];
  },
  evaluate,
  lower({ A, B }) {
    const product = matrixProduct(A, B);
    return [(...indices) => matrixProductSum(product, indices)];
  },
  anchor: ({ A, B }) => anchorMatrixProduct(matrixProduct(A, B), computeScalar(A.dtype), (accumulator) => accumulator),
});
