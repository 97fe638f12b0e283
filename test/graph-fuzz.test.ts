/**
 * A share of the fuzzing of small graphs against onnxruntime (`npm run fuzz:operators` runs as many as one likes):
 * fast-check makes a failing one smaller and prints its seed. ONNXFUSE_FUZZ_SEED starts elsewhere, ONNXFUSE_FUZZ_CASES
 * runs more.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allowances } from "../fuzz/conditioning.ts";
import { drawFromGenerator } from "../fuzz/draw.ts";
import { describeGraph, type GraphCase } from "../fuzz/graph-case.ts";
import { drawGraph } from "../fuzz/graphs.ts";
import { graphMismatch, judgeGraph } from "../fuzz/judge-graph.ts";
import { fromNumbers } from "../src/core/tensor.ts";

const seed = Number(process.env["ONNXFUSE_FUZZ_SEED"] ?? 1), numRuns = Number(process.env["ONNXFUSE_FUZZ_CASES"] ?? 100);

it(`${numRuns} graphs, from seed ${seed}, are as onnxruntime computes them`, { timeout: 600_000 }, async () => {
  let judged = 0;
  await fc.assert(fc.asyncProperty(fc.gen(), async (g) => {
    const c = drawGraph(drawFromGenerator(g));
    if (!c) return;
    const { kind, message = "" } = await judgeGraph(c);
    if (kind === "agrees") judged++;
    if (kind === "differs") expect.fail(`${describeGraph(c)}: ${message}`);
  }), { seed, numRuns });
  expect(judged).toBeGreaterThan(numRuns / 2);
});

describe("what rounding explains", () => {
  const row = (...values: number[]) => fromNumbers("float32", [values.length], values);
  const difference: GraphCase = { nodes: [{ type: "Sub", inputs: ["a", "b"], outputs: ["y"] }], feeds: { a: row(1, 5), b: row(1.0000001, 2) }, constants: {}, outputs: ["y"], symbolic: false };
  const expected = { y: row(-1.1920929e-7, 3) };
  it("lets what cancels differ, and nothing else", () => {
    const allowed = allowances(difference, expected);
    expect(graphMismatch({ y: row(0, 3) }, expected)).toBeUndefined();
    expect(graphMismatch({ y: row(-1e-5, 3) }, expected)).toMatch(/element 0/);
    expect(graphMismatch({ y: row(-2e-6, 3) }, expected, allowed)).toBeUndefined();
    expect(graphMismatch({ y: row(0, 3.01) }, expected, allowed)).toMatch(/element 1/);
    expect(graphMismatch({ y: row(0, NaN) }, expected, allowed)).toMatch(/element 1/);
  });
});
