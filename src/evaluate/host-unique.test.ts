/** What the runtime runs in the place of the naive Unique gives the same. */
import { describe, expect, it } from "vitest";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { Unique as fastUnique } from "./host-unique.ts";
import { Unique } from "./order.ts";

const context = { outputCount: 4 };
const bits = (list: readonly Tensor[]): unknown => list.map((t) => [t.dtype, t.dims, t.dtype === "string" ? t.data : Array.from(toNumbers(t), String)]);

describe("Unique", () => {
  const tensors: Tensor[] = [
    fromNumbers("float32", [9], [3, NaN, -0, 0, 3, NaN, -Infinity, 1, 3]), fromNumbers("float32", [0], []), fromNumbers("float64", [4, 3], [1, NaN, 2, 0, 0, 1, 1, NaN, 2, -0, 0, 1]),
    fromNumbers("int64", [2, 3, 2], [1, 2, 3, 4, 1, 2, 1, 2, 5, 6, 1, 2]), { dtype: "string", dims: [5], data: ["b", "a", "b", "", "ab"] }, { dtype: "string", dims: [3, 2], data: ["a", "bc", "ab", "c", "a", "bc"] },
  ];
  it("finds what the naive one finds, flat and along every axis", () => {
    for (const x of tensors) for (const sorted of [0, 1]) for (const axis of [undefined, ...x.dims.keys()]) {
      const attributes = { sorted, ...(axis === undefined ? {} : { axis }) };
      expect(bits(fastUnique([x], attributes, context))).toEqual(bits(Unique([x], attributes, context)));
    }
  });
  it("counts NaN once and puts it last", () => {
    const [y, , , counts] = fastUnique([tensors[0]], { sorted: 1 }, context);
    expect([Array.from(y?.data ?? [], Number), Array.from(counts?.data ?? [], Number)]).toEqual([[-Infinity, -0, 1, 3, NaN], [1, 2, 1, 3, 2]]);
  });
  it("a wrong result is seen", () => { expect(bits(fastUnique([tensors[0]], { sorted: 0 }, context))).not.toEqual(bits(Unique([tensors[0]], { sorted: 1 }, context))); });
});
