/**
 * Operators between DequantizeLinear and QuantizeLinear: one call that reads and writes 8 bits (two where
 * elements are read several times, which are then dequantised once), the same integers as the operators one by one, and onnxruntime's within a step.
 */
import { describe, expect, test } from "vitest";
import { compileModel, fuseModel } from "../src/compiler/compile.ts";
import { printKernel } from "../src/kernel/print.ts";
import { lowerProgram } from "../src/lower/program.ts";
import { load, Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { chooseLayouts } from "../src/schedule/layout.ts";
import { scheduleLoops } from "../src/schedule/loops/loops.ts";
import { finelySplit } from "./support/finely-split.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";
import { randomFrom } from "./support/random.ts";
import { compareWays, f32, i64 } from "./support/three-ways.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";

type Dims = readonly (number | string)[];
interface Case { readonly type: string; readonly calls: number; readonly operands?: readonly Dims[]; readonly more?: readonly Tensor[]; readonly attributes?: NodeSpec["attributes"]; readonly outputs?: number; /** The result's scale; the operands' by default. */ readonly scale?: number; /** onnxruntime computes it in another order, or by a table. */ readonly steps?: number }

const picture: Dims = ["n", 3, 6, 5], scales = [0.03, 0.017, 0.04], zeros = [128, 117, 90];
const cases: Readonly<Record<string, Case>> = {
  Add: { type: "Add", operands: [picture, picture], calls: 1, scale: 0.05, steps: 1 },
  "Add of a channel": { type: "Add", operands: [[2, 3, 6, 5], [3, 1, 1]], calls: 1, scale: 0.05, steps: 1 },
  Mul: { type: "Mul", operands: [picture, ["n", 3, 1, 1]], calls: 1, scale: 0.05, steps: 1 },
  Sigmoid: { type: "Sigmoid", calls: 1, scale: 1 / 256, steps: 1 },
  Tanh: { type: "Tanh", calls: 1, scale: 1 / 64 },
  LeakyRelu: { type: "LeakyRelu", calls: 1, attributes: { alpha: { float: 0.2 } }, steps: 1 },
  HardSwish: { type: "HardSwish", calls: 1, scale: 0.05 },
  Softmax: { type: "Softmax", calls: 1, attributes: { axis: 3 }, scale: 1 / 256, steps: 1 },
  AveragePool: { type: "AveragePool", calls: 1, attributes: { kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1] }, scale: 0.021, steps: 1 },
  GlobalAveragePool: { type: "GlobalAveragePool", calls: 1, scale: 0.021, steps: 1 },
  MaxPool: { type: "MaxPool", calls: 1, attributes: { kernel_shape: [2, 2], strides: [1, 2] } },
  "nearest Resize": { type: "Resize", calls: 1, more: [f32([0]), f32([4], 1, 1, 2, 1.5)], attributes: { mode: "nearest", coordinate_transformation_mode: "asymmetric", nearest_mode: "floor" } },
  "linear Resize": { type: "Resize", calls: 2, more: [f32([0]), f32([4], 1, 1, 2, 2)], attributes: { mode: "linear", coordinate_transformation_mode: "asymmetric" }, scale: 0.0307, steps: 1 },
  Reshape: { type: "Reshape", calls: 1, more: [i64([3], 0, -1, 5)] },
  Transpose: { type: "Transpose", calls: 1, attributes: { perm: [0, 2, 3, 1] } },
  Concat: { type: "Concat", operands: [picture, picture], calls: 2, attributes: { axis: 1 } },
  Split: { type: "Split", calls: 3, attributes: { axis: 1 }, outputs: 3 },
  ReduceMean: { type: "ReduceMean", calls: 1, attributes: { axes: [2, 3], keepdims: 0 }, scale: 0.021, steps: 1 },
  Gather: { type: "Gather", calls: 1, more: [i64([2], 2, 0)], attributes: { axis: 1 } },
  Pad: { type: "Pad", calls: 1, more: [i64([8], 0, 0, 1, 0, 0, 0, 0, 2)] },
};

function modelOf({ type, operands = [picture], more = [], attributes = {}, outputs = 1, scale }: Case): ModelSpec {
  const names = operands.map((_, i) => `x${i}`), quantizer = (i: number): readonly string[] => [`s${i}`, `z${i}`];
  const own = operands.length === 1 ? [0, 0] : operands.map((_, i) => i);
  return {
    opset: 16, inputs: Object.fromEntries(operands.map((dims, i) => [`x${i}`, { dtype: "uint8" as const, dims }])), outputs: Object.fromEntries(Array.from({ length: outputs }, (_, i) => [`y${i}`, undefined])),
    initializers: {
      ...Object.fromEntries(scales.flatMap((s, i) => [[`s${i}`, f32([], s)], [`z${i}`, fromNumbers("uint8", [], [zeros[i] ?? 0])]])),
      ...Object.fromEntries(more.map((t, i) => [`m${i}`, t])), sy: f32([], scale ?? scales[0] ?? 1), zy: fromNumbers("uint8", [], [scale === 1 / 256 ? 0 : zeros[0] ?? 0]),
    },
    nodes: [
      ...names.map((x, i): NodeSpec => ({ type: "DequantizeLinear", inputs: [x, ...quantizer(own[i] ?? 0)], outputs: [`f${i}`] })),
      { type, inputs: [...names.map((_, i) => `f${i}`), ...more.map((_, i) => `m${i}`)], outputs: Array.from({ length: outputs }, (_, i) => `g${i}`), attributes },
      ...Array.from({ length: outputs }, (_, i): NodeSpec => ({ type: "QuantizeLinear", inputs: [`g${i}`, "sy", "zy"], outputs: [`y${i}`] })),
    ],
  };
}

