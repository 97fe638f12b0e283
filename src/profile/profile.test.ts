import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { convBnRelu } from "../../test/support/article-models.ts";
import { commandLines } from "../../test/support/command-line.ts";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { compile } from "../api/index.ts";
import { readArtifact, writeArtifact } from "../artifact/artifact.ts";
import { load, Tensor } from "../runtime/index.ts";
import { takeApart } from "./apart.ts";
import { profileArtifact } from "./measure.ts";
import { measurePeaks } from "./peaks.ts";

const { run, write } = commandLines();

/** A product of [N, 8] and [8, 5], a function of it, a softmax, and what no kernel does. */
const mixed: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: ["N", 8] } }, outputs: { s: { dtype: "float32", dims: ["N", 5] }, z: { dtype: "int64", dims: [2, "nonzero"] } },
  initializers: { w: { dtype: "float32", dims: [8, 5], data: Float32Array.from({ length: 40 }, (_, i) => (i % 7) - 3) } },
  nodes: [
    { type: "MatMul", name: "product", inputs: ["x", "w"], outputs: ["p"] }, { type: "Softmax", name: "soft", inputs: ["p"], outputs: ["s"] },
    { type: "NonZero", name: "find", inputs: ["p"], outputs: ["z"] },
  ],
};
const feed = (n: number): Record<string, Tensor> => ({ x: new Tensor("float32", Float32Array.from({ length: n * 8 }, (_, i) => ((i * 37) % 11) - 5), [n, 8]) });

describe("an artifact taken apart", () => {
  it("gives the same bits, and tells of every call", async () => {
    const { artifact } = await compile(modelBytes(mixed));
    const apart = takeApart(readArtifact(artifact)), labels: string[] = [];
    const expected = await (await load(artifact)).run(feed(7)), actual = await (await load(apart.artifact)).run(feed(7), { onStep: (label) => labels.push(label) });
    expect(actual).toEqual(expected);
    expect(labels).toEqual(apart.steps.map((_, i) => String(i)));
    expect(apart.steps.map((s) => s.kind)).toContain("host");
    expect(apart.steps.filter((s) => s.kind === "kernel").length).toBeGreaterThan(1);
  });
  it("keeps calls that are made in ranges", async () => {
    const size = 192, dims = [size, size], data = Float32Array.from({ length: size * size }, (_, i) => ((i * 37) % 11) - 5);
    const { artifact } = await compile(modelBytes({
      opset: 17, inputs: { x: { dtype: "float32", dims } }, outputs: { y: { dtype: "float32", dims } }, initializers: { w: { dtype: "float32", dims, data } },
      nodes: [{ type: "MatMul", inputs: ["x", "w"], outputs: ["p"] }, { type: "Softmax", inputs: ["p"], outputs: ["y"] }],
    }));
    const apart = takeApart(readArtifact(artifact)), x = new Tensor("float32", data, dims);
    expect(apart.steps.length).toBeGreaterThan(1);
    expect(await (await load(apart.artifact)).run({ x })).toEqual(await (await load(artifact)).run({ x }));
  });
  it("refuses code that makes fewer calls than the manifest says", async () => {
    const { artifact } = await compile(modelBytes(convBnRelu("conv1d").spec));
    const whole = readArtifact(artifact), { code: _, ...manifest } = whole.manifest;
    const steps = manifest.steps.map((s) => ("run" in s ? { ...s, calls: [...s.calls, ["more", "Conv"] as const] } : s));
    const wrong = writeArtifact({ manifest: { ...manifest, steps }, code: whole.section(1), relaxation: new Uint8Array(), weights: whole.weights });
    expect(() => takeApart(readArtifact(wrong))).toThrow(/fewer calls/);
  });
});

