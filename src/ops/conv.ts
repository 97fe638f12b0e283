/** Convolution, 1 to 3 spatial axes, with groups, strides, dilations and pads. */
import { defineOp } from "../graph/op.ts";
import { Conv as evaluate } from "../evaluate/conv.ts";
import { checkType } from "./element-wise.ts";
import { anchorBiased, convolutionAttributes, convolutionOf, inferConvolution, lowerConvolution } from "./convolution.ts";

export const Conv = defineOp({
  type: "Conv",
  domain: "",
  since: 1,
  inputs: { X: "required", W: "required", B: "optional" }, oneType: [["X", "W", "B"]],
  attributes: convolutionAttributes,
  fusionKind: "contraction",
  infer({ X, W, B }, attributes, context) {
    checkType(context, X, "X", "float");
    return [{ dtype: X.dtype, shape: inferConvolution(X, W, B, attributes, context) }];
  },
  evaluate,
  lower: ({ X, W, B }, attributes) => [lowerConvolution(convolutionOf(X, W, attributes), X, W, B)],
  anchor: ({ X, W, B }, attributes) => anchorBiased(convolutionOf(X, W, attributes), X, W, B),
});
