/** The real models, against the results that onnxruntime gives without optimisation. */
import { describe, expect, test } from "vitest";
import { present } from "../src/core/assert.ts";
import { toNumbers } from "../src/core/tensor.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

describe.each(ids)("%s", (id) => {
  const model = loadCase(id);

  test("the reference interpreter gives the expected results", () => {
    const { graph } = readModel(model.bytes, operators);
    verifyGraph(graph);
    const results = interpret(graph, model.feeds);
    for (const [name, expected] of Object.entries(model.expected))
      expect(difference(present(results[name], name), expected, model.tolerance), name).toBeUndefined();
  });

  test("sizes may be fixed while reading", () => {
    const inputShapes = Object.fromEntries(Object.entries(model.feeds).map(([name, t]) => [name, t.dims]));
    const { graph } = readModel(model.bytes, operators, { inputShapes });
    verifyGraph(graph);
    for (const output of graph.outputs) {
      const expected = present(model.expected[output.name], output.name);
      expect(output.type.dtype).toBe(expected.dtype);
      output.type.shape.forEach((d, axis) => { if (typeof d === "number") expect(d).toBe(expected.dims[axis]); });
    }
  });

  test("every node of the file is counted", () => {
    expect(readModel(model.bytes, operators).info.originalNodes).toBe(model.nodes);
  });
});

describe.skipIf(ids.length === 0)("the comparison itself", () => {
  test("sees a result that is off by twice the tolerance", () => {
    const model = loadCase("oww-hello-deepa");
    const expected = present(Object.values(model.expected)[0], "an output");
    const values = Float32Array.from(toNumbers(expected), (x) => x * (1 + 2 * model.tolerance));
    expect(difference({ ...expected, data: values }, expected, model.tolerance)).toMatch(/off by/);
    expect(difference({ ...expected, dims: [...expected.dims, 1] }, expected, model.tolerance)).toMatch(/dims/);
    expect(difference({ ...expected, data: values.map(() => NaN) }, expected, model.tolerance)).toMatch(/NaN/);
  });
});
