import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import { symbol, type Dim } from "../../core/dim.ts";
import { add, binary, constant, f32, load, local, max, mul, select, unary, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import type { EpilogueStore, MatMulStructure } from "../../kernel/structure.ts";
import { contextOf, difference, indexOf, naiveBody, runKernel, structuredKernel, wholeNumbers, type KernelCase } from "../../../test/support/kernel-case.ts";
import { scheduleStructure } from "./structures.ts";

interface Options {
  readonly m: number; readonly n: number; readonly k: number;
  readonly batch?: readonly number[];
  /** b also has the batch axes. */
  readonly batchedB?: boolean;
  readonly symbolic?: readonly ("m" | "n" | "k")[];
  readonly weight?: boolean;
  readonly aStrides?: "transposed";
  readonly bStrides?: "transposed";
  readonly epilogue?: "plain" | "bias-relu-residual" | "sigmoid" | "row-scale" | "transposed-store" | "gather";
  /** Reads a through int8 with a scale. */
  readonly dequantised?: boolean;
}

const acc = local("acc", f32);

function matmulCase(o: Options): { c: KernelCase; out: Buffer } {
  const size = (name: "m" | "n" | "k"): Dim => (o.symbolic?.includes(name) ? symbol(name) : o[name]);
  const batch = (o.batch ?? []).map((extent, i): Axis => ({ name: `b${i}`, extent }));
  const m: Axis = { name: "m", extent: size("m") }, n: Axis = { name: "n", extent: size("n") }, k: Axis = { name: "k", extent: size("k") };
  const dims = o.batch ?? [];
  const a: Buffer = { name: "A", dtype: o.dequantised ? "int8" : "float32", shape: [...dims, size("m"), size("k")] };
  const b: Buffer = { name: "B", dtype: "float32", shape: [...(o.batchedB ? dims : []), size("k"), size("n")] };
  const out: Buffer = { name: "Y", dtype: "float32", shape: o.epilogue === "transposed-store" ? [...dims, size("n"), size("m")] : [...dims, size("m"), size("n")] };
  const bias: Buffer = { name: "bias", dtype: "float32", shape: [size("n")] };
  const residual: Buffer = { name: "R", dtype: "float32", shape: [...dims, size("m"), size("n")] };
  const scale: Buffer = { name: "S", dtype: "float32", shape: [...dims, size("m")] };
  const table: Buffer = { name: "T", dtype: "float32", shape: [7] };
  const picks: Buffer = { name: "P", dtype: "int32", shape: [size("n")] };
  const at = indexOf(...batch, m, n);
  const value = ((): Expr => {
    switch (o.epilogue) {
      case "bias-relu-residual": return max(add(add(acc, load(bias, indexOf(n))), load(residual, at)), constant(0, f32));
      case "sigmoid": return mul(acc, binary("div", constant(1, f32), add(unary("exp", unary("neg", acc)), 1)));
      case "row-scale": return select(binary("lt", acc, constant(0, f32)), mul(acc, load(scale, indexOf(...batch, m))), acc);
      case "gather": return add(acc, load(table, [load(picks, indexOf(n))]));
      default: return acc;
    }
  })();
  const store: EpilogueStore = { buffer: out, indices: o.epilogue === "transposed-store" ? indexOf(...batch, n, m) : at, value };
  const read = load(a, indexOf(...batch, m, k));
  const left = o.dequantised ? mul({ kind: "cast", a: read, type: f32 }, 0.5) : read;
  const right = load(b, indexOf(...(o.batchedB ? batch : []), k, n));
  const structure: MatMulStructure = { kind: "matmul", batch, m, n, k, a: left, b: right, accumulator: { name: "acc", type: f32 }, stores: [store] };
  const body = naiveBody([...batch, m, n], "acc", { kind: "reduce", op: "add", axes: [k], init: constant(0, f32), body: mul(left, right), type: f32 }, [store]);
  const extra = o.epilogue === "bias-relu-residual" ? [bias, residual] : o.epilogue === "row-scale" ? [scale] : o.epilogue === "gather" ? [table, picks] : [];
  const kernel = structuredKernel("mm", structure, [a, b, ...extra], [out], body);
  const bdims = o.batchedB ? dims : [];
  const data = new Map<Buffer, ReturnType<typeof wholeNumbers>>([
    [a, wholeNumbers([...dims, o.m, o.k], 1, a.dtype === "int8" ? "int8" : "float32")], [b, wholeNumbers([...bdims, o.k, o.n], 2)],
    [bias, wholeNumbers([o.n], 3)], [residual, wholeNumbers([...dims, o.m, o.n], 4)], [scale, wholeNumbers([...dims, o.m], 5)], [table, wholeNumbers([7], 6)],
    [picks, { dtype: "int32", dims: [o.n], data: Int32Array.from({ length: o.n }, (_, i) => (i * 3) % 7) }],
  ]);
  const layouts = new Map<Buffer, Layout>();
  const transposed = (x: Buffer): Layout => {
    const rows = x.shape[x.shape.length - 2] ?? 1, cols = x.shape[x.shape.length - 1] ?? 1;
    if (typeof rows !== "number" || typeof cols !== "number") return { strides: [1, rows], offset: 0 };
    const outer: number[] = [];
    let total = rows * cols;
    for (const d of [...x.shape.slice(0, -2)].reverse()) { outer.unshift(total); total *= Number(d); }
    return { strides: [...outer, 1, rows], offset: 0 };
  };
  if (o.aStrides) layouts.set(a, transposed(a));
  if (o.bStrides) layouts.set(b, transposed(b));
  const sizes: Record<string, number> = { m: o.m, n: o.n, k: o.k };
  return { c: { kernel, data, weights: o.weight ? new Set([b]) : new Set(), layouts, dims: (s) => sizes[s] ?? 0 }, out };
}

function check(o: Options): void {
  const { c, out } = matmulCase(o);
  const { context, packed } = contextOf(c);
  const scheduled = present(scheduleStructure(c.kernel, context), "schedule");
  expect(scheduled.structure).toBeUndefined();
  const expected = present(runKernel(c, c.kernel).get(out), "result"), actual = present(runKernel(c, scheduled, packed).get(out), "result");
  expect(difference("float32", expected, actual)).toBe(0);
  const compiled = present(runKernel(c, scheduled, packed, "wasm").get(out), "result");
  expect(difference("float32", expected, compiled)).toBeLessThanOrEqual(o.epilogue === "sigmoid" ? 1e-6 : 0);
}

const shapes = [[1, 1, 1], [1, 33, 5], [4, 8, 16], [5, 7, 3], [13, 11, 9], [3, 40, 2], [2, 19, 4], [6, 3, 5], [8, 4, 7], [9, 12, 0], [0, 5, 3], [70, 9, 6]] as const;

describe("matrix products", () => {
  for (const [m, n, k] of shapes) {
    it(`${m}x${k}x${n}, packed and not, static and symbolic rows`, () => {
      for (const weight of [true, false]) for (const symbolic of [[], ["m"]] as const) check({ m, n, k, weight, symbolic });
    });
  }
  it("a single row takes many columns at a time", () => {
    for (const n of [8, 9, 15, 16, 17, 24, 25, 47, 53]) for (const batch of [[], [3]]) check({ m: 1, n, k: 5, weight: true, batch, epilogue: "bias-relu-residual" });
    for (const symbolic of [["m"], ["m", "n"]] as const) for (const m of [1, 5]) check({ m, n: 53, k: 5, symbolic, weight: !(symbolic as readonly string[]).includes("n") });
    check({ m: 1, n: 23, k: 3, weight: true, batch: [2], batchedB: true });
    check({ m: 1, n: 37, k: 4, weight: true, bStrides: "transposed" });
  });
  it("depths where two steps share a loop, even and odd", () => {
    for (const k of [47, 48, 49, 51]) for (const m of [1, 6]) for (const symbolic of [[], ["m"], ["m", "k"]] as const) check({ m, n: 9, k, symbolic, weight: !(symbolic as readonly string[]).includes("k") });
    for (const m of [1, 6]) for (const k of [48, 49]) check({ m, n: 9, k, aStrides: "transposed", weight: true });
  });
  it("all sizes symbolic", () => {
    for (const [m, n, k] of shapes) {
      check({ m, n, k, symbolic: ["m", "n", "k"] });
      check({ m, n, k, symbolic: ["m", "n", "k"], bStrides: "transposed" });
    }
  });
  it("transposed operands", () => {
    for (const [m, n, k] of [[5, 7, 3], [8, 16, 12], [13, 11, 9]] as const) for (const weight of [true, false]) {
      check({ m, n, k, aStrides: "transposed", weight });
      check({ m, n, k, bStrides: "transposed", weight });
      check({ m, n, k, aStrides: "transposed", bStrides: "transposed", batch: [2], batchedB: true, weight });
    }
  });
  it("epilogues, unrolled and looped", () => {
    for (const epilogue of ["bias-relu-residual", "sigmoid", "row-scale", "transposed-store", "gather"] as const)
      for (const [m, n, k] of [[5, 7, 3], [1, 37, 4], [9, 16, 5]] as const)
        for (const symbolic of [[], ["m"], ["m", "n"]] as const) for (const batch of [[], [3], [2, 3]]) check({ m, n, k, epilogue, symbolic, batch, weight: !(symbolic as readonly string[]).includes("n") });
  });
  it("batches of constant and of computed right operands", () => {
    for (const batch of [[3], [2, 2], [1, 3], [2, 1]]) for (const batchedB of [true, false]) for (const weight of [true, false]) check({ m: 5, n: 9, k: 4, batch, batchedB, weight });
  });
  it("computed left operands are gathered", () => {
    for (const m of [1, 7, 66]) check({ m, n: 9, k: 5, dequantised: true, weight: true });
    check({ m: 7, n: 9, k: 5, dequantised: true, weight: true, symbolic: ["m"], batch: [2] });
  });
  it("a wrong weight is noticed", () => {
    const { c, out } = matmulCase({ m: 5, n: 9, k: 4, weight: true });
    const { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule");
    const [buffer, tensor] = present([...packed][0], "packed weight");
    const spoiled = Float32Array.from(tensor.data as Float32Array);
    spoiled[3] = (spoiled[3] ?? 0) + 1;
    const expected = present(runKernel(c, c.kernel).get(out), "result"), actual = present(runKernel(c, scheduled, new Map([[buffer, { ...tensor, data: spoiled }]])).get(out), "result");
    expect(difference("float32", expected, actual)).toBeGreaterThan(0);
  });
});
