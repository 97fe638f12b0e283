/**
 * The models of ai.onnx.ml: linear ones, compiled as matrix products; support vector machines and tree ensembles, which
 * run on the host. Tree ensembles of versions 1 and 3 differ by attributes alone.
 */
import { dtypes, type DType } from "../core/dtype.ts";
import { formatShape, type Dim } from "../core/dim.ts";
import { fromNumbers, tensor } from "../core/tensor.ts";
import * as linear from "../evaluate/ai-onnx-ml-linear.ts";
import * as svm from "../evaluate/ai-onnx-ml-svm.ts";
import * as trees from "../evaluate/ai-onnx-ml-trees.ts";
import { defineOp, int, optional, required, string, type AttributeSpec, type ExpandContext, type InferContext, type TypeInfo } from "../graph/op.ts";
import { Sigmoid } from "./activation.ts";
import { Neg } from "./unary-math.ts";
import { Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Concat } from "./concat.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { Gather } from "./gather.ts";
import { Gemm } from "./gemm.ts";
import { Greater } from "./logic.ts";
import { checkRows, mlDomain } from "./ml-features.ts";
import { ArgMax } from "./order.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { Softmax } from "./softmax.ts";

const postTransform = { post_transform: string("NONE") } as const;
const knownTransforms = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];
function checkTransform(name: string, context: InferContext): void {
  if (!knownTransforms.includes(name)) context.fail("OF3012", `unknown post_transform '${name}'`, `it is one of ${knownTransforms.join(", ")}`);
}
/** How many rows a matrix has; a vector is one. */
const countOf = (x: TypeInfo): Dim => (x.shape.length === 1 ? 1 : x.shape[0] ?? 1);
const labelType = (strings: readonly string[] | undefined): DType => (strings?.length ? "string" : "int64");
/** How many labels there are; reports OF3012 unless they are given in exactly one form. */
function countLabels(strings: readonly string[] | undefined, integers: readonly number[] | undefined, context: InferContext): number {
  const counts = [strings?.length ?? 0, integers?.length ?? 0].filter((n) => n > 0);
  return counts.length === 1 ? counts[0] ?? 0 : context.fail("OF3012", `needs labels as strings or as integers, got ${counts.length === 0 ? "none" : "both"}`);
}
/** How many rows of coefficients there are; reports OF3012 where they do not divide. */
function countTargets(x: TypeInfo, coefficients: readonly number[], context: InferContext): number {
  const width = x.shape[x.shape.length - 1] ?? 1;
  if (typeof width !== "number") return context.fail("OF3010", `needs a known number of features, got ${formatShape(x.shape)}`, "fix the input's last size");
  if (width === 0 || coefficients.length % width !== 0 || coefficients.length === 0) context.fail("OF3012", `${coefficients.length} coefficients are no rows of ${width} features`);
  return coefficients.length / width;
}

/** The input's rows as a float32 matrix. */
function floatRows(to: Expansion, { inputs, inputTypes }: ExpandContext): string | undefined {
  const [x] = inputs, [type] = inputTypes;
  const wide = type?.dtype === "float32" ? x : to.add(Cast, [x], { to: dtypes.float32.onnx });
  return type?.shape.length === 1 ? to.add(Unsqueeze, [wide, listOf(0)]) : wide;
}
/** Rows · coefficients' + intercepts. */
function product(to: Expansion, context: ExpandContext, coefficients: readonly number[], intercepts: readonly number[], targets: number, output?: string): string {
  const weights = fromNumbers("float32", [targets, coefficients.length / targets], coefficients);
  return to.add(Gemm, [floatRows(to, context), weights, ...(intercepts.length ? [fromNumbers("float32", [intercepts.length], intercepts)] : [])], { transB: 1 }, output);
}
const simpleTransforms = ["NONE", "LOGISTIC", "SOFTMAX"];

export const LinearRegressor = defineOp({
  ...mlDomain, type: "LinearRegressor", since: 1, inputs: { X: "required" },
  attributes: { coefficients: required("floats"), intercepts: optional("floats"), targets: int(1), ...postTransform },
  evaluate: linear.LinearRegressor,
  infer: ({ X }, { coefficients, targets, intercepts, post_transform }, context) => {
    checkRows(X, context);
    checkTransform(post_transform, context);
    if (countTargets(X, coefficients, context) !== targets) context.fail("OF3012", `${coefficients.length} coefficients do not make ${targets} targets`);
    if (intercepts?.length && intercepts.length !== targets) context.fail("OF3012", `attribute 'intercepts' needs ${targets} values, got ${intercepts.length}`);
    return [{ dtype: "float32", shape: [countOf(X), targets] }];
  },
  expand: (context, { coefficients, intercepts = [], targets, post_transform }) => {
    if (!simpleTransforms.includes(post_transform)) return undefined;
    const to = new Expansion(), [output] = context.outputs;
    const scores = product(to, context, coefficients, intercepts, targets, post_transform === "NONE" ? output : undefined);
    if (post_transform === "LOGISTIC") to.add(Sigmoid, [scores], {}, output);
    if (post_transform === "SOFTMAX") to.add(Softmax, [scores], { axis: -1 }, output);
    return to.nodes;
  },
});

