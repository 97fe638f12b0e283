/** Conv plus or minus a constant of one value a channel, or such a constant minus Conv: it becomes bias. */
import { defineRule } from "../rewrite/rule.ts";
import { intoConv } from "./contraction.ts";
import { summandInto } from "./fold-affine.ts";

export const foldAddIntoConv = defineRule(summandInto(intoConv, {
  name: "fold-add-into-conv",
  gePass: "AABiasaddConvFusion",
  doc: "Conv plus or minus a constant of one value a channel, or such a constant minus Conv: it becomes bias.",
}));
