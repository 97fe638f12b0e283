/** Random operators: types, shapes and ranges; the same numbers for the same seed, others without one. */
import { describe, expect, test } from "vitest";
import { dtypes, type DType } from "../core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { runOp } from "../../test/support/lowered-op.ts";
import { runCompiled } from "../../test/support/differential.ts";
import { modelBytes } from "../../test/support/model-spec.ts";
import { Bernoulli, Multinomial, RandomNormal, RandomNormalLike, RandomUniform, RandomUniformLike } from "./random.ts";

const run = (op: OpDef, inputs: readonly Tensor[], attributes: Attributes): Tensor => runOp({ op, inputs, attributes }).evaluated[0] as Tensor;
const values = (t: Tensor): number[] => Array.from(toNumbers(t));
const like = (dtype: DType, ...dims: readonly number[]): Tensor => fromNumbers(dtype, dims, new Float64Array(dims.reduce((a, b) => a * b, 1)).fill(0.5));
const mean = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;
const deviation = (list: readonly number[]): number => { const m = mean(list); return Math.sqrt(mean(list.map((v) => (v - m) ** 2))); };

const cases: readonly (readonly [OpDef, readonly Tensor[], Attributes])[] = [
  [RandomUniform, [], { shape: [30, 40], low: -2, high: 6 }],
  [RandomNormal, [], { shape: [30, 40], mean: 3, scale: 0.5 }],
  [RandomUniformLike, [like("float64", 30, 40)], { low: -2, high: 6 }],
  [RandomNormalLike, [like("float32", 30, 40)], { mean: 3, scale: 0.5 }],
  [Bernoulli, [like("float32", 30, 40)], {}],
  [Multinomial, [fromNumbers("float32", [2, 3], [0, 1, 2, 5, 5, -99])], { sample_size: 50 }],
];

describe("random tensors", () => {
  test.each(cases.map((c) => [c[0].type, ...c] as const))("%s repeats by its seed alone", (_, op, inputs, attributes) => {
    const seeded = values(run(op, inputs, { ...attributes, seed: 7 }));
    expect(values(run(op, inputs, { ...attributes, seed: 7 }))).toEqual(seeded);
    expect(values(run(op, inputs, { ...attributes, seed: 8 }))).not.toEqual(seeded);
    expect(values(run(op, inputs, attributes))).not.toEqual(values(run(op, inputs, attributes)));
  });
  test("uniform numbers fill their range, normal ones have their mean and deviation", () => {
    for (const [op, inputs, attributes] of [cases[0], cases[2]].filter((c) => c !== undefined)) {
      const list = values(run(op, inputs, { ...attributes, seed: 1 }));
      expect(list.every((v) => v >= -2 && v < 6)).toBe(true);
      expect(mean(list)).toBeCloseTo(2, 0);
    }
    for (const [op, inputs, attributes] of [cases[1], cases[3]].filter((c) => c !== undefined)) {
      const list = values(run(op, inputs, { ...attributes, seed: 1 }));
      expect(mean(list)).toBeCloseTo(3, 1);
      expect(deviation(list)).toBeCloseTo(0.5, 1);
    }
  });
  test("Bernoulli follows its probabilities, Multinomial its weights", () => {
    const p = fromNumbers("float32", [3, 1000], Array.from({ length: 3000 }, (_, i) => [0, 0.25, 1][Math.floor(i / 1000)] ?? 0));
    const list = values(run(Bernoulli, [p], { seed: 3, dtype: dtypes.int32.onnx }));
    expect([mean(list.slice(0, 1000)), mean(list.slice(2000))]).toEqual([0, 1]);
    expect(mean(list.slice(1000, 2000))).toBeCloseTo(0.25, 1);
    const drawn = run(Multinomial, [fromNumbers("float32", [1, 3], [Math.log(0.5), Math.log(0.5), -Infinity])], { seed: 3, sample_size: 1000, dtype: dtypes.int64.onnx });
    expect(drawn.dtype).toBe("int64");
    expect(mean(values(drawn))).toBeCloseTo(0.5, 1);
    expect(values(drawn).every((v) => v === 0 || v === 1)).toBe(true);
  });
  test("a compiled model draws anew on every run, or what its seed says", async () => {
    const model = (seed: Readonly<Record<string, { readonly float: number }>>): Uint8Array => modelBytes({
      opset: 15, inputs: { x: { dtype: "float32", dims: [3, 5] } }, outputs: { y: { dtype: "float32", dims: [3, 5] } }, initializers: {},
      nodes: [{ type: "RandomNormalLike", inputs: ["x"], outputs: ["r"], attributes: seed }, { type: "Add", inputs: ["x", "r"], outputs: ["y"] }],
    });
    const draw = async (bytes: Uint8Array, fusion: boolean): Promise<number[]> => values((await runCompiled(bytes, { x: like("float32", 3, 5) }, fusion))["y"] as Tensor);
    const fixed = model({ seed: { float: 4 } }), free = model({});
    expect(await draw(fixed, true)).toEqual(await draw(fixed, false));
    expect(await draw(free, true)).not.toEqual(await draw(free, true));
  });
});