export const LinearClassifier = defineOp({
  ...mlDomain, type: "LinearClassifier", since: 1, inputs: { X: "required" },
  attributes: { coefficients: required("floats"), intercepts: optional("floats"), classlabels_ints: optional("ints"), classlabels_strings: optional("strings"), multi_class: int(0), ...postTransform },
  evaluate: linear.LinearClassifier,
  infer: ({ X }, { coefficients, classlabels_ints, classlabels_strings, post_transform }, context) => {
    checkRows(X, context);
    checkTransform(post_transform, context);
    const labels = countLabels(classlabels_strings, classlabels_ints, context), targets = countTargets(X, coefficients, context);
    if (targets !== labels && targets !== 1) context.fail("OF3012", `${targets} rows of coefficients do not fit ${labels} labels`);
    return [{ dtype: labelType(classlabels_strings), shape: [countOf(X)] }, { dtype: "float32", shape: [countOf(X), targets === 1 && labels === 2 ? 2 : targets] }];
  },
  expand: (context, { coefficients, intercepts = [], classlabels_ints = [], classlabels_strings = [], post_transform }) => {
    if (!simpleTransforms.includes(post_transform)) return undefined;
    const to = new Expansion(), [chosen, scores] = context.outputs, x = context.inputTypes[0], width = x?.shape[x.shape.length - 1] ?? 1;
    const targets = coefficients.length / Number(width), count = classlabels_strings.length || classlabels_ints.length, isPair = targets === 1 && count === 2;
    const raw = product(to, context, coefficients, intercepts, targets);
    const best = targets === 1 ? to.add(Reshape, [to.add(Cast, [to.add(Greater, [raw, scalarOf("float32", 0)])], { to: dtypes.int64.onnx }), listOf(-1)]) : to.add(ArgMax, [raw], { axis: 1, keepdims: 0 });
    const labels = classlabels_strings.length ? tensor("string", [count], classlabels_strings) : fromNumbers("int64", [count], classlabels_ints);
    if (count === 1) to.add(Gather, [tensor(labels.dtype, [2], labels.dtype === "string" ? ["", String(labels.data[0])] : BigInt64Array.of(0n, BigInt(labels.data[0] ?? 0n))), best], { axis: 0 }, chosen);
    else to.add(Gather, [labels, best], { axis: 0 }, chosen);
    if (scores === undefined) return to.nodes;
    if (isPair) {
      const other = post_transform === "LOGISTIC" ? to.add(Sigmoid, [to.add(Neg, [raw])]) : to.add(Sub, [scalarOf("float32", 1), raw]);
      to.add(Concat, [other, post_transform === "LOGISTIC" ? to.add(Sigmoid, [raw]) : raw], { axis: 1 }, scores);
    } else if (post_transform === "LOGISTIC") to.add(Sigmoid, [raw], {}, scores);
    else if (post_transform === "SOFTMAX") to.add(Softmax, [raw], { axis: -1 }, scores);
    else to.add(Reshape, [raw, listOf(-1, targets)], {}, scores);
    return to.nodes;
  },
});

const kernel = { kernel_type: string("LINEAR"), kernel_params: optional("floats"), support_vectors: optional("floats"), coefficients: required("floats"), rho: required("floats") } as const satisfies Record<string, AttributeSpec>;
function checkKernel(name: string, context: InferContext): void {
  if (!["LINEAR", "POLY", "RBF", "SIGMOID"].includes(name)) context.fail("OF3012", `unknown kernel_type '${name}'`, "it is 'LINEAR', 'POLY', 'RBF' or 'SIGMOID'");
}

export const SVMRegressor = defineOp({
  ...mlDomain, type: "SVMRegressor", since: 1, inputs: { X: "required" }, attributes: { ...kernel, n_supports: int(0), one_class: int(0), ...postTransform },
  evaluate: svm.SVMRegressor,
  infer: ({ X }, { kernel_type, post_transform }, context) => {
    checkRows(X, context);
    checkKernel(kernel_type, context);
    checkTransform(post_transform, context);
    return [{ dtype: "float32", shape: [countOf(X), 1] }];
  },
});

