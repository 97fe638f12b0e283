/** ConvTranspose plus or minus a constant of one value a channel, or such a constant minus ConvTranspose: it becomes bias. */
import { defineRule } from "../rewrite/rule.ts";
import { intoConvTranspose } from "./contraction.ts";
import { summandInto } from "./fold-affine.ts";

export const foldAddIntoConvTranspose = defineRule(summandInto(intoConvTranspose, {
  name: "fold-add-into-conv-transpose",
  doc: "ConvTranspose plus or minus a constant of one value a channel, or such a constant minus ConvTranspose: it becomes bias.",
}));
