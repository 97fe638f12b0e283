/**
 * The kernel interpreter, which defines what kernels mean, and the WebAssembly that they become give the same results
 * on the small models, fused and unfused, and both give the expected ones.
 */
import { describe, expect, test } from "vitest";
import { compileModel, fuseModel } from "../src/compiler/compile.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { interpretProgram } from "../src/kernel/interpret-program.ts";
import { lowerProgram } from "../src/lower/program.ts";
import { load, Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";

const small = ["oww-hello-deepa", "micro-kws-qdq", "bert-toy", "aidreams-kv", "aidreams-kv-dynint8", "silero-vad-v5", "gtcrn"];
const ids = caseIds().filter((id) => small.includes(id));
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

type Tensors = Readonly<Record<string, Tensor>>;
async function compiled(artifact: Uint8Array, feeds: Tensors): Promise<Tensors> {
  const session = await load(artifact);
  const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, RuntimeTensor.of(t)])));
  session.dispose();
  return Object.fromEntries(Object.entries(results).map(([name, t]) => [name, t.unpacked()]));
}

describe.each(ids)("%s", (id) => {
  const { bytes, feeds, expected, tolerance } = loadCase(id);
  test.each([true, false])("kernels interpreted agree with the code, fusion %s", async (enableFusion) => {
    const inputShapes = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, t.dims]));
    const { graph: { graph }, regions } = fuseModel(bytes, { enableFusion, inputShapes }, true);
    // Host steps of a model with sizes given are the checks of what the reader assumed; these hold here.
    const host = (step: { readonly op: string }): Tensor[] => { expect(step.op).toBe("Require"); return []; };
    const interpreted = interpretProgram(lowerProgram(graph, regions), feeds, { host });
    const run = await compiled(compileModel(bytes, { enableFusion, inputShapes }).artifact, feeds);
    for (const [name, e] of Object.entries(expected)) {
      const a = interpreted[name], b = run[name];
      expect(a && difference(a, e, tolerance), `${name}, interpreted`).toBeUndefined();
      expect(a && b && difference(b, a, tolerance), `${name}, code against interpreted`).toBeUndefined();
      expect([name, a === undefined, b === undefined]).toEqual([name, false, false]);
    }
  });
});
