/** A model through the whole way, by all its executors at once: for models whose values need not be tensors. */
import { expect } from "vitest";
import { compile } from "../../src/api/index.ts";
import { fuseModel } from "../../src/compiler/compile.ts";
import type { Datum } from "../../src/core/datum.ts";
import { evaluationOf } from "../../src/graph/op.ts";
import { interpretProgramData } from "../../src/kernel/interpret-program.ts";
import type { HostStep } from "../../src/kernel/segments.ts";
import { lowerProgram } from "../../src/lower/program.ts";
import { readModel } from "../../src/onnx/read.ts";
import { writeModel } from "../../src/onnx/write.ts";
import { operators } from "../../src/ops/index.ts";
import { interpretData } from "../../src/reference/interpret.ts";
import { load, Tensor, type Feed, type RunValue } from "../../src/runtime/index.ts";
import { datumOf } from "../../src/runtime/run-values.ts";
import { modelBytes, type ModelSpec } from "./model-spec.ts";

/** Runs fused and unfused, which must agree with the reference, the kernels interpreted, and the model written and read again. */
export async function run(spec: ModelSpec, feeds: Readonly<Record<string, Feed>>): Promise<Record<string, RunValue>> {
  const bytes = modelBytes(spec), { graph, info } = readModel(bytes, operators);
  const again = readModel(writeModel(graph, info), operators).graph;
  const data = Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, datumOf(feed as RunValue)]));
  let results: Record<string, RunValue> = {};
  for (const enableFusion of [true, false]) {
    const session = await load((await compile(bytes, { enableFusion })).artifact);
    results = await session.run<Record<string, RunValue>>(feeds);
    const given = Object.fromEntries(Object.entries(results).map(([name, v]) => [name, datumOf(v)]));
    for (const reference of [graph, again]) expect(given).toEqual(interpretData(reference, data));
    const fused = fuseModel(bytes, { enableFusion }, true);
    expect(given).toEqual(interpretProgramData(lowerProgram(fused.graph.graph, fused.regions), data, { host }));
    session.dispose();
  }
  return results;
}
/** A host step of a program whose kernels are interpreted. */
function host(step: HostStep, inputs: readonly (Datum | undefined)[]): readonly Datum[] {
  const op = operators.find((o) => o.type === step.op && o.domain === step.domain), evaluate = op && evaluationOf(op);
  if (!evaluate) throw new Error(`no evaluation of ${step.op}`);
  const attributes = Object.fromEntries(Object.entries(step.attributes).map(([key, a]) => [key, typeof a === "object" && "tensor" in a ? a.tensor : typeof a === "boolean" ? Number(a) : a]));
  return evaluate(inputs, attributes, { outputCount: step.outputs.length, outputDTypes: step.outputs.map((b) => b?.dtype ?? "float32") });
}
/** Elements as lists. */
export const plain = (v: RunValue | undefined): unknown => (v instanceof Tensor ? [...v.data] : Array.isArray(v) ? v.map(plain) : v);
