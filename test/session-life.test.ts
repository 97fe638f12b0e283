/** Compilation and sessions over time: same bytes twice, sessions apart, no growth. */
import { describe, expect, it } from "vitest";
import { compile } from "../src/api/index.ts";
import { load, Tensor } from "../src/runtime/index.ts";
import { attention, convBnRelu, linearRelu } from "./support/article-models.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const inputsOf = (spec: ModelSpec, seed: number): Record<string, Tensor> => {
  const random = randomFrom(seed);
  return Object.fromEntries(Object.entries(spec.inputs).map(([k, v]) => { const t = randomTensor(v.dims as number[], random); return [k, new Tensor("float32", t.data, t.dims)]; }));
};
const copyOf = (result: Record<string, unknown>): Float32Array => ((result["y"] as Tensor).data as Float32Array).slice();

describe("sessions", () => {
  it("two compilations give the same bytes", async () => {
    for (const spec of [convBnRelu("conv").spec, attention("BSND", true, true)]) {
      const a = await compile(modelBytes(spec), {}), b = await compile(modelBytes(spec), {});
      expect(Buffer.compare(a.artifact, b.artifact)).toBe(0);
    }
    const one = await compile(modelBytes(convBnRelu("conv", 1).spec), {}), other = await compile(modelBytes(convBnRelu("conv", 2).spec), {});
    expect(Buffer.compare(one.artifact, other.artifact)).not.toBe(0);
  });

  it("two sessions in one process do not disturb each other, and concurrent runs queue", async () => {
    const linear = linearRelu("matmul"), conv = convBnRelu("conv1d").spec;
    const [a, b, c] = await Promise.all([linear, linear, conv].map(async (s) => load((await compile(modelBytes(s), {})).artifact)));
    if (!a || !b || !c) throw new Error("no session");
    const first = copyOf(await a.run(inputsOf(linear, 1)));
    const second = copyOf(await b.run(inputsOf(linear, 2)));
    await c.run(inputsOf(conv, 3));
    expect(copyOf(await a.run(inputsOf(linear, 1)))).toEqual(first);
    expect(second).not.toEqual(first);
    const together = await Promise.all([1, 2, 1].map((seed) => a.run(inputsOf(linear, seed)).then(copyOf)));
    expect(together).toEqual([first, second, first]);
    a.dispose();
    expect(copyOf(await b.run(inputsOf(linear, 1)))).toEqual(first);
  });

  it("10,000 runs do not grow memory", { timeout: 300_000 }, async () => {
    const spec = linearRelu("matmul");
    const session = await load((await compile(modelBytes(spec), {})).artifact);
    const feeds = inputsOf(spec, 1);
    for (let i = 0; i < 1000; i++) await session.run(feeds);
    globalThis.gc?.();
    const before = process.memoryUsage();
    for (let i = 0; i < 10_000; i++) await session.run(feeds);
    globalThis.gc?.();
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 << 20);
    expect(after.heapUsed - before.heapUsed).toBeLessThan(32 << 20);
  });
});
