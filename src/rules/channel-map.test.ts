/** Walks over channels name the channel of every element, and weights scaled in one pass are what two passes give. */
import { describe, expect, it } from "vitest";
import { fromNumbers, numericData, tensor } from "../core/tensor.ts";
import { isRefusal } from "../rewrite/rule.ts";
import { byColumn, byFilter, ChannelWalk, oneChannel, type ChannelMap } from "./channel-map.ts";
import { roundOnce, scaledOnce } from "./folded-tensor.ts";

/** The channel of each of `size` elements, as a walk tells. */
function channels(map: ChannelMap, size: number): number[] {
  const out: number[] = [], walk = new ChannelWalk(map);
  for (let i = 0; i < size; walk.next()) for (const end = Math.min(walk.end, size); i < end; i++) out.push(walk.channel);
  return out;
}
const upTo = (size: number, f: (i: number) => number): number[] => Array.from({ length: size }, (_, i) => f(i));

describe("channels", () => {
  it("of filters, columns, groups and of one", () => {
    expect(channels(byFilter(4, 3), 12)).toEqual(upTo(12, (i) => Math.floor(i / 3)));
    expect(channels(byColumn(5), 20)).toEqual(upTo(20, (i) => i % 5));
    expect(channels(oneChannel, 7)).toEqual(upTo(7, () => 0));
    // Two groups of three filters over two inputs of four taps each.
    const inputs: ChannelMap = { count: 4, run: 4, width: 2, repeat: 3 };
    expect(channels(inputs, 48)).toEqual(upTo(48, (i) => Math.floor(i / 24) * 2 + (Math.floor(i / 4) % 2)));
  });
});

describe("weights scaled once", () => {
  const values = upTo(48, (i) => Math.fround(Math.sin(i) * (i % 7 === 0 ? 0 : 3)));
  const factors = Float64Array.of(0.1, -2, 1 / 3, 1e-3), inputs: ChannelMap = { count: 4, run: 4, width: 2, repeat: 3 }, filters = byFilter(6, 8);
  const product = (of: readonly number[]): Float64Array => Float64Array.from(channels(inputs, 48), (c, i) => (of[i] ?? 0) * (factors[c] ?? 1));

  it("have the bits of the product rounded once", () => {
    const folded = scaledOnce("w", tensor("float32", [6, 2, 4], Float32Array.from(values)), factors, inputs, filters);
    const expected = fromNumbers("float32", [6, 2, 4], product(values));
    expect(!isRefusal(folded) && [...numericData(folded)].every((v, i) => Object.is(v, numericData(expected)[i]))).toBe(true);
  });
  it.each([["infinite", Infinity], ["NaN", NaN]])("refuse a weight that is %s, as rounding does", (_, bad) => {
    const wrong = values.map((v, i) => (i === 29 ? bad : v));
    const folded = scaledOnce("w", tensor("float32", [6, 2, 4], Float32Array.from(wrong)), factors, inputs, filters);
    expect(isRefusal(folded)).toBe(true);
    expect(folded).toEqual(roundOnce("w", "float32", [6, 2, 4], product(wrong), filters));
  });
  it("refuse products that overflow or lose what they were", () => {
    const large = scaledOnce("w", tensor("float32", [2], Float32Array.of(1, 3e38)), Float64Array.of(10), oneChannel, oneChannel);
    const small = scaledOnce("w", tensor("float32", [1], Float32Array.of(1.3e-40)), Float64Array.of(1e-4), oneChannel, oneChannel);
    expect([large, small].map((t) => isRefusal(t) && t.code)).toEqual(["precision-loss", "precision-loss"]);
  });
});
