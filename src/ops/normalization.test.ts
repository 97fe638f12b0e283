import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, runOperator, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor, type Random } from "../../test/support/random.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { OpDef } from "../graph/op.ts";
import { BatchNormalization } from "./batch-normalization.ts";
import { LayerNormalization, RMSNormalization } from "./layer-normalization.ts";
import { GroupNormalization, InstanceNormalization, LRN, LpNormalization, MeanVarianceNormalization } from "./plane-normalization.ts";
import { ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare } from "./reduce.ts";
import { Hardmax, LogSoftmax, Softmax } from "./softmax.ts";

const seeds = Array.from({ length: 10 }, (_, i) => i);
const positive = (dims: readonly number[], random: Random): OperatorInput => ({ tensor: fromNumbers("float32", dims, Array.from({ length: dims.reduce((p, d) => p * d, 1) }, () => random() + 0.1)) });
const names = ["n", "c", "h", "w"];

function input(random: Random, channels = 1 + random.int(5)): OperatorInput & { readonly tensor: Tensor } {
  const tensor = randomTensor([1 + random.int(3), channels, 1 + random.int(5), 1 + random.int(4)], random);
  return random.int(2) ? { tensor, shape: ["n", channels, "h", "w"] } : { tensor };
}

function cases(seed: number): Record<string, OperatorCase> {
  const random = randomFrom(seed), x = input(random), c = x.tensor.dims[1] ?? 1, axis = random.int(8) - 4;
  const rows = x.tensor.dims.slice(axis), row = (): OperatorInput => ({ tensor: randomTensor(rows, random) });
  const fixed = { tensor: x.tensor };
  return {
    BatchNormalization: { op: BatchNormalization, inputs: [x, ...Array.from({ length: 4 }, () => positive([c], random))] },
    "BatchNormalization of every element": { op: BatchNormalization, attributes: { spatial: 0 }, inputs: [fixed, ...Array.from({ length: 4 }, () => positive(x.tensor.dims.slice(1), random))] },
    InstanceNormalization: { op: InstanceNormalization, inputs: [x, positive([c], random), positive([c], random)] },
    GroupNormalization: { op: GroupNormalization, attributes: { num_groups: 2 }, inputs: [input(random, 6), positive([6], random), positive([6], random)] },
    "GroupNormalization by group": { op: GroupNormalization, attributes: { num_groups: 3, per_group: 1 }, inputs: [input(random, 6), positive([3], random), positive([3], random)] },
    LayerNormalization: { op: LayerNormalization, attributes: { axis }, outputs: 1 + random.int(3), inputs: [fixed, row(), random.int(2) ? row() : undefined] },
    RMSNormalization: { op: RMSNormalization, attributes: { axis }, inputs: [fixed, row()] },
    LpNormalization: { op: LpNormalization, attributes: { axis, p: 1 + random.int(2) }, inputs: [x] },
    LRN: { op: LRN, attributes: { size: random.pick([1, 2, 3, 5]), alpha: 0.3 }, inputs: [x] },
    MeanVarianceNormalization: { op: MeanVarianceNormalization, attributes: { axes: random.pick([[0, 2, 3], [1], [-1, -2]]) }, inputs: [x] },
    Softmax: { op: Softmax, attributes: { axis, flatten: random.int(2) }, inputs: [x] },
    LogSoftmax: { op: LogSoftmax, attributes: { axis, flatten: random.int(2) }, inputs: [x] },
    Hardmax: { op: Hardmax, attributes: { axis, flatten: random.int(2) }, inputs: [x] },
  };
}

describe.each(seeds)("seed %i", (seed) => {
  it.each(Object.entries(cases(seed)))("%s equals its evaluation", (_, c) => {
    expect(operatorDifference(c)).toBeLessThan(1e-5);
  });
});

const reductions: readonly OpDef[] = [ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceSumSquare];
const axes = (...list: number[]): OperatorInput => ({ tensor: { dtype: "int64", dims: [list.length], data: BigInt64Array.from(list, BigInt) }, constant: true });

describe.each(reductions.map((op) => [op.type, op] as const))("%s equals its evaluation", (_, op) => {
  it.each([[undefined], [[0]], [[-1]], [[1, 3]], [[3, 0, -2]], [[]]])("over axes %o", (list) => {
    const random = randomFrom(list?.length ?? 9);
    for (const keepdims of [0, 1]) for (const noop of [0, 1]) for (const dtype of ["float32", "int32", "int64"] as const) {
      const floats = positive([2, 3, 4, 5], random).tensor;
      const tensor = dtype === "float32" ? floats : fromNumbers(dtype, floats.dims, Array.from(toNumbers(floats), (v) => 1 + Math.floor(v * 3)));
      expect(operatorDifference({ op, attributes: { keepdims, noop_with_empty_axes: noop }, inputs: [{ tensor, shape: names }, list && axes(...list)] })).toBeLessThan(1e-5);
    }
  });
  it("over nothing", () => {
    expect(operatorDifference({ op, inputs: [{ tensor: fromNumbers("float32", [2, 0], []) }, axes(1)] })).toBe(0);
  });
});

it("large scores do not overflow", () => {
  const x = { tensor: fromNumbers("float32", [1, 3], [1e4, 1e4 - 1, -1e4]) };
  for (const op of [Softmax, LogSoftmax]) {
    const { actual, expected } = runOperator({ op, inputs: [x] });
    expect(Array.from(actual[0]?.data ?? [], Number).every(Number.isFinite)).toBe(true);
    expect(expected[0] && difference(actual[0], expected[0])).toBeLessThan(1e-5);
  }
  expect(Number(runOperator({ op: ReduceLogSumExp, inputs: [x] }).actual[0]?.data[0])).toBeCloseTo(10000.313, 2);
});

it("sees one wrong element", () => {
  const c = cases(1)["Softmax"];
  const { expected, actual } = c ? runOperator(c) : { expected: [], actual: [] };
  const [e] = expected, [a] = actual;
  expect(e && a && difference(perturbed(a, 1e-3), e)).toBeGreaterThan(1e-5);
});

describe("what normalisations cannot take is refused", () => {
  const refused: Record<string, readonly [(b: GraphBuilder) => void, RegExp]> = {
    "an instance without channels": [(b) => b.add(InstanceNormalization, [b.input("x", [1]), b.random([1]), b.random([1])]), /OF3010.*rank 2/],
    "groups without channels": [(b) => b.add(GroupNormalization, [b.input("x", [1]), b.random([1]), b.random([1])], { num_groups: 1, per_group: 0 }), /OF3010.*rank 2/],
    "a scale of integers": [(b) => b.add(LayerNormalization, [b.input("x", [2, 3]), b.int64(1, 2, 3)]), /OF3013.*'Scale' is int64/],
    "a scale of integers for roots of mean squares": [(b) => b.add(RMSNormalization, [b.input("x", [2, 3]), b.int64(1, 2, 3)]), /OF3013.*'scale' is int64/],
  };
  for (const [name, [build, error]] of Object.entries(refused)) it(name, () => { expect(() => build(new GraphBuilder())).toThrow(error); });
  it("but not rows of channels, nor a scale of another float type", () => {
    const b = new GraphBuilder();
    expect(b.add(InstanceNormalization, [b.input("x", [2, 3]), b.random([3]), b.random([3])]).type.shape).toEqual([2, 3]);
    expect(b.add(LayerNormalization, [b.input("z", [2, 3], "float16"), b.random([3])]).type.dtype).toBe("float32");
  });
});
