/** Products whose right operand stays in float16: the scheduled kernel, interpreted and compiled, against the naive one, bit for bit. */
import { describe, expect, it } from "vitest";
import { contextOf, difference, indexOf, naiveBody, runKernel, structuredKernel, wholeNumbers, type KernelCase } from "../../../test/support/kernel-case.ts";
import { present } from "../../core/assert.ts";
import { symbol } from "../../core/dim.ts";
import { toFloat16 } from "../../core/float16.ts";
import { fromNumbers, toNumbers } from "../../core/tensor.ts";
import { constant, f32, load, local, mul, type Axis, type Buffer } from "../../kernel/expr.ts";
import type { EpilogueStore, MatMulStructure } from "../../kernel/structure.ts";
import { scheduleStructure } from "./structures.ts";

interface Case { readonly m: number; readonly k: number; readonly n: number; readonly symbolic: boolean; readonly unit: number; readonly transposed: boolean }

/** Numbers are such that float32 sums are exact in every order. */
function kernelOf(c: Case): { readonly kernelCase: KernelCase; readonly out: Buffer } {
  const rows = c.symbolic ? symbol("m") : c.m;
  const m: Axis = { name: "m", extent: rows }, n: Axis = { name: "n", extent: c.n }, k: Axis = { name: "k", extent: c.k };
  const a: Buffer = { name: "A", dtype: "float32", shape: [rows, c.k] }, b: Buffer = { name: "B", dtype: "float32", shape: c.transposed ? [c.n, c.k] : [c.k, c.n] }, out: Buffer = { name: "Y", dtype: "float32", shape: [rows, c.n] };
  const left = load(a, indexOf(m, k)), right = load(b, c.transposed ? indexOf(n, k) : indexOf(k, n)), store: EpilogueStore = { buffer: out, indices: indexOf(m, n), value: local("acc", f32) };
  const structure: MatMulStructure = { kind: "matmul", batch: [], m, n, k, a: left, b: right, accumulator: { name: "acc", type: f32 }, stores: [store] };
  const body = naiveBody([m, n], "acc", { kind: "reduce", op: "add", axes: [k], init: constant(0, f32), body: mul(left, right), type: f32 }, [store]);
  const whole = wholeNumbers(c.transposed ? [c.n, c.k] : [c.k, c.n], 2);
  const data = new Map([[a, wholeNumbers([c.m, c.k], 1)], [b, fromNumbers("float32", whole.dims, Array.from(toNumbers(whole), (v) => v * c.unit))]]);
  return { kernelCase: { kernel: structuredKernel("halves", structure, [a, b], [out], body), data, weights: new Set([b]), dims: () => c.m }, out };
}

function check(c: Case): void {
  const { kernelCase, out } = kernelOf(c), { context, packed } = contextOf(kernelCase);
  const scheduled = present(scheduleStructure(kernelCase.kernel, { ...context, weight: (b) => { const w = context.weight(b); return w && { ...w, stored: { as: "float16", resident: true } }; } }), "schedule");
  expect([...packed.values()].map((t) => t.dtype)).toEqual(["float16"]);
  const expected = present(runKernel(kernelCase, kernelCase.kernel).get(out), "result");
  expect(expected.some((x) => x !== 0)).toBe(true);
  for (const engine of ["interpreter", "wasm"] as const)
    expect(difference("float32", expected, present(runKernel(kernelCase, scheduled, packed, engine).get(out), "result")), `${engine} ${JSON.stringify(c)}`).toBe(0);
}

describe("a weight in float16", () => {
  // The least normal number is 2^-14: products in units of 2^-24 are of denormals.
  it.each([1, 3, 4, 7, 8, 21])("%i rows", (m) => {
    for (const [k, n] of [[1, 8], [13, 17], [5, 24], [32, 41]] as const) for (const unit of [1, 2 ** -24, 2 ** 8])
      check({ m, k, n, symbolic: (m + k) % 3 === 0, unit, transposed: (m + n) % 2 === 0 });
  });

  it("is exact for every finite float16", () => {
    const bits = Array.from({ length: 2 ** 16 }, (_, i) => i).filter((i) => (i & 0x7c00) !== 0x7c00);
    const { kernelCase, out } = kernelOf({ m: 1, k: 1, n: bits.length, symbolic: false, unit: 1, transposed: false });
    const values = fromNumbers("float32", [1, bits.length], toNumbers({ dtype: "float16", dims: [bits.length], data: Uint16Array.from(bits) }));
    expect(Array.from(toNumbers(values), toFloat16)).toEqual(bits);
    const own: KernelCase = { ...kernelCase, data: new Map([...kernelCase.data].map(([b, t]) => [b, b.name === "B" ? values : fromNumbers("float32", t.dims, [1])])) };
    const { context, packed } = contextOf(own);
    const scheduled = present(scheduleStructure(own.kernel, { ...context, weight: (b) => { const w = context.weight(b); return w && { ...w, stored: { as: "float16", resident: true } }; } }), "schedule");
    const result = present(runKernel(own, scheduled, packed, "wasm").get(out), "result");
    // The sum starts from +0, which -0 does not change.
    expect(difference("float32", result, present(runKernel(own, own.kernel).get(out), "result"))).toBe(0);
  });
});
