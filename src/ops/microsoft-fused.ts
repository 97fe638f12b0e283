/**
 * Operators that onnxruntime's optimiser writes (com.microsoft). Each is compiled as the operators it was fused from, so
 * that our own fusion decides what becomes one kernel.
 */
import { broadcastShapes, dimExactDiv, formatShape, type Dim } from "../core/dim.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { defineOp, float, int, optional, string, type ExpandContext, type InferContext, type OpDef, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/com-microsoft-fused.ts";
import { Elu, Gelu, HardSigmoid, LeakyRelu, Relu, Sigmoid, Softplus, Softsign, ThresholdedRelu } from "./activation.ts";
import { Add, Div, Mul } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Clip } from "./clip.ts";
import { Conv } from "./conv.ts";
import { convolutionAttributes, inferConvolution } from "./convolution.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { Gemm, inferGemm } from "./gemm.ts";
import { LayerNormalization, RMSNormalization } from "./layer-normalization.ts";
import { MatMul } from "./matmul.ts";
import { inferMatrixProduct } from "./matrix-product.ts";
import { ReduceMean } from "./reduce.ts";
import { Slice } from "./slice.ts";
import { Transpose } from "./transpose.ts";
import { Sqrt, Tanh } from "./unary-math.ts";
import { agreeBroadcast, checkType } from "./element-wise.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;

