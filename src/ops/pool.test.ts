import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, type OperatorCase } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor, type Random } from "../../test/support/random.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GlobalAveragePool, GlobalLpPool, GlobalMaxPool } from "./global-pool.ts";
import { AveragePool, LpPool, MaxPool } from "./pool.ts";

const sizes = (rank: number, low: number, high: number, random: Random): number[] => Array.from({ length: rank }, () => low + random.int(high - low + 1));

function poolCase(seed: number): OperatorCase {
  const random = randomFrom(seed), rank = 1 + random.int(3), kernel = sizes(rank, 1, 4, random), op = random.pick([MaxPool, AveragePool, LpPool]);
  const auto = random.int(4) === 0;
  const integer = op === MaxPool && random.int(3) === 0, dims = [1 + random.int(2), 1 + random.int(3), ...sizes(rank, 5, 8, random)];
  const outputs = op === MaxPool && random.int(2) ? 2 : 1;
  return {
    op, outputs,
    attributes: {
      kernel_shape: kernel, strides: sizes(rank, 1, 3, random),
      ...(auto ? { auto_pad: random.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]) } : { dilations: sizes(rank, 1, 2, random), pads: [...kernel, ...kernel].map((k) => random.int(k)), ceil_mode: random.int(2) }),
      ...(op === AveragePool ? { count_include_pad: random.int(2) } : {}),
      ...(op === LpPool ? { p: 1 + random.int(3) } : {}),
      ...(op === MaxPool ? { storage_order: random.int(2) } : {}),
    },
    inputs: [{
      tensor: integer ? randomIntegers("int8", dims, -128, 127, random) : randomTensor(dims, random),
      ...(random.int(2) ? { shape: ["n", "c", ...["d", "h", "w"].slice(0, rank)] } : {}),
    }],
  };
}

describe("pools equal their evaluation", () => {
  it.each(Array.from({ length: 80 }, (_, i) => i))("windows, seed %i", (seed) => {
    expect(operatorDifference(poolCase(seed))).toBeLessThan(2e-6);
  });
  it.each([GlobalAveragePool, GlobalMaxPool, GlobalLpPool].map((op) => [op.type, op] as const))("%s", (_, op) => {
    expect(operatorDifference({ op, inputs: [{ tensor: randomTensor([2, 3, 4, 5], randomFrom(1)), shape: ["n", "c", "h", "w"] }] })).toBeLessThan(2e-6);
  });
  it("a maximum over not-a-number is not a number", () => {
    const x = fromNumbers("float32", [1, 1, 4], [1, NaN, 2, 3]);
    const { expected, actual } = runOperator({ op: MaxPool, attributes: { kernel_shape: [2] }, inputs: [{ tensor: x }], outputs: 2 });
    expect(actual).toEqual(expected);
    expect([...(expected[0]?.data ?? [])]).toEqual([NaN, NaN, 3]);
  });
  it("sees one wrong element", () => {
    const { expected, actual } = runOperator(poolCase(5));
    const [e] = expected, [a] = actual;
    expect(e && a && difference(perturbed(a, 1), e)).toBeGreaterThan(2e-6);
  });
});
