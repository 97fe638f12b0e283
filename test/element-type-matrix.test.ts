/**
 * Operators × element types of the standard: each pair that the operator's newest schema allows is compiled, and gives
 * what the reference interpreter gives.
 */
import { describe, expect, test } from "vitest";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { runCompiled } from "./support/differential.ts";
import { modelBytes } from "./support/model-spec.ts";
import { modelOf, rows } from "./support/operator-rows.ts";
import { deviation } from "./support/deviation.ts";

describe.each(rows.flatMap((row) => row.operators.split(" ").map((type) => ({ type, row }))))("$type", ({ type, row }) => {
  test.each(row.types)("%s", async (dtype) => {
    const { spec, feeds } = modelOf(type, dtype, row);
    const model = modelBytes(spec), expected = interpret(readModel(model, operators).graph, feeds);
    const actual = await runCompiled(model, feeds, true);
    for (const [name, t] of Object.entries(expected)) expect(deviation(actual[name], t), name).toBeUndefined();
  });
});
