/**
 * `--emit=onnx` at level `ort`: for every model what is emitted loads in onnxruntime, also with its optimiser, gives the
 * same results, has no more nodes than the model, and keeps names, symbolic sizes, metadata and opsets.
 */
import { describe, expect, test } from "vitest";
import { optimise } from "../src/api/index.ts";
import { tensor, type Tensor } from "../src/core/tensor.ts";
import { decodeModel } from "../src/onnx/decode.ts";
import type { ValueInfoProto } from "../src/onnx/schema/onnx_pb.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

/** com.microsoft operators, and normalisations that only onnxruntime has in the model's opset, that must be in what is emitted. */
const own: Readonly<Record<string, readonly string[]>> = {
  "bert-toy": ["Attention", "BiasGelu", "SkipLayerNormalization", "LayerNormalization", "FusedGemm"], "ppocr4-rec": ["QuickGelu", "SkipLayerNormalization", "FusedMatMul"], "yolox-nano": ["QuickGelu"], "oww-hello-deepa": ["LayerNormalization"],
  "aidreams-kv": ["SkipSimplifiedLayerNormalization", "QuickGelu"], "light-squeezenet": ["FusedConv"], "light-resnet50": ["FusedConv"], "silero-vad-v5": ["FusedConv"],
};
const sizesOf = (v: ValueInfoProto | undefined) => (v?.type?.value.case === "tensorType" ? v.type.value.value.shape?.dim.map((d) => d.value.value) : undefined);
/** Sizes are as they were declared, or a number where the file did not know it. */
function expectKept(before: ReturnType<typeof sizesOf>, after: ReturnType<typeof sizesOf>): void {
  expect(after?.length).toBe(before?.length ?? after?.length);
  before?.forEach((size, i) => { if (typeof size === "bigint" || (size !== undefined && size !== "" && typeof after?.[i] !== "bigint")) expect(after?.[i]).toBe(size); });
}

describe.each(ids)("%s", (id) => {
  test("is said in onnxruntime's operators, and gives the same there", async () => {
    const { bytes, feeds, expected, tolerance } = loadCase(id);
    const { model, report, operators } = optimise(bytes, { level: "ort" });
    const before = decodeModel(bytes), after = decodeModel(model);
    expect(report.nodes.compiled).toBeLessThanOrEqual(report.nodes.original);
    expect(report.nodes.compiled).toBeLessThanOrEqual(optimise(bytes, { level: "standard" }).report.nodes.compiled);
    expect(after.functions).toEqual([]);
    expect([after.irVersion, after.metadataProps]).toEqual([before.irVersion, before.metadataProps]);
    expect(after.graph.output.map((v) => v.name)).toEqual(before.graph.output.map((v) => v.name));
    after.graph.output.forEach((v, i) => expectKept(sizesOf(before.graph.output[i]), sizesOf(v)));
    const inputs = new Map(after.graph.input.map((v) => [v.name, v]));
    for (const v of before.graph.input) if (!before.graph.initializer.some((t) => t.name === v.name)) expectKept(sizesOf(v), sizesOf(inputs.get(v.name)));
    const types = Object.keys(operators.after).map((name) => name.replace("com.microsoft.", ""));
    for (const type of own[id] ?? []) expect(types).toContain(type);
    for (const optimised of [false, true]) {
      const results = await runOnnxruntime(model, feeds, optimised);
      for (const [name, t] of Object.entries(expected)) {
        const found = results[name];
        expect(found && difference(found, t, tolerance), `${name}, optimised: ${optimised}`).toBeUndefined();
        expect(found, name).toBeDefined();
      }
    }
  });
});

const f32 = (dims: readonly number[], seed = 1): Tensor => tensor("float32", dims, Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(seed + i * 1.7)));
const shape = (...dims: number[]): Tensor => tensor("int64", [dims.length], BigInt64Array.from(dims.map(BigInt)));
const typesOf = (model: Uint8Array): string[] => decodeModel(model).graph.node.map((n) => `${n.domain === "com.microsoft" ? "ms." : ""}${n.opType}`);

