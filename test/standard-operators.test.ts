/** Operators of the standard that few models have, each at sizes at which kernels run in lanes and have tails, with onnxruntime as the judge. */
import { describe, expect, test } from "vitest";
import { compile, optimise } from "../src/api/index.ts";
import type { DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { mismatch } from "./support/differential.ts";
import { judge, modelOf, type JudgedCase } from "./support/onnxruntime-check.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const wave = (dims: readonly number[], scale = 1, dtype: DType = "float32"): Tensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => Math.sin(i * 2.3 + 0.4) * scale));
const whole = (dims: readonly number[], span: number, dtype: DType = "int64"): Tensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => (i * 7 + Math.floor(i / 3)) % span));
const scalar = (v: number, dtype: DType = "int64"): Tensor => fromNumbers(dtype, [], [v]);
const list = (...values: readonly number[]): Tensor => fromNumbers("int64", [values.length], values);
const fixed = (tensor: Tensor) => ({ tensor, constant: true });
const open = (tensor: Tensor) => ({ tensor, dims: tensor.dims.map((_, i) => `s${i}`) });

type Case = Omit<JudgedCase, "domain" | "outputs"> & { readonly outputs?: JudgedCase["outputs"]; readonly rank?: number; readonly name?: string };
const cases: Case[] = [];
for (const mode of ["linear", "nearest", "cubic"]) for (const padding_mode of ["zeros", "border", "reflection"]) for (const align_corners of [0, 1])
  cases.push({ type: "GridSample", rank: 4, inputs: [open(wave([2, 5, 9, 11])), { tensor: wave([2, 6, 13, 2], 1.6), dims: ["s0", "oh", "ow", 2] }], attributes: { mode, padding_mode, align_corners } });
for (const mode of ["linear", "nearest"]) cases.push({ type: "GridSample", rank: 5, inputs: [{ tensor: wave([1, 3, 4, 5, 6]) }, { tensor: wave([1, 3, 4, 7, 3], 1.3) }], attributes: { mode } });
for (const exclusive of [0, 1]) for (const reverse of [0, 1]) for (const axis of [0, 1, 2]) cases.push({ type: "CumSum", rank: 3, inputs: [open(wave([5, 7, 19])), fixed(scalar(axis))], attributes: { exclusive, reverse } });
cases.push({ type: "CumSum", outputs: [["int64", 2]], inputs: [{ tensor: whole([9, 21], 5) }, fixed(scalar(-1))] });
cases.push({ type: "MaxUnpool", rank: 4, inputs: [{ tensor: wave([2, 3, 7, 6]) }, { tensor: fromNumbers("int64", [2, 3, 7, 6], Array.from({ length: 252 }, (_, i) => i * 4 + (i % 3))) }], attributes: { kernel_shape: [2, 2], strides: [2, 2] } });
const rois = fromNumbers("float32", [5, 4], [0, 0, 5, 6, -3, 2, 9, 4.5, 2, 3, 4, 5, 1.25, 1.5, 20, 30, 3, 3, 12, 9]);
for (const sampling_ratio of [0, 2, 3]) for (const coordinate_transformation_mode of ["half_pixel", "output_half_pixel"])
  cases.push({ type: "RoiAlign", rank: 4, inputs: [{ tensor: wave([3, 6, 13, 17]) }, { tensor: rois, dims: ["count", 4] }, { tensor: list(0, 2, 1, 1, 0), dims: ["count"] }], attributes: { output_height: 5, output_width: 7, sampling_ratio, coordinate_transformation_mode, spatial_scale: { float: 0.5 } } });
