import { describe, expect, test } from "vitest";
import { finelySplit } from "../../test/support/finely-split.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "../../test/support/model-spec.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { compileModel, fuseModel } from "../compiler/compile.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Region } from "../graph/region.ts";
import { load, Tensor } from "../runtime/index.ts";

const random = randomFrom(7);

interface Options {
  readonly size?: readonly [number, number];
  readonly inputs?: number;
  readonly kernel?: number;
  readonly symbolic?: boolean;
  readonly group?: number;
  readonly pool?: "MaxPool" | "AveragePool";
  readonly window?: NodeSpec["attributes"];
  /** Some weight is infinite. */
  readonly infinite?: boolean;
  readonly outputs?: ModelSpec["outputs"];
  readonly more?: readonly NodeSpec[];
}

/** x → convolution to 64 channels → Relu (`t`) → pool (`p`) → Neg (`y`). */
function pooled({ size: [h, w] = [70, 66], inputs: c = 4, kernel: k = 1, symbolic = false, group = 1, pool = "MaxPool", window = { kernel_shape: [2, 2], strides: [2, 2] }, infinite = false, outputs = { y: undefined }, more = [] }: Options = {}): Uint8Array {
  const tensor = (dims: readonly number[]) => randomTensor(dims, random, 0.3), pad = (k - 1) / 2, weights = tensor([64, c / group, k, k]);
  if (infinite && weights.data instanceof Float32Array) weights.data[5] = Infinity;
  return modelBytes({
    opset: 20, inputs: { x: { dtype: "float32", dims: symbolic ? ["n", c, "h", "w"] : [1, c, h, w] } }, outputs,
    initializers: { u: weights, b: tensor([64]) },
    nodes: [
      { type: "Conv", inputs: ["x", "u", "b"], outputs: ["d"], attributes: { group, pads: [pad, pad, pad, pad] } }, { type: "Relu", inputs: ["d"], outputs: ["t"] },
      { type: pool, inputs: ["t"], outputs: ["p"], attributes: window }, { type: "Neg", inputs: ["p"], outputs: ["y"] }, ...more,
    ],
  });
}
const joined = (bytes: Uint8Array): readonly Region[] => fuseModel(bytes, {}, true).regions.filter((r) => r.pool);
const refusals = (bytes: Uint8Array): readonly string[] => compileModel(bytes).report.sites.flatMap((s) => (s.outcome === "refused" && /^ConvReLU\w*Pool/.test(s.name) ? [s.code ?? ""] : []));

async function run(artifact: Uint8Array, sizes: readonly number[], threads = 1): Promise<Float32Array> {
  const session = await load(artifact, { threads }), data = toNumbers(randomTensor(sizes, randomFrom(8)));
  const x = Float32Array.from(data, (v, i) => [NaN, Infinity, -Infinity, -0, 1e-40][i % 4999] ?? v);
  const { y } = await session.run({ x: new Tensor("float32", x, sizes) });
  await session.dispose();
  if (!(y?.data instanceof Float32Array)) throw new Error("y is no float32");
  return y.data;
}
const bits = (data: Float32Array): Uint32Array => new Uint32Array(data.slice().buffer);

