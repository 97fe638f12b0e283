/**
 * Operators over the opsets 7 to 27: a node in its newest form is written for each opset that has the operator or can say
 * it by others, read back, and is the same function; onnxruntime loads the file by that opset's own schema and agrees.
 */
import { describe, expect, test } from "vitest";
import { present } from "../src/core/assert.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import { newestOpset, oldestOpset } from "../src/onnx/operators.ts";
import { readModel } from "../src/onnx/read.ts";
import { writeModel } from "../src/onnx/write.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { deviation } from "./support/deviation.ts";
import { modelBytes } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";
import { modelOf, rows, type Row } from "./support/operator-rows.ts";

/** The newest opset whose operators onnxruntime's release has. */
const judged = 25;
const opsets = Array.from({ length: newestOpset - oldestOpset + 1 }, (_, i) => oldestOpset + i);

function same(actual: Readonly<Record<string, Tensor>>, expected: Readonly<Record<string, Tensor>>, where: string): void {
  for (const [name, t] of Object.entries(expected)) expect(deviation(actual[name], t), where).toBeUndefined();
}

/** The opset from which on the row's node can be said; it is an error where a later one cannot. */
async function firstOpset(type: string, row: Row): Promise<number | undefined> {
  const { spec, feeds } = modelOf(type, row.types.includes("float32") ? "float32" : present(row.types[0], "type"), row);
  const { graph, info } = readModel(modelBytes(spec), operators), expected = interpret(graph, feeds);
  let first: number | undefined;
  for (const opset of opsets) {
    const bytes = written(() => writeModel(graph, { ...info, irVersion: 8, opsets: new Map([["", opset]]) }));
    if (!bytes) { expect(first, `${type} is said in opset ${first} but not in ${opset}`).toBeUndefined(); continue; }
    first ??= opset;
    const where = `opset ${opset}`;
    same(interpret(readModel(bytes, operators).graph, feeds), expected, where);
    const theirs = opset > judged ? undefined : await judge(bytes, feeds);
    if (theirs) same(theirs, expected, `${where}, onnxruntime`);
  }
  return first;
}

function written(write: () => Uint8Array): Uint8Array | undefined {
  try { return write(); } catch (e) { if (e instanceof DiagnosticError && e.code === "OF2080") return undefined; throw e; }
}
/** What onnxruntime gives; undefined where it knows the operator but has no kernel for it. */
async function judge(bytes: Uint8Array, feeds: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor> | undefined> {
  try { return await runOnnxruntime(bytes, feeds); } catch (e) { if (String(e).includes("NOT_IMPLEMENTED") || String(e).includes("Could not find an implementation")) return undefined; throw e; }
}

describe("operators over opsets", () => {
  test.each(rows.flatMap((row) => row.operators.split(" ").map((type) => ({ type, row }))))("$type", async ({ type, row }) => {
    expect(await firstOpset(type, row)).toBeDefined();
  }, 60_000);
  test("a difference is seen", () => {
    const t = fromNumbers("float32", [3], [1, NaN, Infinity]);
    expect(deviation(t, t)).toBeUndefined();
    for (const other of [[1.001, NaN, Infinity], [1, 0, Infinity], [1, NaN, 9]]) expect(deviation(fromNumbers("float32", [3], other), t)).toMatch(/element/);
    expect(deviation(fromNumbers("float64", [3], [1, NaN, Infinity]), t)).toMatch(/instead of/);
    expect(deviation(fromNumbers("int32", [1], [1]), fromNumbers("int32", [1], [2]))).toMatch(/element 0 is 1, not 2/);
  });
});
