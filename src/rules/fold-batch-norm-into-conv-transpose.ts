/** ConvTranspose then BatchNormalization (inference): the normalisation goes into weights and bias. */
import { defineRule } from "../rewrite/rule.ts";
import { intoConvTranspose } from "./contraction.ts";
import { batchNormInto } from "./fold-affine.ts";

export const foldBatchNormIntoConvTranspose = defineRule(batchNormInto(intoConvTranspose, {
  name: "fold-batch-norm-into-conv-transpose",
  gePass: "Conv2DTransposeBatchnormFusionPass",
  doc: "ConvTranspose then BatchNormalization (inference): the normalisation goes into weights and bias.",
}));
