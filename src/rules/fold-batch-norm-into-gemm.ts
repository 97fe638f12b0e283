/** Gemm then BatchNormalization (inference): the normalisation goes into the matrix and C, for either orientation of the matrix. */
import { defineRule } from "../rewrite/rule.ts";
import { intoGemm } from "./contraction.ts";
import { batchNormInto } from "./fold-affine.ts";

export const foldBatchNormIntoGemm = defineRule(batchNormInto(intoGemm, {
  name: "fold-batch-norm-into-gemm",
  doc: "Gemm then BatchNormalization (inference): the normalisation goes into the matrix and C, for either orientation of the matrix.",
}));
