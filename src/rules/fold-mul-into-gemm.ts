/** Gemm times or divided by a constant of one value a column: the factors go into the matrix and C. */
import { defineRule } from "../rewrite/rule.ts";
import { intoGemm } from "./contraction.ts";
import { factorInto } from "./fold-affine.ts";

export const foldMulIntoGemm = defineRule(factorInto(intoGemm, {
  name: "fold-mul-into-gemm",
  doc: "Gemm times or divided by a constant of one value a column: the factors go into the matrix and C.",
}));
