/** The node tests of the ONNX standard, run by the reference interpreter: inference and evaluation of every operator. */
import { describe, expect, test } from "vitest";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { isTensor, type Datum } from "../../src/core/datum.ts";
import { toNumbers } from "../../src/core/tensor.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { readModel } from "../../src/onnx/read.ts";
import { operators } from "../../src/ops/index.ts";
import { interpretData } from "../../src/reference/interpret.ts";
import { fedOtherwise, fixIntegers, loadNodeCase, nodeCaseNames } from "../support/node-cases.ts";
import { leftOut, outside } from "./exclusions.ts";
import { nodeCaseMismatch } from "./tolerance.ts";

const names = nodeCaseNames();
test.skipIf(names.length > 0)("set ONNXFUSE_TEST_DATA to run the node tests", ({ skip }) => skip());

function run(bytes: Uint8Array, feeds: Record<string, Datum>, expected: Record<string, Datum>): void {
  const { graph } = readModel(bytes, operators, { inputShapes: fedOtherwise(bytes, feeds) });
  verifyGraph(graph);
  const results = interpretData(graph, feeds);
  for (const [name, t] of Object.entries(expected)) expect(nodeCaseMismatch(results[name], t), name).toBeUndefined();
}

describe.skipIf(names.length === 0)("ONNX node tests", () => {
  let passed = 0;
  test.for(names)("%s", (name, context) => {
    const reason = leftOut[name];
    if (reason !== undefined) return context.skip(reason);
    const { bytes, dataSets } = loadNodeCase(name);
    try {
      for (const { feeds, expected } of dataSets()) {
        run(bytes, feeds, expected);
        const fixed = fixIntegers(bytes, feeds);
        if (Object.keys(fixed.feeds).length < Object.keys(feeds).length) run(fixed.bytes, fixed.feeds, expected);
      }
      passed++;
    } catch (error) {
      const reason = error instanceof DiagnosticError ? outside(error) : undefined;
      if (reason === undefined) throw error;
      context.skip(reason);
    }
  });
  test("most of them ran", () => expect(passed).toBeGreaterThan(1150));
  test("a wrong expectation is seen", () => {
    const { bytes, dataSets } = loadNodeCase("test_relu");
    const [set] = dataSets();
    const y = set?.expected["y"];
    expect(y).toBeDefined();
    if (set && y && isTensor(y)) expect(() => run(bytes, set.feeds, { y: { ...y, data: Float32Array.from(toNumbers(y), (v) => v + 0.01) } })).toThrow();
  });
});
