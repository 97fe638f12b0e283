/** Conv then BatchNormalization (inference): the normalisation goes into weights and bias, any rank, groups and all. */
import { defineRule } from "../rewrite/rule.ts";
import { intoConv } from "./contraction.ts";
import { batchNormInto } from "./fold-affine.ts";

export const foldBatchNormIntoConv = defineRule(batchNormInto(intoConv, {
  name: "fold-batch-norm-into-conv",
  gePass: "ConvBatchnormFusionPass",
  doc: "Conv then BatchNormalization (inference): the normalisation goes into weights and bias, any rank, groups and all.",
}));
