/** One artifact serves every size: symbolic dims compiled once, run at several, against onnxruntime. */
import { describe, expect, it } from "vitest";
import * as ort from "onnxruntime-node";
import { compile } from "../src/api/index.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { dataFolder, loadCase } from "./support/cases.ts";
import { randomFrom, type Random } from "./support/random.ts";

type Feeds = Record<string, { readonly type: "float32" | "int64"; readonly data: Float32Array | BigInt64Array; readonly dims: readonly number[] }>;

const oracle = (model: Uint8Array): Promise<ort.InferenceSession> =>
  ort.InferenceSession.create(model, { graphOptimizationLevel: "disabled", intraOpNumThreads: 1, logSeverityLevel: 4 });
const compiled = async (id: string): Promise<{ session: Session; peer: ort.InferenceSession }> => {
  const { bytes: model } = loadCase(id);
  const { artifact } = await compile(model, {});
  return { session: await load(artifact), peer: await oracle(model) };
};

async function expectEqual(session: Session, peer: ort.InferenceSession, feeds: Feeds, tolerance = 1e-4): Promise<void> {
  const ours = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new Tensor(t.type, t.data, t.dims)])));
  const theirs = await peer.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new ort.Tensor(t.type, t.data as Float32Array, t.dims)])));
  for (const [name, e] of Object.entries(theirs)) {
    const a = ours[name] as Tensor;
    expect(a.dims).toEqual(e.dims);
    const x = a.data as Float32Array, y = e.data as Float32Array;
    let worst = 0, largest = 1e-9;
    for (let i = 0; i < y.length; i++) {
      worst = Math.max(worst, Math.abs((x[i] ?? NaN) - (y[i] ?? NaN)));
      largest = Math.max(largest, Math.abs(y[i] ?? 0));
    }
    expect(worst / largest, `${name} [${e.dims}]`).toBeLessThanOrEqual(tolerance);
  }
}

const floats = (dims: readonly number[], random: Random): Feeds[string] => ({ type: "float32", dims, data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.normal()) });
const integers = (dims: readonly number[], below: number, random: Random): Feeds[string] => ({ type: "int64", dims, data: BigInt64Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => BigInt(random.int(below))) });

describe.skipIf(!dataFolder)("one artifact, several sizes", () => {
  it("the recogniser at widths 64, 320 and 333", async () => {
    const { session, peer } = await compiled("ppocr4-rec");
    for (const width of [64, 320, 333]) await expectEqual(session, peer, { x: floats([1, 3, 48, width], randomFrom(width)) });
  });

  it("bert-toy at sequence 1, 7 and 128, batch 1 and 3", async () => {
    const { session, peer } = await compiled("bert-toy");
    for (const batch of [1, 3]) for (const sequence of [1, 7, 128]) {
      const random = randomFrom(batch * 1000 + sequence), dims = [batch, sequence];
      await expectEqual(session, peer, { input_ids: integers(dims, 99, random), token_type_ids: integers(dims, 2, random), input_mask: integers(dims, 2, random) });
    }
  });

  it("aidreams-kv generates 80 tokens with a growing cache, as onnxruntime does", async () => {
    const { session, peer } = await compiled("aidreams-kv");
    const names = [0, 1, 2, 3].flatMap((i) => [`${i}.key`, `${i}.value`]);
    const empty = { type: "float32" as const, data: new Float32Array(0), dims: [1, 4, 0, 16] };
    const generate = async (step: (feeds: Feeds) => Promise<Record<string, { readonly data: unknown; readonly dims: readonly number[] }>>): Promise<number[]> => {
      let past: Feeds = Object.fromEntries(names.map((n) => [`past_key_values.${n}`, empty]));
      const tokens = [1];
      for (let i = 0; i < 80; i++) {
        const out = await step({ input_ids: { type: "int64", data: BigInt64Array.of(BigInt(tokens.at(-1) ?? 0)), dims: [1, 1] }, ...past });
        const logits = out["logits"]?.data as Float32Array;
        tokens.push(logits.indexOf(Math.max(...logits)));
        past = Object.fromEntries(names.map((n) => { const t = out[`present.${n}`] as { readonly data: Float32Array; readonly dims: readonly number[] }; return [`past_key_values.${n}`, { type: "float32" as const, data: t.data.slice(), dims: t.dims }]; }));
      }
      return tokens;
    };
    const ours = await generate((feeds) => session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new Tensor(t.type, t.data, t.dims)]))) as never);
    const theirs = await generate((feeds) => peer.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new ort.Tensor(t.type, t.data as Float32Array, t.dims)]))) as never);
    expect(ours).toEqual(theirs);
    expect(new Set(ours).size).toBeGreaterThan(3);
  });
});
