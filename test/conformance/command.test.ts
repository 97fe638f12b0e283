/** What `npm run conformance` counts: outcomes of single cases, of random ones, and their sums. */
import { describe, expect, it } from "vitest";
import { listCases } from "../../conformance/cases.ts";
import { randomMismatch, randomPassed } from "../../conformance/random-cases.ts";
import { runCase } from "../../conformance/run-case.ts";
import { summarise } from "../../conformance/summary.ts";
import { asTensor } from "../../src/core/datum.ts";
import { fromNumbers, type Tensor } from "../../src/core/tensor.ts";
import { loadNodeCase, nodeCasesFolder } from "../support/node-cases.ts";

const folder = nodeCasesFolder();

describe.skipIf(folder === undefined)("a case", () => {
  it("passes three ways", async () => {
    expect(await runCase(loadNodeCase("test_relu"))).toEqual({ reference: undefined, unfused: undefined, fused: undefined });
  });
  it("fails where one element is off", async () => {
    const node = loadNodeCase("test_relu");
    const off = { ...node, dataSets: () => node.dataSets().map(({ feeds, expected }) => ({ feeds, expected: Object.fromEntries(Object.entries(expected).map(([k, d]) => { const t = asTensor(d); return [k, fromNumbers(t.dtype, t.dims, Array.from(t.data as Float32Array, (v) => v * 1.002))]; })) })) };
    for (const outcome of Object.values(await runCase(off))) expect(outcome).toMatch(/^y: element \d+ is/);
  });
  it("belongs to the operator that it tests, spelled out or not", () => {
    const operators = new Map(listCases(folder ?? "").map((c) => [c.name, c.operator]));
    expect(operators.get("test_relu")).toBe(":Relu");
    expect(operators.get("test_relu_expanded_ver18")).toBe(":Relu");
    expect(operators.get("test_ai_onnx_ml_binarizer")).toBe("ai.onnx.ml:Binarizer");
  });
});

describe("random cases", () => {
  const expected = { y: fromNumbers("float32", [4], [0, 1, 1, 0]) };
  const check = (name: string, ...runs: Tensor[]): Promise<string | undefined> => randomMismatch(name, async () => ({ y: runs.shift() ?? expected.y }), {}, expected);
  it("are held to dtype, range and repeatability, and count as not passed", async () => {
    expect(await check("test_bernoulli_seed")).toBe(randomPassed);
    expect(await check("test_bernoulli", fromNumbers("float64", [4], [0, 1, 1, 0]))).toMatch(/type/);
    expect(await check("test_bernoulli", fromNumbers("float32", [4], [0, 0.5, 1, 0]))).toMatch(/neither/);
    expect(await check("test_bernoulli_seed", fromNumbers("float32", [4], [1, 1, 1, 0]))).toMatch(/differ/);
    expect(await check("test_relu")).toBeUndefined();
  });
});

it("sums say what passed each way, and why the rest did not", () => {
  const info = { name: "a", operator: ":A", plain: true }, passed = { reference: undefined, unfused: undefined, fused: undefined };
  const results = summarise([
    { info, outcome: passed },
    { info: { ...info, name: "b", plain: false }, outcome: { ...passed, fused: "off" } },
    { info: { ...info, name: "c", operator: ":C" }, outcome: { reference: "no", unfused: "no", fused: "no" } },
  ]);
  expect(results.total).toEqual({ cases: 3, reference: 2, unfused: 2, fused: 1 });
  expect(results.plain).toEqual({ cases: 2, reference: 1, unfused: 1, fused: 1 });
  expect(results.operators[":A"]).toEqual({ cases: 2, reference: 2, unfused: 2, fused: 1 });
  expect(results.notPassed).toEqual({ b: { fused: "off" }, c: "no" });
});
