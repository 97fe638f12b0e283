/** Writing models: onnxruntime loads what we write, and it is still the same function. */
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { optimise } from "../src/api/index.ts";
import { present } from "../src/core/assert.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { symbol, dimAdd, dimFloorDiv, dimMax, dimMin, dimMod, dimMul } from "../src/core/dim.ts";
import { tensor, type Tensor } from "../src/core/tensor.ts";
import type { Graph } from "../src/graph/graph.ts";
import type { Region } from "../src/graph/region.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { readModel } from "../src/onnx/read.ts";
import { ModelProtoSchema, type ModelProto } from "../src/onnx/schema/onnx_pb.ts";
import { writeModel, writeModelWithExternalData } from "../src/onnx/write.ts";
import { operators } from "../src/ops/index.ts";
import { KnownElements, knownElements } from "../src/ops/known-elements.ts";
import { interpret } from "../src/reference/interpret.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const f32 = (dims: readonly number[], values: readonly number[]): Tensor => tensor("float32", dims, Float32Array.from(values));
const decode = (bytes: Uint8Array): ModelProto => fromBinary(ModelProtoSchema, bytes);

function expectSame(actual: Readonly<Record<string, Tensor>>, expected: Readonly<Record<string, Tensor>>, tolerance: number): void {
  for (const [name, t] of Object.entries(expected)) expect(difference(present(actual[name], name), t, tolerance), name).toBeUndefined();
}
const original = (graph: Graph): Region => ({ kind: "Chain", nodes: graph.nodes, inputs: graph.inputs, outputs: graph.outputs, execution: "kernel" });

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

describe.each(ids)("%s", (id) => {
  const model = loadCase(id);
  test("is written so that onnxruntime gives the same results", async () => {
    const { graph, info } = readModel(model.bytes, operators);
    const bytes = writeModel(graph, info);
    expectSame(await runOnnxruntime(bytes, model.feeds), model.expected, model.tolerance);
    const written = decode(bytes), read = decode(model.bytes);
    expect(written.irVersion).toBe(read.irVersion);
    expect(written.graph?.output.map((v) => v.name)).toEqual(read.graph?.output.map((v) => v.name));
    expect(written.metadataProps).toEqual(read.metadataProps);
    expect(written.opsetImport.map((o) => `${o.domain}:${o.version}`)).toEqual(expect.arrayContaining(read.opsetImport.filter((o) => o.domain === "").map((o) => `:${o.version}`)));
  });
  test("is optimised into a portable model that gives the same results", async () => {
    const optimised = optimise(model.bytes).model;
    expectSame(await runOnnxruntime(optimised, model.feeds), model.expected, model.tolerance);
    expect(decode(optimised).opsetImport.find((o) => o.domain === "")?.version).toBe(decode(model.bytes).opsetImport.find((o) => o.domain === "")?.version);
  });
  test("written, read and written again is the same file", () => {
    const once = readModel(model.bytes, operators);
    const bytes = writeModel(once.graph, once.info);
    const twice = readModel(bytes, operators);
    verifyGraph(twice.graph);
    expect(Buffer.compare(writeModel(twice.graph, twice.info), bytes)).toBe(0);
  });
});

const chain: ModelSpec = {
  opset: 13,
  inputs: { x: { dtype: "float32", dims: ["n", 3] } }, outputs: { y: { dtype: "float32", dims: ["n", 3] } }, initializers: { b: f32([3], [1, 2, 3]) },
  nodes: [{ type: "Add", inputs: ["x", "b"], outputs: ["s"] }, { type: "Relu", inputs: ["s"], outputs: ["r"] }, { type: "Mul", inputs: ["r", "b"], outputs: ["y"] }],
};
const x = f32([2, 3], [-1, -2, -3, -4, -5, 6]);

describe("functions", () => {
  test("hold the nodes of a region, raise the IR version, and are inlined by onnxruntime and by us", async () => {
    const { graph, info } = readModel(modelBytes({ ...chain, ir: 7 }), operators);
    const expected = interpret(graph, { x });
    const bytes = writeModel(graph, info, { regions: [original(graph)] });
    const proto = decode(bytes);
    expect([proto.irVersion, proto.functions.length, proto.graph?.node.length]).toEqual([8n, 1, 1]);
    expectSame(await runOnnxruntime(bytes, { x }), expected, 0);
    expectSame(interpret(readModel(bytes, operators).graph, { x }), expected, 0);
    expect(decode(writeModel(graph, info)).irVersion).toBe(7n);
  });
});

