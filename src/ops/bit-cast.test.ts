import { describe, expect, it } from "vitest";
import { distance, runOp } from "../../test/support/lowered-op.ts";
import { bitsOf, dtypes, type DType } from "../core/dtype.ts";
import { bytesOf, fromNumbers, type Tensor } from "../core/tensor.ts";
import { BitCast } from "./bit-cast.ts";

const all = (Object.keys(dtypes) as DType[]).filter((d) => d !== "string" && d !== "bool");
const values = [0, 1, -1, 3, -2, 2.5, 100, -128, 1e-3, 7];
const run = (x: Tensor, to: DType): ReturnType<typeof runOp> => runOp({ op: BitCast, inputs: [x], attributes: { to: dtypes[to].onnx } });

describe.each(all)("BitCast from %s", (from) => {
  it("keeps the bits, and gives them back", () => {
    for (const to of all.filter((d) => bitsOf(d) === bitsOf(from))) {
      const x = fromNumbers(from, [2, 5], values), { evaluated: [y], lowered } = run(x, to);
      if (!y) throw new Error("no result");
      expect(y.dtype).toBe(to);
      if (lowered?.[0]) expect(distance(y, lowered[0])).toBe(0);
      const back = run(y, from).evaluated[0];
      expect(back && [...bytesOf(back)]).toEqual([...bytesOf(x)]);
    }
  });
});

it("reads a float's bits in a kernel", () => {
  expect(run(fromNumbers("float32", [2], [1, -0]), "int32").lowered?.[0]?.data).toEqual(Int32Array.of(0x3f800000, -(2 ** 31)));
});
it("refuses another width", () => {
  expect(() => run(fromNumbers("float32", [1], [1]), "int64")).toThrow(/OF3013/);
});
