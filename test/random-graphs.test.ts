/**
 * Differential test on random models: compiled with and without fusion against the reference interpreter. Set
 * ONNXFUSE_RANDOM_SEED to start elsewhere and ONNXFUSE_RANDOM_GRAPHS to run more.
 */
import { describe, expect, it } from "vitest";
import { compile } from "../src/api/index.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { toNumbers, type Tensor } from "../src/core/tensor.ts";
import { load, Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { modelBytes } from "./support/model-spec.ts";
import { randomModel } from "./support/random-graph.ts";

const count = Number(process.env["ONNXFUSE_RANDOM_GRAPHS"] ?? 1000);
const first = Number(process.env["ONNXFUSE_RANDOM_SEED"] ?? 1);
/** Seeds that once failed, each kept as a case. */
const kept: readonly number[] = [453, 1181, 1360];

async function run(model: Uint8Array, feeds: Readonly<Record<string, Tensor>>, enableFusion: boolean): Promise<Record<string, Tensor>> {
  const { artifact } = await compile(model, { enableFusion });
  const session = await load(artifact);
  try {
    const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new RuntimeTensor(t.dtype, t.data, t.dims)])));
    return Object.fromEntries(Object.entries(results).map(([k, t]) => { const r = t as RuntimeTensor; return [k, { dtype: r.type as Tensor["dtype"], dims: r.dims, data: r.data as Tensor["data"] }]; }));
  } finally {
    session.dispose();
  }
}

/** Undefined when equal within 2e-4 of the largest value (up to 40 chained float32 operators, each within a few ulp). */
export function mismatch(actual: Readonly<Record<string, Tensor>>, expected: Readonly<Record<string, Tensor>>): string | undefined {
  for (const [name, e] of Object.entries(expected)) {
    const a = actual[name];
    if (!a) return `${name} is missing`;
    if (a.dtype !== e.dtype || a.dims.join() !== e.dims.join()) return `${name} is ${a.dtype}[${a.dims}], not ${e.dtype}[${e.dims}]`;
    const x = toNumbers(a), y = toNumbers(e);
    let largest = 1e-3;
    for (let i = 0; i < y.length; i++) largest = Math.max(largest, Math.abs(y[i] ?? 0));
    for (let i = 0; i < y.length; i++) {
      const d = Math.abs((x[i] ?? NaN) - (y[i] ?? NaN));
      if (!(d <= 2e-4 * largest) && !(Number.isNaN(x[i]) && Number.isNaN(y[i]))) return `${name}[${i}] is ${x[i]}, not ${y[i]} (largest ${largest})`;
    }
  }
  return undefined;
}

async function check(seed: number): Promise<string | undefined> {
  const { spec, feeds } = randomModel(seed, 5 + (seed % 36));
  const model = modelBytes(spec);
  const expected = interpret(readModel(model, operators).graph, feeds);
  for (const enableFusion of [true, false]) {
    let found: string | undefined;
    try {
      found = mismatch(await run(model, feeds, enableFusion), expected);
    } catch (error) {
      found = error instanceof Error ? error.message : String(error);
    }
    if (found) return `seed ${seed} (fusion ${enableFusion ? "on" : "off"}): ${found}`;
  }
  return undefined;
}

describe("random models", () => {
  it(`${count} of them, from seed ${first}, agree with the reference, fused and unfused`, { timeout: 900_000 }, async () => {
    const failures: string[] = [];
    for (let seed = first; seed < first + count; seed++) {
      const found = await check(seed);
      if (found) failures.push(found);
    }
    expect(failures).toEqual([]);
  });
  it("agrees on the seeds that once failed", async () => {
    for (const seed of kept) expect(await check(seed)).toBeUndefined();
  });
  it("the comparison notices a wrong element", () => {
    const t = (v: number): Tensor => ({ dtype: "float32", dims: [2], data: Float32Array.of(1, v) });
    expect(mismatch({ y: t(2) }, { y: t(2.01) })).toBeDefined();
    expect(mismatch({ y: t(NaN) }, { y: t(2) })).toBeDefined();
    expect(mismatch({ y: t(2) }, { y: t(2) })).toBeUndefined();
  });
});
