/** Weights in blocks of few bits: evaluation against onnxruntime, lowering against evaluation, compiled models against both. */
import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { runCompiled } from "../../test/support/differential.ts";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { runOnnxruntime } from "../../test/support/onnxruntime.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, withoutAnchor, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor, type Random } from "../../test/support/random.ts";
import { present } from "../core/assert.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { OpDef } from "../graph/op.ts";
import { DequantizedMatMul } from "./dequantized-matmul.ts";
import { GatherBlockQuantized, MatMulNBits } from "./microsoft-block-quantized.ts";

const scales = (dims: readonly number[], random: Random): Tensor => fromNumbers("float32", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => 0.01 + 0.1 * random()));
const tolerance = 1e-5;

interface Product { readonly m: number; readonly k: number; readonly n: number; readonly bits: number; readonly block: number; readonly zeros: "none" | "packed" | "float"; readonly bias: boolean; readonly order: boolean }
function nBits(p: Product, seed: number): OperatorCase & { readonly op: OpDef } {
  const random = randomFrom(seed), { m, k, n, bits, block } = p, blocks = Math.ceil(k / block);
  const zeros = p.zeros === "none" ? undefined : p.zeros === "packed" ? randomIntegers("uint8", [n, Math.ceil((blocks * bits) / 8)], 0, 255, random)
    : fromNumbers("float32", [n, blocks], Array.from({ length: n * blocks }, () => 1 + 2 * random()));
  const order = p.order ? fromNumbers("int32", [k], Array.from({ length: k }, () => random.int(blocks))) : undefined;
  const given: readonly (Tensor | undefined)[] = [randomIntegers("uint8", [n, blocks, (block * bits) / 8], 0, 255, random), scales([n, blocks], random), zeros, order, p.bias ? randomTensor([n], random) : undefined];
  return {
    op: MatMulNBits, attributes: { K: k, N: n, bits, block_size: block, accuracy_level: 0 },
    inputs: [{ tensor: randomTensor([2, m, k], random) }, ...given.map((tensor): OperatorInput | undefined => tensor && { tensor, constant: true })],
  };
}
const products: readonly (readonly [string, Product])[] = [
  ["4 bits, one row", { m: 1, k: 64, n: 24, bits: 4, block: 32, zeros: "none", bias: false, order: false }],
  ["4 bits, zero points, a short last block", { m: 5, k: 40, n: 13, bits: 4, block: 16, zeros: "packed", bias: true, order: false }],
  ["4 bits, an odd depth", { m: 3, k: 37, n: 9, bits: 4, block: 16, zeros: "none", bias: false, order: false }],
  ["8 bits", { m: 4, k: 48, n: 8, bits: 8, block: 16, zeros: "none", bias: true, order: false }],
  ["8 bits, zero points", { m: 1, k: 33, n: 17, bits: 8, block: 16, zeros: "packed", bias: false, order: false }],
  ["2 bits", { m: 2, k: 64, n: 10, bits: 2, block: 16, zeros: "none", bias: false, order: false }],
  ["2 bits, zero points", { m: 9, k: 70, n: 16, bits: 2, block: 32, zeros: "packed", bias: false, order: false }],
  ["4 bits, float zero points", { m: 2, k: 32, n: 5, bits: 4, block: 16, zeros: "float", bias: false, order: false }],
  ["4 bits, blocks out of order", { m: 2, k: 32, n: 5, bits: 4, block: 16, zeros: "packed", bias: false, order: true }],
];

/** A case as a model whose constants are initializers. */
function modelOf({ op, attributes = {}, inputs }: OperatorCase, result: Tensor): { readonly model: Uint8Array; readonly feeds: Record<string, Tensor> } {
  const initializers: Record<string, Tensor> = {}, feeds: Record<string, Tensor> = {};
  inputs.forEach((x, i) => { if (x) (x.constant ? initializers : feeds)[`x${i}`] = x.tensor; });
  const spec: ModelSpec = {
    opset: 21, ir: 10, initializers, inputs: Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, { dtype: t.dtype, dims: t.dims }])), outputs: { y: result },
    nodes: [{ type: op.type, domain: op.domain, inputs: inputs.map((x, i) => (x ? `x${i}` : "")), outputs: ["y"], attributes: attributes as Record<string, number> }],
  };
  return { model: modelBytes(spec), feeds };
}

