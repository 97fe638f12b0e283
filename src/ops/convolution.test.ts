import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, withoutAnchor, type OperatorCase } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor, type Random } from "../../test/support/random.ts";
import { fromNumbers } from "../core/tensor.ts";
import type { Attributes } from "../graph/op.ts";
import { inferTypes } from "../graph/infer-node.ts";
import { symbol } from "../core/dim.ts";
import { Conv } from "./conv.ts";
import { ConvTranspose } from "./conv-transpose.ts";
import { ConvInteger, QLinearConv } from "./integer-convolution.ts";

const sizes = (rank: number, low: number, high: number, random: Random): number[] => Array.from({ length: rank }, () => low + random.int(high - low + 1));
const names = ["d", "h", "w"];

function placement(rank: number, kernel: readonly number[], random: Random): Attributes {
  const way = random.int(4);
  return {
    strides: sizes(rank, 1, 3, random),
    ...(way === 0 ? { auto_pad: random.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]) } : { dilations: sizes(rank, 1, 2, random) }),
    ...(way > 1 ? { pads: [...kernel, ...kernel].map((k) => random.int(k)) } : {}),
  };
}

function convCase(seed: number): OperatorCase {
  const random = randomFrom(seed), rank = 1 + random.int(3), groups = 1 + random.int(3);
  const inputs = 1 + random.int(3), outputs = 1 + random.int(3), kernel = sizes(rank, 1, 3, random);
  const x = randomTensor([1 + random.int(2), groups * inputs, ...sizes(rank, 5, 7, random)], random);
  const symbolic = random.int(2) === 0;
  return {
    op: Conv, attributes: { ...placement(rank, kernel, random), group: groups },
    inputs: [
      { tensor: x, ...(symbolic ? { shape: ["n", groups * inputs, ...names.slice(0, rank)] } : {}) },
      { tensor: randomTensor([groups * outputs, inputs, ...kernel], random), constant: true },
      random.int(2) ? { tensor: randomTensor([groups * outputs], random), constant: true } : undefined,
    ],
  };
}

function transposeCase(seed: number): OperatorCase {
  const random = randomFrom(seed), rank = 1 + random.int(3), groups = 1 + random.int(2);
  const inputs = 1 + random.int(3), outputs = 1 + random.int(3), kernel = sizes(rank, 1, 4, random), strides = sizes(rank, 1, 3, random);
  const x = randomTensor([1 + random.int(2), groups * inputs, ...sizes(rank, 2, 4, random)], random);
  const way = random.int(3);
  return {
    op: ConvTranspose,
    attributes: {
      strides, group: groups,
      ...(way === 0 ? { auto_pad: random.pick(["SAME_UPPER", "SAME_LOWER"]) } : {}),
      ...(way === 1 ? { pads: [...kernel, ...kernel].map((k) => random.int(Math.ceil(k / 2))), dilations: sizes(rank, 1, 2, random), output_padding: strides.map((s) => random.int(s)) } : {}),
      ...(way === 2 ? { output_shape: x.dims.slice(2).map((d, i) => (d - 1) * (strides[i] ?? 1) + (kernel[i] ?? 1)) } : {}),
    },
    inputs: [
      { tensor: x, ...(way !== 2 && random.int(2) ? { shape: ["n", groups * inputs, ...names.slice(0, rank)] } : {}) },
      { tensor: randomTensor([groups * inputs, outputs, ...kernel], random), constant: true },
      random.int(2) ? { tensor: randomTensor([groups * outputs], random), constant: true } : undefined,
    ],
  };
}