cases.push({ type: "MaxRoiPool", rank: 4, inputs: [{ tensor: wave([2, 3, 13, 17]) }, { tensor: fromNumbers("float32", [3, 5], [0, 1, 1, 9, 7, 1, -2, 3, 20, 9.4, 0, 5, 5, 5, 5]) }], attributes: { pooled_shape: [3, 4], spatial_scale: { float: 0.9 } } });
const corners = fromNumbers("float32", [1, 60, 4], Array.from({ length: 240 }, (_, i) => Math.floor(((i * 37) % 50) / 4) + (i % 4 > 1 ? 9 : 0)));
for (const center_point_box of [0, 1]) cases.push({ type: "NonMaxSuppression", outputs: [["int64", 2]], inputs: [{ tensor: corners }, { tensor: wave([1, 3, 60]) }, fixed(scalar(12)), fixed(scalar(0.4, "float32")), fixed(scalar(-0.3, "float32"))], attributes: { center_point_box } });
for (const length of [16, 12]) cases.push(
  { type: "DFT", rank: 4, inputs: [{ tensor: wave([2, length, 3, 1]) }, undefined, fixed(scalar(1))], attributes: { onesided: 1 } },
  { type: "DFT", rank: 4, inputs: [{ tensor: wave([2, length, 3, 2]) }, undefined, fixed(scalar(1))], attributes: { inverse: 1 } },
  { type: "STFT", rank: 4, inputs: [{ tensor: wave([2, 70, 1]) }, fixed(scalar(5)), { tensor: wave([length]) }, fixed(scalar(length))] });
for (const type of ["HannWindow", "HammingWindow", "BlackmanWindow"]) for (const periodic of [0, 1]) cases.push({ type, rank: 1, inputs: [{ tensor: scalar(37) }], attributes: { periodic } });
cases.push({ type: "MelWeightMatrix", rank: 2, inputs: [fixed(scalar(10)), fixed(scalar(64)), fixed(scalar(8000)), fixed(scalar(20, "float32")), fixed(scalar(3900, "float32"))] });
cases.push({ type: "Det", rank: 1, inputs: [{ tensor: wave([4, 5, 5], 2) }] });
cases.push({ type: "Col2Im", rank: 4, inputs: [{ tensor: wave([2, 3 * 6, 5 * 4]) }, fixed(list(9, 8)), fixed(list(2, 3))], attributes: { strides: [2, 2], dilations: [1, 1], pads: [0, 0, 2, 1] } });
for (const shape of [[4, 21], [9, 6], [3, 3]]) cases.push({ type: "CenterCropPad", rank: 3, inputs: [{ tensor: wave([3, 7, 12]), dims: ["a", "b", "c"] }, fixed(list(...shape))], attributes: { axes: [1, 2] } });
for (const align_corners of [0, 1]) cases.push({ type: "AffineGrid", rank: 4, inputs: [{ tensor: wave([3, 2, 3]) }, fixed(list(3, 1, 9, 14))], attributes: { align_corners } });
cases.push({ type: "DeformConv", rank: 4, inputs: [{ tensor: wave([2, 6, 9, 10]) }, fixed(wave([8, 3, 3, 3])), { tensor: wave([2, 2 * 18, 9, 10], 1.7) }, fixed(wave([8])), { tensor: wave([2, 2 * 9, 9, 10]) }], attributes: { group: 2, offset_group: 2, pads: [1, 1, 1, 1] } });
for (const reduction of ["none", "mean", "sum"]) cases.push(
  { type: "NegativeLogLikelihoodLoss", rank: reduction === "none" ? 2 : 0, inputs: [open(wave([5, 7, 19])), { tensor: whole([5, 19], 7), dims: ["s0", "s2"] }, { tensor: wave([7], 3) }], attributes: { reduction, ignore_index: 2 } },
  { type: "SoftmaxCrossEntropyLoss", outputs: [["float32", reduction === "none" ? 2 : 0], ["float32", 3]], inputs: [open(wave([5, 7, 19], 4)), { tensor: whole([5, 19], 7), dims: ["s0", "s2"] }], attributes: { reduction } });
