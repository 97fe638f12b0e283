/** `simplify`: fewer nodes than the model and than onnxsim leaves, the same results in onnxruntime, and what must not be simplified. */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { optimise, simplify } from "../src/api/index.ts";
import { tensor } from "../src/core/tensor.ts";
import { decodeModel } from "../src/onnx/decode.ts";
import { checkAgainst } from "../src/verify/simplify.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { commandLines } from "./support/command-line.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

/** Nodes that onnxsim 0.7.3 of npm leaves; it fails, or does not end in 100 s, on the models that are not here. */
const onnxsimNodes: Readonly<Record<string, number>> = {
  "aidreams-kv-dynint8": 405, "aidreams-kv": 297, "blazeface-front": 93, gtcrn: 414, "light-squeezenet": 66, "micro-kws-qdq": 60, "mlsd-tiny-320": 97, "oww-hello-deepa": 25,
  "ppocr4-det": 297, "ppocr4-rec": 377, "shufflenet2-int8": 189, "silero-vad-v5": 330, "ultraface-rfb320": 159, "yolox-nano": 365,
};

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

describe.each(ids)("%s", (id) => {
  test("has fewer nodes, in its own operators, no more than onnxsim leaves, and gives the same in onnxruntime", async () => {
    const { bytes, feeds, expected, tolerance } = loadCase(id);
    const { model, operators, report } = optimise(bytes, { level: "standard" });
    const nodes = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);
    expect(nodes(operators.after)).toBe(report.nodes.compiled);
    expect(nodes(operators.before)).toBe(report.nodes.original);
    expect(report.nodes.compiled).toBeLessThanOrEqual(report.nodes.original);
    expect(report.nodes.compiled).toBeLessThanOrEqual(onnxsimNodes[id] ?? Infinity);
    const before = decodeModel(bytes), after = decodeModel(model);
    expect(after.functions).toEqual([]);
    expect(after.metadataProps).toEqual(before.metadataProps);
    expect(after.opsetImport.every((o) => before.opsetImport.some((b) => b.domain === o.domain && b.version === o.version))).toBe(true);
    expect(after.graph.output.map((v) => v.name)).toEqual(before.graph.output.map((v) => v.name));
    const results = await runOnnxruntime(model, feeds);
    for (const [name, t] of Object.entries(expected)) {
      const found = results[name];
      expect(found && difference(found, t, tolerance), name).toBeUndefined();
      expect(found, name).toBeDefined();
    }
  });
});

const x = { dtype: "float32" as const, dims: ["N", 4] };
const scaled: ModelSpec = {
  opset: 13, inputs: { x }, outputs: { y: x }, initializers: { w: tensor("float32", [4, 4], Float32Array.from({ length: 16 }, (_, i) => i / 7 - 1)), b: tensor("float32", [4], Float32Array.of(1, 2, 3, 4)) },
  nodes: [{ type: "Identity", name: "i", inputs: ["x"], outputs: ["a"] }, { type: "MatMul", name: "m", inputs: ["a", "w"], outputs: ["c"] }, { type: "Add", name: "p", inputs: ["c", "b"], outputs: ["y"] }],
};

describe("the check", () => {
  test("runs as often as it is asked to, the first time against the reference interpreter", async () => {
    const { check, report } = await simplify(modelBytes(scaled), { check: 7 });
    expect(check.runs).toHaveLength(7);
    expect(check.runs.map((r) => r.against)).toEqual(["reference", ...Array<string>(6).fill("unfused")]);
    expect(report.nodes.original).toBe(3);
    expect(report.nodes.compiled).toBeLessThan(3);
    expect((await simplify(modelBytes(scaled), { check: 0 })).check.runs).toEqual([]);
  });
  test("finds a result that is another function", async () => {
    const wrong = optimise(modelBytes({ ...scaled, initializers: { ...scaled.initializers, b: tensor("float32", [4], Float32Array.of(1, 2, 3, 4.01)) } }), { level: "standard" });
    await expect(checkAgainst(modelBytes(scaled), wrong, {}, 1)).rejects.toThrow(/OF5203|differs by/);
  });
});

