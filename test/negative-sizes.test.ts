/** Sizes at which a window is larger than what it slides over: such a run is refused, and the session's next ones are right. */
import { expect, test } from "vitest";
import { compile } from "../src/api/index.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { load, Tensor as Fed, type Session } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const float = (dims: readonly number[], value: (i: number) => number): Tensor => ({ dtype: "float32", dims, data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => value(i)) });
const windows: ModelSpec = {
  opset: 17,
  nodes: [
    { type: "Conv", name: "first", inputs: ["x", "w"], outputs: ["c"], attributes: { strides: [2] } },
    { type: "Relu", inputs: ["c"], outputs: ["r"] },
    { type: "AveragePool", name: "pool", inputs: ["r"], outputs: ["p"], attributes: { kernel_shape: [3] } },
    { type: "Sigmoid", inputs: ["p"], outputs: ["y"] },
  ],
  inputs: { x: { dtype: "float32", dims: ["n", 2, "length"] } }, outputs: { y: undefined }, initializers: { w: float([4, 2, 9], (i) => Math.sin(i)) },
};
const feed = (n: number, length: number): Record<string, Fed> => ({ x: new Fed("float32", Float32Array.from({ length: n * 2 * length }, (_, i) => Math.cos(i)), [n, 2, length]) });
const y = async (session: Session, n: number, length: number): Promise<ArrayLike<unknown> | undefined> => (await session.run(feed(n, length)))["y"]?.data;

test.each([true, false])("with fusion %s", async (enableFusion) => {
  const { artifact } = await compile(modelBytes(windows), { enableFusion }), session = await load(artifact), expected = await y(await load(artifact), 2, 40);
  expect(expected).toHaveLength(2 * 4 * 14);
  for (const length of [1, 2, 6, 0]) {
    const refused = await session.run(feed(3, length)).then(() => undefined, (e: unknown) => e);
    expect(refused, String(length)).toBeInstanceOf(DiagnosticError);
    expect(String(refused)).toMatch(/OF7005: '(first|pool)' has too little to read: its result would have a size of .*, which is -\d/);
    expect(await y(session, 2, 40)).toEqual(expected);
  }
  expect(await y(session, 1, 11)).toHaveLength(0);
});
