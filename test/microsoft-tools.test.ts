/** Operators of com.microsoft that are no fusions, against onnxruntime; those it has no kernel for, against the standard's own operators. */
import { describe, expect, it } from "vitest";
import { fromNumbers, tensor, type Tensor } from "../src/core/tensor.ts";
import { close, type Tolerance } from "../fuzz/fuzz-case.ts";
import { judge } from "../fuzz/compare.ts";
import { differenceOf, runWay, specOf, type OracleCase } from "./support/operator-oracle.ts";
import { modelBytes, type AttributeSpec } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(23), domain = "com.microsoft";
const ints = (...values: number[]): Tensor => fromNumbers("int64", [values.length], values), i32 = (...values: number[]): Tensor => fromNumbers("int32", [values.length], values);
const float = (value: number): AttributeSpec => ({ float: value });
const wide = fromNumbers("float32", [2, 3, 3], [4, 1, 0, 1, 5, 2, 0, 2, 6, 0, 2, 1, 3, 0, 1, 1, 1, 4]);

const cases: Record<string, OracleCase & { readonly tolerance?: Tolerance }> = {
  "Inverse": { type: "Inverse", inputs: [wide], outputs: 1 },
  "CDist, euclidean": { type: "CDist", inputs: [randomTensor([5, 7], random), randomTensor([3, 7], random)], attributes: { metric: "euclidean" }, outputs: 1, tolerance: { relative: 1e-4, absolute: 1e-4 } },
  "CDist, squared": { type: "CDist", inputs: [randomTensor([5, 7], random), randomTensor([3, 7], random)], attributes: { metric: "sqeuclidean" }, outputs: 1, tolerance: { relative: 1e-4, absolute: 1e-4 } },
  "CropAndResize, bilinear": { type: "CropAndResize", inputs: [randomTensor([2, 3, 5, 7], random), fromNumbers("float32", [3, 4], [0, 0, 1, 1, 0.2, 0.1, 0.7, 0.9, -0.5, 0, 1.5, 1]), i32(0, 1, 0), i32(4, 3)], attributes: { extrapolation_value: float(9) }, outputs: 1, constants: [3] },
  "CropAndResize, nearest, one row": { type: "CropAndResize", inputs: [randomTensor([1, 2, 5, 7], random), fromNumbers("float32", [2, 4], [0, 0, 1, 1, 0.9, 0.8, 0.1, 0.2]), i32(0, 0), i32(1, 4)], attributes: { mode: "nearest" }, outputs: 1 },
  "MurmurHash3 of integers": { type: "MurmurHash3", inputs: [i32(3, -1, 0, 2147483647)], attributes: { seed: 42 }, outputs: 1 },
  "MurmurHash3 of strings, signed": { type: "MurmurHash3", inputs: [tensor("string", [4], ["foo", "", "wörter", "sixteen bytes ok"])], attributes: { positive: 0 }, outputs: 1 },
  "NGramRepeatBlock": { type: "NGramRepeatBlock", inputs: [fromNumbers("int64", [2, 6], [1, 2, 3, 1, 2, 1, 0, 4, 0, 4, 1, 0]), randomTensor([2, 6], random)], attributes: { ngram_size: 2 }, outputs: 1 },
  "DynamicTimeWarping": { type: "DynamicTimeWarping", inputs: [randomTensor([4, 6], random)], outputs: 1 },
  "Unique": { type: "Unique", inputs: [fromNumbers("float32", [6], [3, 1, 3, 2, 1, 3])], outputs: 3 },
  "Trilu": { type: "Trilu", inputs: [randomTensor([2, 3, 4], random), fromNumbers("int64", [], [-1])], attributes: { upper: 0 }, outputs: 1 },
  "Pad": { type: "Pad", inputs: [randomTensor([2, 3], random), ints(0, 1, 2, 0)], attributes: { mode: "constant" }, outputs: 1, constants: [1] },
  "ExpandDims": { type: "ExpandDims", inputs: [randomTensor([2, 3], random), fromNumbers("int32", [], [-1])], outputs: 1, constants: [1] },
  "Range": { type: "Range", inputs: [fromNumbers("float32", [], [1]), fromNumbers("float32", [], [5])], outputs: 1, constants: [0, 1] },
  "GatherND": { type: "GatherND", inputs: [randomTensor([3, 4, 2], random), fromNumbers("int64", [2, 2], [0, 1, 2, 3])], outputs: 1 },
  "GridSample": { type: "GridSample", inputs: [randomTensor([1, 2, 4, 5], random), fromNumbers("float32", [1, 2, 2, 2], [0.1, -0.3, 0.9, 1.2, -1, 0.5, 0, 0])], attributes: { mode: "bilinear", align_corners: 1, padding_mode: "border" }, outputs: 1 },
  "TransposeMatMul": { type: "TransposeMatMul", inputs: [randomTensor([4, 3], random), randomTensor([4, 5], random)], attributes: { transA: 1, alpha: float(0.5) }, outputs: 1 },
  "FusedGemm, LeakyRelu": { type: "FusedGemm", inputs: [randomTensor([4, 3], random), randomTensor([3, 5], random), randomTensor([5], random)], attributes: { activation: "LeakyRelu", activation_alpha: float(0.1), alpha: float(2) }, outputs: 1 },
  "ConvTransposeWithDynamicPads": { type: "ConvTransposeWithDynamicPads", inputs: [randomTensor([1, 2, 4, 4], random), randomTensor([2, 3, 3, 3], random), ints(1, 0, 0, 1)], attributes: { strides: [2, 2] }, outputs: 1, constants: [2] },
};

