/** The operators of ai.onnx.ml against onnxruntime: by the reference interpreter, compiled unfused and fused. */
import { describe, expect, it } from "vitest";
import { fromNumbers, tensor, type Tensor } from "../src/core/tensor.ts";
import { differenceOf, runWays, type OracleCase } from "./support/operator-oracle.ts";
import type { AttributeSpec } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(17), domain = "ai.onnx.ml";
const floats = (...values: number[]): AttributeSpec => ({ floats: values }), strings = (...values: string[]): AttributeSpec => ({ strings: values });
const f32 = { dtype: "float32", rank: 2 } as const, int = { dtype: "int64", rank: 1 } as const, text = { dtype: "string", rank: 1 } as const;
const x = randomTensor([5, 3], random), vector = randomTensor([3], random), integers = fromNumbers("int64", [5, 3], Array.from({ length: 15 }, (_, i) => (i % 7) - 3));
const normals = (count: number): number[] => Array.from(randomTensor([count], random).data as Float32Array);

/** Two trees of depth two over three features; leaves vote for `targets` in turn. */
function forest(prefix: "class" | "target", targets: readonly number[], mode: string, sign: 1 | -1): Record<string, AttributeSpec> {
  const leaves = [2, 3, 5, 6], ids = [0, 1, 2, 3, 4, 5, 6], both = <T>(list: readonly T[]): T[] => [...list, ...list];
  return {
    nodes_treeids: [...ids.map(() => 0), ...ids.map(() => 1)], nodes_nodeids: both(ids), nodes_featureids: [0, 1, 0, 0, 2, 0, 0, 2, 0, 0, 0, 1, 0, 0],
    nodes_modes: strings(...both(ids.map((i) => (leaves.includes(i) ? "LEAF" : mode)))), nodes_values: floats(...both([0.1, -0.2, 0, 0, 0.3, 0, 0])),
    nodes_truenodeids: both([1, 2, 0, 0, 5, 0, 0]), nodes_falsenodeids: both([4, 3, 0, 0, 6, 0, 0]), nodes_missing_value_tracks_true: both([1, 0, 0, 0, 1, 0, 0]),
    [`${prefix}_treeids`]: [0, 0, 0, 0, 1, 1, 1, 1], [`${prefix}_nodeids`]: both(leaves), [`${prefix}_ids`]: Array.from({ length: 8 }, (_, i) => targets[i % targets.length] ?? 0),
    [`${prefix}_weights`]: floats(0.1, 0.6, 0.3, 0.2, 0.45, 0.15, sign * 0.35, 0.4),
  };
}
const missing: Tensor = fromNumbers("float32", [4, 3], [NaN, 0.5, 1, 0.1, NaN, -1, 0.1, -0.2, 0.3, 2, 2, NaN]);