describe("a convolution joins the pool behind it", () => {
  test("and what lies between them has no place in memory", () => {
    const [region, ...others] = joined(pooled());
    expect(others).toEqual([]);
    expect([region?.kind, region?.above?.kind, region?.pool?.op.type, region?.outputs.map((v) => v.name)]).toEqual(["ConvReLUMaxPoolNeg", "ConvReLU", "MaxPool", ["y"]]);
    const { report } = compileModel(pooled());
    expect(report.sites.filter((s) => s.outcome === "fired").map((s) => s.name)).toContain("ConvReLUMaxPoolNeg");
    expect(report.nodes).toEqual({ original: 4, compiled: 1 });
  });
  const cases: Record<string, readonly [Options, readonly (readonly number[])[]]> = {
    "the largest of windows side by side": [{}, [[1, 4, 70, 66]]],
    "windows with a rest, of three rows and two columns": [{ window: { kernel_shape: [3, 2], strides: [3, 2] }, size: [71, 67] }, [[1, 4, 71, 67]]],
    "the mean": [{ pool: "AveragePool" }, [[1, 4, 70, 66]]],
    "windows that begin before the picture": [{ window: { kernel_shape: [2, 2], strides: [2, 2], pads: [1, 1, 1, 1] } }, [[1, 4, 70, 66]]],
    "windows that overlap, where a row costs little": [{ window: { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] } }, [[1, 4, 70, 66]]],
    "sizes that only running tells": [{ symbolic: true, window: { kernel_shape: [2, 2], strides: [2, 2], ceil_mode: 1 } }, [[1, 4, 70, 66], [2, 4, 5, 3], [1, 4, 1, 1], [1, 4, 0, 4]]],
    "weights that are infinite, which padding must not meet": [{ inputs: 4, kernel: 3, infinite: true }, [[1, 4, 70, 66]]],
    "Winograd's tiles": [{ inputs: 8, kernel: 3 }, [[1, 8, 70, 66]]],
    "Winograd's tiles, and windows of three": [{ inputs: 8, kernel: 3, window: { kernel_shape: [3, 3], strides: [3, 3], pads: [1, 0, 1, 0] } }, [[1, 8, 70, 66]]],
  };
  for (const [name, [options, sizes]] of Object.entries(cases)) test(`${name}: the same bits as apart, with one thread and two`, async () => {
    const bytes = pooled(options), [region] = joined(bytes);
    expect(region).toBeDefined();
    const apart = compileModel(bytes, { enableFusion: false }).artifact;
    for (const size of sizes) {
      const expected = bits(await run(apart, size));
      expect(bits(await run(compileModel(bytes).artifact, size))).toEqual(expected);
      expect(bits(await run(finelySplit(bytes), size, 2))).toEqual(expected);
    }
  });
  test("and other windows give other numbers", async () => {
    const other = pooled({ window: { kernel_shape: [2, 2], strides: [2, 2], dilations: [1, 1], pads: [1, 0, 0, 0] } });
    expect(bits(await run(compileModel(other).artifact, [1, 4, 70, 66]))).not.toEqual(bits(await run(compileModel(pooled()).artifact, [1, 4, 70, 66])));
  });
});

test("pools that differ in nothing but what they make of a window have kernels of their own", async () => {
  const size = [1, 4, 70, 66], kernel_shape = [2, 2], strides = [2, 2];
  const bytes = modelBytes({
    opset: 20, inputs: { x: { dtype: "float32", dims: size }, z: { dtype: "float32", dims: size } }, outputs: { y: undefined, v: undefined },
    initializers: { u: randomTensor([64, 4, 1, 1], random, 0.3), w: randomTensor([64, 4, 1, 1], random, 0.3) },
    nodes: [
      { type: "Conv", inputs: ["x", "u"], outputs: ["c"] }, { type: "MaxPool", inputs: ["c"], outputs: ["y"], attributes: { kernel_shape, strides } },
      { type: "Conv", inputs: ["z", "w"], outputs: ["d"] }, { type: "AveragePool", inputs: ["d"], outputs: ["v"], attributes: { kernel_shape, strides } },
    ],
  });
  expect(joined(bytes)).toHaveLength(2);
  const fed = (seed: number): Tensor => new Tensor("float32", Float32Array.from(toNumbers(randomTensor(size, randomFrom(seed)))), size);
  const results = async (artifact: Uint8Array): Promise<readonly unknown[]> => {
    const session = await load(artifact), { y, v } = await session.run({ x: fed(1), z: fed(2) });
    await session.dispose();
    return [y?.data, v?.data];
  };
  expect(await results(compileModel(bytes).artifact)).toEqual(await results(compileModel(bytes, { enableFusion: false }).artifact));
});

describe("they stay apart where", () => {
  const cases: Record<string, readonly [Options, string]> = {
    "a cache holds what lies between": [{ size: [20, 20] }, "stays-in-cache"],
    "another node reads it": [{ more: [{ type: "Abs", inputs: ["t"], outputs: ["z"] }], outputs: { y: undefined, z: undefined } }, "interior-value-used"],
    "it is a result": [{ outputs: { y: undefined, t: undefined } }, "interior-value-used"],
    "rows of two strips would be computed twice": [{ inputs: 3, kernel: 3, window: { kernel_shape: [3, 3], strides: [2, 2] } }, "windows-overlap"],
  };
  for (const [name, [options, code]] of Object.entries(cases)) test(name, () => {
    expect(joined(pooled(options))).toEqual([]);
    expect(refusals(pooled(options))).toContain(code);
  });
  test("windows have steps within, or count what they average, or the convolution is one of groups: then nothing is said", () => {
    for (const options of [{ window: { kernel_shape: [2, 2], strides: [2, 2], dilations: [2, 2] } }, { pool: "AveragePool" as const, window: { kernel_shape: [2, 2], strides: [2, 2], pads: [1, 1, 1, 1] } }, { group: 2 }]) {
      expect(joined(pooled(options))).toEqual([]);
      expect(refusals(pooled(options))).toEqual([]);
    }
  });
});
