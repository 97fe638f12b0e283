import { describe, expect, it } from "vitest";
import { fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";
import type { DType } from "../core/dtype.ts";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, runOperator } from "../../test/support/operator-check.ts";
import { ScatterElements, ScatterND } from "./scatter.ts";

const counted = (dims: readonly number[], dtype: DType = "float32", from = 0): Tensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => ((i * 11) % 17) + from));
const places = (dims: readonly number[], ...values: readonly number[]): Tensor => fromNumbers("int64", dims, values);
const reductions = ["none", "add", "mul", "max", "min"];

describe("scattering by loops", () => {
  it("ScatterElements along every axis, equal places in turn, in every type", () => {
    const at = places([2, 4], 1, 0, -1, 1, 2, 0, -1, 1);
    for (const dtype of ["float32", "int8", "uint8", "int64", "float64"] as const) for (const reduction of reductions) for (const axis of [0, 1])
      expect(operatorDifference({ op: ScatterElements, inputs: [{ tensor: counted([3, 5], dtype) }, { tensor: at }, { tensor: counted([2, 4], dtype, 9) }], attributes: { axis, reduction } }), `${dtype} ${reduction} ${axis}`).toBe(0);
    expect(operatorDifference({ op: ScatterElements, inputs: [{ tensor: counted([3, 5]), shape: ["a", "b"] }, { tensor: at, shape: ["c", "d"] }, { tensor: counted([2, 4]), shape: ["c", "d"] }], attributes: { axis: 1 } })).toBe(0);
  });
  it("ScatterND by elements, rows and the whole, none at all", () => {
    for (const reduction of reductions) {
      const run = (data: Tensor, rows: Tensor, updates: Tensor): number => operatorDifference({ op: ScatterND, inputs: [{ tensor: data }, { tensor: rows }, { tensor: updates }], attributes: { reduction } });
      expect(run(counted([3, 5]), places([4, 2], 0, 1, 2, -1, 0, 1, 1, 0), counted([4], "float32", 3))).toBe(0);
      expect(run(counted([4, 3, 2]), places([2, 1], -1, 0), counted([2, 3, 2], "float32", 3))).toBe(0);
      expect(run(counted([4, 2]), places([0, 1]), counted([0, 2]))).toBe(0);
    }
  });
  it("moves one element and leaves the rest", () => {
    const { actual } = runOperator({ op: ScatterND, inputs: [{ tensor: counted([3]) }, { tensor: places([1, 1], 1) }, { tensor: counted([1], "float32", 50) }] });
    expect(Array.from(actual[0]?.data ?? [], Number)).toEqual([0, 50, 5]);
  });
  it("a wrong element is seen", () => {
    const { expected } = runOperator({ op: ScatterElements, inputs: [{ tensor: counted([3, 5]) }, { tensor: places([1, 2], 1, 0) }, { tensor: counted([1, 2]) }] });
    expect(difference(expected[0] && perturbed(expected[0], 1), expected[0] as Tensor)).toBeGreaterThan(0);
  });
});
