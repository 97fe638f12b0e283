/** MatMul by a constant then BatchNormalization (inference) of a matrix becomes Gemm. */
import { defineRule } from "../rewrite/rule.ts";
import { intoMatMul } from "./contraction.ts";
import { batchNormInto } from "./fold-affine.ts";

export const foldBatchNormIntoMatMul = defineRule(batchNormInto(intoMatMul, {
  name: "fold-batch-norm-into-matmul",
  doc: "MatMul by a constant then BatchNormalization (inference) of a matrix becomes Gemm.",
}));
