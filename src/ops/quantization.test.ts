import { describe, expect, it } from "vitest";
import { runOperator, operatorDifference, randomIntegers, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { integerRange, isFloat } from "../core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { DynamicQuantizeLinear } from "./dynamic-quantize-linear.ts";
import { QLinearAdd, QLinearMul } from "./qlinear-arithmetic.ts";
import { DequantizeLinear, QuantizeLinear } from "./quantize-linear.ts";

const given = (tensor: Tensor): OperatorInput => ({ tensor });
const seeds = Array.from({ length: 20 }, (_, i) => i);
/** Scales that make ties likely: powers of two. */
const scaleOf = (dims: readonly number[], random: () => number): OperatorInput =>
  given(fromNumbers("float32", dims, Array.from({ length: dims.reduce((p, d) => p * d, 1) }, () => 2 ** -Math.floor(1 + random() * 5))));

describe("quantisation equals its evaluation exactly", () => {
  it.each(seeds)("QuantizeLinear and DequantizeLinear, seed %i", (seed) => {
    const random = randomFrom(seed), dims = [2, 6, 3], axis = random.int(6) - 3, n = dims.at(axis) ?? 1;
    const dtype = random.pick(["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"] as const), most = Math.min(100, integerRange(dtype)[1]), block = random.int(3) === 0 && n === 6 ? 2 : 0;
    const shape = block ? [2, 3, 3] : random.pick([[], [1], [n]]), zeroShape = block || shape.length === 0 ? shape : random.pick([[], shape]);
    const zero = given(randomIntegers(dtype, zeroShape, 0, most, random)), scale = scaleOf(shape, random);
    const x = fromNumbers("float32", dims, Array.from({ length: 36 }, () => random.pick([random.int(400) / 32 - 6, NaN, Infinity, -Infinity, 1e9, -1e9, random.normal()])));
    const attributes = { axis, block_size: block };
    expect(operatorDifference({ op: QuantizeLinear, attributes, inputs: [given(x), scale, zero] })).toBe(0);
    expect(operatorDifference({ op: DequantizeLinear, attributes, inputs: [given(randomIntegers(dtype, dims, 0, most, random)), scale, zero] })).toBe(0);
  });
  it.each(seeds)("floats of 8 and 4 bits, halves and precisions, seed %i", (seed) => {
    const random = randomFrom(seed), dtype = random.pick(["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1", "int8", "uint4"] as const);
    const half = random.pick(["float32", "float16", "bfloat16"] as const), scale = given(fromNumbers(half, [6], Array.from({ length: 6 }, () => 0.03 + random() / 4)));
    const x = fromNumbers(half, [5, 6], Array.from({ length: 30 }, () => random.pick([NaN, Infinity, -Infinity, 1e4, -1e4, random.normal(), random.normal() * 30])));
    const zero = given(fromNumbers(dtype, [6], new Array<number>(6).fill(isFloat(dtype) ? 0 : 3)));
    const precision = random.pick([0, 1, 10, 16]);
    expect(operatorDifference({ op: QuantizeLinear, attributes: { axis: 1, saturate: random.int(2), precision }, inputs: [given(x), scale, zero] })).toBe(0);
    expect(operatorDifference({ op: DequantizeLinear, attributes: { axis: 1, output_dtype: random.pick([0, 1, 10, 16]) }, inputs: [given(fromNumbers(dtype, [5, 6], Array.from({ length: 30 }, () => random.normal() * 2))), scale, zero] })).toBe(0);
  });
  it.each(seeds)("QLinearAdd and QLinearMul, seed %i", (seed) => {
    const random = randomFrom(seed), [a = [], b = []] = random.pick([[[2, 5], [2, 5]], [[2, 5], [5]], [[1, 3], [4, 1]], [[3], []]]), dtype = random.pick(["int8", "uint8"] as const);
    const [low, high] = dtype === "int8" ? [-128, 127] : [0, 255];
    const integers = (dims: readonly number[]): OperatorInput => given(randomIntegers(dtype, dims, low, high, random));
    for (const op of [QLinearAdd, QLinearMul])
      expect(operatorDifference({ op, inputs: [integers(a), scaleOf([], random), integers([]), integers(b), scaleOf([], random), integers([]), scaleOf([], random), integers([])] })).toBe(0);
  });
  it.each(seeds)("DynamicQuantizeLinear, seed %i", (seed) => {
    const random = randomFrom(seed), offset = random.pick([0, 3, -3]), x = randomTensor([3, 7], random);
    const shifted = fromNumbers("float32", x.dims, Array.from(toNumbers(x), (v) => v + offset));
    expect(operatorDifference({ op: DynamicQuantizeLinear, inputs: [{ tensor: shifted, shape: ["n", 7] }], outputs: 3 })).toBe(0);
  });
});

it("rounds halves to even and saturates", () => {
  const x = fromNumbers("float32", [8], [0.5, 1.5, 2.5, -0.5, -1.5, 300, -300, NaN]);
  const { expected } = runOperator({ op: QuantizeLinear, inputs: [given(x), given(fromNumbers("float32", [], [1])), given(fromNumbers("uint8", [], [10]))] });
  expect([...(expected[0]?.data ?? [])]).toEqual([10, 12, 12, 10, 8, 255, 0, 0]);
});

it("DynamicQuantizeLinear of zeros of either sign, one sign alone, infinities, NaN anywhere, and nothing", () => {
  const run = Array.from({ length: 37 }, (_, i) => (i % 9) - 4), withAt = (at: number, v: number): number[] => run.map((x, i) => (i === at ? v : x));
  const rows: readonly (readonly number[])[] = [[-0, 0, -0], [-0], run.map((x) => Math.abs(x)), run.map((x) => -Math.abs(x)), ...[NaN, Infinity, -Infinity, 1e-45, 3e38].flatMap((v) => [0, 17, 33, 36].map((at) => withAt(at, v))), []];
  for (const row of rows) expect(operatorDifference({ op: DynamicQuantizeLinear, inputs: [given(fromNumbers("float32", [row.length], [...row]))], outputs: 3 }), String(row)).toBe(0);
});

it("a tensor of zeros has scale 1", () => {
  const { actual } = runOperator({ op: DynamicQuantizeLinear, inputs: [given(fromNumbers("float32", [2], [0, 0]))], outputs: 3 });
  expect(actual.map((t) => [...t.data])).toEqual([[0, 0], [1], [0]]);
});