describe("MatMulNBits", () => {
  it.each(products)("%s: evaluation, lowering and the compiled kernel agree, with onnxruntime too", async (_, p) => {
    const c = nBits(p, p.k * 31 + p.n), expected = present(runOperator({ ...c, op: { ...MatMulNBits, lowerable: () => true } }).expected[0], "result");
    expect(operatorDifference(c)).toBeLessThan(tolerance);
    expect(operatorDifference({ ...c, op: { ...withoutAnchor(MatMulNBits), lowerable: () => true } })).toBeLessThan(tolerance);
    const { model, feeds } = modelOf(c, expected);
    expect(difference((await runCompiled(model, feeds, true))["y"], expected)).toBeLessThan(tolerance);
    expect(difference((await runCompiled(model, feeds, false))["y"], expected)).toBeLessThan(tolerance);
    if (p.order && p.zeros === "packed") return;
    expect(difference((await runOnnxruntime(model, feeds))["y"], expected)).toBeLessThan(1e-4);
  });
  it("refuses sizes that do not fit and bits there are not", () => {
    const c = nBits({ m: 1, k: 32, n: 8, bits: 4, block: 16, zeros: "none", bias: false, order: false }, 1);
    expect(() => runOperator({ ...c, attributes: { ...c.attributes, bits: 3 } })).toThrow(/3 bits/);
    expect(() => runOperator({ ...c, attributes: { ...c.attributes, N: 9 } })).toThrow(/elements/);
  });
});

describe("DequantizedMatMul", () => {
  const shapes = [[1, 16, 8], [4, 7, 9], [6, 33, 20], [1, 1, 1], [0, 4, 8], [5, 64, 3]] as const;
  it.each(shapes)("of %i rows, depth %i, %i columns", async (m, k, n) => {
    const random = randomFrom(m * 100 + k), a = randomTensor([m, k], random);
    for (const [low, high, dtype] of [[-8, 7, "int8"], [0, 255, "uint8"], [-128, 127, "int8"]] as const) for (const transB of [0, 1]) for (const block of [3, 4, k]) for (const zeros of [true, false]) {
      const blocks = Math.ceil(k / block), by = transB ? [n, blocks] : [blocks, n];
      const given = [randomIntegers(dtype, transB ? [n, k] : [k, n], low, high, random), scales(by, random), ...(zeros ? [randomIntegers(dtype, by, Math.max(low, -9), 9, random)] : [])];
      const c: OperatorCase = { op: DequantizedMatMul, attributes: { block_size: block, transB }, inputs: [{ tensor: a, shape: ["m", k] }, ...given.map((tensor) => ({ tensor, constant: true }))] };
      expect(operatorDifference(c), `${dtype} ${low} block ${block} transB ${transB}`).toBeLessThan(tolerance);
    }
  });
  it("sees one wrong element", () => {
    const random = randomFrom(3);
    const c: OperatorCase = { op: DequantizedMatMul, attributes: { block_size: 4 }, inputs: [{ tensor: randomTensor([2, 4], random) }, { tensor: randomIntegers("int8", [4, 3], -9, 9, random) }, { tensor: scales([1, 3], random) }] };
    const { expected: [e], actual: [x] } = runOperator(c);
    expect(e && x && difference(perturbed(x, 1), e)).toBeGreaterThan(tolerance);
  });
});

describe("GatherBlockQuantized", () => {
  const tables = [[4, 0, true], [8, 0, true], [4, 0, false], [8, 1, false]] as const;
  it.each(tables)("%i bits, gathered along axis %i, zero points %s", async (bits, axis, zeros) => {
    const random = randomFrom(bits + axis), whole = [6, 5, 32], blocks = [6, 5, 2], per = 8 / bits;
    const c: OperatorCase = {
      op: GatherBlockQuantized, attributes: { bits, block_size: 16, gather_axis: axis, quantize_axis: 2 },
      inputs: [
        { tensor: randomIntegers("uint8", [6, 5, 32 / per], 0, 255, random), constant: true }, { tensor: fromNumbers("int64", [2, 2], [0, -1, 3, 2]) },
        { tensor: scales(blocks, random), constant: true }, zeros ? { tensor: randomIntegers("uint8", [6, 5, Math.ceil(2 / per)], 0, 255, random), constant: true } : undefined,
      ],
    };
    const expected = present(runOperator(c).expected[0], "result");
    expect(expected.dims).toEqual([...whole.slice(0, axis), 2, 2, ...whole.slice(axis + 1)]);
    expect(operatorDifference(c)).toBeLessThan(tolerance);
    const { model, feeds } = modelOf(c, expected);
    expect(difference((await runCompiled(model, feeds, true))["y"], expected)).toBeLessThan(tolerance);
    if (axis === 0) expect(difference((await runOnnxruntime(model, feeds))["y"], expected)).toBeLessThan(tolerance);
  });
});
