/**
 * Differential test on random models of 5 to 40 nodes: compiled with and without fusion against the reference
 * interpreter. A failure prints the seed of the run, and the smallest model that still fails. Set ONNXFUSE_RANDOM_SEED
 * to start elsewhere and ONNXFUSE_RANDOM_GRAPHS to run more.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tensor } from "../src/core/tensor.ts";
import { checkModel, mismatch, modelOf, models, type ModelKey } from "./support/differential.ts";
import { randomModel, type Generation } from "./support/random-graph.ts";

const count = Number(process.env["ONNXFUSE_RANDOM_GRAPHS"] ?? 1000);
const seed = Number(process.env["ONNXFUSE_RANDOM_SEED"] ?? 1);
/** Models that once failed, each kept as a case, made of the kinds of step that there were then. */
const kept: readonly (ModelKey & { readonly generation: Generation })[] = [{ seed: 453, size: 26, generation: 0 }, { seed: 1181, size: 34, generation: 0 }, { seed: 1360, size: 33, generation: 0 }, { seed: 1331164044, size: 10, generation: 1 }];

describe("random models", () => {
  it(`${count} of them, from seed ${seed}, agree with the reference, fused and unfused`, { timeout: 900_000 }, async () => {
    console.log(`random models: seed ${seed}, ${count} models`);
    await fc.assert(fc.asyncProperty(models, async (m) => { expect(await checkModel(modelOf(m))).toBeUndefined(); }), { seed, numRuns: count });
  });
  it.each(kept)("agrees on a model that once failed: seed $seed, $size nodes", async (m) => expect(await checkModel(randomModel(m.seed, m.size, m.generation))).toBeUndefined());
  it("the comparison notices a wrong element", () => {
    const t = (v: number): Tensor => ({ dtype: "float32", dims: [2], data: Float32Array.of(1, v) });
    expect(mismatch({ y: t(2) }, { y: t(2.01) })).toBeDefined();
    expect(mismatch({ y: t(NaN) }, { y: t(2) })).toBeDefined();
    expect(mismatch({ y: t(2) }, { y: t(2) })).toBeUndefined();
  });
});