describe.each([["anchor", (c: OperatorCase) => c], ["lower", (c: OperatorCase) => ({ ...c, op: withoutAnchor(c.op) })]] as const)("%s equals evaluation", (_, form) => {
  it.each(Array.from({ length: 40 }, (_, i) => i))("Conv, seed %i", (seed) => {
    expect(operatorDifference(form(convCase(seed)))).toBeLessThan(2e-6);
  });
  it.each(Array.from({ length: 40 }, (_, i) => i))("ConvTranspose, seed %i", (seed) => {
    expect(operatorDifference(form(transposeCase(seed)))).toBeLessThan(2e-6);
  });
  it.each(Array.from({ length: 16 }, (_, i) => i))("QLinearConv and ConvInteger exactly, seed %i", (seed) => {
    const random = randomFrom(seed), groups = 1 + random.int(2), inputs = 1 + random.int(3), outputs = 1 + random.int(3);
    const perChannel = random.int(2) === 0, channels = groups * outputs, kernel = sizes(2, 1, 3, random);
    const x = randomIntegers("uint8", [2, groups * inputs, 6, 5], 0, 255, random), w = randomIntegers("int8", [channels, inputs, ...kernel], -128, 127, random);
    const attributes = { ...placement(2, kernel, random), group: groups };
    const xZero = randomIntegers("uint8", [], 0, 255, random), wZero = randomIntegers("int8", perChannel ? [channels] : [], -3, 3, random);
    const constant = <T>(tensor: T): { tensor: T; constant: true } => ({ tensor, constant: true });
    const scale = (dims: readonly number[], most: number) => constant(fromNumbers("float32", dims, Array.from({ length: dims[0] ?? 1 }, () => (0.1 + random()) * most)));
    expect(operatorDifference(form({
      op: QLinearConv, attributes,
      inputs: [
        { tensor: x }, scale([], 0.05), constant(xZero), constant(w), scale(perChannel ? [channels] : [], 0.05), constant(wZero), scale([], 2), constant(randomIntegers("uint8", [], 0, 255, random)),
        constant(randomIntegers("int32", [channels], -5000, 5000, random)),
      ],
    }))).toBe(0);
    expect(operatorDifference(form({ op: ConvInteger, attributes, inputs: [{ tensor: x }, constant(w), { tensor: xZero }, { tensor: wZero }] }))).toBe(0);
  });
});

it("sees one wrong element", () => {
  const { expected, actual } = runOperator(convCase(3));
  const [e] = expected, [a] = actual;
  expect(e && a && difference(perturbed(a, 1e-2), e)).toBeGreaterThan(2e-6);
});

describe("inference", () => {
  const infer = (shape: readonly (number | string)[], attributes: Attributes, weight: readonly number[] = [8, 3, 3, 3]) =>
    inferTypes(Conv, [
      { dtype: "float32", shape: shape.map((d) => (typeof d === "string" ? symbol(d) : d)) }, { dtype: "float32", shape: weight },
    ], attributes, 1, { place: { node: "conv" }, fresh: symbol })[0]?.shape;

  it("keeps symbolic sizes", () => {
    expect(infer(["n", 3, "h", 32], { pads: [1, 1, 1, 1] })).toEqual([symbol("n"), 8, symbol("h"), 32]);
  });
  it("refuses channels that do not fit, with a code", () => {
    expect(() => infer([1, 4, 8, 8], {})).toThrow(/OF3011.*4 channels/);
  });
  it("refuses a pads list of the wrong length", () => {
    expect(() => infer([1, 3, 8, 8], { pads: [1, 1] })).toThrow(/OF3012.*'pads' needs 4/);
  });
  it("refuses floats where integers are multiplied", () => {
    const whole = (dtype: "float32" | "uint8"): unknown => inferTypes(ConvInteger, [{ dtype, shape: [1, 3, 5, 5] }, { dtype, shape: [8, 3, 3, 3] }], {}, 1, { place: { node: "conv" }, fresh: symbol })[0]?.dtype;
    expect(() => whole("float32")).toThrow(/OF3013.*'x' is float32/);
    expect(whole("uint8")).toBe("int32");
  });
  it("refuses what a transposed one says of its output for other axes than there are", () => {
    const transposed = (attributes: Attributes): unknown =>
      inferTypes(ConvTranspose, [{ dtype: "float32", shape: [1, 8, 5, 5] }, { dtype: "float32", shape: [8, 3, 3, 3] }], attributes, 1, { place: { node: "conv" }, fresh: symbol })[0]?.shape;
    expect(() => transposed({ output_padding: [1] })).toThrow(/OF3012.*'output_padding' needs 2/);
    expect(() => transposed({ output_padding: [0, -1] })).toThrow(/OF3012.*at least 0/);
    expect(() => transposed({ output_shape: [8] })).toThrow(/OF3012.*'output_shape' needs 2/);
    expect([transposed({ output_shape: [8, 9] }), transposed({ output_shape: [1, 3, 8, 9] })]).toEqual([[1, 3, 8, 9], [1, 3, 8, 9]]);
  });
});
