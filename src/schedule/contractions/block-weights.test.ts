/** Products with quantised weights: the scheduled kernel, interpreted and compiled, against the naive one, memory guarded. */
import { describe, expect, it } from "vitest";
import { contextOf, difference, naiveBody, runKernel, structuredKernel, wholeNumbers, type KernelCase } from "../../../test/support/kernel-case.ts";
import { present } from "../../core/assert.ts";
import { symbol, type Dim } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../../core/tensor.ts";
import { named, type AnchorOperand } from "../../graph/op.ts";
import { load, type Buffer } from "../../kernel/expr.ts";
import type { EpilogueStore } from "../../kernel/structure.ts";
import { DequantizedMatMul } from "../../ops/dequantized-matmul.ts";
import { scheduleStructure } from "./structures.ts";

interface Case { readonly m: number; readonly k: number; readonly n: number; readonly block: number; readonly bits: 4 | 8; readonly dtype: DType; readonly transB: 0 | 1; readonly zeros: "none" | "one" | "each"; readonly symbolic: boolean }

const halves = (dims: readonly number[], seed: number): Tensor => { const t = wholeNumbers(dims, seed, "int8", 9); return fromNumbers("float32", dims, Array.from(toNumbers(t), (v) => v / 2)); };
function integers(dims: readonly number[], seed: number, dtype: DType, bits: 4 | 8): Tensor {
  const least = dtype === "uint8" ? 0 : -(2 ** (bits - 1));
  return fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => least + ((i * 37 + seed * 11 + (i >> 3)) % 2 ** bits)));
}

/** The kernel of a case; numbers are such that float32 sums are exact in every order. */
function kernelOf(c: Case): { readonly kernelCase: KernelCase; readonly out: Buffer } {
  const blocks = Math.ceil(c.k / c.block), by = c.transB ? [c.n, blocks] : [blocks, c.n];
  const zero = c.zeros === "none" ? undefined : c.zeros === "one" ? fromNumbers(c.dtype, by, new Array<number>(sizeOf(by)).fill(3)) : integers(by, 5, c.dtype, 4);
  const tensors = [halves([c.m, c.k], 1), integers(c.transB ? [c.n, c.k] : [c.k, c.n], 2, c.dtype, c.bits), fromNumbers("float32", by, Array.from({ length: sizeOf(by) }, (_, i) => 2 ** -(i % 4))), zero];
  const data = new Map<Buffer, Tensor>(), weights = new Set<Buffer>(), buffers: Buffer[] = [];
  const operands = tensors.map((tensor, i): AnchorOperand | undefined => {
    if (!tensor) return undefined;
    const shape: readonly Dim[] = i === 0 && c.symbolic ? [symbol("m"), c.k] : tensor.dims, buffer: Buffer = { name: `in${i}`, dtype: tensor.dtype, shape };
    data.set(buffer, tensor);
    buffers.push(buffer);
    if (i > 0) weights.add(buffer);
    return { dtype: buffer.dtype, shape, at: (...x) => load(buffer, x), buffer: () => buffer };
  });
  const out: Buffer = { name: "Y", dtype: "float32", shape: [c.symbolic ? symbol("m") : c.m, c.n] };
  const anchor = present(DequantizedMatMul.anchor, "anchor")(named(DequantizedMatMul, operands), { block_size: c.block, transB: c.transB }, { outputs: [out] });
  const store: EpilogueStore = { buffer: out, indices: anchor.indices, value: anchor.element };
  const kernel = structuredKernel("blocks", anchor.structure([store]), buffers, [out], naiveBody(anchor.axes, "acc", anchor.accumulate, [store]));
  return { kernelCase: { kernel, data, weights, dims: () => c.m }, out };
}

function check(c: Case): void {
  const { kernelCase, out } = kernelOf(c), { context, packed } = contextOf(kernelCase);
  const scheduled = present(scheduleStructure(kernelCase.kernel, context), "schedule");
  const expected = present(runKernel(kernelCase, kernelCase.kernel).get(out), "result");
  for (const engine of ["interpreter", "wasm"] as const)
    expect(difference("float32", expected, present(runKernel(kernelCase, scheduled, packed, engine).get(out), "result")), `${engine} ${JSON.stringify(c)}`).toBe(0);
}

const rows = [1, 3, 4, 7, 16, 21];
describe.each([[8, "int8"], [8, "uint8"], [4, "int8"], [4, "uint8"]] as const)("weights of %i bits in %s", (bits, dtype) => {
  it.each(rows)("%i rows", (m) => {
    for (const [k, n, block] of [[8, 8, 4], [13, 11, 4], [7, 3, 7], [1, 1, 1], [20, 17, 6], [9, 9, 3], [10, 24, 5]] as const) for (const zeros of ["none", "one", "each"] as const)
      check({ m, k, n, block, bits, dtype, transB: m % 2 === 0 ? 0 : 1, zeros, symbolic: (m + k) % 3 === 0 });
  });
  it("packs 4 bits into half a byte", () => {
    const { kernelCase } = kernelOf({ m: 2, k: 16, n: 8, block: 8, bits, dtype, transB: 0, zeros: "one", symbolic: false }), { context, packed } = contextOf(kernelCase);
    scheduleStructure(kernelCase.kernel, context);
    const [first] = [...packed.values()];
    expect(first?.data.length).toBe(bits === 4 ? 64 : 128);
  });
});

it("the comparison sees one wrong weight", () => {
  const c: Case = { m: 2, k: 8, n: 8, block: 4, bits: 4, dtype: "int8", transB: 0, zeros: "none", symbolic: false };
  const { kernelCase, out } = kernelOf(c), { context, packed } = contextOf(kernelCase), scheduled = present(scheduleStructure(kernelCase.kernel, context), "schedule");
  const wrong = new Map([...packed].map(([b, t], i): [Buffer, Tensor] => [b, i === 0 ? fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (v, j) => (j === 3 ? v ^ 1 : v))) : t]));
  const run = (extra: ReadonlyMap<Buffer, Tensor>): Uint8Array => present(runKernel(kernelCase, scheduled, extra).get(out), "result");
  expect(difference("float32", run(packed), run(wrong))).toBeGreaterThan(0);
});
