/**
 * A share of the fuzzing of small graphs against onnxruntime (`npm run fuzz:operators` runs as many as one likes). A
 * failure names the case, which `npm run fuzz:operators -- --only graph --seed S --case I` shows in full.
 * ONNXFUSE_FUZZ_SEED starts elsewhere, ONNXFUSE_FUZZ_CASES runs more.
 */
import { describe, expect, it } from "vitest";
import { allowances } from "../fuzz/conditioning.ts";
import { drawOfCase } from "../fuzz/draw.ts";
import { describeGraph, type GraphCase } from "../fuzz/graph-case.ts";
import { drawGraph } from "../fuzz/graphs.ts";
import { graphMismatch, judgeGraph } from "../fuzz/judge-graph.ts";
import { fromNumbers } from "../src/core/tensor.ts";

const seed = Number(process.env["ONNXFUSE_FUZZ_SEED"] ?? 1), count = Number(process.env["ONNXFUSE_FUZZ_CASES"] ?? 100);

it(`${count} graphs, from seed ${seed}, are as onnxruntime computes them`, { timeout: 600_000 }, async () => {
  let judged = 0;
  for (let i = 0; i < count; i++) {
    const c = drawGraph(drawOfCase(seed, i));
    if (!c) continue;
    const { kind, message = "" } = await judgeGraph(c);
    if (kind === "agrees") judged++;
    if (kind === "differs") expect.fail(`case ${i}, ${describeGraph(c)}: ${message}`);
  }
  expect(judged).toBeGreaterThan(count / 2);
});

const ramp = (...dims: number[]) => fromNumbers("float32", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => (i % 7) - 3));
/** Graphs that once failed, each with its cause. */
const kept: Readonly<Record<string, GraphCase>> = {
  "a bias whose size is a symbol was refused": {
    nodes: [{ type: "ConvTranspose", inputs: ["x", "w", "b"], outputs: ["t"] }, { type: "Conv", inputs: ["t", "v", "b"], outputs: ["y"] }],
    feeds: { x: ramp(1, 2, 4), b: ramp(3) }, constants: { w: ramp(2, 3, 2), v: ramp(3, 3, 1) }, outputs: ["y"], symbolic: true,
  },
  "a branch that differs along an axis in blocks of 4 was taken as the first of them": {
    nodes: [{ type: "Pad", inputs: ["x", "p"], outputs: ["t"] }, { type: "Where", inputs: ["w", "t", "k"], outputs: ["y"] }],
    feeds: { w: fromNumbers("bool", [3, 7], Array.from({ length: 21 }, (_, i) => Number(i % 3 !== 2))), x: ramp(4, 2, 1, 7) },
    constants: { p: fromNumbers("int64", [8], [0, 0, 1, 0, 0, 0, 1, 0]), k: fromNumbers("float32", [2, 3, 1], [10, 20, 30, 40, 50, 60]) }, outputs: ["t", "y"], symbolic: false,
  },
  "indices were checked against a size that nothing told any more, for what they pick is not read": {
    nodes: [{ type: "Range", inputs: ["from", "to", "by"], outputs: ["r"] }, { type: "Gather", inputs: ["r", "i"], outputs: ["g"] }, { type: "Mod", inputs: ["g", "one"], outputs: ["y"] }],
    feeds: { from: fromNumbers("int32", [], [1]), to: fromNumbers("int32", [], [20]), by: fromNumbers("int32", [], [3]), i: fromNumbers("int64", [1], [6]) },
    constants: { one: fromNumbers("int32", [], [1]) }, outputs: ["y"], symbolic: false,
  },
  "a result lost its name where its elements are sizes and its node has another result": {
    nodes: [{ type: "Shape", inputs: ["x"], outputs: ["s"] }, { type: "Split", inputs: ["s", "parts"], outputs: ["a", "b"], attributes: { axis: 0 } }, { type: "Concat", inputs: ["b", "a"], outputs: ["y"], attributes: { axis: 0 } }],
    feeds: { x: ramp(8, 2) }, constants: { parts: fromNumbers("int64", [2], [2, 0]) }, outputs: ["a", "b", "y"], symbolic: true,
  },
  "what stands before a parallel loop was not written where the loop has no iterations": {
    nodes: [{ type: "Concat", inputs: ["c", "x"], outputs: ["y"], attributes: { axis: 0 } }],
    feeds: { x: ramp(0, 1, 9) }, constants: { c: ramp(8, 1, 9) }, outputs: ["y"], symbolic: true,
  },
  "nor where a loop in it has none": {
    nodes: [{ type: "Concat", inputs: ["c", "x"], outputs: ["y"], attributes: { axis: 1 } }],
    feeds: { x: fromNumbers("bool", [7, 0, 8], []) }, constants: { c: fromNumbers("bool", [7, 3, 8], Array.from({ length: 168 }, (_, i) => i % 2)) }, outputs: ["y"], symbolic: true,
  },
  "the second step of a product was sought at a negative offset where its operand runs backwards": {
    nodes: [{ type: "Slice", inputs: ["x", "from", "to", "axis", "by"], outputs: ["t"] }, { type: "MatMul", inputs: ["t", "w"], outputs: ["y"] }],
    feeds: { x: ramp(3, 49) }, constants: { ...Object.fromEntries(Object.entries({ from: -1, to: -(2 ** 31), axis: 1, by: -1 }).map(([name, v]) => [name, fromNumbers("int64", [1], [v])])), w: ramp(49, 9) }, outputs: ["y"], symbolic: false,
  },
};
it.each(Object.entries(kept))("%s", async (_, c) => expect(await judgeGraph(c)).toEqual({ kind: "agrees", rounding: false }));

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
