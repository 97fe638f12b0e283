import { describe, expect, test } from "vitest";
import { modelBytes, type ModelSpec, type NodeSpec } from "../../test/support/model-spec.ts";
import { finelySplit } from "../../test/support/finely-split.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { compileModel, fuseModel } from "../compiler/compile.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Region } from "../graph/region.ts";
import { load, Tensor } from "../runtime/index.ts";

const random = randomFrom(5);

interface Options {
  readonly size?: readonly [number, number];
  readonly channels?: number;
  readonly symbolic?: boolean;
  /** Of the 1x1 convolution. */
  readonly attributes?: NodeSpec["attributes"];
  readonly group?: number;
  readonly outputs?: ModelSpec["outputs"];
  readonly more?: readonly NodeSpec[];
}

/** x → depthwise → Relu (`t`) → 1x1 → `p` → Relu (`y`). */
function pair({ size: [h, w] = [72, 60], channels: c = 64, symbolic = false, attributes = {}, group = c, outputs = { y: undefined }, more = [] }: Options = {}): Uint8Array {
  const tensor = (dims: readonly number[]) => randomTensor(dims, random, 0.3);
  return modelBytes({
    opset: 20, inputs: { x: { dtype: "float32", dims: symbolic ? ["n", c, "h", "w"] : [1, c, h, w] } }, outputs,
    initializers: { u: tensor([c, c / group, 3, 3]), v: tensor([9, c, 1, 1]), b: tensor([9]) },
    nodes: [
      { type: "Conv", inputs: ["x", "u"], outputs: ["d"], attributes: { group, pads: [1, 1, 1, 1] } }, { type: "Relu", inputs: ["d"], outputs: ["t"] },
      { type: "Conv", inputs: ["t", "v", "b"], outputs: ["p"], attributes }, { type: "Relu", inputs: ["p"], outputs: ["y"] }, ...more,
    ],
  });
}
const joined = (bytes: Uint8Array): readonly Region[] => fuseModel(bytes, {}, true).regions.filter((r) => r.above);
const refusals = (bytes: Uint8Array): readonly string[] => compileModel(bytes).report.sites.flatMap((s) => (s.outcome === "refused" && s.name.startsWith("ConvReLUConv") ? [s.code ?? ""] : []));

async function run(artifact: Uint8Array, sizes: readonly number[], threads = 1): Promise<Float32Array> {
  const session = await load(artifact, { threads }), data = toNumbers(randomTensor(sizes, randomFrom(8)));
  const x = Float32Array.from(data, (v, i) => [NaN, Infinity, -Infinity, -0, 1e-40][i % 4999] ?? v);
  const { y } = await session.run({ x: new Tensor("float32", x, sizes) });
  await session.dispose();
  if (!(y?.data instanceof Float32Array)) throw new Error("y is no float32");
  return y.data;
}
const bits = (data: Float32Array): Uint32Array => new Uint32Array(data.slice().buffer);

describe("a depthwise convolution joins the 1x1 convolution behind it", () => {
  test("and what lies between them has no place in memory", () => {
    const [region, ...others] = joined(pair());
    expect(others).toEqual([]);
    expect([region?.kind, region?.above?.kind, region?.inputs.map((v) => v.name).includes("t"), region?.outputs.map((v) => v.name)]).toEqual(["ConvReLUConvReLU", "ConvReLU", false, ["y"]]);
    const { report } = compileModel(pair());
    expect(report.sites.filter((s) => s.outcome === "fired").map((s) => s.name)).toContain("ConvReLUConvReLU");
    expect(report.nodes).toEqual({ original: 4, compiled: 1 });
  });
  test("with the same bits as apart, with one thread and two, at every size", async () => {
    const fixed = pair(), open = pair({ symbolic: true });
    for (const [bytes, sizes] of [[fixed, [1, 64, 72, 60]], [open, [1, 64, 72, 60]], [open, [2, 64, 5, 3]], [open, [1, 64, 0, 4]]] as const) {
      expect(joined(bytes)).toHaveLength(1);
      const apart = await run(compileModel(bytes, { fusionSwitches: { named: { ConvReLUConvReLU: false } } }).artifact, sizes);
      expect(bits(await run(compileModel(bytes).artifact, sizes))).toEqual(bits(apart));
      expect(bits(await run(finelySplit(bytes), sizes, 2))).toEqual(bits(apart));
    }
  });
  test("where a batch is not known, by the size of one image", () => {
    expect(joined(pair({ symbolic: true, channels: 16 }))).toEqual([]);
  });
});

describe("they stay apart where", () => {
  const cases: Record<string, readonly [Options, string]> = {
    "a cache holds what lies between": [{ size: [20, 20] }, "stays-in-cache"],
    "another node reads it": [{ more: [{ type: "Abs", inputs: ["t"], outputs: ["z"] }], outputs: { y: undefined, z: undefined } }, "interior-value-used"],
    "it is a result": [{ outputs: { y: undefined, t: undefined } }, "interior-value-used"],
  };
  for (const [name, [options, code]] of Object.entries(cases)) test(name, () => {
    expect(joined(pair(options))).toEqual([]);
    expect(refusals(pair(options))).toContain(code);
  });
  test("the second has steps, or the first is of several channels a group: then nothing is said", () => {
    for (const options of [{ attributes: { strides: [2, 2] } }, { attributes: { pads: [0, 1, 0, 1] } }, { group: 32 }]) {
      expect(joined(pair(options))).toEqual([]);
      expect(refusals(pair(options))).toEqual([]);
    }
  });
});
