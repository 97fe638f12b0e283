import { describe, expect, it } from "vitest";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { mismatch, runCompiled } from "../../test/support/differential.ts";
import { judge, modelOf, type JudgedCase, type JudgedInput } from "../../test/support/onnxruntime-check.ts";
import { operatorDifference, type OperatorCase } from "../../test/support/operator-check.ts";
import { runOnnxruntime } from "../../test/support/onnxruntime.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { BiasAdd, BiasSplitGelu } from "./microsoft-fused.ts";

const random = randomFrom(14), tensor = (...dims: number[]): Tensor => randomTensor(dims, random);
const of = (...dims: number[]): JudgedInput => ({ tensor: tensor(...dims) });
const table = (...dims: number[]): JudgedInput => ({ ...of(...dims), constant: true });
const ints = (dims: readonly number[], ...values: number[]): JudgedInput => ({ tensor: fromNumbers("int32", dims, values) });
const three: JudgedCase["outputs"] = [["float32", 3], ["int32", 1], ["float32", 3]];
const tokens = ints([2, 3], 4, 0, 8, 1, 1, 5), segments = ints([2, 3], 0, 1, 1, 0, 0, 1);
const embed = (inputs: JudgedCase["inputs"], outputs: JudgedCase["outputs"] = three): JudgedCase => ({ type: "EmbedLayerNormalization", inputs, outputs, attributes: { epsilon: { float: 1e-6 } } });
const fused = (type: string, inputs: JudgedCase["inputs"], attributes: JudgedCase["attributes"], rank: number): JudgedCase => ({ type, inputs, attributes: attributes ?? {}, outputs: [["float32", rank]] });

const bytes = (dtype: "int8" | "uint8", ...dims: number[]): JudgedInput => ({ tensor: fromNumbers(dtype, dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.int(256) - (dtype === "int8" ? 128 : 0))), constant: true });
/** Tables and parameters of 8 bits, with a scale and a zero point each. */
const quantized = (dtype: "int8" | "uint8", withSegments: boolean): JudgedCase => {
  const one = (value: number): JudgedInput => ({ tensor: fromNumbers("float32", [], [value]), constant: true }), zero = (value: number): JudgedInput => ({ tensor: fromNumbers(dtype, [], [value]), constant: true });
  return {
    type: "QEmbedLayerNormalization", attributes: { epsilon: { float: 1e-6 } }, outputs: [["float32", 3], ["int32", 1]],
    inputs: [
      tokens, withSegments ? segments : undefined, bytes(dtype, 9, 8), bytes(dtype, 5, 8), withSegments ? bytes(dtype, 2, 8) : undefined, bytes(dtype, 8), bytes(dtype, 8), ints([2, 3], 1, 1, 0, 1, 1, 1),
      one(0.02), one(0.01), withSegments ? one(0.03) : undefined, one(0.05), one(0.04), zero(3), zero(7), withSegments ? zero(1) : undefined, zero(0), zero(9),
    ],
  };
};

describe("as onnxruntime", () => {
  it.each<readonly [string, JudgedCase]>([
    ["words, positions and segments", embed([tokens, segments, table(9, 8), table(5, 8), table(2, 8), table(8), table(8), ints([2, 3], 1, 1, 0, 1, 1, 1)])],
    ["words and positions alone", embed([tokens, undefined, table(9, 8), table(5, 8), undefined, table(8), table(8)])],
    ["positions as given", embed([tokens, segments, table(9, 8), table(5, 8), table(2, 8), table(8), table(8), undefined, ints([2, 3], 1, 2, 3, 4, 0, 1)], three)],
    ["positions of all the batch", embed([{ ...tokens, dims: ["b", "s"] }, undefined, table(9, 8), table(5, 8), undefined, table(8), table(8), undefined, { ...ints([1, 3], 1, 2, 3), dims: [1, "s"] }], three)],
    ["embeddings of signed integers", quantized("int8", true)],
    ["embeddings of unsigned integers", quantized("uint8", true)],
    ["a simplified layer normalisation", { type: "SimplifiedLayerNormalization", domain: "", inputs: [of(2, 3, 8), table(8)], outputs: [["float32", 3], ["float32", 3]], attributes: { epsilon: { float: 1e-3 } } }],
    ["of the last two axes", { type: "SimplifiedLayerNormalization", domain: "", inputs: [of(2, 3, 8), table(3, 8)], outputs: [["float32", 3]], attributes: { axis: 1 } }],
    ["a product of batches that stand behind", fused("FusedMatMul", [of(3, 2, 4), of(2, 4, 5)], { transBatchA: 1, alpha: { float: 0.5 } }, 3)],
    ["batches behind on both sides, transposed", fused("FusedMatMul", [of(4, 2, 3), of(5, 2, 4)], { transBatchA: 1, transA: 1, transBatchB: 1, transB: 1 }, 3)],
    ["a product with Relu", fused("FusedGemm", [of(3, 4), of(5, 4), of(5)], { activation: "Relu", transB: 1, alpha: { float: 0.5 } }, 2)],
    ["a product with LeakyRelu", fused("FusedGemm", [of(3, 4), of(4, 5)], { activation: "LeakyRelu", activation_alpha: { float: 0.3 } }, 2)],
  ])("%s", async (_, c) => { expect(await judge(c)).toBeUndefined(); });
  it("sees other positions", async () => {
    const inputs = (first: number): JudgedCase["inputs"] => [tokens, undefined, words, places, undefined, scale, shift, undefined, ints([2, 3], first, 2, 3, 4, 0, 1)], [words, places, scale, shift] = [table(9, 8), table(5, 8), table(8), table(8)];
    const a = modelOf(embed(inputs(1))), b = modelOf(embed(inputs(2)));
    expect(mismatch(await runCompiled(b.bytes, b.feeds, true), await runOnnxruntime(a.bytes, a.feeds))).toBeDefined();
  });
});

it.each<readonly [string, OperatorCase]>([
  ["BiasAdd", { op: BiasAdd, inputs: [of(2, 3, 4), of(4), of(2, 3, 4)] }],
  ["BiasSplitGelu", { op: BiasSplitGelu, inputs: [of(2, 3, 8), of(8)] }],
])("%s, which onnxruntime has for GPUs only, equals its evaluation", (_, c) => { expect(operatorDifference(c)).toBeLessThan(1e-5); });
