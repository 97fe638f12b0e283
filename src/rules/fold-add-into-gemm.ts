/** Gemm plus or minus a constant of one value a column, or such a constant minus Gemm: it becomes C. */
import { defineRule } from "../rewrite/rule.ts";
import { intoGemm } from "./contraction.ts";
import { summandInto } from "./fold-affine.ts";

export const foldAddIntoGemm = defineRule(summandInto(intoGemm, {
  name: "fold-add-into-gemm",
  doc: "Gemm plus or minus a constant of one value a column, or such a constant minus Gemm: it becomes C.",
}));
