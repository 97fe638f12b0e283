/** MatMul by a constant, times or divided by a constant of one value a column: the factors go into the matrix. */
import { defineRule } from "../rewrite/rule.ts";
import { intoMatMul } from "./contraction.ts";
import { factorInto } from "./fold-affine.ts";

export const foldMulIntoMatMul = defineRule(factorInto(intoMatMul, {
  name: "fold-mul-into-matmul",
  doc: "MatMul by a constant, times or divided by a constant of one value a column: the factors go into the matrix.",
}));