function feedsOf({ operands = [picture] }: Case, batch: number): Record<string, Tensor> {
  const random = randomFrom(batch + 3);
  return Object.fromEntries(operands.map((dims, i) => {
    const sizes = dims.map((d) => (typeof d === "number" ? d : batch));
    return [`x${i}`, fromNumbers("uint8", sizes, Array.from({ length: sizeOf(sizes) }, () => random.int(256)))];
  }));
}

const apart = (a: Tensor | undefined, b: Tensor | undefined): number => {
  const x = a ? Array.from(toNumbers(a)) : [], y = b ? toNumbers(b) : [];
  return x.length === y.length ? Math.max(0, ...x.map((v, i) => Math.abs(v - (y[i] ?? NaN)))) : Infinity;
};

describe.each(Object.entries(cases))("%s", (_, c) => {
  const spec = modelOf(c), model = modelBytes(spec);
  test("is right", async () => {
    const feeds = [1, 2].map((n) => feedsOf(c, n));
    expect(await compareWays(spec, feeds, { onnxruntime: false })).toBeUndefined();
    for (const feed of feeds) {
      const expected = interpret(readModel(model, operators).graph, feed), theirs = await runOnnxruntime(model, feed);
      for (const [name, t] of Object.entries(expected)) expect(apart(t, theirs[name])).toBeLessThanOrEqual(c.steps ?? 0);
    }
  });
  test(`takes ${c.calls} calls`, () => {
    expect(compileModel(model, {}).report.nodes.compiled).toBe(c.calls);
    expect(compileModel(model, { enableFusion: false }).report.nodes.compiled).toBeGreaterThan(c.calls);
  });
});

test("padding before a quantised convolution costs no call", async () => {
  const random = randomFrom(9), bytes = (dims: readonly number[]): Tensor => fromNumbers("uint8", dims, Array.from({ length: sizeOf(dims) }, () => random.int(256))), parts = ["s0", "z0"];
  const spec: ModelSpec = {
    opset: 16, inputs: { x: { dtype: "uint8", dims: ["n", 3, 6, 5] } }, outputs: { y: undefined },
    initializers: { s0: f32([], 0.03), z0: fromNumbers("uint8", [], [128]), s1: f32([], 0.011), w: bytes([4, 3, 3, 3]), pads: i64([8], 0, 0, 0, 0, 0, 0, 1, 1) },
    nodes: [
      { type: "DequantizeLinear", inputs: ["x", ...parts], outputs: ["f"] }, { type: "Pad", inputs: ["f", "pads"], outputs: ["p"] },
      { type: "QuantizeLinear", inputs: ["p", ...parts], outputs: ["q"] }, { type: "DequantizeLinear", inputs: ["q", ...parts], outputs: ["d"] }, { type: "DequantizeLinear", inputs: ["w", "s1", "z0"], outputs: ["v"] },
      { type: "Conv", inputs: ["d", "v"], outputs: ["c"], attributes: { strides: [2, 2] } }, { type: "QuantizeLinear", inputs: ["c", ...parts], outputs: ["y"] },
    ],
  };
  expect(compileModel(modelBytes(spec), {}).report.nodes.compiled).toBe(1);
  expect(await compareWays(spec, [1, 2].map((n) => ({ x: bytes([n, 3, 6, 5]) })), { onnxruntime: false })).toBeUndefined();
});

test("a softmax that is quantised computes its exponentials once, in working memory of each thread's own", async () => {
  const spec = modelOf({ type: "Softmax", operands: [["n", 300]], calls: 1, attributes: { axis: -1 }, scale: 1 / 256 }), bytes = modelBytes(spec), random = randomFrom(5);
  const { graph, regions } = fuseModel(bytes, {}, true), program = chooseLayouts(lowerProgram(graph.graph, regions));
  const kernels = program.steps.flatMap((s) => (s.kind === "call" ? [printKernel(scheduleLoops(s.kernel, program.placements))] : []));
  expect(kernels.join()).toMatch(/store_uint8\(&y0/);
  expect(kernels.join()).not.toMatch(/store_uint8\(&y0.*decay/);
  expect(kernels.join()).toMatch(/scratch\(\w+: float32\[300\]\)/);
  const artifact = finelySplit(bytes), x = new RuntimeTensor("uint8", Uint8Array.from({ length: 40 * 300 }, () => random.int(256)), [40, 300]);
  const [one, three] = await Promise.all([1, 3].map((threads) => load(artifact, { threads })));
  for (let run = 0; run < 5; run++) expect(await three?.run({ x0: x })).toEqual(await one?.run({ x0: x }));
  expect(three?.threads).toBe(3);
  [one, three].forEach((s) => s?.dispose());
});

test("a difference of two steps shows", () => {
  expect(apart(fromNumbers("uint8", [2], [3, 4]), fromNumbers("uint8", [2], [3, 6]))).toBe(2);
});
