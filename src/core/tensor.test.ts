import { expect, it } from "vitest";
import { fromBigInts } from "./tensor.ts";

it.each([
  ["int32", (2n ** 31n - 1n) ** 2n, 1], ["uint32", (2n ** 32n - 1n) ** 2n, 1], ["int32", 2n ** 31n, -(2 ** 31)], ["int16", 2n ** 70n + 5n, 5], ["int8", -129n, 127], ["uint8", -1n, 255], ["bool", 2n ** 40n, 1],
] as const)("exact integers are wrapped to %s, however large: %s", (dtype, value, wrapped) => {
  expect(Number(fromBigInts(dtype, [1], [value]).data[0])).toBe(wrapped);
});
