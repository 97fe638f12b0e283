/** ConvTranspose times or divided by a constant of one value a channel: the factors go into weights and bias. */
import { defineRule } from "../rewrite/rule.ts";
import { intoConvTranspose } from "./contraction.ts";
import { factorInto } from "./fold-affine.ts";

export const foldMulIntoConvTranspose = defineRule(factorInto(intoConvTranspose, {
  name: "fold-mul-into-conv-transpose",
  doc: "ConvTranspose times or divided by a constant of one value a channel: the factors go into weights and bias.",
}));
