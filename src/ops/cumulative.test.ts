import { describe, expect, it } from "vitest";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { DType } from "../core/dtype.ts";
import { operatorDifference, perturbed, runOperator } from "../../test/support/operator-check.ts";
import { difference } from "../../test/support/graph-builder.ts";
import { CumProd, CumSum } from "./cumulative.ts";
import { MaxUnpool } from "./unpool.ts";

const counted = (dims: readonly number[], dtype: DType = "float32"): Tensor => {
  const n = dims.reduce((a, b) => a * b, 1);
  return fromNumbers(dtype, dims, Array.from({ length: n }, (_, i) => ((i * 7) % 5) - 2));
};
const scalar = (v: number): Tensor => fromNumbers("int64", [], [v]);

describe("running totals", () => {
  it("every axis, direction and kind, with sizes as numbers and as symbols", () => {
    for (const op of [CumSum, CumProd]) for (const exclusive of [0, 1]) for (const reverse of [0, 1])
      for (const dims of [[7], [3, 5], [2, 3, 4], [1, 9], [5, 1], [0, 3], [3, 0]]) for (let axis = -1; axis < dims.length; axis++)
        for (const shape of [undefined, dims.map((_, i) => `n${i}`)])
          expect(operatorDifference({ op, inputs: [{ tensor: counted(dims), ...(shape ? { shape } : {}) }, { tensor: scalar(axis), constant: true }], attributes: { exclusive, reverse } }), `${op.type} [${dims.join()}] axis ${axis}`).toBe(0);
  });
  it("integers wrap in their own width, NaN stays", () => {
    for (const dtype of ["int8", "uint8", "int32", "int64", "uint32"] as const) {
      const x = fromNumbers(dtype, [6], [100, 100, 3, 7, 90, 100]);
      for (const op of [CumSum, CumProd]) expect(operatorDifference({ op, inputs: [{ tensor: x }, { tensor: scalar(0), constant: true }] }), dtype).toBe(0);
    }
    const { expected, actual } = runOperator({ op: CumSum, inputs: [{ tensor: fromNumbers("float32", [4], [1, NaN, Infinity, 2]) }, { tensor: scalar(0), constant: true }] });
    expect(Array.from(actual[0]?.data ?? [], Number)).toEqual(Array.from(expected[0]?.data ?? [], Number));
  });
  it("an axis that only running tells runs on the host", () => {
    expect(() => runOperator({ op: CumSum, inputs: [{ tensor: counted([3]) }, { tensor: scalar(0) }] })).toThrow(/host/);
  });
  it("a wrong total is seen", () => {
    const { expected } = runOperator({ op: CumSum, inputs: [{ tensor: counted([3, 5]) }, { tensor: scalar(1), constant: true }] });
    expect(difference(expected[0] && perturbed(expected[0], 1), expected[0] as Tensor)).toBeGreaterThan(0);
  });
});

describe("MaxUnpool", () => {
  const x = fromNumbers("float32", [1, 2, 2, 2], [5, 6, 7, 8, 1, 2, 3, 4]), places = fromNumbers("int64", [1, 2, 2, 2], [5, 7, 13, 15, 16, 18, 31, 26]);
  it("places maxima, also in a larger result", () => {
    const attributes = { kernel_shape: [2, 2], strides: [2, 2] };
    expect(operatorDifference({ op: MaxUnpool, inputs: [{ tensor: x }, { tensor: places }], attributes })).toBe(0);
    expect(operatorDifference({ op: MaxUnpool, inputs: [{ tensor: x }, { tensor: places }, { tensor: fromNumbers("int64", [4], [1, 2, 5, 4]), constant: true }], attributes })).toBe(0);
    expect(operatorDifference({ op: MaxUnpool, inputs: [{ tensor: x, shape: ["n", "c", "h", "w"] }, { tensor: places, shape: ["n", "c", "h", "w"] }], attributes })).toBe(0);
  });
  it("leaves out what lies outside", () => {
    const wild = fromNumbers("int64", [1, 2, 2, 2], [-1, 99, 2 ** 40, 0, 1, 2, 3, 4]);
    expect(operatorDifference({ op: MaxUnpool, inputs: [{ tensor: x }, { tensor: wild }], attributes: { kernel_shape: [2, 2], strides: [2, 2] } })).toBe(0);
  });
});