/** x + bias through Gelu. */
const biasedGelu = (type: string, approximate: "none" | "tanh", of: NonNullable<OpDef["evaluate"]>): OpDef => defineOp({
  ...common, type, inputs: { X: "required", bias: "optional" }, oneType: [["X", "bias"]], attributes: {}, evaluate: of,
  infer: ({ X, bias }, _, context) => {
    checkType(context, X, "X", "float");
    agreeSizes(context, "bias", bias, X.shape.slice(-1));
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  expand: ({ inputs, outputs }) => {
    const to = new Expansion(), [x, bias] = inputs;
    to.add(Gelu, [bias === undefined ? x : to.add(Add, [x, bias])], { approximate }, outputs[0]);
    return to.nodes;
  },
});

export const FastGelu: OpDef = biasedGelu("FastGelu", "tanh", evaluate.FastGelu);
export const BiasGelu: OpDef = { ...biasedGelu("BiasGelu", "none", evaluate.BiasGelu), inputs: { X: "required", bias: "required" } };
/** The standard's Gelu before that had one. */
export const MicrosoftGelu: OpDef = { ...biasedGelu("Gelu", "none", evaluate.Gelu), inputs: { X: "required" }, oneType: [] };

/** x · sigmoid(alpha · x) */
export const QuickGelu = defineOp({
  ...common, type: "QuickGelu", inputs: { X: "required" }, attributes: { alpha: float(1.702) }, evaluate: evaluate.QuickGelu,
  infer: ({ X }, _, context) => {
    checkType(context, X, "X", "float");
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  expand: ({ inputs, inputTypes, outputs }, { alpha }) => {
    const to = new Expansion(), [x] = inputs;
    to.add(Mul, [x, to.add(Sigmoid, [to.add(Mul, [x, scalarOf(inputTypes[0]?.dtype ?? "float32", alpha)])])], {}, outputs[0]);
    return to.nodes;
  },
});

/** Each rank's axes: those of the batch come before the matrix's where `batch` says that the matrix's first stands in front of them; `swap` exchanges the last two. */
function matrixAxes(rank: number, swap: number, batch: number): readonly number[] {
  const axes = Array.from({ length: rank }, (_, d) => d);
  if (rank < 2) return axes;
  const placed = batch ? [...axes.slice(1, -1), 0, rank - 1] : axes;
  return swap ? [...placed.slice(0, -2), ...placed.slice(-1), ...placed.slice(-2, -1)] : placed;
}
const withAxes = (t: TypeInfo, axes: readonly number[]): TypeInfo => ({ dtype: t.dtype, shape: axes.map((d) => t.shape[d] ?? 1) });

/** alpha · A' · B' */
export const FusedMatMul = defineOp({
  ...common, type: "FusedMatMul", inputs: { A: "required", B: "required" }, oneType: [["A", "B"]],
  attributes: { alpha: float(1), transA: int(0), transB: int(0), transBatchA: int(0), transBatchB: int(0) },
  evaluate: evaluate.FusedMatMul,
  infer({ A, B }, { transA, transB, transBatchA, transBatchB }, context) {
    checkType(context, A, "A", "float");
    const read = (t: TypeInfo, swap: number, batch: number): TypeInfo => withAxes(t, matrixAxes(t.shape.length, swap, batch));
    return [{ dtype: A.dtype, shape: inferMatrixProduct(read(A, transA, transBatchA), read(B, transB, transBatchB), context) }];
  },
  expand: ({ inputs, inputTypes, outputs }, { alpha, transA, transB, transBatchA, transBatchB }) => {
    const to = new Expansion();
    const read = (i: number, swap: number, batch: number): string | undefined => {
      const perm = matrixAxes(inputTypes[i]?.shape.length ?? 0, swap, batch);
      return perm.every((axis, d) => axis === d) ? inputs[i] : to.add(Transpose, [inputs[i]], { perm });
    };
    const product = to.add(MatMul, [read(0, transA, transBatchA), read(1, transB, transBatchB)], {}, alpha === 1 ? outputs[0] : undefined);
    if (alpha !== 1) to.add(Mul, [product, scalarOf(inputTypes[0]?.dtype ?? "float32", alpha)], {}, outputs[0]);
    return to.nodes;
  },
});

/** activation(alpha · A' · B' + beta · C) */
export const FusedGemm = defineOp({
  ...common, type: "FusedGemm", inputs: { A: "required", B: "required", C: "optional" },
  attributes: {
    alpha: float(1), beta: float(1), transA: int(0), transB: int(0), activation: string(""),
    activation_alpha: optional("float"), activation_beta: optional("float"), activation_gamma: optional("float"),
  },
  evaluate: evaluate.FusedGemm,
  infer({ A, B, C }, attributes, context) {
    if (!productActivations.includes(attributes.activation)) context.fail("OF3012", `unknown activation '${attributes.activation}'`);
    return inferGemm({ A, B, C }, attributes, context);
  },
  expand: ({ inputs, inputTypes, outputs }, { activation, activation_alpha, activation_beta, activation_gamma: _, ...attributes }) => {
    const to = new Expansion(), plain = activation === "", slope = evaluate.usualSlope(activation);
    const sum = to.add(Gemm, inputs, attributes, plain ? outputs[0] : undefined);
    if (!plain) activate(to, sum, activation, [activation_alpha ?? slope, activation_beta ?? 0.5], inputTypes[0]?.dtype ?? "float32", outputs[0]);
    return to.nodes;
  },
});

/** X + bias + skip */
export const BiasAdd = defineOp({
  ...common, type: "BiasAdd", inputs: { X: "required", bias: "required", skip: "required" }, attributes: {}, evaluate: evaluate.BiasAdd,
  infer: ({ X }) => [{ dtype: X.dtype, shape: X.shape }],
  expand: ({ inputs: [x, bias, skip], outputs }) => {
    const to = new Expansion();
    to.add(Add, [to.add(Add, [x, bias]), skip], {}, outputs[0]);
    return to.nodes;
  },
});

/** The first half of x + bias, along the last axis, times Gelu of the second. */
export const BiasSplitGelu = defineOp({
  ...common, type: "BiasSplitGelu", inputs: { X: "required", bias: "required" }, attributes: {}, evaluate: evaluate.BiasSplitGelu,
  infer({ X }, _, context) {
    const half = dimExactDiv(X.shape[X.shape.length - 1] ?? 1, 2) ?? context.fail("OF3011", `${formatShape(X.shape)} does not split into halves`);
    return [{ dtype: X.dtype, shape: [...X.shape.slice(0, -1), half] }];
  },
  expand: ({ inputs: [x, bias], outputTypes, outputs }) => {
    const half = outputTypes[0]?.shape.at(-1);
    if (typeof half !== "number") return undefined;
    const to = new Expansion(), sum = to.add(Add, [x, bias]), part = (from: number): string => to.add(Slice, [sum, listOf(from), listOf(from + half), listOf(-1)]);
    to.add(Mul, [part(0), to.add(Gelu, [part(half)], { approximate: "none" })], {}, outputs[0]);
    return to.nodes;
  },
});

/** Adds the activation of a fused convolution or product; undefined for a name that is not known. */
function activate(to: Expansion, x: string, name: string, [a = 0, b = 0]: readonly number[], dtype: TypeInfo["dtype"], output: string | undefined): string | undefined {
  switch (name) {
    case "Relu": return to.add(Relu, [x], {}, output);
    case "Tanh": return to.add(Tanh, [x], {}, output);
    case "Sigmoid": return to.add(Sigmoid, [x], {}, output);
    case "LeakyRelu": return to.add(LeakyRelu, [x], { alpha: a }, output);
    case "HardSigmoid": return to.add(HardSigmoid, [x], { alpha: a, beta: b }, output);
    case "Clip": return to.add(Clip, [x, scalarOf(dtype, a), scalarOf(dtype, b)], {}, output);
    case "Elu": return to.add(Elu, [x], { alpha: a }, output);
    case "ThresholdedRelu": return to.add(ThresholdedRelu, [x], { alpha: a }, output);
    case "Softplus": return to.add(Softplus, [x], {}, output);
    case "Softsign": return to.add(Softsign, [x], {}, output);
    default: return undefined;
  }
}
const both = ["", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"];
const activations = [...both, "Clip"];
const productActivations = [...both, "Elu", "ThresholdedRelu", "Softplus", "Softsign"];

/** activation(Conv(X, W, B) + Z) */
export const FusedConv = defineOp({
  ...common, type: "FusedConv", inputs: { X: "required", W: "required", B: "optional", Z: "optional" },
  attributes: { ...convolutionAttributes, activation: string(""), activation_params: optional("floats") },
  evaluate: evaluate.FusedConv,
  infer({ X, W, B }, attributes, context) {
    if (!activations.includes(attributes.activation)) context.fail("OF3012", `unknown activation '${attributes.activation}'`);
    return [{ dtype: X.dtype, shape: inferConvolution(X, W, B, attributes, context) }];
  },
  expand: ({ inputs, inputTypes, outputs }, { activation, activation_params, ...attributes }) => {
    const to = new Expansion(), [x, w, b, z] = inputs;
    const plain = activation === "", last = (is: boolean): string | undefined => (is ? outputs[0] : undefined);
    const sum = to.add(Conv, b === undefined ? [x, w] : [x, w, b], attributes, last(plain && z === undefined));
    const total = z === undefined ? sum : to.add(Add, [sum, z], {}, last(plain));
    if (!plain) activate(to, total, activation, activation_params ?? [], inputTypes[0]?.dtype ?? "float32", outputs[0]);
    return to.nodes;
  },
});

interface Skip { readonly input: TypeInfo; readonly skip: TypeInfo }
function inferSkip({ input, skip }: Skip, context: InferContext): readonly TypeInfo[] {
  checkType(context, input, "input", "float");
  const joined = broadcastShapes(input.shape, skip.shape);
  const isLarger = joined === undefined || joined.length !== input.shape.length || joined.some((d, axis) => typeof d === "number" && d !== 1 && input.shape[axis] === 1);
  if (isLarger) context.fail("OF3011", `${formatShape(skip.shape)} cannot be added to ${formatShape(input.shape)}`);
  agreeBroadcast(context, [input.shape, skip.shape]);
  const whole = { dtype: input.dtype, shape: input.shape };
  const moments: TypeInfo = { dtype: "float32", shape: [...input.shape.slice(0, -1), 1] satisfies readonly Dim[] };
  return [whole, moments, moments, whole];
}

/** input + skip + bias; the sum itself is output 3. */
function skipSum(to: Expansion, { inputs, outputs }: ExpandContext, bias: string | undefined): string {
  const sum = to.add(Add, [inputs[0], inputs[1]], {}, bias === undefined ? outputs[3] : undefined);
  return bias === undefined ? sum : to.add(Add, [sum, bias], {}, outputs[3]);
}

export const SkipLayerNormalization = defineOp({
  ...common, type: "SkipLayerNormalization", attributes: { epsilon: float(1e-12) }, evaluate: evaluate.SkipLayerNormalization,
  inputs: { input: "required", skip: "required", gamma: "required", beta: "optional", bias: "optional" }, oneType: [["input", "skip", "gamma", "beta", "bias"]],
  infer: (inputs, _, context) => inferSkip(inputs, context),
  expand: (context, { epsilon }) => {
    const to = new Expansion(), [, , gamma, beta, bias] = context.inputs, sum = skipSum(to, context, bias);
    to.nodes.push({ op: LayerNormalization, inputs: beta === undefined ? [sum, gamma] : [sum, gamma, beta], attributes: { epsilon, axis: -1 }, outputs: context.outputs.slice(0, 3) });
    return to.nodes;
  },
});

/** Not centred: its mean, which nothing should read, is 0. */
export const SkipSimplifiedLayerNormalization = defineOp({
  ...common, type: "SkipSimplifiedLayerNormalization", attributes: { epsilon: float(1e-12) }, evaluate: evaluate.SkipSimplifiedLayerNormalization,
  inputs: { input: "required", skip: "required", gamma: "required", bias: "optional" }, oneType: [["input", "skip", "gamma", "bias"]],
  infer: (inputs, _, context) => inferSkip(inputs, context),
  expand: (context, { epsilon }) => {
    const to = new Expansion(), [, , gamma, bias] = context.inputs, [result, mean, inverse] = context.outputs;
    const sum = skipSum(to, context, bias);
    to.add(RMSNormalization, [sum, gamma], { epsilon, axis: -1 }, result);
    if (mean === undefined) return to.nodes;
    const wide = to.add(Cast, [sum], { to: 1 }), meanSquare = to.add(ReduceMean, [to.add(Mul, [wide, wide]), listOf(-1)]);
    const factor = to.add(Div, [scalarOf("float32", 1), to.add(Sqrt, [to.add(Add, [meanSquare, scalarOf("float32", epsilon)])])], {}, inverse);
    to.add(Mul, [factor, scalarOf("float32", 0)], {}, mean);
    return to.nodes;
  },
});
