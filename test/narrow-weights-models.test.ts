/** The real models with their weights in fewer bits: how small they become, and how far results are from those with all bits. */
import { describe, expect, test } from "vitest";
import { readArtifact } from "../src/artifact/artifact.ts";
import { compileModel } from "../src/compiler/compile.ts";
import { isFloat } from "../src/core/dtype.ts";
import { toNumbers, type Tensor as CoreTensor } from "../src/core/tensor.ts";
import { load, Tensor } from "../src/runtime/index.ts";
import { caseIds, loadCase, type ModelCase } from "./support/cases.ts";
import { withRandomWeights } from "./support/random-weights.ts";

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

type Limit = readonly [ratio: number, error: number];
/**
 * How many times smaller the weights become at least, and the relative Euclidean distance of the farthest output at most;
 * none where a model's weights are integers already. Inputs are noise: detectors give nearly nothing on them (ppocr4-det,
 * mlsd), and yolox answers float32's own rounding by 5e-5, which is as large beside it.
 */
const limits: Readonly<Record<string, { readonly f16: Limit; readonly int8: Limit } | undefined>> = {
  "ppocr4-rec": { f16: [1.95, 6e-3], int8: [3.7, 0.1] },
  "ppocr4-det": { f16: [1.95, 0.04], int8: [3.7, 4] },
  "ppocr2-cls": { f16: [1.9, 2e-4], int8: [3.2, 8e-3] },
  "silero-vad-v5": { f16: [1.95, 1.2e-3], int8: [3.7, 0.08] },
  "blazeface-front": { f16: [1.9, 1e-6], int8: [3.3, 0.1] },
  "mlsd-tiny-320": { f16: [1.95, 2], int8: [3.6, 2] },
  "oww-hello-deepa": { f16: [1.95, 1e-5], int8: [3.8, 1e-5] },
  "ultraface-rfb320": { f16: [1.8, 1.2e-4], int8: [3, 4e-3] },
  "yolox-nano": { f16: [1.95, 0.2], int8: [3.6, 1] },
  gtcrn: { f16: [1.55, 8e-4], int8: [2.1, 0.05] },
  "aidreams-kv": { f16: [1.7, 5e-4], int8: [2.7, 0.015] },
  "bert-toy": { f16: [1.4, 5e-4], int8: [1.8, 0.012] },
  "light-resnet50": { f16: [1.95, 1e-3], int8: [3.9, 0.02] },
  "light-squeezenet": { f16: [1.95, 5e-3], int8: [3.8, 0.15] },
};

async function measure({ feeds }: ModelCase, bytes: Uint8Array, weights?: "f16" | "int8") {
  const { artifact, report } = compileModel(bytes, { strip: true, freezeInitializers: true, ...(weights ? { weights } : {}) });
  const session = await load(artifact);
  const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, new Tensor(t.dtype, t.data, t.dims)])));
  session.dispose();
  return { bytes: readArtifact(artifact).weights.length, narrowed: report.narrowed, results: Object.fromEntries(Object.entries(results).map(([name, t]) => [name, t.unpacked()])) };
}

function distance(actual: CoreTensor | undefined, expected: CoreTensor): number {
  if (!isFloat(expected.dtype) || !actual) return actual ? 0 : Infinity;
  const a = toNumbers(actual), b = toNumbers(expected);
  let apart = 0, length = 0;
  for (let i = 0; i < b.length; i++) { apart += ((a[i] ?? NaN) - (b[i] ?? 0)) ** 2; length += (b[i] ?? 0) ** 2; }
  return apart === 0 ? 0 : Math.sqrt(apart / length);
}

describe.each(ids)("%s", (id) => {
  test("in float16 and in int8", async () => {
    const model = loadCase(id), bytes = id.startsWith("light-") ? withRandomWeights(model.bytes, 11) : model.bytes;
    const exact = await measure(model, bytes), limit = limits[id];
    for (const form of ["f16", "int8"] as const) {
      const narrow = await measure(model, bytes, form), ratio = exact.bytes / narrow.bytes;
      const [least, most] = limit?.[form] ?? [1, 0];
      expect(ratio, `${form}, times smaller`).toBeGreaterThanOrEqual(least);
      for (const [name, e] of Object.entries(exact.results)) expect(distance(narrow.results[name], e), `${form}, '${name}'`).toBeLessThanOrEqual(most);
      if (!limit) expect(narrow.narrowed).toEqual([]);
    }
  }, 120_000);
});

test("a distance is one", () => {
  const t = (data: readonly number[]): CoreTensor => ({ dtype: "float32", dims: [data.length], data: Float32Array.from(data) });
  expect(distance(t([3, 5]), t([3, 4]))).toBeCloseTo(0.2, 9);
  expect(distance(t([NaN, 4]), t([3, 4]))).toBeNaN();
});
