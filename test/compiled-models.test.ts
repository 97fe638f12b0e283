/** The real models compiled, fused and unfused: results, step counts, sizes, accounting. */
import { describe, expect, test } from "vitest";
import { readArtifact } from "../src/artifact/artifact.ts";
import { compileModel, type Compiled } from "../src/compiler/compile.ts";
import { missedOf } from "../src/compiler/accounts/missed.ts";
import type { CompileOptions } from "../src/compiler/options.ts";
import type { Tensor as CoreTensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { load, Tensor } from "../src/runtime/index.ts";
import type { Engine } from "../src/backends/wasm/load.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { withRandomWeights } from "./support/random-weights.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

/** At most so many steps without input shapes. */
const stepLimits: Readonly<Record<string, number>> = {
  "light-resnet50": 58, "light-squeezenet": 40, "bert-toy": 45, "ppocr4-rec": 85, "ppocr4-det": 100, "ppocr2-cls": 85, "yolox-nano": 142, gtcrn: 130,
  "aidreams-kv": 76, "aidreams-kv-dynint8": 95, "blazeface-front": 52, "mlsd-tiny-320": 56, "ultraface-rfb320": 70, "shufflenet2-int8": 100,
  "micro-kws-qdq": 16, "oww-hello-deepa": 6,
};
/** With input shapes given. */
const fixedStepLimits: Readonly<Record<string, number>> = { "silero-vad-v5": 45 };
/** Code and manifest, without weights and report. */
const largestOverhead = 200 * 1024;

type Tensors = Readonly<Record<string, CoreTensor>>;
const shapesOf = (feeds: Tensors): Record<string, readonly number[]> => Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, t.dims]));

async function run(artifact: Uint8Array, feeds: Tensors, engine?: Engine): Promise<Record<string, CoreTensor>> {
  const session = await load(artifact, engine ? { engine } : {});
  const given = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, new Tensor(t.dtype, t.data, t.dims)]));
  const first = await session.run(given), second = await session.run(given);
  session.dispose();
  for (const [name, t] of Object.entries(first)) expect(second[name]?.data, `${name}, run again`).toEqual(t.data);
  return Object.fromEntries(Object.entries(first).map(([name, t]) => [name, t.unpacked()]));
}

function expectEqual(results: Tensors, expected: Tensors, tolerance: number): void {
  for (const [name, e] of Object.entries(expected)) {
    const actual = results[name];
    expect(actual && difference(actual, e, tolerance), name).toBeUndefined();
    expect(actual, name).toBeDefined();
  }
}

/** Every original node is accounted for. */
function expectExactCounts({ report }: Compiled): void {
  const { details, eliminated, folded, added } = report.counts;
  const saved = details.reduce((n, d) => n + d.nodesSaved, 0);
  expect(saved + eliminated + folded - added).toBe(report.nodes.original - report.nodes.compiled);
  for (const n of [eliminated, folded, added, ...details.map((d) => d.nodesSaved)]) expect(n).toBeGreaterThanOrEqual(0);
}

/** Every original node is in a kernel or has a fate, and whatever was missed says what to do about it. */
function expectExplained({ report }: Compiled): void {
  const known = new Set([...report.traffic, ...report.fates].flatMap((f) => f.nodes));
  expect(known.size).toBeGreaterThanOrEqual(report.nodes.original);
  for (const { site, bytes } of missedOf(report, {})) {
    expect(site.code).toMatch(/^[a-z0-9-]+$/);
    expect(site.reason).not.toBe("");
    expect(site.remedy).not.toMatch(/^(none|nothing)?$|^none:/);
    expect(bytes).toBeGreaterThanOrEqual(0);
  }
}

describe.each(ids)("%s", (id) => {
  const model = loadCase(id);
  const compiled = (options: CompileOptions = {}): Compiled => compileModel(model.bytes, options);

  test("fused, at any size", async () => {
    const result = compiled();
    expectEqual(await run(result.artifact, model.feeds), model.expected, model.tolerance);
    expectEqual(await run(result.artifact, model.feeds, "simd"), model.expected, model.tolerance);
    expect(result.report.nodes.original).toBe(model.nodes);
    expectExactCounts(result);
    expectExplained(result);
    expect(result.report.nodes.compiled).toBeLessThanOrEqual(stepLimits[id] ?? Infinity);
    const overhead = readArtifact(result.artifact).sections.filter((s) => s.kind !== "weights" && s.kind !== "report").reduce((n, s) => n + s.bytes.length, 0);
    expect(overhead).toBeLessThanOrEqual(largestOverhead);
  });

  test("fused, with shapes given: no host operators", async () => {
    const result = compiled({ inputShapes: shapesOf(model.feeds) });
    expectEqual(await run(result.artifact, model.feeds), model.expected, model.tolerance);
    expectExactCounts(result);
    // Require checks at run time what the reader assumed of an If; it is no operator of the model.
    expect(result.report.hostOperators.filter((h) => h.op !== "Require")).toEqual([]);
    expect(result.report.nodes.compiled).toBeLessThanOrEqual(fixedStepLimits[id] ?? stepLimits[id] ?? Infinity);
    const { peak } = readArtifact(result.artifact).manifest.memory;
    expect(peak?.bytes).toBeLessThanOrEqual(1.1 * (peak?.lowerBound ?? 0));
  });

  test("unfused", async () => {
    const result = compiled({ enableFusion: false });
    expectEqual(await run(result.artifact, model.feeds), model.expected, model.tolerance);
    expectExactCounts(result);
    expect(result.report.sites.filter((s) => s.outcome === "fired")).toEqual([]);
  });
});

describe.skipIf(ids.length === 0).each(["light-squeezenet", "light-resnet50"])("%s with random weights", (id) => {
  test("agrees with the reference interpreter and onnxruntime, fused and unfused", { timeout: 600_000 }, async () => {
    const model = loadCase(id);
    const bytes = withRandomWeights(model.bytes, 11);
    const reference = interpret(readModel(bytes, operators).graph, model.feeds);
    expectEqual(await runOnnxruntime(bytes, model.feeds), reference, 1e-4);
    for (const enableFusion of [true, false]) expectEqual(await run(compileModel(bytes, { enableFusion }).artifact, model.feeds), reference, 1e-4);
    const other = interpret(readModel(withRandomWeights(model.bytes, 12), operators).graph, model.feeds);
    expect(Object.entries(reference).some(([name, t]) => { const o = other[name]; return o && difference(o, t, 1e-4) !== undefined; })).toBe(true);
  });
});
