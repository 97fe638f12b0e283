/** A model run by the reference interpreter, compiled with and without fusion, and by onnxruntime. */
import { compile } from "../../src/api/index.ts";
import type { Tensor } from "../../src/core/tensor.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { readModel } from "../../src/onnx/read.ts";
import { operators } from "../../src/ops/index.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { load, Tensor as RuntimeTensor, type Session } from "../../src/runtime/index.ts";
import { mismatch } from "./differential.ts";
import { modelBytes, type ModelSpec } from "./model-spec.ts";
import { runOnnxruntime } from "./onnxruntime.ts";

export type Tensors = Readonly<Record<string, Tensor>>;

export const f32 = (dims: readonly number[], ...values: readonly number[]): Tensor => ({ dtype: "float32", dims, data: Float32Array.from(values) });
export const i64 = (dims: readonly number[], ...values: readonly number[]): Tensor => ({ dtype: "int64", dims, data: BigInt64Array.from(values, BigInt) });
export const bool = (value: boolean): Tensor => ({ dtype: "bool", dims: [], data: Uint8Array.of(value ? 1 : 0) });

export async function runSession(session: Session, feeds: Tensors): Promise<Record<string, Tensor>> {
  const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new RuntimeTensor(t.dtype, t.data, t.dims)])));
  return Object.fromEntries(Object.entries(results).map(([k, t]) => [k, { dtype: t.type, dims: t.dims, data: t.data }]));
}

/** What differs for any of the feeds, if anything; one artifact serves them all. */
export async function compareWays(spec: ModelSpec, feeds: readonly Tensors[], options: { readonly onnxruntime?: boolean } = {}): Promise<string | undefined> {
  const model = modelBytes(spec);
  const { graph } = readModel(model, operators);
  verifyGraph(graph);
  const sessions = await Promise.all([true, false].map(async (enableFusion) => load((await compile(model, { enableFusion })).artifact)));
  try {
    for (const [i, feed] of feeds.entries()) {
      const expected = interpret(graph, feed);
      const ways: [string, () => Promise<Tensors>][] = sessions.map((s, n) => [n === 0 ? "fused" : "unfused", () => runSession(s, feed)]);
      if (options.onnxruntime !== false) ways.push(["onnxruntime", () => runOnnxruntime(model, feed)]);
      for (const [way, run] of ways) {
        const found = mismatch(await run(), expected);
        if (found !== undefined) return `${way}, feed ${i}: ${found}`;
      }
    }
    return undefined;
  } finally {
    sessions.forEach((s) => s.dispose());
  }
}
