/** Convolution, 1 to 3 spatial axes, with groups, strides, dilations and pads. */
import { computeScalar, add } from "../kernel/expr.ts";
import { defineOp } from "../graph/op.ts";
import { Conv as evaluate } from "../evaluate/conv.ts";
import { checkType } from "./element-wise.ts";
import { anchorConvolution, convolutionAttributes, convolutionOf, convolutionSum, inferConvolution, plainElements } from "./convolution.ts";

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
  lower: ({ X, W, B }, attributes) => {
    const c = convolutionOf(X, W, attributes);
    return [(...indices) => {
      const sum = convolutionSum(c, X, W, plainElements, indices);
      const [, filter] = indices;
      return B && filter ? add(sum, B.at(filter)) : sum;
    }];
  },
  anchor: ({ X, W, B }, attributes) =>
    anchorConvolution(convolutionOf(X, W, attributes), X, W, computeScalar(X.dtype), plainElements, undefined,
      (accumulator, filter) => (B ? add(accumulator, B.at(filter)) : accumulator)),
});
