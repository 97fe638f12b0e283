/** Operators as older opsets spell them: read, compiled fused and unfused, and run as onnxruntime does. */
import { describe, expect, test } from "vitest";
import type { Tensor } from "../src/core/tensor.ts";
import { mismatch, runCompiled } from "./support/differential.ts";
import { modelBytes, type AttributeSpec, type NodeSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

interface Old {
  readonly opset: number;
  readonly x: readonly number[];
  readonly nodes: readonly (readonly [type: string, inputs: string, outputs: string, attributes?: Readonly<Record<string, AttributeSpec>>])[];
  readonly weights?: Readonly<Record<string, Tensor>>;
  readonly output?: { readonly dtype: "int64"; readonly rank: number };
  readonly rank?: number;
}
const random = randomFrom(3);
const weight = (...dims: readonly number[]): Tensor => randomTensor(dims, random, 0.5);
const positive = (n: number): Tensor => ({ dtype: "float32", dims: [n], data: Float32Array.from({ length: n }, () => 0.5 + random()) });
const ints = (...values: readonly number[]): Tensor => ({ dtype: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) });
const floats = (...values: readonly number[]): Tensor => ({ dtype: "float32", dims: [values.length], data: Float32Array.from(values) });
const float = (x: number): AttributeSpec => ({ float: x });

