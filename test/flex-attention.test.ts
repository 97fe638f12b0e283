/** FlexAttention with graphs that capture values, twice in a model: held against the same spelled out, as onnxruntime runs it. */
import { expect, it } from "vitest";
import { optimise } from "../src/api/index.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { mismatch, runCompiled } from "./support/differential.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(6), dims = { q: ["b", 4, "s", 8], k: ["b", 4, "t", 8], v: ["b", 4, "t", 6] } as const;
const feeds = { q: randomTensor([2, 4, 9, 8], random), k: randomTensor([2, 4, 5, 8], random), v: randomTensor([2, 4, 5, 6], random) };
const initializers: Record<string, Tensor> = { bias: randomTensor([4, 1, 1], random), factor: randomTensor([1], random) };
const inputs = Object.fromEntries(Object.entries(dims).map(([name, d]) => [name, { dtype: "float32" as const, dims: d }]));
const open = { dtype: "float32", dims: ["B", "H", "S", "T"] } as const;

/** A graph of one operator of a value and one captured. */
const change = (type: string, captured: string): ModelSpec =>
  ({ opset: 26, inputs: { x: open }, outputs: { y: open }, initializers: {}, nodes: [{ type, inputs: ["x", captured], outputs: ["y"] }] });
const flex = (q: string, output: string, attributes: NodeSpec["attributes"]): NodeSpec =>
  ({ type: "FlexAttention", domain: "ai.onnx.preview", inputs: [q, "k", "v"], outputs: [output], attributes: attributes ?? {} });
const model = (nodes: readonly NodeSpec[], opset = 26): Uint8Array =>
  modelBytes({ opset, ir: 10, inputs, initializers, outputs: { y: { dtype: "float32", dims: ["yb", "yh", "ys", "yd"] }, z: { dtype: "float32", dims: ["zb", "zh", "zs", "zd"] } }, nodes });

const flexible = model([
  flex("q", "y", { scale: { float: 0.4 }, score_mod: change("Add", "bias") }),
  flex("q", "z", { scale: { float: 0.4 }, score_mod: change("Mul", "factor"), prob_mod: change("Sub", "bias") }),
]);
const spelledOut = model([
  { type: "Transpose", inputs: ["k"], outputs: ["kT"], attributes: { perm: [0, 1, 3, 2] } }, { type: "Constant", inputs: [], outputs: ["scale"], attributes: { value_float: { float: 0.4 } } },
  { type: "MatMul", inputs: ["q", "kT"], outputs: ["dot"] }, { type: "Mul", inputs: ["dot", "scale"], outputs: ["scores"] },
  { type: "Add", inputs: ["scores", "bias"], outputs: ["s1"] }, { type: "Softmax", inputs: ["s1"], outputs: ["p1"], attributes: { axis: -1 } }, { type: "MatMul", inputs: ["p1", "v"], outputs: ["y"] },
  { type: "Mul", inputs: ["scores", "factor"], outputs: ["s2"] }, { type: "Softmax", inputs: ["s2"], outputs: ["p2"], attributes: { axis: -1 } }, { type: "Sub", inputs: ["p2", "bias"], outputs: ["p3"] }, { type: "MatMul", inputs: ["p3", "v"], outputs: ["z"] },
], 21);

it("gives what its operators give: interpreted, compiled, written", async () => {
  const expected = await runOnnxruntime(spelledOut, feeds);
  expect(mismatch(interpret(readModel(flexible, operators).graph, feeds), expected)).toBeUndefined();
  for (const fusion of [false, true]) expect(mismatch(await runCompiled(flexible, feeds, fusion), expected)).toBeUndefined();
  const { graph } = readModel(optimise(flexible).model, operators);
  expect(mismatch(interpret(graph, feeds), expected)).toBeUndefined();
});
it("sees another scale", async () => {
  const other = model([flex("q", "y", { score_mod: change("Add", "bias") }), flex("q", "z", {})]);
  expect(mismatch(await runCompiled(other, feeds, true), await runOnnxruntime(spelledOut, feeds))).toBeDefined();
});
it("refuses a graph whose result is not like the scores", () => {
  const narrow = change("ReduceSum", "");
  expect(() => readModel(model([flex("q", "y", { score_mod: { ...narrow, nodes: [{ type: "ReduceSum", inputs: ["x"], outputs: ["y"], attributes: { keepdims: 0 } }] } }), flex("q", "z", {})]), operators)).toThrow(DiagnosticError);
});
