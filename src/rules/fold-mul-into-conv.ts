/** Conv times or divided by a constant of one value a channel: the factors go into weights and bias. */
import { defineRule } from "../rewrite/rule.ts";
import { intoConv } from "./contraction.ts";
import { factorInto } from "./fold-affine.ts";

export const foldMulIntoConv = defineRule(factorInto(intoConv, {
  name: "fold-mul-into-conv",
  gePass: "AConv2dMulFusion",
  doc: "Conv times or divided by a constant of one value a channel: the factors go into weights and bias.",
}));
