/** Copies of 16 bytes: whatever the type and the length of a run, the elements arrive where they belong. */
import { describe, expect, it } from "vitest";
import { symbol, type Dim } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import { add, constant, dimExpr, div, i32, load, lt, rem, select, sub, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import { printKernel } from "../../kernel/print.ts";
import { splitWork } from "../threads/split-work.ts";
import { buffer, check, dense, mapKernel } from "../../../test/support/check-kernel.ts";

const types: readonly DType[] = ["uint8", "int8", "bool", "int16", "uint16", "float32", "int32", "float16", "int64"];
const at = (...indices: readonly (Expr | undefined)[]): Expr[] => indices.map((e) => e ?? constant(0, i32));

/** [n, groups, c, w] read as channels shuffled, both with channels last. */
function shuffle(dtype: DType, channels: number, width: Dim, sizes: Readonly<Record<string, number>> = {}) {
  const x = buffer("x", dtype, [2, channels, 2, width]), out = buffer("out", dtype, [2, 2 * channels, width]);
  const last = (b: Buffer): Layout => (b === x ? { strides: [0, 1, channels, 2 * channels], offset: 0 } : b === out ? { strides: [0, 1, 2 * channels], offset: 0 } : dense(b));
  const image = typeof width === "number" ? width * 2 * channels : 0;
  const layoutOf = (b: Buffer): Layout => { const l = last(b); return b === x || b === out ? { ...l, strides: [image, ...l.strides.slice(1)] } : l; };
  return check(mapKernel([x], out, (n, c, w) => load(x, at(n, c && div(c, 2), c && rem(c, 2), w))), { layoutOf, sizes });
}

describe("interleaved runs", () => {
  it.each(types)("of %s", (dtype) => {
    for (const channels of [1, 3, 4, 7, 8, 15, 16, 17, 29, 58]) shuffle(dtype, channels, 5);
    expect(printKernel(shuffle(dtype, 58, 5).scheduled).includes("shuffle")).toBe(dtype !== "float16" && dtype !== "int64");
  });
  it("stay as they are where they are shorter than a vector", () => expect(printKernel(shuffle("uint8", 15, 5).scheduled)).not.toContain("shuffle"));
});

describe("runs", () => {
  it.each(types)("of %s, joined", (dtype) => {
    for (const [p, q] of [[1, 2], [15, 16], [17, 31], [40, 8], [58, 58]] as const) {
      const x = buffer("x", dtype, [3, p]), y = buffer("y", dtype, [3, q]), out = buffer("out", dtype, [3, p + q]);
      check(mapKernel([x, y], out, (i, j) => select(lt(j ?? 0, p), load(x, at(i, j)), load(y, at(i, j && sub(j, p))))));
    }
  });
  it("of a length that only running tells", () => {
    const n = symbol("n"), x = buffer("x", "uint8", [4, n]), out = buffer("out", "uint8", [2, n]);
    for (const size of [0, 1, 15, 16, 17, 50]) check(mapKernel([x], out, (i, j) => load(x, at(i && add(i, 1), j))), { sizes: { n: size } });
    const turned = buffer("turned", "uint8", [n]), one = buffer("one", "uint8", [n]);
    for (const size of [1, 33]) check(mapKernel([one], turned, (j) => load(one, at(j && sub(sub(dimExpr(n), 1), j)))), { sizes: { n: size } });
  });
  it("take 16 bytes at a time", () => {
    const x = buffer("x", "uint8", [5, 40]), out = buffer("out", "uint8", [5, 32]);
    expect(printKernel(check(mapKernel([x], out, (i, j) => load(x, at(i, j && add(j, 8))))).scheduled)).toContain("i8x16");
    expect(printKernel(check(mapKernel([x], out, (i, j) => add(load(x, at(i, j)), 1))).scheduled)).not.toContain("i8x16");
  });
});

describe("threads", () => {
  const split = (kernel: ReturnType<typeof shuffle>["scheduled"], least?: number): boolean => printKernel(splitWork(kernel, least)).includes("split [");
  it("share shuffles and long runs, and leave short ones to one", () => {
    expect(split(shuffle("uint8", 58, 300).scheduled)).toBe(true);
    expect(split(shuffle("uint8", 58, 5).scheduled)).toBe(false);
    expect(split(shuffle("uint8", 58, 5).scheduled, 0)).toBe(true);
    const x = buffer("x", "uint8", [1 << 17]), out = buffer("out", "uint8", [100_003]);
    expect(split(check(mapKernel([x], out, (i) => load(x, at(i && add(i, 8))))).scheduled, 4096)).toBe(true);
  });
});
