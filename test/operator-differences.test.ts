/** Cases in which operators once gave something else than the standard says, found against onnxruntime; each with its cause. */
import { describe, expect, it } from "vitest";
import { fromNumbers } from "../src/core/tensor.ts";
import { judge } from "../fuzz/compare.ts";
import { close, exact, functions, type FuzzCase } from "../fuzz/fuzz-case.ts";

const ramp = (...dims: number[]) => fromNumbers("float32", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => (i % 11) - 5));
const f32 = (...values: number[]) => fromNumbers("float32", [values.length], values);

const cases: Record<string, FuzzCase> = {
  "AveragePool with dilations: an axis was split by a negative divisor, into loops of no iterations": { type: "AveragePool", opset: 19, inputs: [ramp(1, 2, 6, 6)], attributes: { dilations: [2, 1], kernel_shape: [3, 1], pads: [2, 0, 2, 0] }, outputs: 1, tolerance: close },
  "ThresholdedRelu of NaN: what is not above alpha is 0": { type: "ThresholdedRelu", inputs: [f32(NaN, 1, 3)], attributes: { alpha: { float: 2 } }, outputs: 1, tolerance: exact },
  "Shrink of NaN: it is on neither side": { type: "Shrink", inputs: [f32(NaN, 1, -3)], outputs: 1, tolerance: exact },
  "Shrink of integers was refused": { type: "Shrink", inputs: [fromNumbers("int32", [4], [-3, 0, 1, 7])], attributes: { bias: { float: 1 } }, outputs: 1, tolerance: exact },
  "sin, cos and tan of large float64 numbers: the kernel lost their digits": { type: "Sin", inputs: [fromNumbers("float64", [4], [1e22, Number.MAX_VALUE, -1e17, 3])], outputs: 1, tolerance: functions },
  "Squeeze of an empty tensor: as a Reshape it copied a size where 0 was meant": { type: "Squeeze", inputs: [fromNumbers("float32", [1, 0], []), fromNumbers("int64", [1], [0])], constants: [1], outputs: 1, tolerance: exact },
  "FusedGemm: activations with names of the standard's operators were refused": { type: "FusedGemm", domain: "com.microsoft", opset: 17, inputs: [ramp(3, 4), ramp(4, 5), ramp(5)], attributes: { activation: "Elu", activation_alpha: { float: 0.5 } }, outputs: 1, tolerance: close },
  "FusedGemm, Softplus": { type: "FusedGemm", domain: "com.microsoft", opset: 17, inputs: [ramp(3, 4), ramp(4, 5)], attributes: { activation: "Softplus" }, outputs: 1, tolerance: close },
  "FusedGemm, Softsign": { type: "FusedGemm", domain: "com.microsoft", opset: 17, inputs: [ramp(3, 4), ramp(4, 5)], attributes: { activation: "Softsign" }, outputs: 1, tolerance: close },
  "FusedGemm, ThresholdedRelu": { type: "FusedGemm", domain: "com.microsoft", opset: 17, inputs: [ramp(3, 4), ramp(4, 5)], attributes: { activation: "ThresholdedRelu", activation_alpha: { float: 2 } }, outputs: 1, tolerance: close },
  "Range of com.microsoft without a step, whose start is fed, was refused": { type: "Range", domain: "com.microsoft", opset: 17, inputs: [fromNumbers("int64", [], [-2]), fromNumbers("int64", [], [3])], outputs: 1, tolerance: exact },
  "MurmurHash3 of 64-bit numbers was refused": { type: "MurmurHash3", domain: "com.microsoft", opset: 17, inputs: [fromNumbers("float64", [3], [1.5, -0, 1e300])], attributes: { seed: 7, positive: 0 }, outputs: 1, tolerance: exact },
  "MurmurHash3 of int64": { type: "MurmurHash3", domain: "com.microsoft", opset: 17, inputs: [fromNumbers("int64", [3], [-1, 0, 2 ** 40])], attributes: { seed: 7 }, outputs: 1, tolerance: exact },
  "SkipSimplifiedLayerNormalization without epsilon: its default is 1e-12": { type: "SkipSimplifiedLayerNormalization", domain: "com.microsoft", opset: 17, inputs: [fromNumbers("float32", [1, 2], [0.002, -0.001]), fromNumbers("float32", [1, 2], [0, 0]), f32(1, 2)], outputs: 1, tolerance: close },
  "QGemm: the reference took a bias of a column as one of a row": { type: "QGemm", domain: "com.microsoft", opset: 17, inputs: [fromNumbers("uint8", [3, 4], [1, 9, 3, 200, 7, 0, 255, 4, 5, 6, 7, 8]), fromNumbers("float32", [], [0.5]), fromNumbers("uint8", [], [3]), fromNumbers("uint8", [4, 5], Array.from({ length: 20 }, (_, i) => (i * 37) % 256)), fromNumbers("float32", [], [0.25]), fromNumbers("uint8", [], [100]), fromNumbers("int32", [3, 1], [400, -2000, 77])], attributes: {}, outputs: 1, tolerance: close },
  "MultiHeadAttention: the reference let a query see other keys than those up to its own where there are more keys than queries": { type: "MultiHeadAttention", domain: "com.microsoft", opset: 17, inputs: [ramp(1, 1, 4), ramp(1, 3, 4), ramp(1, 3, 4), undefined, undefined, undefined, ramp(1, 2, 2, 2), ramp(1, 2, 2, 2)], attributes: { num_heads: 2, unidirectional: 1 }, outputs: 3, tolerance: close },
};

describe("as onnxruntime computes it", () => {
  it.each(Object.entries(cases))("%s", async (_, c) => expect(await judge(c)).toEqual({ kind: "agrees" }));
  it("a wrong result is seen", async () => {
    const { kind } = await judge({ type: "Slice", inputs: [f32(1), ...[2147483647, 2147483647, 0, -1].map((v) => fromNumbers("int64", [1], [v]))], outputs: 1, tolerance: exact });
    expect(kind).toBe("differs");
  });
});