const cases: Record<string, OracleCase> = {
  "Scaler": { type: "Scaler", inputs: [x], attributes: { offset: floats(1, 2, 3), scale: floats(2, 0.5, -1) }, outputs: [f32] },
  "Scaler, one value, integers": { type: "Scaler", inputs: [integers], attributes: { offset: floats(1), scale: floats(2) }, outputs: [f32] },
  "Normalizer MAX": { type: "Normalizer", inputs: [x], attributes: { norm: "MAX" }, outputs: [f32] },
  "Normalizer L1": { type: "Normalizer", inputs: [integers], attributes: { norm: "L1" }, outputs: [f32] },
  "Normalizer L2, a row of zeros": { type: "Normalizer", inputs: [fromNumbers("float32", [2, 3], [0, 0, 0, 3, -4, 0])], attributes: { norm: "L2" }, outputs: [f32] },
  "Binarizer": { type: "Binarizer", inputs: [x], attributes: { threshold: { float: 0.25 } }, outputs: [f32] },
  "Imputer NaN": { type: "Imputer", inputs: [missing], attributes: { imputed_value_floats: floats(7, 8, 9), replaced_value_float: { float: NaN } }, outputs: [f32] },
  "Imputer of integers": { type: "Imputer", inputs: [integers], attributes: { imputed_value_int64s: [11], replaced_value_int64: -2 }, outputs: [{ dtype: "int64", rank: 2 }] },
  "ArrayFeatureExtractor": { type: "ArrayFeatureExtractor", inputs: [x, fromNumbers("int64", [1, 2], [2, 0])], outputs: [f32] },
  "ArrayFeatureExtractor of a vector": { type: "ArrayFeatureExtractor", inputs: [vector, fromNumbers("int64", [2], [1, 1])], outputs: [f32] },
  "FeatureVectorizer": { type: "FeatureVectorizer", inputs: [x, randomTensor([5, 2], random)], attributes: { inputdimensions: [3, 2] }, outputs: [f32] },
  "FeatureVectorizer, cut and padded": { type: "FeatureVectorizer", inputs: [x, randomTensor([5, 2], random)], attributes: { inputdimensions: [2, 4] }, outputs: [f32] },
  "OneHotEncoder": { type: "OneHotEncoder", inputs: [integers], attributes: { cats_int64s: [-3, 0, 2] }, outputs: [{ dtype: "float32", rank: 3 }] },
  "OneHotEncoder of floats": { type: "OneHotEncoder", inputs: [fromNumbers("float32", [4], [1.7, -0.5, 3, 2])], attributes: { cats_int64s: [0, 1, 2] }, outputs: [f32] },
  "LabelEncoder int to float": { type: "LabelEncoder", version: 2, inputs: [integers], attributes: { keys_int64s: [-1, 2], values_floats: floats(0.5, 1.5), default_float: { float: -9 } }, outputs: [f32] },
  "LabelEncoder float to int, NaN": { type: "LabelEncoder", version: 4, inputs: [missing], attributes: { keys_floats: floats(NaN, 2), values_int64s: [4, 6] }, outputs: [{ dtype: "int64", rank: 2 }] },
  "LabelEncoder tensors": { type: "LabelEncoder", version: 4, inputs: [x], attributes: { keys_tensor: fromNumbers("float32", [2], [Number(x.data[0]), Number(x.data[4])]), values_tensor: fromNumbers("int64", [2], [10, 20]), default_tensor: fromNumbers("int64", [1], [3]) }, outputs: [{ dtype: "int64", rank: 2 }] },
  "LabelEncoder of strings": { type: "LabelEncoder", version: 2, inputs: [tensor("string", [3], ["a", "x", "b"])], attributes: { keys_strings: strings("a", "b"), values_strings: strings("A", "B") }, outputs: [text] },
  "LabelEncoder of version 1": { type: "LabelEncoder", version: 1, inputs: [tensor("string", [3], ["b", "x", "a"])], attributes: { classes_strings: strings("a", "b") }, outputs: [int] },
  "CategoryMapper": { type: "CategoryMapper", inputs: [tensor("string", [2, 2], ["p", "q", "r", "p"])], attributes: { cats_strings: strings("p", "q"), cats_int64s: [5, 7] }, outputs: [{ dtype: "int64", rank: 2 }] },
  "LinearRegressor": { type: "LinearRegressor", inputs: [x], attributes: { coefficients: floats(...normals(6)), intercepts: floats(0.5, -1), targets: 2 }, outputs: [f32] },
  "LinearRegressor, softmax of integers": { type: "LinearRegressor", inputs: [fromNumbers("float32", [2, 3], [1, 2, 3, -1, 0, 2])], attributes: { coefficients: floats(...normals(6)), intercepts: floats(0, 0), targets: 2, post_transform: "SOFTMAX" }, outputs: [f32] },
  "LinearClassifier": { type: "LinearClassifier", inputs: [x], attributes: { coefficients: floats(...normals(9)), intercepts: floats(0.1, 0.2, 0.3), classlabels_ints: [4, 5, 9], post_transform: "LOGISTIC" }, outputs: [int, f32] },
  "LinearClassifier, strings, softmax": { type: "LinearClassifier", inputs: [integers], attributes: { coefficients: floats(...normals(9)), intercepts: floats(0.1, 0.2, 0.3), classlabels_strings: strings("u", "v", "w"), post_transform: "SOFTMAX" }, outputs: [text, f32] },
  "LinearClassifier, SOFTMAX_ZERO": { type: "LinearClassifier", inputs: [x], attributes: { coefficients: floats(...normals(9)), intercepts: floats(0, 0, 0), classlabels_ints: [0, 1, 2], post_transform: "SOFTMAX_ZERO" }, outputs: [int, f32] },
  "LinearClassifier, one score for two": { type: "LinearClassifier", inputs: [x], attributes: { coefficients: floats(...normals(3)), intercepts: floats(0.1), classlabels_ints: [3, 8] }, outputs: [int, f32] },
  "SVMRegressor RBF": { type: "SVMRegressor", inputs: [x], attributes: { kernel_type: "RBF", kernel_params: floats(0.4, 0, 3), support_vectors: floats(...normals(12)), coefficients: floats(...normals(4)), n_supports: 4, rho: floats(0.3) }, outputs: [f32] },
  "SVMRegressor, one class": { type: "SVMRegressor", inputs: [x], attributes: { kernel_type: "SIGMOID", kernel_params: floats(0.4, 0.1, 3), support_vectors: floats(...normals(12)), coefficients: floats(...normals(4)), n_supports: 4, rho: floats(0.3), one_class: 1 }, outputs: [f32] },
  "SVMRegressor, linear": { type: "SVMRegressor", inputs: [x], attributes: { kernel_type: "LINEAR", kernel_params: floats(0, 0, 0), coefficients: floats(...normals(3)), rho: floats(0.3), n_supports: 0 }, outputs: [f32] },
  "SVMClassifier, three classes": { type: "SVMClassifier", inputs: [x], attributes: { kernel_type: "POLY", kernel_params: floats(0.5, 1, 2), support_vectors: floats(...normals(18)), vectors_per_class: [2, 3, 1], coefficients: floats(...normals(12)), rho: floats(0.1, -0.2, 0.3), classlabels_ints: [1, 2, 3] }, outputs: [int, f32] },
  "SVMClassifier with probabilities": { type: "SVMClassifier", inputs: [x], attributes: { kernel_type: "RBF", kernel_params: floats(0.5, 1, 2), support_vectors: floats(...normals(18)), vectors_per_class: [2, 3, 1], coefficients: floats(...normals(12)), rho: floats(0.1, -0.2, 0.3), prob_a: floats(-1, -2, -0.5), prob_b: floats(0.1, 0, -0.2), classlabels_ints: [1, 2, 3] }, outputs: [int, f32] },
  "SVMClassifier, two classes": { type: "SVMClassifier", inputs: [x], attributes: { kernel_type: "RBF", kernel_params: floats(0.5, 1, 2), support_vectors: floats(...normals(9)), vectors_per_class: [2, 1], coefficients: floats(...normals(3)), rho: floats(0.1), classlabels_ints: [0, 1] }, outputs: [int, f32] },
  "SVMClassifier, linear": { type: "SVMClassifier", inputs: [x], attributes: { kernel_params: floats(0, 0, 0), coefficients: floats(...normals(9)), rho: floats(0.1), classlabels_ints: [5, 6, 7], post_transform: "SOFTMAX" }, outputs: [int, f32] },
  "TreeEnsembleRegressor": { type: "TreeEnsembleRegressor", version: 3, inputs: [missing], attributes: { ...forest("target", [0, 1], "BRANCH_LEQ", -1), n_targets: 2 }, outputs: [f32] },
  "TreeEnsembleRegressor AVERAGE": { type: "TreeEnsembleRegressor", version: 3, inputs: [missing], attributes: { ...forest("target", [0], "BRANCH_LT", 1), n_targets: 1, aggregate_function: "AVERAGE" }, outputs: [f32] },
  "TreeEnsembleRegressor with a base value": { type: "TreeEnsembleRegressor", version: 3, inputs: [missing], attributes: { ...forest("target", [0], "BRANCH_NEQ", 1), n_targets: 1, base_values: floats(0.75) }, outputs: [f32] },
  "TreeEnsembleRegressor MIN": { type: "TreeEnsembleRegressor", version: 1, inputs: [x], attributes: { ...forest("target", [0], "BRANCH_GT", -1), n_targets: 1, aggregate_function: "MIN" }, outputs: [f32] },
  "TreeEnsembleRegressor MAX": { type: "TreeEnsembleRegressor", version: 1, inputs: [x], attributes: { ...forest("target", [0], "BRANCH_GTE", -1), n_targets: 1, aggregate_function: "MAX" }, outputs: [f32] },
  "TreeEnsembleClassifier, three classes": { type: "TreeEnsembleClassifier", version: 3, inputs: [missing], attributes: { ...forest("class", [0, 1, 2], "BRANCH_LEQ", 1), classlabels_int64s: [3, 4, 5], post_transform: "SOFTMAX" }, outputs: [int, f32] },
  "TreeEnsembleClassifier, strings": { type: "TreeEnsembleClassifier", version: 1, inputs: [x], attributes: { ...forest("class", [0, 1, 2], "BRANCH_LEQ", 1), classlabels_strings: strings("a", "b", "c") }, outputs: [text, f32] },
  "TreeEnsembleClassifier, one score, shares": { type: "TreeEnsembleClassifier", version: 1, inputs: [missing], attributes: { ...forest("class", [0], "BRANCH_LEQ", 1), classlabels_int64s: [3, 4] }, outputs: [int, f32] },
  "TreeEnsembleClassifier, one score, logistic": { type: "TreeEnsembleClassifier", version: 1, inputs: [missing], attributes: { ...forest("class", [0], "BRANCH_LEQ", -1), classlabels_int64s: [3, 4], post_transform: "LOGISTIC" }, outputs: [int, f32] },
  "TreeEnsembleClassifier, one score, opposite": { type: "TreeEnsembleClassifier", version: 1, inputs: [missing], attributes: { ...forest("class", [0], "BRANCH_LEQ", -1), classlabels_int64s: [3, 4] }, outputs: [int, f32] },
};

describe("ai.onnx.ml as onnxruntime computes it", () => {
  it.each(Object.entries(cases))("%s", async (_, c) => {
    const { onnxruntime, ...ours } = await runWays({ domain, version: 1, ...c });
    for (const [way, results] of Object.entries(ours)) for (const [name, expected] of Object.entries(onnxruntime)) expect([way, name, differenceOf(results[name], expected, 1e-5, 2e-6)]).toEqual([way, name, undefined]);
  });
  it("a difference is seen", () => {
    expect(differenceOf(x, fromNumbers("float32", [5, 3], Array.from(x.data as Float32Array, (v) => v * 1.0001)), 1e-5)).toMatch(/^element/);
  });
});
