/** 64-bit arithmetic narrowed to 32 bits gives the same bits, on values at every edge; and is narrowed where ranges prove it. */
import { describe, expect, test } from "vitest";
import { buffer, dense, mapKernel } from "../../../test/support/check-kernel.ts";
import { layOut, runCompiled, runInterpreted } from "../../../test/support/run-kernel.ts";
import { randomFrom, type Random } from "../../../test/support/random.ts";
import { binary, cast, constant, f32, i32, i64, load, select, unary, type BinaryOp, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { expressionsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { rangeOf, type Range } from "./integer-ranges.ts";
import { legalize } from "./legalize.ts";
import { scheduleLoops } from "../loops/loops.ts";
import { narrowKernel } from "./narrow-integers.ts";

const count = 64;
const bytes = buffer("bytes", "int8", [count]), words = buffer("words", "int32", [count]), wide = buffer("wide", "int64", [count]), small = buffer("small", "int64", [count]);
const edges = [0n, 1n, -1n, 2n ** 31n - 1n, 2n ** 31n, -(2n ** 31n), -(2n ** 31n) - 1n, 2n ** 32n, 2n ** 53n, 2n ** 62n, 2n ** 63n - 1n, -(2n ** 63n), 7n, -127n, 46341n, -65536n];
const smallRange: Range = { low: -40_000, high: 40_000 };
const ranges = (b: Buffer): Range | undefined => (b === small ? smallRange : undefined);

/** Elements of each input, edges among them. */
function fill(random: Random): ReadonlyMap<Buffer, readonly bigint[]> {
  const values = (f: () => bigint): bigint[] => Array.from({ length: count }, f);
  return new Map([
    [bytes, values(() => BigInt(random.int(256) - 128))],
    [words, values(() => BigInt.asIntN(32, random() < 0.5 ? random.pick(edges) : BigInt(random.int(1000) - 500)))],
    [wide, values(() => (random() < 0.7 ? random.pick(edges) : BigInt(random.int(1000) - 500)))],
    [small, values(() => random.pick([-40_000n, 40_000n, 0n, BigInt(random.int(80_000) - 40_000)]))],
  ]);
}
function results(kernel: Kernel, inputs: ReadonlyMap<Buffer, readonly bigint[]>, compiled = false): readonly string[] {
  const run = layOut(kernel, dense, () => 0), before = new Uint8Array(run.bytes), input = new DataView(before.buffer);
  for (const b of kernel.inputs) (inputs.get(b) ?? []).forEach((v, i) => {
    const at = run.places.get(b)?.address ?? 0;
    if (b.dtype === "int8") input.setInt8(at + i, Number(v)); else if (b.dtype === "int32") input.setInt32(at + 4 * i, Number(v), true); else input.setBigInt64(at + 8 * i, v, true);
  });
  const legal = legalize(scheduleLoops(kernel, run.placements), run.placements);
  const { memory } = compiled ? runCompiled(legal, run, before) : { memory: runInterpreted(kernel, run, before) }, view = new DataView(memory.buffer);
  return kernel.outputs.flatMap((b) => {
    const at = run.places.get(b)?.address ?? 0;
    return Array.from({ length: count }, (_, i) => String(b.dtype === "int64" ? view.getBigInt64(at + 8 * i, true) : b.dtype === "int32" ? view.getInt32(at + 4 * i, true) : b.dtype === "float32" ? view.getFloat32(at + 4 * i, true) : view.getUint8(at + i)));
  });
}
/** 64-bit operations left in a kernel. */
function wideOperations(kernel: Kernel): number {
  let n = 0;
  const seen = new Set<Expr>();
  visitStmt(kernel.body, (s) => { for (const e of expressionsOf(s)) visitExpr(e, (x) => { if ((x.kind === "binary" || x.kind === "unary") && x.a.type.scalar === "i64") n++; }, seen); });
  return n;
}
const kernelOf = (dtype: "int64" | "int32" | "float32" | "bool", value: (at: Expr) => Expr): Kernel => mapKernel([bytes, words, wide, small], buffer("out", dtype, [count]), value);

describe("narrowed arithmetic", () => {
  const operations: readonly BinaryOp[] = ["add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor"];
  const leaf = (random: Random, at: Expr): Expr => random.pick([
    () => cast(at, "i64"), () => cast(load(bytes, [at]), "i64"), () => cast(load(words, [at]), "i64"), () => load(wide, [at]), () => load(small, [at]), () => constant(random.pick(edges), i64), () => constant(BigInt(random.int(9) - 4), i64),
  ])();
  const tree = (random: Random, at: Expr, depth: number): Expr => {
    if (depth === 0 || random() < 0.15) return leaf(random, at);
    const next = (): Expr => tree(random, at, depth - 1), kind = random();
    if (kind < 0.1) return unary(random.pick(["neg", "abs"] as const), next());
    if (kind < 0.25) return select(binary(random.pick(["lt", "le", "eq", "ne", "gt", "ge"] as const), next(), next()), next(), next());
    if (kind < 0.35) return cast(cast(next(), "i32"), "i64");
    return binary(random.pick(operations), next(), next());
  };
  test("gives the same bits, whatever the values", () => {
    const random = randomFrom(3);
    let narrower = 0;
    for (let run = 0; run < 400; run++) {
      const kernel = kernelOf(random.pick(["int64", "int32", "float32", "bool"]), (at) => at);
      const [out] = kernel.outputs;
      const value = (at: Expr): Expr => {
        const e = tree(random, at, 3);
        return out?.dtype === "int64" ? e : out?.dtype === "int32" ? cast(e, "i32") : out?.dtype === "float32" ? cast(e, "f32") : binary("lt", e, tree(random, at, 2));
      };
      const built = kernelOf(out?.dtype === "int64" ? "int64" : out?.dtype === "int32" ? "int32" : out?.dtype === "float32" ? "float32" : "bool", value), narrow = narrowKernel(built, ranges);
      const inputs = fill(random);
      const expected = results(built, inputs);
      expect(results(narrow, inputs)).toEqual(expected);
      if (run % 4 === 0) expect(results(narrow, inputs, true)).toEqual(expected);
      if (wideOperations(narrow) < wideOperations(built)) narrower++;
    }
    expect(narrower).toBeGreaterThan(100);
  });

  const at = (f: (at: Expr) => Expr, dtype: "int64" | "int32" | "float32" | "bool" = "int64"): number => wideOperations(narrowKernel(kernelOf(dtype, f), ranges));
  const position = (i: Expr): Expr => cast(i, "i64"), byte = (i: Expr): Expr => cast(load(bytes, [i]), "i64");
  test("happens where ranges prove it, and nowhere else", () => {
    expect(at((i) => binary("add", binary("mul", position(i), constant(1000n, i64)), byte(i)))).toBe(0);
    expect(at((i) => binary("mul", binary("mul", position(i), constant(1_000_000n, i64)), constant(1000n, i64)))).toBe(1);
    expect(at((i) => binary("lt", binary("sub", load(small, [i]), position(i)), constant(5n, i64)), "bool")).toBe(0);
    expect(at((i) => binary("lt", binary("sub", load(wide, [i]), position(i)), constant(5n, i64)), "bool")).toBe(2);
    expect(at((i) => cast(binary("add", load(wide, [i]), position(i)), "i32"), "int32")).toBe(0);
    expect(at((i) => cast(binary("div", load(wide, [i]), constant(3n, i64)), "i32"), "int32")).toBe(1);
    expect(at((i) => cast(binary("add", byte(i), position(i)), "f32"), "float32")).toBe(0);
    expect(at((i) => cast(binary("add", cast(load(words, [i]), "i64"), constant(1n, i64)), "f32"), "float32")).toBe(1);
  });
});

describe("ranges", () => {
  const of = (e: Expr): Range | undefined => rangeOf(e, { buffer: ranges, local: () => undefined });
  const i = { kind: "axis", axis: { name: "i", extent: 10 }, type: i32 } as const satisfies Expr;
  test("hold at the edges of each type", () => {
    expect(of(i)).toEqual({ low: 0, high: 9 });
    expect(of(binary("add", constant(2 ** 31 - 1, i32), i))).toEqual({ low: -(2 ** 31), high: 2 ** 31 - 1 });
    expect(of(binary("add", cast(constant(2 ** 31 - 1, i32), "i64"), cast(i, "i64")))).toEqual({ low: 2 ** 31 - 1, high: 2 ** 31 + 8 });
    expect(of(binary("mul", constant(2n ** 40n, i64), constant(2n ** 40n, i64)))).toBeUndefined();
    expect(of(unary("neg", constant(-(2 ** 31), i32)))).toEqual({ low: -(2 ** 31), high: 2 ** 31 - 1 });
    expect(of(unary("abs", load(small, [i])))).toEqual({ low: 0, high: 40_000 });
    expect(of(binary("rem", load(small, [i]), constant(7n, i64)))).toEqual({ low: -6, high: 6 });
    expect(of(binary("rem", load(wide, [i]), constant(-7n, i64)))).toEqual({ low: -6, high: 6 });
    expect(of(binary("div", cast(i, "i64"), constant(0n, i64)))).toEqual({ low: 0, high: 9 });
    expect(of(binary("and", load(wide, [i]), constant(255n, i64)))).toEqual({ low: 0, high: 255 });
    expect(of(load(wide, [i]))).toBeUndefined();
    expect(of(cast(load(wide, [i]), "f32"))).toBeUndefined();
    expect(of(constant(1.5, f32))).toBeUndefined();
  });
});