describe("opsets", () => {
  const one = (type: string, opset: number, more: Partial<ModelSpec> = {}): ModelSpec =>
    ({ opset, inputs: { x: { dtype: "float32", dims: [2, 3] } }, outputs: { y: { dtype: "float32", dims: [2, 3] } }, initializers: {}, nodes: [{ type, inputs: ["x"], outputs: ["y"] }], ...more });
  const lowered = async (type: string, from: number, to: number, more: Partial<ModelSpec> = {}): Promise<string[]> => {
    const { graph, info } = readModel(modelBytes(one(type, from, more)), operators);
    const bytes = writeModel(graph, { ...info, opsets: new Map([["", to]]) });
    expectSame(await runOnnxruntime(bytes, { x }), interpret(graph, { x }), 1e-6);
    return present(decode(bytes).graph, "a graph").node.map((n) => n.opType);
  };
  test("an operator that the model's opset lacks is said by others", async () => {
    expect(await lowered("Gelu", 20, 17)).not.toContain("Gelu");
    expect(await lowered("Swish", 24, 13)).not.toContain("Swish");
    expect(await lowered("HardSwish", 14, 9)).not.toContain("HardSwish");
    expect(await lowered("Mish", 18, 10)).not.toContain("Mish");
    const scale = { initializers: { s: f32([3], [1, 2, 3]), b: f32([3], [0.5, 0, -1]) } };
    expect(await lowered("LayerNormalization", 17, 11, { ...scale, nodes: [{ type: "LayerNormalization", inputs: ["x", "s", "b"], outputs: ["y"] }] })).not.toContain("LayerNormalization");
    expect(await lowered("RMSNormalization", 23, 13, { ...scale, nodes: [{ type: "RMSNormalization", inputs: ["x", "s"], outputs: ["y"] }] })).not.toContain("RMSNormalization");
  });
  test("inputs become attributes again", async () => {
    expect(await lowered("Clip", 13, 7, { initializers: { low: f32([], [-2]), high: f32([], [2]) }, nodes: [{ type: "Clip", inputs: ["x", "low", "high"], outputs: ["y"] }] })).toEqual(["Clip"]);
    const axes = tensor("int64", [1], BigInt64Array.of(1n));
    expect(await lowered("Unsqueeze", 13, 11, { initializers: { axes }, outputs: { y: { dtype: "float32", dims: [2, 1, 3] } }, nodes: [{ type: "Unsqueeze", inputs: ["x", "axes"], outputs: ["y"] }] })).toHaveLength(1);
  });
  test("what an opset cannot say is a diagnostic", () => {
    const { graph, info } = readModel(modelBytes(one("BitwiseNot", 18, { inputs: { x: { dtype: "int32", dims: [2] } }, outputs: { y: { dtype: "int32", dims: [2] } } })), operators);
    expect(() => writeModel(graph, { ...info, opsets: new Map([["", 13]]) })).toThrow(DiagnosticError);
    expect(() => writeModel(graph, { ...info, opsets: new Map([["", 13]]) })).toThrow(/opset 13 cannot say BitwiseNot of int32, which came with opset 18.*convert the model to opset 18 or newer/);
  });
});

describe("known elements", () => {
  test("become arithmetic on shapes", async () => {
    const { graph, info } = readModel(modelBytes(chain), operators);
    const n = symbol("n");
    const elements = [n, dimAdd(dimMul(n, 3), 2), dimFloorDiv(n, 2), dimMod(n, 2), dimMin(n, 3), dimMax(dimMul(2, n), 3), 7];
    const attributes = knownElements("int64", [elements.length], elements);
    const node = graph.insert({ op: KnownElements, inputs: [], attributes, outputs: [{ dtype: "int64", shape: [elements.length], elements }], outputNames: ["sizes"], origins: ["test"] });
    graph.setOutputs([...graph.outputs, ...node.outputs]);
    const bytes = writeModel(graph, info);
    expectSame(await runOnnxruntime(bytes, { x }), interpret(graph, { x }), 0);
    const five = f32([5, 3], Array.from({ length: 15 }, (_, i) => i - 7));
    const { sizes } = await runOnnxruntime(bytes, { x: five });
    expect(Array.from(present(sizes, "sizes").data, Number)).toEqual([5, 17, 2, 1, 3, 10, 7]);
  });
});

describe("initializers", () => {
  test("of old files are listed as inputs; overridable ones stay so", async () => {
    const spec = { ...chain, overridable: ["b"] };
    for (const ir of [3, 4]) {
      const { graph, info } = readModel(modelBytes({ ...spec, ir, opset: 9 }), operators);
      const bytes = writeModel(graph, info);
      expect(decode(bytes).graph?.input.map((v) => v.name)).toEqual(["x", "b"]);
      expectSame(await runOnnxruntime(bytes, { x }), interpret(graph, { x }), 0);
    }
  });
  test("may lie in a file of their own", () => {
    const { graph, info } = readModel(modelBytes(chain), operators);
    const { model, files: { "weights.bin": data = new Uint8Array() } } = writeModelWithExternalData(graph, info, { location: "weights.bin", minimumBytes: 1 });
    expect(data.byteLength).toBe(12);
    const again = readModel({ model, externalData: (location) => (location === "weights.bin" ? data : undefined) }, operators);
    expectSame(interpret(again.graph, { x }), interpret(graph, { x }), 0);
    expect(() => writeModelWithExternalData(graph, info, { location: "../weights.bin" })).toThrow(DiagnosticError);
  });
});

test("the comparison sees a model that was changed", async () => {
  const { graph, info } = readModel(modelBytes(chain), operators);
  const other = readModel(modelBytes({ ...chain, initializers: { b: f32([3], [1, 2, 4]) } }), operators);
  const results = await runOnnxruntime(writeModel(other.graph, info), { x });
  expect(difference(present(results["y"], "y"), present(interpret(graph, { x })["y"], "y"), 1e-4)).toMatch(/off by/);
});
