import { expect, test } from "vitest";
import { dimAdd, dimBroadcast, dimFloorDiv, dimMax, dimMin, evaluateDim, formatDim, symbol, type Dim } from "./dim.ts";

const a = symbol("a"), b = symbol("b"), c = symbol("c");
const same = (x: Dim, y: Dim): void => expect(formatDim(x)).toBe(formatDim(y));

test("minima and maxima are sets: order, nesting and repetition do not matter", () => {
  same(dimMax(a, dimMax(b, c)), dimMax(dimMax(c, a), b));
  same(dimMax(dimMax(a, b), dimMax(b, a)), dimMax(a, b));
  same(dimMin(dimMin(a, 7), dimMin(3, a)), dimMin(a, 3));
  expect(formatDim(dimMax(a, b))).not.toBe(formatDim(dimMax(a, c)));
});
test("what can never be the result is left out", () => {
  same(dimMax(dimMin(1, a), a), a);
  same(dimMin(dimMax(a, b), b), b);
  same(dimMax(dimAdd(a, 2), a), dimAdd(a, 2));
  expect(formatDim(dimMax(dimMin(1, a), b))).toMatch(/max/);
});
test("the value is that of the numbers", () => {
  for (const [x, y, z] of [[1, 2, 3], [3, 1, 2], [2, 3, 1], [0, 0, 5]] as const) {
    const sizes: Record<string, number> = { a: x, b: y, c: z };
    const value = (d: Dim): number => evaluateDim(d, (name) => sizes[name] ?? NaN);
    expect(value(dimMax(dimMin(a, b), dimMax(c, dimMin(b, 2))))).toBe(Math.max(Math.min(x, y), z, Math.min(y, 2)));
    expect(value(dimMin(dimMax(a, b), dimMin(c, dimMax(b, 2))))).toBe(Math.min(Math.max(x, y), z, Math.max(y, 2)));
  }
});
test("a capped size broadcasts with the size itself as that size", () => {
  same(dimBroadcast(a, dimMin(1, a)), a);
  same(dimBroadcast(dimMin(512, a), a), a);
  expect(formatDim(dimBroadcast(a, dimMin(b, a)))).toMatch(/broadcast/);
  expect(formatDim(dimBroadcast(a, dimMin(512, b)))).toMatch(/broadcast/);
});
test("divisions in divisions are one division", () => {
  const half = (d: Dim): Dim => dimFloorDiv(dimAdd(d, -1), 2);
  const nested = half(half(half(a)));
  expect(formatDim(nested)).toBe("floor((-7+a)/8)");
  for (let n = 0; n < 40; n++) {
    const h = (x: number): number => Math.floor((x - 1) / 2);
    expect(evaluateDim(nested, () => n)).toBe(h(h(h(n))));
  }
});
