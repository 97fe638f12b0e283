import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { commandLines } from "../../test/support/command-line.ts";
import type { ModelSpec } from "../../test/support/model-spec.ts";
import type { NodeStory } from "../compiler/accounts/fates.ts";
import { nodesOf } from "../compiler/accounts/fates.ts";
import type { Report } from "../api/index.ts";
import { fromNumbers } from "../core/tensor.ts";
import { readArtifact } from "../artifact/artifact.ts";

const { run, write } = commandLines();

/** One node of every fate: an identity, two equal nodes, a dead one, shape arithmetic, a folded BatchNormalization, a host operator. */
const everyFate: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: [1, 2, 6, 6] } }, outputs: { y: { dtype: "float32", dims: [1, 2, 36] }, n: { dtype: "int64", dims: [4, "M"] } },
  initializers: {
    w: fromNumbers("float32", [2, 2, 3, 3], Array.from({ length: 36 }, (_, i) => (i % 7) - 3)), s: fromNumbers("float32", [2], [1, 2]),
    m: fromNumbers("float32", [2], [0.5, -1]), v: fromNumbers("float32", [2], [1, 4]), a: fromNumbers("float32", [1], [3]), to: fromNumbers("int64", [3], [1, 2, 36]),
  },
  nodes: [
    { type: "Identity", name: "same", inputs: ["x"], outputs: ["i"] },
    { type: "Conv", name: "conv", inputs: ["i", "w"], outputs: ["c"], attributes: { pads: [1, 1, 1, 1] } },
    { type: "BatchNormalization", name: "norm", inputs: ["c", "s", "m", "m", "v"], outputs: ["b"] },
    { type: "Sigmoid", name: "first", inputs: ["b"], outputs: ["e1"] }, { type: "Sigmoid", name: "second", inputs: ["b"], outputs: ["e2"] },
    { type: "Exp", name: "dead", inputs: ["b"], outputs: ["d"] },
    { type: "Neg", name: "known", inputs: ["a"], outputs: ["k"] },
    { type: "Mul", name: "times", inputs: ["e1", "k"], outputs: ["t"] }, { type: "Add", name: "plus", inputs: ["t", "e2"], outputs: ["p"] },
    { type: "Reshape", name: "flat", inputs: ["p", "to"], outputs: ["y"] },
    { type: "NonZero", name: "host", inputs: ["p"], outputs: ["n"] },
  ],
};

const story = async (node: string, options = ""): Promise<NodeStory> => JSON.parse((await run(`explain m.onnx --node ${node} --json ${options}`)).out) as NodeStory;

describe("explain", () => {
  it("says what became of every node", async () => {
    write("m.onnx", everyFate);
    const kinds: Record<string, string> = {};
    for (const { name = "" } of everyFate.nodes) kinds[name] = (await story(name)).fates.map((f) => f.kind).join();
    expect(kinds).toEqual({
      same: "eliminated", conv: "fused", norm: "fused", first: "fused", second: "merged", dead: "eliminated", known: "folded", times: "fused", plus: "fused", flat: "view", host: "host",
    });
    expect(kinds).not.toMatchObject({ second: "fused" });
    const { fates, sites } = await story("norm");
    expect(fates[0]?.nodes).toEqual(expect.arrayContaining(["conv", "norm"]));
    expect(sites.map((s) => s.name)).toContain("fold-batch-norm-into-conv");
    expect((await story("second")).fates[0]?.why).toContain("'first'");
    expect((await story("norm", "--no-fusion")).fates[0]?.kind).toBe("step");
    const text = (await run("explain m.onnx --node norm")).out;
    for (const part of ["fused in Conv", "with:   conv", "fold-batch-norm-into-conv at norm fired"]) expect(text).toContain(part);
    expect((await run("explain m.onnx --node nrom")).error).toMatch(/OF1016.*'norm'/);
  });
  it("leaves no node of a model without a fate, and says the same of an artifact", async () => {
    write("m.onnx", everyFate);
    await run("compile m.onnx");
    const report = readArtifact(readFileSync("m.om")).report() as Report;
    expect([...nodesOf(report)].sort()).toEqual(everyFate.nodes.map((n) => n.name).sort());
    expect((await run("explain m.om --node known")).out).toBe((await run("explain m.onnx --node known")).out);
  });
  it("lists the sites of one rule or kind of region", async () => {
    write("m.onnx", everyFate);
    const text = (await run("explain m.onnx --rule fold-batch-norm-into-conv")).out;
    expect(text).toMatch(/^fold-batch-norm-into-conv: 1 fired, 0 refused\./);
    expect((await run("explain m.onnx --rule recognise-gelu")).out).toBe("recognise-gelu had no candidate in this model.");
    expect((await run("explain m.onnx --rule fold-batch-norm-in-conv")).error).toMatch(/OF1016.*'fold-batch-norm-into-conv'/);
    expect((await run("explain m.onnx --rule x --missed")).error).toMatch(/OF1002/);
  });
  it("ranks refusals by the bytes they cost, and leaves out those that nothing can be done about", async () => {
    write("m.onnx", everyFate);
    const all = (await run("explain m.onnx --missed --disable Conv --disable FusedElementwise --json")).out;
    const none = (await run("explain m.onnx --missed")).out;
    expect(none).not.toContain("[switched-off]");
    write("n.onnx", {
      opset: 17, inputs: { x: { dtype: "float32", dims: [4, 8] } }, outputs: { y: { dtype: "float32", dims: [4, 8] } }, initializers: {},
      nodes: [{ type: "Exp", name: "e", inputs: ["x"], outputs: ["t"] }, { type: "Relu", name: "r", inputs: ["t"], outputs: ["y"] }],
    });
    const { missed } = JSON.parse((await run("explain n.onnx --missed --disable FusedElementwise --json")).out) as { missed: { code: string; bytes: number }[] };
    // The value between the two is written once and read once.
    expect(missed).toMatchObject([{ code: "switched-off", bytes: 2 * 4 * 8 * 4 }]);
    expect((await run("explain n.onnx --missed")).out).toBe("Nothing that could be done was left undone.");
    const { missed: timed } = JSON.parse((await run("explain n.onnx --missed --time --disable FusedElementwise --json")).out) as { missed: { bytes: number; ms: number }[] };
    expect(timed).toMatchObject([{ bytes: 2 * 4 * 8 * 4, ms: expect.any(Number) as number }]);
    expect(timed[0]?.ms).toBeGreaterThan(0);
    expect((await run("explain n.onnx --missed --time --disable FusedElementwise")).out).toMatch(/^Missed \(1\), by the time[^]*1\. [\d.]+ ms, 256 B/);
    expect((await run("explain n.onnx --time")).error).toMatch(/OF1002.*--missed/);
    await run("compile n.onnx");
    expect((await run("explain n.om --missed --time")).error).toMatch(/OF1002.*model/);
    const bytes = (JSON.parse(all) as { missed: { bytes: number }[] }).missed.map((m) => m.bytes);
    expect(bytes).toEqual([...bytes].sort((a, b) => b - a));
  });
});
