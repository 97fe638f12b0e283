import { expect, it } from "vitest";
import { fromNumbers } from "../core/tensor.ts";
import { causalOffset } from "./causal-mask.ts";

const mask = (queries: number, keys: number, hidden: number, change: (i: number, value: number) => number = (_, v) => v) =>
  fromNumbers("float32", [1, queries, keys], Array.from({ length: queries * keys }, (_, i) => change(i, i % keys > Math.floor(i / keys) + keys - queries ? hidden : 0)));

it("masks that hide keys behind each query, and no others", () => {
  expect(causalOffset(mask(4, 4, -Infinity), true)).toBe(0);
  expect(causalOffset(mask(3, 5, -Infinity), true)).toBe(2);
  expect(causalOffset(mask(4, 4, -3.4e38), false)).toBe(0);
  expect(causalOffset(mask(4, 4, -3.4e38), true)).toBeUndefined();
  expect(causalOffset(mask(4, 4, -10000), false)).toBeUndefined();
  expect(causalOffset(mask(5, 3, -Infinity), false)).toBeUndefined();
  expect(causalOffset(mask(4, 4, -Infinity, (i, v) => (i === 4 ? -Infinity : v)), false)).toBeUndefined();
  expect(causalOffset(mask(4, 4, -Infinity, (i, v) => (i === 0 ? 0.5 : v)), false)).toBeUndefined();
  expect(causalOffset(undefined, false)).toBeUndefined();
});
