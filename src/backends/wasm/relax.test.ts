import { expect, it } from "vitest";
import { relax, relaxationOf } from "./relax.ts";

const mul = [0xfd, 0xe6, 0x01], add = [0xfd, 0xe4, 0x01], madd = [0xfd, 0x85, 0x02], nops = [1, 1, 1];

it("turns the marked products and sums into relaxed_madd, at any distance, and leaves others alone", () => {
  const gap = new Array<number>(300).fill(0x20);
  const plain = Uint8Array.from([...mul, ...add, 0x20, ...mul, ...gap, ...mul, 0x20, 0, ...add, ...add, ...add]);
  const relaxed = Uint8Array.from([...mul, ...add, 0x20, ...nops, ...gap, ...nops, 0x20, 0, ...madd, ...add, ...madd]);
  const changes = relaxationOf(plain, [7, 310, 315, 321]);
  expect(changes.length).toBe(5);
  expect(relax(plain, changes)).toEqual(relaxed);
});
it("turns the way of other engines into that of relaxed SIMD, and what stands there for a dot product of bytes into it", () => {
  const plain = Uint8Array.from([0x41, 0, 0x04, 0x40, 0xfd, 0x52, 0x01, 0x41, 0]), changes = relaxationOf(plain, [0, 4]);
  expect(relax(plain, changes)).toEqual(Uint8Array.from([0x41, 1, 0x04, 0x40, 0xfd, 0x93, 0x02, 0x41, 0]));
});
it("has nothing to say where nothing is marked, and refuses changes that do not fit", () => {
  expect(relaxationOf(Uint8Array.from(mul), [])).toEqual(new Uint8Array());
  expect(relax(Uint8Array.from([0, 1, 2, 3]), Uint8Array.of(1))).toBeUndefined();
  expect(() => relaxationOf(Uint8Array.of(1, 2, 3), [1])).toThrow();
});
