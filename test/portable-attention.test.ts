/** What onnxruntime's own optimiser makes of emitted encoders: the operators that it makes of the model itself. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceSession } from "onnxruntime-node";
import { afterAll, describe, expect, test } from "vitest";
import { optimise } from "../src/api/index.ts";
import { decodeModel } from "../src/onnx/decode.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const folder = mkdtempSync(join(tmpdir(), "onnxfuse-portable-"));
afterAll(() => { rmSync(folder, { recursive: true }); });

/** How many nodes of each type a model has when onnxruntime has optimised it. */
async function optimised(model: Uint8Array): Promise<ReadonlyMap<string, number>> {
  const optimizedModelFilePath = join(folder, "optimised.onnx"), counts = new Map<string, number>();
  const session = await InferenceSession.create(model, { graphOptimizationLevel: "all", logSeverityLevel: 3, optimizedModelFilePath });
  await session.release();
  for (const n of decodeModel(readFileSync(optimizedModelFilePath)).graph.node) counts.set(n.opType, (counts.get(n.opType) ?? 0) + 1);
  return counts;
}
const total = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((a, b) => a + b, 0);

describe.skipIf(!caseIds().includes("bert-toy"))("an encoder", () => {
  const model = () => loadCase("bert-toy");

  test.each(["standard", "functions"] as const)("at level %s is what onnxruntime makes of the model", async (level) => {
    const { bytes, feeds, expected, tolerance } = model(), emitted = optimise(bytes, { level });
    expect(await optimised(emitted.model)).toEqual(await optimised(bytes));
    expect(emitted.report.nodes.compiled).toBeLessThan(emitted.report.nodes.original);
    for (const all of [false, true]) {
      const results = await runOnnxruntime(emitted.model, feeds, all);
      for (const [name, t] of Object.entries(expected)) expect(results[name] && difference(results[name], t, tolerance), `${name}, optimised: ${all}`).toBeUndefined();
    }
  });
  test("at level ort has all of its operators, and six small ones about the mask", async () => {
    const own = await optimised(model().bytes), emitted = await optimised(optimise(model().bytes, { level: "ort" }).model);
    for (const type of ["Attention", "SkipLayerNormalization", "BiasGelu", "MatMul", "Add"]) expect(emitted.get(type), type).toBe(own.get(type));
    expect(total(emitted) - total(own)).toBe(6);
  });
  test("without its attention as it was written is not", async () => {
    const unfused = optimise(model().bytes, { level: "standard", enableFusion: false });
    expect((await optimised(unfused.model)).get("Attention") ?? 0).toBe(0);
  });
});
