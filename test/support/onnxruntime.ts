/** onnxruntime as the judge of models we write: loads bytes, runs feeds, gives tensors of ours. */
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import type { Tensor } from "../../src/core/tensor.ts";
import { fromOnnxruntime, Tensor as RuntimeTensor, toOnnxruntime } from "../../src/runtime/index.ts";

/** All results by name. Optimisation is off unless asked for, so that the file itself is what runs. */
export async function runOnnxruntime(model: Uint8Array, feeds: Readonly<Record<string, Tensor>>, optimise = false): Promise<Record<string, Tensor>> {
  const session = await InferenceSession.create(model, { graphOptimizationLevel: optimise ? "all" : "disabled", logSeverityLevel: 3, intraOpNumThreads: 1 });
  try {
    const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, toOrt(t)])));
    return Object.fromEntries(Object.entries(results).map(([name, t]) => [name, fromOnnxruntime(t).unpacked()]));
  } finally {
    await session.release();
  }
}

const toOrt = (t: Tensor): OrtTensor => toOnnxruntime(RuntimeTensor.of(t), OrtTensor);