/** One attention with its projections apart, and a residual that is normalised. */
const heads = (masked: boolean): ModelSpec => ({
  opset: 17, inputs: { x: { dtype: "float32", dims: [2, 5, 8] }, ...(masked ? { mask: { dtype: "float32" as const, dims: [2, 1, 1, 5] } } : {}) }, outputs: { y: { dtype: "float32", dims: [2, 5, 8] } },
  initializers: { wq: f32([8, 8], 1), wk: f32([8, 8], 2), wv: f32([8, 8], 3), apart: shape(2, 5, 2, 4), flat: shape(2, 5, 8), scale: tensor("float32", [], Float32Array.of(0.5)), g: f32([8], 4), b: f32([8], 5) },
  nodes: [
    ...["q", "k", "v"].flatMap((n) => [
      { type: "MatMul", name: `${n}m`, inputs: ["x", `w${n}`], outputs: [`${n}0`] }, { type: "Reshape", name: `${n}r`, inputs: [`${n}0`, "apart"], outputs: [`${n}1`] },
      { type: "Transpose", name: `${n}t`, inputs: [`${n}1`], outputs: [`${n}2`], attributes: { perm: n === "k" ? [0, 2, 3, 1] : [0, 2, 1, 3] } },
    ]),
    { type: "MatMul", name: "qk", inputs: ["q2", "k2"], outputs: ["s0"] }, { type: "Mul", name: "sc", inputs: ["s0", "scale"], outputs: ["s1"] },
    ...(masked ? [{ type: "Add", name: "hide", inputs: ["s1", "mask"], outputs: ["s2"] }] : []),
    { type: "Softmax", name: "soft", inputs: [masked ? "s2" : "s1"], outputs: ["p"], attributes: { axis: -1 } }, { type: "MatMul", name: "pv", inputs: ["p", "v2"], outputs: ["o0"] },
    { type: "Transpose", name: "ot", inputs: ["o0"], outputs: ["o1"], attributes: { perm: [0, 2, 1, 3] } }, { type: "Reshape", name: "or", inputs: ["o1", "flat"], outputs: ["o2"] },
    { type: "Add", name: "res", inputs: ["o2", "x"], outputs: ["r"] }, { type: "LayerNormalization", name: "ln", inputs: ["r", "g", "b"], outputs: ["y"] },
  ],
});

describe("attention", () => {
  test.each([false, true])("with heads parted and joined is MultiHeadAttention, masked: %s", async (masked) => {
    const spec = heads(masked), bytes = modelBytes(spec), feeds = { x: f32([2, 5, 8], 7), ...(masked ? { mask: f32([2, 1, 1, 5], 9) } : {}) };
    const { model } = optimise(bytes, { level: "ort" });
    expect(typesOf(model)).toEqual(expect.arrayContaining(["ms.MultiHeadAttention", "ms.SkipLayerNormalization"]));
    expect(typesOf(model)).not.toContain("Softmax");
    const [{ y: expected }, { y: found }] = [await runOnnxruntime(bytes, feeds), await runOnnxruntime(model, feeds)];
    expect(expected && found && difference(found, expected, 1e-5)).toBeUndefined();
    expect(found && expected && difference(found, { ...expected, data: Float32Array.from(expected.data as Float32Array, (v) => v + 0.01) }, 1e-5)).toBeDefined();
  });
});

describe("the execution provider", () => {
  const gemm: ModelSpec = { opset: 13, inputs: { x: { dtype: "float32", dims: [2, 4] } }, outputs: { y: { dtype: "float32", dims: [2, 3] } }, initializers: { w: f32([4, 3]), b: f32([3]) }, nodes: [{ type: "Gemm", inputs: ["x", "w", "b"], outputs: ["h"] }, { type: "Relu", inputs: ["h"], outputs: ["y"] }] };
  test("decides which operators there are", () => {
    expect(typesOf(optimise(modelBytes(gemm), { level: "ort" }).model)).toEqual(["ms.FusedGemm"]);
    expect(typesOf(optimise(modelBytes(gemm), { level: "ort", emitFor: "webgpu" }).model)).toEqual(["Gemm", "Relu"]);
    expect(typesOf(optimise(modelBytes(gemm), { level: "standard" }).model)).toEqual(["Gemm", "Relu"]);
  });
  test("and the element type", () => {
    const half: ModelSpec = { opset: 20, inputs: { x: { dtype: "float16", dims: [2, 4] } }, outputs: { y: { dtype: "float16", dims: [2, 4] } }, initializers: {}, nodes: [{ type: "Gelu", inputs: ["x"], outputs: ["y"] }] };
    expect(typesOf(optimise(modelBytes(half), { level: "ort" }).model)).toEqual(["Gelu"]);
    expect(typesOf(optimise(modelBytes(half), { level: "ort", emitFor: "webgpu" }).model)).toEqual(["ms.Gelu"]);
  });
});
