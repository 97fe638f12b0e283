/** The node tests of the ONNX standard, compiled and run: every operator's kernels or host step, in real artifacts. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../../src/compiler/compile.ts";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { isTensor, type Datum } from "../../src/core/datum.ts";
import { toNumbers } from "../../src/core/tensor.ts";
import { load, type RunValue } from "../../src/runtime/index.ts";
import { datumOf, resultOf } from "../../src/runtime/run-values.ts";
import { fedOtherwise, fixIntegers, loadNodeCase, nodeCaseNames } from "../support/node-cases.ts";
import { leftOut, outside } from "./exclusions.ts";
import { nodeCaseMismatch } from "./tolerance.ts";

const names = nodeCaseNames();
test.skipIf(names.length > 0)("set ONNXFUSE_TEST_DATA to run the node tests", ({ skip }) => skip());

async function run(bytes: Uint8Array, feeds: Record<string, Datum>, expected: Record<string, Datum>, enableFusion = true): Promise<void> {
  const session = await load(compileModel(bytes, { enableFusion, inputShapes: fedOtherwise(bytes, feeds) }).artifact);
  try {
    const results = await session.run<Record<string, RunValue>>(Object.fromEntries(Object.entries(feeds).map(([name, d]) => [name, resultOf(d)])));
    for (const [name, t] of Object.entries(expected)) {
      const r = results[name];
      expect(nodeCaseMismatch(r === undefined ? undefined : datumOf(r), t), name).toBeUndefined();
    }
  } finally {
    session.dispose();
  }
}

describe.skipIf(names.length === 0)("ONNX node tests, compiled", () => {
  let passed = 0;
  test.for(names)("%s", async (name, context) => {
    const reason = leftOut[name];
    if (reason !== undefined) return context.skip(reason);
    const { bytes, dataSets } = loadNodeCase(name);
    try {
      for (const { feeds, expected } of dataSets()) {
        await run(bytes, feeds, expected);
        await run(bytes, feeds, expected, false);
        const fixed = fixIntegers(bytes, feeds);
        if (Object.keys(fixed.feeds).length < Object.keys(feeds).length) await run(fixed.bytes, fixed.feeds, expected);
      }
      passed++;
    } catch (error) {
      const reason = error instanceof DiagnosticError ? outside(error) : undefined;
      if (reason === undefined) throw error;
      context.skip(reason);
    }
  });
  test("most of them ran", () => expect(passed).toBeGreaterThan(1150));
  test("a wrong expectation is seen", async () => {
    const { bytes, dataSets } = loadNodeCase("test_relu");
    const [set] = dataSets();
    const y = set?.expected["y"];
    expect(y).toBeDefined();
    if (set && y && isTensor(y)) await expect(run(bytes, set.feeds, { y: { ...y, data: Float32Array.from(toNumbers(y), (v) => v + 0.01) } })).rejects.toThrow();
  });
});