export const SVMClassifier = defineOp({
  ...mlDomain, type: "SVMClassifier", since: 1, inputs: { X: "required" },
  attributes: { ...kernel, classlabels_ints: optional("ints"), classlabels_strings: optional("strings"), prob_a: optional("floats"), prob_b: optional("floats"), vectors_per_class: optional("ints"), ...postTransform },
  evaluate: svm.SVMClassifier,
  infer: ({ X }, { kernel_type, post_transform, classlabels_ints, classlabels_strings, prob_a, vectors_per_class }, context) => {
    checkRows(X, context);
    checkKernel(kernel_type, context);
    checkTransform(post_transform, context);
    const labels = countLabels(classlabels_strings, classlabels_ints, context), isPairwise = vectors_per_class?.some((n) => n > 0) && !prob_a?.length;
    return [{ dtype: labelType(classlabels_strings), shape: [countOf(X)] }, { dtype: "float32", shape: [countOf(X), isPairwise && labels > 2 ? (labels * (labels - 1)) / 2 : labels] }];
  },
});

const nodes = {
  nodes_treeids: required("ints"), nodes_nodeids: required("ints"), nodes_featureids: required("ints"), nodes_modes: required("strings"),
  nodes_values: optional("floats"), nodes_values_as_tensor: optional("tensor"), nodes_truenodeids: required("ints"), nodes_falsenodeids: required("ints"),
  nodes_missing_value_tracks_true: optional("ints"), nodes_hitrates: optional("floats"), nodes_hitrates_as_tensor: optional("tensor"),
  base_values: optional("floats"), base_values_as_tensor: optional("tensor"), ...postTransform,
} as const satisfies Record<string, AttributeSpec>;
const matrix = (X: TypeInfo, context: InferContext): void => { if (X.shape.length !== 2) context.fail("OF3010", `needs a matrix, got ${formatShape(X.shape)}`); };

export const TreeEnsembleRegressor = defineOp({
  ...mlDomain, type: "TreeEnsembleRegressor", since: 3, inputs: { X: "required" },
  attributes: { ...nodes, target_treeids: required("ints"), target_nodeids: required("ints"), target_ids: required("ints"), target_weights: optional("floats"), target_weights_as_tensor: optional("tensor"), n_targets: int(1), aggregate_function: string("SUM") },
  evaluate: trees.TreeEnsembleRegressor,
  infer: ({ X }, { n_targets, post_transform, aggregate_function }, context) => {
    checkType(context, X, "X", "numeric");
    matrix(X, context);
    checkTransform(post_transform, context);
    if (!["SUM", "AVERAGE", "MIN", "MAX"].includes(aggregate_function)) context.fail("OF3012", `unknown aggregate_function '${aggregate_function}'`, "it is 'SUM', 'AVERAGE', 'MIN' or 'MAX'");
    return [{ dtype: "float32", shape: [countOf(X), n_targets] }];
  },
});

export const TreeEnsembleClassifier = defineOp({
  ...mlDomain, type: "TreeEnsembleClassifier", since: 3, inputs: { X: "required" },
  attributes: { ...nodes, class_treeids: required("ints"), class_nodeids: required("ints"), class_ids: required("ints"), class_weights: optional("floats"), class_weights_as_tensor: optional("tensor"), classlabels_int64s: optional("ints"), classlabels_strings: optional("strings") },
  evaluate: trees.TreeEnsembleClassifier,
  infer: ({ X }, { classlabels_int64s, classlabels_strings, post_transform }, context) => {
    checkType(context, X, "X", "numeric");
    matrix(X, context);
    checkTransform(post_transform, context);
    return [{ dtype: labelType(classlabels_strings), shape: [countOf(X)] }, { dtype: "float32", shape: [countOf(X), countLabels(classlabels_strings, classlabels_int64s, context)] }];
  },
});

export const TreeEnsemble = defineOp({
  ...mlDomain, type: "TreeEnsemble", since: 5, inputs: { X: "required" },
  attributes: {
    aggregate_function: int(1), post_transform: int(0), n_targets: int(1), tree_roots: required("ints"),
    nodes_featureids: required("ints"), nodes_splits: required("tensor"), nodes_modes: required("tensor"), nodes_truenodeids: required("ints"), nodes_trueleafs: required("ints"),
    nodes_falsenodeids: required("ints"), nodes_falseleafs: required("ints"), nodes_missing_value_tracks_true: optional("ints"), nodes_hitrates: optional("tensor"),
    membership_values: optional("tensor"), leaf_targetids: required("ints"), leaf_weights: required("tensor"),
  },
  evaluate: trees.TreeEnsemble,
  infer: ({ X }, { n_targets, nodes_splits, aggregate_function, post_transform }, context) => {
    checkType(context, X, "X", "float");
    matrix(X, context);
    if (nodes_splits.dtype !== X.dtype) context.fail("OF3013", `input 'X' is ${X.dtype}, its splits are ${nodes_splits.dtype}`);
    if (aggregate_function < 0 || aggregate_function > 3 || post_transform < 0 || post_transform > 4) context.fail("OF3012", "aggregate_function is 0 to 3, post_transform 0 to 4");
    return [{ dtype: X.dtype, shape: [countOf(X), n_targets] }];
  },
});
