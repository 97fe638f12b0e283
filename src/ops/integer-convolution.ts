/** Convolutions of integers: QLinearConv (requantised) and ConvInteger (int32 sums). */
import { defineOp, type Operand } from "../graph/op.ts";
import { add, computeScalar, sub, type Expr } from "../kernel/expr.ts";
import { ConvInteger as evaluateInteger } from "../evaluate/conv.ts";
import { QLinearConv as evaluateQLinear } from "../evaluate/qlinear.ts";
import { anchorConvolution, convolutionAttributes, convolutionOf, convolutionSum, inferConvolution, type ElementOf } from "./convolution.ts";
import { checkQuantized, requantized, scaleAt, single, zeroPointAt } from "./quantization.ts";
import { operand } from "./window.ts";

/** Elements less their zero points. */
const shifted = (xZero: Operand | undefined, wZero: Operand | undefined): ElementOf => ({
  input: (e) => sub(e, zeroPointAt(xZero, undefined)),
  weight: (e, filter) => sub(e, zeroPointAt(wZero, filter)),
});
const zeroPoints = (xZero: Operand | undefined, wZero: Operand | undefined) => (filter: Expr): { input: Expr; weight: Expr } =>
  ({ input: zeroPointAt(xZero, undefined), weight: zeroPointAt(wZero, filter) });

export const ConvInteger = defineOp({
  type: "ConvInteger",
  domain: "",
  since: 10,
  inputs: { x: "required", w: "required", x_zero_point: "optional", w_zero_point: "optional" }, oneType: [["x", "x_zero_point"], ["w", "w_zero_point"]],
  attributes: convolutionAttributes,
  fusionKind: "contraction",
  infer({ x, w }, attributes, context) {
    for (const [name, t] of Object.entries({ x, w })) if (computeScalar(t.dtype) !== "i32" || t.dtype === "bool") context.fail("OF3013", `input '${name}' is ${t.dtype}, must be an integer of 8 bits`);
    return [{ dtype: "int32", shape: inferConvolution(x, w, undefined, attributes, context) }];
  },
  evaluate: evaluateInteger,
  lower: ({ x, w, x_zero_point, w_zero_point }, attributes) => {
    const c = convolutionOf(x, w, attributes), element = shifted(x_zero_point, w_zero_point);
    return [(...indices) => convolutionSum(c, x, w, element, indices)];
  },
  anchor: ({ x, w, x_zero_point, w_zero_point }, attributes) =>
    anchorConvolution(convolutionOf(x, w, attributes), x, w, "i32", shifted(x_zero_point, w_zero_point), zeroPoints(x_zero_point, w_zero_point), (accumulator) => accumulator),
});

interface Requantization { readonly x_scale: Operand; readonly w_scale: Operand; readonly y_scale: Operand; readonly y_zero_point: Operand; readonly B: Operand | undefined }

function finish(accumulator: Expr, filter: Expr, { x_scale, w_scale, y_scale, y_zero_point, B }: Requantization): Expr {
  const total = B ? add(accumulator, B.at(filter)) : accumulator;
  return requantized(total, single(x_scale), scaleAt(w_scale, filter), single(y_scale), zeroPointAt(y_zero_point, undefined), y_zero_point.dtype);
}

export const QLinearConv = defineOp({
  type: "QLinearConv",
  domain: "",
  since: 10,
  inputs: {
    x: "required", x_scale: "required", x_zero_point: "required", w: "required", w_scale: "required", w_zero_point: "required",
    y_scale: "required", y_zero_point: "required", B: "optional",
  }, integers: ["B"], oneType: [["x", "x_zero_point"], ["x_scale", "w_scale", "y_scale"], ["w", "w_zero_point"]],
  attributes: convolutionAttributes,
  fusionKind: "contraction",
  infer: ({ x, w, B, y_zero_point }, attributes, context) =>
    [{ dtype: checkQuantized(y_zero_point.dtype, context), shape: inferConvolution(x, w, B, attributes, context) }],
  evaluate: evaluateQLinear,
  lower: ({ x, w, x_zero_point, w_zero_point, ...rest }, attributes) => {
    const c = convolutionOf(x, w, attributes), element = shifted(x_zero_point, w_zero_point);
    return [(...indices) => finish(convolutionSum(c, x, w, element, indices), operand(indices, 1), rest)];
  },
  anchor: ({ x, w, x_zero_point, w_zero_point, ...rest }, attributes) =>
    anchorConvolution(convolutionOf(x, w, attributes), x, w, "i32", shifted(x_zero_point, w_zero_point), zeroPoints(x_zero_point, w_zero_point),
      (accumulator, filter) => finish(accumulator, filter, rest)),
});