for (const reduction of ["none", "add", "mul", "max", "min"]) for (const axis of [0, 1])
  cases.push({ type: "ScatterElements", rank: 2, inputs: [{ tensor: wave([9, 13]) }, { tensor: reduction === "none" ? fromNumbers("int64", [5, 7], Array.from({ length: 35 }, (_, i) => (axis === 0 ? Math.floor(i / 7) : i % 7) - 1)) : whole([5, 7], 9) }, { tensor: wave([5, 7], 3) }], attributes: { axis, reduction } });
for (const reduction of ["none", "add", "mul", "max", "min"]) cases.push(
  { type: "ScatterND", rank: 3, inputs: [open(wave([9, 5, 6])), { tensor: fromNumbers("int64", [4, 2], reduction === "none" ? [1, 2, -3, 0, 8, 4, 0, 0] : [1, 2, -3, 0, 1, 2, 0, 0]), dims: ["rows", 2] }, { tensor: wave([4, 6], 3), dims: ["rows", "s2"] }], attributes: { reduction } },
  { type: "ScatterND", rank: 2, inputs: [{ tensor: wave([7, 9]) }, { tensor: fromNumbers("int64", [2, 2, 1], [6, 0, 3, -5]) }, { tensor: wave([2, 2, 9], 3) }], attributes: { reduction } });
for (const p of [1, 2, 3]) cases.push({ type: "LpPool", rank: 4, inputs: [{ tensor: wave([2, 5, 11, 13]) }], attributes: { kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1], p } }, { type: "GlobalLpPool", rank: 4, inputs: [{ tensor: wave([2, 5, 11, 13]) }], attributes: { p } });
cases.push({ type: "LRN", rank: 4, inputs: [{ tensor: wave([2, 9, 5, 6], 3) }], attributes: { size: 5, alpha: { float: 0.001 }, beta: { float: 0.75 } } });
cases.push({ type: "MeanVarianceNormalization", rank: 4, inputs: [{ tensor: wave([3, 5, 6, 7]) }] });
for (const axis of [0, 1, -1]) cases.push({ type: "Hardmax", rank: 3, inputs: [{ tensor: whole([4, 6, 9], 4, "float32") }], attributes: { axis } });
cases.push({ type: "ReverseSequence", rank: 3, inputs: [{ tensor: wave([9, 4, 6]) }, { tensor: list(3, 9, 1, 5) }] });
for (const sorted of [0, 1]) cases.push({ type: "Unique", outputs: [["float32", 1], ["int64", 1], ["int64", 1], ["int64", 1]], inputs: [{ tensor: whole([40], 7, "float32") }], attributes: { sorted } }, { type: "Unique", outputs: [["float32", 2]], inputs: [{ tensor: whole([12, 3], 2, "float32") }], attributes: { sorted, axis: 0 } });

describe("operators as onnxruntime has them", () => {
  test.for(cases.map((c): [string, Case] => [`${c.type} ${JSON.stringify(c.attributes ?? {})}`, c]))("%s", async ([, { rank, outputs, ...c }]) => {
    expect(await judge({ ...c, domain: "", opset: 21, outputs: outputs ?? [["float32", rank ?? 1]] })).toBeUndefined();
  });
});

test("a DeformConv is written as itself, though it is compiled as its parts", async () => {
  const { bytes, feeds } = modelOf({ type: "DeformConv", domain: "", outputs: [["float32", 4]], inputs: [{ tensor: wave([1, 4, 6, 6]) }, fixed(wave([2, 4, 3, 3])), { tensor: wave([1, 18, 4, 4]) }] });
  const { model } = await optimise(bytes), { report } = await compile(bytes);
  expect(mismatch(await runOnnxruntime(model, feeds), await runOnnxruntime(bytes, feeds))).toBeUndefined();
  expect([readModel(model, operators).graph.nodes.map((n) => n.op.type), report.hostOperators]).toEqual([["DeformConv"], []]);
});