describe("a profile", () => {
  it("counts what each kernel does at the sizes that were run", async () => {
    const { artifact, report } = await compile(modelBytes(mixed));
    const at = async (n: number): Promise<number | undefined> => (await profileArtifact(artifact, () => feed(n), { runs: 3, warmup: 1 })).steps.find((s) => s.work?.nodes.includes("product"))?.work?.operations;
    expect(report.kernels.find((k) => k.nodes.includes("product"))).toMatchObject({ kind: "matmul", weights: 160 });
    expect(await at(16)).toBe(2 * 16 * 8 * 5);
    expect(await at(3)).toBe(2 * 3 * 8 * 5);
  });
  it("adds up", async () => {
    const { artifact } = await compile(modelBytes(mixed));
    const p = await profileArtifact(artifact, () => feed(16), { runs: 5, warmup: 1 });
    expect(p.steps.reduce((n, s) => n + s.total, 0)).toBeCloseTo(p.sum, 6);
    expect(p.steps.reduce((n, s) => n + s.share, 0)).toBeCloseTo(1, 9);
    expect(p.timeline.map((o) => o.step)).toEqual(p.steps.map((_, i) => i));
    for (const s of p.steps) expect(s.min <= s.mean && s.mean <= s.max && s.count === 1).toBe(true);
    for (const [i, o] of p.timeline.entries()) expect(o.start).toBeGreaterThanOrEqual(i === 0 ? 0 : (p.timeline[i - 1]?.start ?? 0));
    expect(p.whole.min).toBeGreaterThan(0);
  });
  it("knows no work where the report was left out", async () => {
    const { artifact } = await compile(modelBytes(mixed), { strip: true });
    const p = await profileArtifact(artifact, () => feed(2), { runs: 1, warmup: 0 });
    expect(p.steps.every((s) => s.work === undefined && s.gflops === undefined)).toBe(true);
  });
  it("has the sizes that were run, and holds products of integers against the peak of integers", async () => {
    const { artifact, report } = await compile(modelBytes({
      opset: 17, inputs: { x: { dtype: "uint8", dims: ["N", 8] } }, outputs: { y: { dtype: "int32", dims: ["N", 5] } },
      initializers: { w: { dtype: "int8", dims: [8, 5], data: Int8Array.from({ length: 40 }, (_, i) => i - 20) } },
      nodes: [{ type: "MatMulInteger", inputs: ["x", "w"], outputs: ["y"] }],
    }));
    expect(report.kernels[0]).toMatchObject({ kind: "matmul", integer: true, inputs: expect.arrayContaining(["uint8[N,8]"]) as string[] });
    const p = await profileArtifact(artifact, () => ({ x: new Tensor("uint8", new Uint8Array(24), [3, 8]) }), { runs: 2, warmup: 0 }), [step] = p.steps;
    expect(step?.work).toMatchObject({ integer: true, inputs: expect.arrayContaining(["uint8[3,8]"]) as string[], outputs: ["int32[3,5]"], operations: 2 * 3 * 8 * 5 });
    const least = Math.max(240 / p.peaks.integerGops / 1000, (step?.work?.bytes ?? 0) / p.peaks.cacheGBs / 1000);
    expect(step?.attained).toBeCloseTo(least / (step?.min ?? 1), 9);
    expect((await compile(modelBytes(mixed))).report.kernels.every((k) => k.integer === undefined)).toBe(true);
  });
  it("measures a machine that computes and reads", async () => {
    const peaks = await measurePeaks();
    expect(peaks.gflops).toBeGreaterThan(0.5);
    expect(peaks.integerGops).toBeGreaterThan(peaks.gflops);
    expect(peaks.cacheGBs).toBeGreaterThan(peaks.memoryGBs / 2);
  });
});

describe("onnxfuse profile", () => {
  it("prints kernels and writes GE's tables and a trace", async () => {
    write("m.onnx", mixed);
    const done = await run("profile m.onnx --dim N=4 --iterations 3 --warmup 1 --out p");
    expect(done).toMatchObject({ code: 0, error: "" });
    expect(done.out).toMatch(/Peaks measured on this machine/);
    expect(done.out).toMatch(/MatMul/);
    const summary = readFileSync("p/op_summary.csv", "utf8").trimEnd().split("\n");
    expect(summary[0]).toMatch(/^Model Name,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time\(us\),Task Duration\(us\)/);
    expect(summary.find((l) => l.includes("MatMul"))).toContain("WASM_SIMD");
    expect(summary.find((l) => l.includes("NonZero"))).toContain("HOST");
    const statistic = readFileSync("p/op_statistic.csv", "utf8").trimEnd().split("\n");
    expect(statistic.slice(1).reduce((n, l) => n + Number(l.split(",").pop()), 0)).toBeCloseTo(100, 0);
    const trace = JSON.parse(readFileSync("p/trace.json", "utf8")) as { traceEvents: { ph: string; dur?: number }[] };
    expect(trace.traceEvents.filter((e) => e.ph === "X")).toHaveLength(summary.length - 1);
  });
  it("takes an artifact, and prints JSON", async () => {
    write("m.onnx", mixed);
    await run("compile m.onnx");
    const { out, error } = await run("profile m.om --iterations 2 --warmup 0 --json");
    expect(error).toMatch(/size N was not given/);
    expect(JSON.parse(out)).toMatchObject({ runs: 2, unit: "us", method: expect.stringContaining("two readings of the clock") as string });
  });
});
