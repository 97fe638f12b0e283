/** Models whose ranks hang on sizes, compiled: the sizes the types fit run, others are refused before they give nonsense. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { present } from "../src/core/assert.ts";
import { sizeOf, tensor, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { load } from "../src/runtime/index.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";

const f32 = (dims: readonly number[]): Tensor => tensor("float32", dims, Float32Array.from({ length: sizeOf(dims) }, (_, i) => Math.sin(i / 7) * 0.3));
const silero = caseIds().includes("silero-vad-v5") ? loadCase("silero-vad-v5") : undefined;

describe.skipIf(!silero)("silero-vad-v5", () => {
  const bytes = silero?.bytes ?? new Uint8Array();
  const feeds = (samples: number, rate: number, batch = 1): Record<string, Tensor> =>
    ({ input: f32([batch, samples]), state: f32([2, batch, 128]), sr: tensor("int64", [], BigInt64Array.of(BigInt(rate))) });
  const given = (from: Record<string, Tensor>) => Object.fromEntries(Object.entries(from).map(([name, t]) => [name, { type: t.dtype, data: t.data, dims: t.dims }]));

  test("one artifact serves both rates, several batches, and refuses frames of another length", async () => {
    const session = await load(compileModel(bytes).artifact);
    const { graph } = readModel(bytes, operators);
    for (const [samples, rate, batch] of [[576, 16000, 1], [288, 8000, 1], [576, 16000, 3], [512, 16000, 1]] as const) {
      const results = await session.run(given(feeds(samples, rate, batch)));
      for (const [name, expected] of Object.entries(interpret(graph, feeds(samples, rate, batch)))) {
        const t = present(results[name], name);
        expect(difference({ dtype: expected.dtype, dims: t.dims, data: t.data as Float32Array }, expected, 1e-4), `${name} of ${samples} at ${rate}`).toBeUndefined();
      }
    }
    await expect(session.run(given(feeds(576, 8000)))).rejects.toThrow(/OF3204/);
    await expect(session.run(given(feeds(1024, 16000)))).rejects.toThrow(/OF3204/);
    session.dispose();
  });
  test("with shapes given, the rate they do not fit is refused", async () => {
    const session = await load(compileModel(bytes, { inputShapes: { input: [1, 576], state: [2, 1, 128] } }).artifact);
    await expect(session.run(given(feeds(576, 8000)))).rejects.toThrow(/OF3204/);
    expect(Object.keys(await session.run(given(feeds(576, 16000))))).toEqual(["output", "stateN"]);
    session.dispose();
  });
});
