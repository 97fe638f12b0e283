import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, runOperator, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { BiasGelu, FastGelu, FusedConv, FusedMatMul, MicrosoftGelu, QuickGelu, SkipLayerNormalization, SkipSimplifiedLayerNormalization } from "./microsoft-fused.ts";

const random = randomFrom(11);
const of = (...dims: number[]): OperatorInput => ({ tensor: randomTensor(dims, random) });
const conv = (activation: string, params: readonly number[] = []): OperatorCase =>
  ({ op: FusedConv, attributes: { activation, activation_params: params, pads: [1, 1, 1, 1] }, inputs: [of(1, 3, 5, 5), of(4, 3, 3, 3), of(4), of(1, 4, 5, 5)] });

const cases: readonly (readonly [string, OperatorCase])[] = [
  ["Gelu", { op: MicrosoftGelu, inputs: [of(3, 5)] }],
  ["BiasGelu", { op: BiasGelu, inputs: [of(3, 5), of(5)] }],
  ["FastGelu", { op: FastGelu, inputs: [of(3, 5)] }],
  ["FastGelu with bias", { op: FastGelu, inputs: [of(3, 5), of(5)] }],
  ["QuickGelu", { op: QuickGelu, inputs: [of(3, 5)] }],
  ["FusedMatMul", { op: FusedMatMul, attributes: { alpha: 0.3, transA: 1, transB: 1 }, inputs: [of(2, 4, 3), of(5, 4)] }],
  ["FusedMatMul of vectors", { op: FusedMatMul, attributes: { transB: 1 }, inputs: [of(4), of(4)] }],
  ["FusedConv", conv("")], ["FusedConv with Relu", conv("Relu")], ["FusedConv with Clip", conv("Clip", [-0.5, 1])], ["FusedConv with HardSigmoid", conv("HardSigmoid", [0.3, 0.4])],
  ["FusedConv without sum", { op: FusedConv, attributes: { activation: "LeakyRelu", activation_params: [0.1] }, inputs: [of(1, 2, 4, 4), of(3, 2, 2, 2)] }],
  ["SkipLayerNormalization", { op: SkipLayerNormalization, attributes: { epsilon: 1e-5 }, outputs: 4, inputs: [of(2, 3, 8), of(2, 3, 8), of(8), of(8), of(8)] }],
  ["SkipLayerNormalization, no bias", { op: SkipLayerNormalization, outputs: 1, inputs: [of(2, 3, 8), of(1, 3, 8), of(8)] }],
  ["SkipSimplifiedLayerNormalization", { op: SkipSimplifiedLayerNormalization, outputs: 4, inputs: [of(2, 3, 8), of(2, 3, 8), of(8), of(8)] }],
];

describe("operators of onnxruntime's optimiser, in parts", () => {
  it.each(cases)("%s equals its evaluation", (_, c) => {
    expect(operatorDifference(c)).toBeLessThan(1e-5);
  });
  it("sees one wrong element", () => {
    const { expected, actual } = runOperator(conv("Relu"));
    const [e] = expected, [a] = actual;
    expect(e && a && difference(perturbed(a, 1), e)).toBeGreaterThan(1e-5);
  });
});