const models: Readonly<Record<string, Old>> = {
  "BatchNormalization behind Conv": { opset: 7, x: [1, 3, 5, 5], weights: { w: weight(4, 3, 3, 3), g: positive(4), b: weight(4), m: weight(4), v: positive(4) }, nodes: [["Conv", "x w", "c"], ["BatchNormalization", "c g b m v", "n", { epsilon: float(1e-3), momentum: float(0.9) }], ["Relu", "n", "y"]] },
  "Dropout": { opset: 7, x: [2, 3], nodes: [["Dropout", "x", "d", { ratio: float(0.3) }], ["Relu", "d", "y"]] },
  "Dropout, opset 10": { opset: 10, x: [2, 3], nodes: [["Relu", "x", "r"], ["Dropout", "r", "y", { ratio: float(0.3) }]] },
  "Clip": { opset: 7, x: [2, 9], nodes: [["Clip", "x", "y", { min: float(-0.5), max: float(0.5) }]] },
  "Clip with one bound": { opset: 7, x: [2, 9], nodes: [["Clip", "x", "y", { min: float(0) }]] },
  "Upsample": { opset: 7, x: [1, 2, 3, 3], nodes: [["Upsample", "x", "y", { mode: "nearest", scales: { floats: [1, 1, 2, 3] } }]] },
  "Upsample, linear": { opset: 9, x: [1, 2, 3, 3], weights: { s: floats(1, 1, 2, 2) }, nodes: [["Upsample", "x s", "y", { mode: "linear" }]] },
  "Resize": { opset: 10, x: [1, 2, 4, 4], weights: { s: floats(1, 1, 2, 2) }, nodes: [["Resize", "x s", "y", { mode: "nearest" }]] },
  "Slice": { opset: 7, x: [5, 6], nodes: [["Slice", "x", "y", { starts: [1, -4], ends: [1000, -1], axes: [0, 1] }]] },
  "Slice without axes": { opset: 7, x: [5, 6], nodes: [["Slice", "x", "y", { starts: [1], ends: [3] }]] },
  "Pad": { opset: 7, x: [1, 2, 3, 3], nodes: [["Pad", "x", "y", { mode: "reflect", pads: [0, 0, 1, 1, 0, 0, 1, 1] }]] },
  "Pad with a value": { opset: 7, x: [2, 3], nodes: [["Pad", "x", "y", { pads: [0, 1, 1, 0], value: float(2.5) }]] },
  "Squeeze, Unsqueeze": { opset: 7, x: [2, 1, 3], rank: 4, nodes: [["Squeeze", "x", "s", { axes: [1] }], ["Unsqueeze", "s", "y", { axes: [0, 3] }]] },
  "ReduceSum, ReduceMean": { opset: 7, x: [2, 3, 4], rank: 2, nodes: [["ReduceMean", "x", "m", { axes: [-1], keepdims: 0 }], ["ReduceSum", "m", "y", { axes: [1] }]] },
  "Softmax over all that follows": { opset: 7, x: [2, 3, 4], nodes: [["Softmax", "x", "y", { axis: 1 }]] },
  "Softmax with its old default axis": { opset: 11, x: [2, 3, 4], nodes: [["Softmax", "x", "y"]] },
  "LogSoftmax": { opset: 9, x: [3, 4], nodes: [["LogSoftmax", "x", "y"]] },
  "Hardmax": { opset: 11, x: [2, 3, 4], nodes: [["Hardmax", "x", "y", { axis: 1 }]] },
  "Split": { opset: 7, x: [2, 6], nodes: [["Split", "x", "a b", { axis: 1, split: [2, 4] }], ["ReduceMax", "a", "c", { axes: [1] }], ["Add", "b c", "y"]] },
  "Split in equal parts": { opset: 11, x: [2, 6], nodes: [["Split", "x", "a b", { axis: -1 }], ["Sub", "b a", "y"]] },
  "TopK": { opset: 7, x: [3, 8], nodes: [["TopK", "x", "v i", { k: 3, axis: 1 }], ["Neg", "v", "y"]] },
  "TopK, opset 10": { opset: 10, x: [3, 8], weights: { k: ints(2) }, nodes: [["TopK", "x k", "y i", { axis: 0 }]] },
  "Gemm": { opset: 7, x: [3, 5], weights: { w: weight(4, 5), b: weight(4) }, nodes: [["Gemm", "x w b", "y", { transB: 1, alpha: float(0.5), beta: float(2) }]] },
  "Flatten, Gather, Expand": { opset: 8, x: [2, 3, 4], rank: 2, weights: { i: ints(1, 0, 1), s: ints(3, 12) }, nodes: [["Flatten", "x", "f"], ["Gather", "f i", "g", { axis: 0 }], ["Expand", "g s", "y"]] },
  "AveragePool, MaxPool": { opset: 7, x: [1, 2, 7, 7], nodes: [["AveragePool", "x", "a", { kernel_shape: [3, 3], pads: [1, 1, 1, 1], count_include_pad: 1 }], ["MaxPool", "a", "y", { kernel_shape: [2, 2], strides: [2, 2] }]] },
  "ArgMax": { opset: 7, x: [3, 5], output: { dtype: "int64", rank: 2 }, nodes: [["ArgMax", "x", "y", { axis: 1 }]] },
  "Max, Min, Sum, Mean of several": { opset: 7, x: [2, 3], weights: { w: weight(2, 3) }, nodes: [["Max", "x w", "a"], ["Min", "x w", "b"], ["Sum", "a b w", "c"], ["Mean", "c x", "y"]] },
  "PRelu, Elu, Selu, HardSigmoid": { opset: 7, x: [2, 4], weights: { s: positive(4) }, nodes: [["PRelu", "x s", "a"], ["Elu", "a", "b"], ["Selu", "b", "c"], ["HardSigmoid", "c", "y"]] },
  "LSTM": { opset: 7, x: [4, 2, 3], rank: 4, weights: { w: weight(1, 20, 3), r: weight(1, 20, 5), b: weight(1, 40) }, nodes: [["LSTM", "x w r b", "y", { hidden_size: 5 }]] },
  "InstanceNormalization, LRN": { opset: 7, x: [1, 4, 3, 3], weights: { s: positive(4), b: weight(4) }, nodes: [["InstanceNormalization", "x s b", "i"], ["LRN", "i", "y", { size: 3 }]] },
  "ConstantOfShape, Where, Erf": { opset: 9, x: [2, 3], weights: { s: ints(2, 3), z: floats(0) }, nodes: [["ConstantOfShape", "s", "k", { value: { dtype: "float32", dims: [1], data: Float32Array.of(0.25) } }], ["Erf", "x", "e"], ["Greater", "x z", "g"], ["Where", "g k e", "y"]] },
  "Scatter": { opset: 9, x: [3, 4], weights: { i: { dtype: "int64", dims: [2, 2], data: BigInt64Array.of(2n, 0n, 1n, 1n) }, u: weight(2, 2) }, nodes: [["Scatter", "x i u", "y", { axis: 0 }]] },
  "Upsample by input, shrinking by Resize": { opset: 10, x: [1, 2, 4, 6], weights: { s: floats(1, 1, 0.5, 0.5) }, nodes: [["Resize", "x s", "y", { mode: "nearest" }]] },
  "MaxPool with places, MaxUnpool": { opset: 10, x: [1, 2, 6, 4], nodes: [["MaxPool", "x", "p i", { kernel_shape: [2, 2], strides: [2, 2] }], ["MaxUnpool", "p i", "y", { kernel_shape: [2, 2], strides: [2, 2] }]] },
  "RoiAlign without half a pixel": { opset: 10, x: [2, 3, 8, 9], weights: { r: { dtype: "float32", dims: [3, 4], data: Float32Array.of(0, 0, 6, 5, -1, 2, 4, 7, 3, 3, 3, 3) }, i: ints(0, 1, 1) }, nodes: [["RoiAlign", "x r i", "y", { output_height: 3, output_width: 2, sampling_ratio: 2, spatial_scale: float(0.7) }]] },
  "NonMaxSuppression": { opset: 10, x: [1, 2, 6], weights: { b: { dtype: "float32", dims: [1, 6, 4], data: Float32Array.of(0, 0, 4, 4, 0, 1, 4, 5, 8, 8, 4, 4, 0, 0, 4, 3.5, 9, 9, 10, 10, 4, 4, 8, 8) }, k: ints(3), t: floats(0.5) }, output: { dtype: "int64", rank: 2 }, nodes: [["NonMaxSuppression", "b x k t", "y"]] },
  "GridSample, bilinear": { opset: 16, x: [1, 2, 5, 4], weights: { g: weight(1, 3, 3, 2) }, nodes: [["GridSample", "x g", "y", { mode: "bilinear", padding_mode: "border" }]] },
  "GridSample, bicubic": { opset: 16, x: [1, 2, 5, 4], weights: { g: weight(1, 3, 3, 2) }, nodes: [["GridSample", "x g", "y", { mode: "bicubic", align_corners: 1 }]] },
  "GridSample with its old default": { opset: 16, x: [1, 2, 5, 4], weights: { g: weight(1, 3, 3, 2) }, nodes: [["GridSample", "x g", "y"]] },
  "DFT with its axis as an attribute": { opset: 17, x: [2, 3, 8, 1], nodes: [["DFT", "x", "y", { axis: 2, onesided: 1 }]] },
  "DFT with its old default axis": { opset: 17, x: [2, 6, 2], nodes: [["DFT", "x", "y", { inverse: 1 }]] },
  "MaxRoiPool, GlobalLpPool": { opset: 7, x: [1, 2, 8, 9], weights: { r: { dtype: "float32", dims: [2, 5], data: Float32Array.of(0, 1, 1, 6, 5, 0, 0, 2, 8, 7) } }, nodes: [["MaxRoiPool", "x r", "p", { pooled_shape: [2, 3] }], ["GlobalLpPool", "p", "y", { p: 3 }]] },
  "DepthToSpace, SpaceToDepth": { opset: 7, x: [1, 8, 2, 2], nodes: [["DepthToSpace", "x", "a", { blocksize: 2 }], ["Relu", "a", "b"], ["SpaceToDepth", "b", "y", { blocksize: 2 }]] },
};

describe.each(Object.entries(models))("%s", (_, old) => {
  test("gives what onnxruntime gives", async () => {
    const nodes = old.nodes.map(([type, inputs, outputs, attributes = {}], i): NodeSpec => ({ type, name: `${type}_${i}`, inputs: inputs.split(" "), outputs: outputs.split(" "), attributes }));
    const rank = old.output?.rank ?? old.rank ?? old.x.length;
    const model = modelBytes({
      opset: old.opset, ir: 3 + Number(old.opset > 8), inputs: { x: { dtype: "float32", dims: old.x } },
      outputs: { y: { dtype: old.output?.dtype ?? "float32", dims: Array.from({ length: rank }, (_, d) => `y${d}`) } },
      initializers: old.weights ?? {}, overridable: old.opset > 8 ? [] : Object.keys(old.weights ?? {}), nodes,
    });
    const feeds = { x: randomTensor(old.x, randomFrom(5)) };
    const expected = await runOnnxruntime(model, feeds);
    for (const fusion of [true, false]) expect(mismatch(await runCompiled(model, feeds, fusion), expected)).toBeUndefined();
  });
});
