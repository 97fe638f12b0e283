/** Initializers that are graph inputs too: inputs with a stored default, packed at load and again when they are fed. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import type { Tensor as CoreTensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { MatMul, operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { difference } from "./support/cases.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(5);
const tensor = (...dims: number[]): CoreTensor => randomTensor(dims, random);
const float = (dims: readonly (number | string)[]) => ({ dtype: "float32" as const, dims });

/** Weights of a convolution, a matrix product and an addition, all listed as inputs. */
const weights = { w: tensor(8, 4, 3, 3), b: tensor(8), m: tensor(5, 7), a: tensor(5) };
const spec: ModelSpec = {
  opset: 13, inputs: { x: float([1, 4, 6, 5]), ...Object.fromEntries(Object.entries(weights).map(([k, t]) => [k, float(t.dims)])) },
  outputs: { y: float([1, 8, 6, 7]) }, initializers: weights,
  nodes: [
    { type: "Conv", name: "conv", inputs: ["x", "w", "b"], outputs: ["c"], attributes: { pads: [1, 1, 1, 1] } },
    { type: "Add", name: "add", inputs: ["c", "a"], outputs: ["d"] }, { type: "Relu", name: "relu", inputs: ["d"], outputs: ["r"] },
    { type: "MatMul", name: "product", inputs: ["r", "m"], outputs: ["y"] },
  ],
};
const bytes = modelBytes(spec);
const reference = (feeds: Readonly<Record<string, CoreTensor>>): CoreTensor => interpret(readModel(bytes, operators).graph, { ...feeds })["y"] as CoreTensor;
async function run(session: Session, feeds: Readonly<Record<string, CoreTensor>>): Promise<CoreTensor> {
  const { y } = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new Tensor(t.dtype, t.data, t.dims)])));
  if (!y) throw new Error("no y");
  return y.unpacked();
}

describe.each([true, false])("overridable initializers, fusion %s", (enableFusion) => {
  test("have defaults, take what is fed, and fall back to the defaults", async () => {
    const session = await load(compileModel(bytes, { enableFusion }).artifact);
    expect(session.inputs.map((i) => i.name)).toEqual(["x", "w", "b", "m", "a"]);
    const x = tensor(1, 4, 6, 5), other = { w: tensor(8, 4, 3, 3), m: tensor(5, 7), a: tensor(5) };
    const plain = reference({ x });
    for (const feeds of [{ x }, { x, w: other.w }, { x, m: other.m, a: other.a }, { x }, { x, ...other }, { x }]) {
      const expected = reference(feeds);
      expect(difference(await run(session, feeds), expected, 1e-5)).toBeUndefined();
      if (Object.keys(feeds).length > 1) expect(difference(expected, plain, 1e-5)).toBeDefined();
    }
  });
  test("of open sizes take others", async () => {
    const open = modelBytes({ ...spec, inputs: { x: float([2, 5]), m: float([5, "K"]) }, outputs: { y: undefined }, initializers: { m: weights.m }, nodes: [{ type: "MatMul", inputs: ["x", "m"], outputs: ["y"] }] });
    const session = await load(compileModel(open, { enableFusion }).artifact), x = tensor(2, 5);
    for (const feeds of [{ x }, { x, m: tensor(5, 3) }, { x, m: tensor(5, 0) }, { x }]) {
      const expected = MatMul.evaluate?.([feeds.x, feeds.m ?? weights.m], {}, { outputCount: 1 })[0];
      expect(expected && difference(await run(session, feeds), expected, 1e-5)).toBeUndefined();
    }
  });
  test("become constants when frozen", async () => {
    const session = await load(compileModel(bytes, { enableFusion, freezeInitializers: true }).artifact);
    expect(session.inputs.map((i) => i.name)).toEqual(["x"]);
    const x = tensor(1, 4, 6, 5);
    expect(difference(await run(session, { x }), reference({ x }), 1e-5)).toBeUndefined();
  });
});
