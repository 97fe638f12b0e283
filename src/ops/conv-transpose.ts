/** Transposed convolution: the gradient of Conv with respect to its input, as an operator. */
import { defineOp, optional, type InferContext, type TypeInfo } from "../graph/op.ts";
import { ConvTranspose as evaluate } from "../evaluate/conv.ts";
import { checkType } from "./element-wise.ts";
import { anchorBiased, checkBias, checkWeights, convolutionAttributes, lowerConvolution, transposedWindowsOf, type Convolution, type TransposedOptions } from "./convolution.ts";

function convolutionOf(x: TypeInfo, w: TypeInfo, options: TransposedOptions): Convolution {
  const [c, channels, ...kernel] = w.shape as readonly number[];
  return {
    transposed: true, groups: options.group, inputChannels: (c ?? 1) / options.group, channels: channels ?? 1,
    windows: transposedWindowsOf(x.shape.slice(2), kernel, options),
  };
}

/** Reports lists about the output that are not one value for each of `rank` axes; sizes may have those of batch and channels before them. */
function checkOutputs(rank: number, { output_padding: extra, output_shape: shape }: TransposedOptions, context: InferContext): void {
  if (extra && (extra.length !== rank || extra.some((n) => n < 0))) context.fail("OF3012", `attribute 'output_padding' needs ${rank} values of at least 0, got [${extra.join(", ")}]`);
  if (shape && ((shape.length !== rank && shape.length !== rank + 2) || shape.some((n) => n < 0))) context.fail("OF3012", `attribute 'output_shape' needs ${rank} sizes, got [${shape.join(", ")}]`);
}

export const ConvTranspose = defineOp({
  type: "ConvTranspose",
  domain: "",
  since: 1,
  inputs: { X: "required", W: "required", B: "optional" }, oneType: [["X", "W", "B"]],
  attributes: { ...convolutionAttributes, output_padding: optional("ints"), output_shape: optional("ints") },
  fusionKind: "contraction",
  infer({ X, W, B }, attributes, context) {
    checkType(context, X, "X", "float");
    checkOutputs(X.shape.length - 2, attributes, context);
    const [c = 0, channels = 0, ...kernel] = checkWeights(X, W, attributes, context);
    const inputs = X.shape[1] ?? 0;
    if (typeof inputs === "number" && inputs !== c) context.fail("OF3011", `input has ${inputs} channels, weights ask for ${c}`);
    if (c % attributes.group !== 0) context.fail("OF3011", `${c} input channels do not divide into ${attributes.group} groups`);
    checkBias(B, channels * attributes.group, context);
    const windows = transposedWindowsOf(X.shape.slice(2), kernel, attributes);
    return [{ dtype: X.dtype, shape: [X.shape[0] ?? 1, channels * attributes.group, ...windows.map((w) => w.output)] }];
  },
  evaluate,
  lower: ({ X, W, B }, attributes) => [lowerConvolution(convolutionOf(X, W, attributes), X, W, B)],
  anchor: ({ X, W, B }, attributes) => anchorBiased(convolutionOf(X, W, attributes), X, W, B),
});
