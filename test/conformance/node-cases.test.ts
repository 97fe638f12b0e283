/** The node tests of the ONNX standard, run by the reference interpreter: inference and evaluation of every operator. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { isFloat } from "../../src/core/dtype.ts";
import { toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { readModel } from "../../src/onnx/read.ts";
import { ModelProtoSchema } from "../../src/onnx/schema/onnx_pb.ts";
import { writeTensor } from "../../src/onnx/tensor-proto.ts";
import { operators } from "../../src/ops/index.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { loadNodeCase, nodeCaseNames } from "../support/node-cases.ts";
import { leftOut, missingOperators, uncovered } from "./exclusions.ts";

const names = nodeCaseNames();
test.skipIf(names.length > 0)("set ONNXFUSE_TEST_DATA to run the node tests", () => {});

/** The tolerance of the standard's own runner, wider for the half types. */
const tolerance = { absolute: 1e-7, relative: (t: Tensor): number => (t.dtype === "bfloat16" ? 2 ** -7 : 1e-3) };

function mismatch(actual: Tensor | undefined, expected: Tensor): string | undefined {
  if (!actual) return "no such result";
  if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return `${actual.dtype}[${actual.dims}], expected ${expected.dtype}[${expected.dims}]`;
  const exact = !isFloat(expected.dtype);
  const a: ArrayLike<unknown> = exact ? actual.data : toNumbers(actual), b: ArrayLike<unknown> = exact ? expected.data : toNumbers(expected);
  for (let i = 0; i < b.length; i++) {
    const x = a[i], y = b[i];
    if (Object.is(x, y) || x === y) continue;
    if (exact || !(Math.abs(Number(x) - Number(y)) <= tolerance.absolute + tolerance.relative(expected) * Math.abs(Number(y)))) return `element ${i} is ${String(x)}, expected ${String(y)}`;
  }
  return undefined;
}

/** Why a case is outside what is covered; undefined for any other error. */
function outside(error: unknown): string | undefined {
  if (!(error instanceof DiagnosticError)) return undefined;
  if (error.code !== "OF2004") return uncovered.get(error.code);
  const missing = error.diagnostics.map((d) => d.message.split(" ")[1] ?? "");
  return missing.every((m) => missingOperators.has(m)) ? missing.join(", ") : undefined;
}

/** The model with its integer inputs fixed: some operators need theirs (axes, shapes, repeats) before running. */
function fixIntegers(bytes: Uint8Array, feeds: Record<string, Tensor>): { bytes: Uint8Array; feeds: Record<string, Tensor> } {
  const model = fromBinary(ModelProtoSchema, bytes);
  const fixed = Object.entries(feeds).filter(([, t]) => t.dtype === "int64");
  const { graph } = model;
  if (!graph) throw new Error("no graph");
  graph.initializer.push(...fixed.map(([name, t]) => writeTensor(t, name)));
  graph.input = graph.input.filter((v) => !fixed.some(([name]) => name === v.name));
  return { bytes: toBinary(ModelProtoSchema, model), feeds: Object.fromEntries(Object.entries(feeds).filter(([name]) => !fixed.some(([n]) => n === name))) };
}

function run(bytes: Uint8Array, feeds: Record<string, Tensor>, expected: Record<string, Tensor>): void {
  const { graph } = readModel(bytes, operators);
  verifyGraph(graph);
  const results = interpret(graph, feeds);
  for (const [name, t] of Object.entries(expected)) expect(mismatch(results[name], t), name).toBeUndefined();
}

describe.skipIf(names.length === 0)("ONNX node tests", () => {
  let passed = 0;
  test.for(names)("%s", (name, context) => {
    const reason = leftOut[name];
    if (reason !== undefined) return context.skip(reason);
    const { bytes, tensorsOnly, dataSets } = loadNodeCase(name);
    if (!tensorsOnly) return context.skip("no tensor");
    try {
      for (const { feeds, expected } of dataSets()) {
        run(bytes, feeds, expected);
        const fixed = fixIntegers(bytes, feeds);
        if (Object.keys(fixed.feeds).length < Object.keys(feeds).length) run(fixed.bytes, fixed.feeds, expected);
      }
      passed++;
    } catch (error) {
      const reason = outside(error);
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
    if (set && y) expect(() => run(bytes, set.feeds, { y: { ...y, data: Float32Array.from(toNumbers(y), (v) => v + 0.01) } })).toThrow();
  });
});