describe("com.microsoft as onnxruntime computes it", () => {
  it.each(Object.entries(cases))("%s", async (_, { tolerance = close, ...c }) => expect(await judge({ ...c, domain, opset: 17, tolerance })).toEqual({ kind: "agrees" }));
  it("a difference is seen", async () => {
    const { spec, feeds } = specOf({ type: "Inverse", domain, opset: 17, inputs: [wide], outputs: 1 });
    const { y0 } = await runWay(modelBytes(spec), feeds, "reference");
    expect(y0 && differenceOf({ ...y0, data: Float32Array.from(y0.data as Float32Array, (v) => v + 0.01) }, y0, 1e-5)).toMatch(/^element/);
  });
});

describe("spectra", () => {
  const x = randomTensor([3, 8], random);
  const run = async (c: OracleCase, way: "reference" | "fused"): Promise<Tensor> => {
    const { spec, feeds } = specOf({ domain, opset: 20, ...c }), { y0 } = await runWay(modelBytes(spec), feeds, way);
    if (!y0) throw new Error("no result");
    return y0;
  };
  it.each(["reference", "fused"] as const)("Irfft undoes Rfft (%s)", async (way) => {
    const spectrum = await run({ type: "Rfft", inputs: [x], attributes: { normalized: 0, onesided: 1, signal_ndim: 1 }, outputs: 1 }, way);
    expect(spectrum.dims).toEqual([3, 5, 2]);
    const row = Array.from((x.data as Float32Array).slice(0, 8));
    expect(spectrum.data[0]).toBeCloseTo(row.reduce((a, b) => a + b, 0), 4);
    expect(spectrum.data[8]).toBeCloseTo(row.reduce((a, b, i) => a + (i % 2 ? -b : b), 0), 4);
    const back = await run({ type: "Irfft", inputs: [spectrum], attributes: { normalized: 0, onesided: 1, signal_ndim: 1 }, outputs: 1 }, way);
    expect(differenceOf(back, x, 1e-5)).toBeUndefined();
  });
  it("what is not defined is refused", async () => {
    await expect(run({ type: "Rfft", inputs: [x], attributes: { normalized: 1, onesided: 1, signal_ndim: 1 }, outputs: 1 }, "reference")).rejects.toThrow(/OF3012/);
  });
});
