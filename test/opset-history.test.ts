/**
 * Operators over the opsets 7 to 27: a node in its newest form is written for each opset that has the operator or can say
 * it by others, read back, and is the same function; onnxruntime loads the file by that opset's own schema and agrees.
 */
import { describe, expect, test } from "vitest";
import { present } from "../src/core/assert.ts";
import { fromNumbers } from "../src/core/tensor.ts";
import { deviation } from "./support/deviation.ts";
import { historyOf } from "./support/opset-history.ts";
import { modelOf, rows } from "./support/operator-rows.ts";

describe("operators over opsets", () => {
  test.each(rows.flatMap((row) => row.operators.split(" ").map((type) => ({ type, row }))))("$type", async ({ type, row }) => {
    const { spec, feeds } = modelOf(type, row.types.includes("float32") ? "float32" : present(row.types[0], "type"), row), { first, wrong } = await historyOf(spec, feeds);
    expect(wrong).toEqual([]);
    expect(first).toBeDefined();
  }, 60_000);
  test("a difference is seen", () => {
    const t = fromNumbers("float32", [3], [1, NaN, Infinity]);
    expect(deviation(t, t)).toBeUndefined();
    for (const other of [[1.001, NaN, Infinity], [1, 0, Infinity], [1, NaN, 9]]) expect(deviation(fromNumbers("float32", [3], other), t)).toMatch(/element/);
    expect(deviation(fromNumbers("float64", [3], [1, NaN, Infinity]), t)).toMatch(/instead of/);
    expect(deviation(fromNumbers("int32", [1], [1]), fromNumbers("int32", [1], [2]))).toMatch(/element 0 is 1, not 2/);
  });
});
