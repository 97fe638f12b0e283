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
};

describe("as onnxruntime computes it", () => {
  it.each(Object.entries(cases))("%s", async (_, c) => expect(await judge(c)).toEqual({ kind: "agrees" }));
  it("a wrong result is seen", async () => {
    const { kind } = await judge({ type: "Slice", inputs: [f32(1), ...[2147483647, 2147483647, 0, -1].map((v) => fromNumbers("int64", [1], [v]))], outputs: 1, tolerance: exact });
    expect(kind).toBe("differs");
  });
});