describe("operators that the model's opset has", () => {
  test("stay whole: what has no kernel of its own is not spelled out", () => {
    const loss: ModelSpec = {
      opset: 13, inputs: { x: { dtype: "float32", dims: [3, 5] }, t: { dtype: "int64", dims: [3] } }, outputs: { y: { dtype: "float32", dims: [] } }, initializers: {},
      nodes: [{ type: "SoftmaxCrossEntropyLoss", name: "loss", inputs: ["x", "t"], outputs: ["y"] }],
    };
    expect(optimise(modelBytes(loss), { level: "standard" }).operators.after).toEqual({ SoftmaxCrossEntropyLoss: 1 });
  });
  test("a model that takes more nodes in our spelling is refused, and nothing is written", () => {
    const four = { dtype: "float32" as const, dims: [1, 2, 3, 4] };
    const flexible: ModelSpec = {
      opset: 26, ir: 10, inputs: { q: four, k: four, v: four }, outputs: { y: four }, initializers: {},
      nodes: [{ type: "FlexAttention", domain: "ai.onnx.preview", name: "f", inputs: ["q", "k", "v"], outputs: ["y"] }],
    };
    expect(() => optimise(modelBytes(flexible), { level: "standard" })).toThrow(/in 5 simple ones/);
  });
});

const twoSteps: ModelSpec = { opset: 13, inputs: { x }, outputs: { y: x }, initializers: {}, nodes: [{ type: "Exp", inputs: ["x"], outputs: ["t"] }, { type: "Relu", inputs: ["t"], outputs: ["y"] }] };
const { run, runAtc, write } = commandLines();

describe("onnxfuse simplify", () => {
  test("writes the model with a table of operators and sizes", async () => {
    write("in.onnx", scaled);
    const done = await run("simplify in.onnx out.onnx --check 2");
    expect(done).toMatchObject({ code: 0, error: "" });
    expect(done.out).toMatch(/^operator +before +after +change\n/);
    expect(done.out).toMatch(/\nIdentity +1 +0 +-1\n/);
    expect(done.out).toMatch(/\nall nodes +3 +[12] +-[12]\nsize +/);
    expect(done.out).toMatch(/compared with the original on 2 inputs: equal within/);
    const feeds = { x: tensor("float32", [2, 4], Float32Array.of(1, -2, 3, -4, 5, -6, 7, -8)) };
    expect((await runOnnxruntime(readFileSync("out.onnx"), feeds))["y"]?.dims).toEqual([2, 4]);
  });
  test("as JSON; bad command lines and models get one line", async () => {
    write("in.onnx", scaled);
    const json = JSON.parse((await run("simplify in.onnx out.onnx --json")).out) as { nodes: { before: number }; check: { runs: unknown[] } };
    expect([json.nodes.before, json.check.runs.length]).toEqual([3, 3]);
    expect(await run("simplify in.onnx")).toMatchObject({ code: 1 });
    expect((await run("simplify in.onnx out.onnx --check some")).error).toMatch(/OF1002/);
    writeFileSync("bad.onnx", "no model");
    expect((await run("simplify bad.onnx out2.onnx")).error).toMatch(/OF2001/);
  });
  test("is what emitting ONNX at level standard gives; at level functions regions are calls", async () => {
    write("in.onnx", scaled);
    await run("simplify in.onnx out.onnx");
    const standard = readFileSync("out.onnx");
    expect(await run("compile in.onnx --emit onnx --emit-level standard --output a.onnx")).toMatchObject({ code: 0, error: "" });
    expect(await runAtc("--model=in.onnx --framework=5 --output=b --emit=onnx --emit_level=standard")).toMatchObject({ code: 0, error: "" });
    for (const file of ["a.onnx", "b.onnx"]) expect(readFileSync(file).equals(standard), file).toBe(true);
    const { operators } = optimise(modelBytes(twoSteps));
    expect(Object.keys(operators.after).every((name) => name.startsWith("onnxfuse."))).toBe(true);
    expect(Object.keys(optimise(modelBytes(twoSteps), { level: "standard" }).operators.after).sort()).toEqual(["Exp", "Relu"]);
    expect((await run("compile in.onnx --emit onnx --emit-level other")).error).toMatch(/OF1002/);
  });
  test("keeps external weights beside the result", async () => {
    write("in.onnx", { ...scaled, initializers: { ...scaled.initializers, w: tensor("float32", [4, 400], Float32Array.from({ length: 1600 }, (_, i) => (i % 13) / 7)), b: tensor("float32", [400], new Float32Array(400).fill(1)) }, outputs: { y: { dtype: "float32", dims: ["N", 400] } } });
    expect(await run("simplify in.onnx out.onnx --external-weights combined")).toMatchObject({ code: 0 });
    expect(await run("simplify out.onnx again.onnx")).toMatchObject({ code: 0 });
    expect(readFileSync("again.onnx.data").length).toBeGreaterThan(6000);
    expect(readFileSync("again.onnx").length).toBeLessThan(2000);
  });
});
