/** What lies outside an image adds nothing, also where a weight is infinite or no number; a matrix times 0 is not read. */
import { describe, expect, it } from "vitest";
import { fromNumbers, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runWay } from "./support/operator-oracle.ts";

const tensor = (dims: readonly number[], seed: number, at?: readonly [index: number, value: number]): Tensor => {
  const values = Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => ((i * seed) % 11) / 4 - 1);
  if (at) values[at[0]] = at[1];
  return fromNumbers("float32", dims, values);
};

async function agree(spec: ModelSpec, feeds: Readonly<Record<string, Tensor>>): Promise<void> {
  const bytes = modelBytes(spec), [expected, ...compiled] = await Promise.all((["reference", "unfused", "fused"] as const).map((way) => runWay(bytes, feeds, way)));
  const y = Array.from(toNumbers(expected?.["y"] ?? tensor([0], 1)));
  expect(y.some(Number.isFinite) && y.some((v) => !Number.isFinite(v)), "some of it finite, some not").toBe(true);
  for (const results of compiled) {
    const found = toNumbers(results["y"] ?? tensor([0], 1));
    expect(Array.from(found, (v, i) => (Math.abs(v - (y[i] ?? 0)) < 1e-4 ? y[i] : v))).toEqual(y);
  }
}

describe("weights that are no finite numbers", () => {
  const cases: readonly [name: string, type: string, x: readonly number[], w: readonly number[], at: number, attributes: Readonly<Record<string, number | readonly number[]>>][] = [
    ["in one dimension", "Conv", [2, 3, 5], [4, 3, 3], 3, { pads: [1, 1] }],
    ["3x3", "Conv", [1, 4, 6, 6], [8, 4, 3, 3], 3, { pads: [1, 1, 1, 1] }],
    ["3x3 by Winograd's tiles, not in a filter that is sampled", "Conv", [1, 32, 16, 16], [32, 32, 3, 3], 9 * 32 * 5, { pads: [1, 1, 1, 1] }],
    ["depthwise", "Conv", [1, 4, 6, 6], [4, 1, 3, 3], 8, { group: 4, pads: [1, 1, 1, 1] }],
    ["transposed, in groups", "ConvTranspose", [2, 4, 2], [4, 1, 3], 3, { group: 2 }],
  ];
  for (const [name, type, x, w, index, attributes] of cases) for (const value of [Infinity, NaN]) it(`${name}, ${value}`, async () => {
    await agree({ opset: 17, inputs: { x: { dtype: "float32", dims: x } }, initializers: { w: tensor(w, 7, [index, value]) }, outputs: { y: undefined }, nodes: [{ type, inputs: ["x", "w"], outputs: ["y"], attributes }] }, { x: tensor(x, 3) });
  });

  it("beside a convolution like it whose weights are finite", async () => {
    const dims = [1, 4, 6, 6], attributes = { pads: [1, 1, 1, 1] };
    await agree({
      opset: 17, inputs: { x: { dtype: "float32", dims } }, initializers: { v: tensor([4, 4, 3, 3], 5), w: tensor([4, 4, 3, 3], 7, [2, Infinity]) }, outputs: { z: undefined, y: undefined },
      nodes: [{ type: "Conv", inputs: ["x", "v"], outputs: ["z"], attributes }, { type: "Conv", inputs: ["x", "w"], outputs: ["y"], attributes }],
    }, { x: tensor(dims, 3) });
  });

  it("depthwise before a product that is large enough to be computed with it", async () => {
    const dims = [1, 144, 48, 48];
    await agree({
      opset: 17, inputs: { x: { dtype: "float32", dims } }, initializers: { d: tensor([144, 1, 3, 3], 7, [2, Infinity]), w: fromNumbers("float32", [2, 144, 1, 1], Array.from({ length: 288 }, (_, i) => (i < 144 ? 1 : Number(i > 144)))) }, outputs: { y: undefined },
      nodes: [{ type: "Conv", inputs: ["x", "d"], outputs: ["t"], attributes: { group: 144, pads: [1, 1, 1, 1] } }, { type: "Clip", inputs: ["t"], outputs: ["u"] }, { type: "Conv", inputs: ["u", "w"], outputs: ["y"] }],
    }, { x: tensor(dims, 3) });
  });
});

it("Gemm does not read a summand that is multiplied by 0", async () => {
  const spec: ModelSpec = { opset: 17, inputs: { a: { dtype: "float32", dims: [2, 3] }, c: { dtype: "float32", dims: [4] } }, initializers: { b: tensor([3, 4], 5) }, outputs: { y: undefined }, nodes: [{ type: "Gemm", inputs: ["a", "b", "c"], outputs: ["y"], attributes: { beta: { float: 0 } } }] };
  for (const way of ["reference", "unfused", "fused"] as const) {
    const { y } = await runWay(modelBytes(spec), { a: tensor([2, 3], 3), c: tensor([4], 1, [1, NaN]) }, way);
    expect(y && Array.from(toNumbers(y)).every(Number.isFinite), way).toBe(true);
  }
});
