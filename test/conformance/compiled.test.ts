/** The node tests of the ONNX standard, compiled and run: every operator's kernels or host step, in real artifacts. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../../src/compiler/compile.ts";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { load, Tensor as RuntimeTensor } from "../../src/runtime/index.ts";
import { fixIntegers, loadNodeCase, nodeCaseNames } from "../support/node-cases.ts";
import { leftOut, outside } from "./exclusions.ts";
import { nodeCaseMismatch } from "./tolerance.ts";

/** What is read and evaluated, but not compiled yet. */
const uncompiled: ReadonlyMap<string, string> = new Map([["OF5006", "strings"]]);
const names = nodeCaseNames();
test.skipIf(names.length > 0)("set ONNXFUSE_TEST_DATA to run the node tests", () => {});

async function run(bytes: Uint8Array, feeds: Record<string, Tensor>, expected: Record<string, Tensor>): Promise<void> {
  const session = await load(compileModel(bytes).artifact);
  try {
    const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, RuntimeTensor.of(t)])));
    for (const [name, t] of Object.entries(expected)) {
      const r = results[name];
      expect(nodeCaseMismatch(r?.unpacked(), t), name).toBeUndefined();
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
    const { bytes, tensorsOnly, dataSets } = loadNodeCase(name);
    if (!tensorsOnly) return context.skip("no tensor");
    try {
      for (const { feeds, expected } of dataSets()) {
        await run(bytes, feeds, expected);
        const fixed = fixIntegers(bytes, feeds);
        if (Object.keys(fixed.feeds).length < Object.keys(feeds).length) await run(fixed.bytes, fixed.feeds, expected);
      }
      passed++;
    } catch (error) {
      const reason = error instanceof DiagnosticError ? uncompiled.get(error.code) ?? outside(error) : undefined;
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
    if (set && y) await expect(run(bytes, set.feeds, { y: { ...y, data: Float32Array.from(toNumbers(y), (v) => v + 0.01) } })).rejects.toThrow();
  });
});
