import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, withoutAnchor, type OperatorCase } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { OpDef } from "../graph/op.ts";
import { FlashAttention } from "./flash-attention.ts";
import { Gemm } from "./gemm.ts";
import { MatMulInteger, QLinearMatMul } from "./integer-matmul.ts";
import { MatMul } from "./matmul.ts";

const seeds = Array.from({ length: 24 }, (_, i) => i);
const forms = [["anchor", (op: OpDef) => op], ["lower", withoutAnchor]] as const;
/** Every size symbolic: `letters` names them, so that equal sizes share a name. */
const symbolic = (tensor: Tensor, letters: readonly string[]): { tensor: Tensor; shape: string[] } => ({ tensor, shape: [...letters] });

function matMulCase(seed: number): OperatorCase {
  const random = randomFrom(seed), size = (): number => random.pick([1, 2, 3, 5, 7]);
  const [m, k, n, s, t] = [size(), size(), size(), size(), size()];
  const a = random.pick([{ dims: [k], names: ["k"] }, { dims: [m, k], names: ["m", "k"] }, { dims: [s, m, k], names: ["s", "m", "k"] }, { dims: [t, s, m, k], names: ["t", "s", "m", "k"] }]);
  const b = random.pick([{ dims: [k], names: ["k"] }, { dims: [k, n], names: ["k", "n"] }, { dims: [s, k, n], names: ["s", "k", "n"] }, { dims: [t, 1, k, n], names: ["t", "one", "k", "n"] }]);
  return { op: MatMul, inputs: [symbolic(randomTensor(a.dims, random), a.names), symbolic(randomTensor(b.dims, random), b.names)] };
}

describe.each(forms)("%s equals evaluation", (_, form) => {
  it.each(seeds)("MatMul of any rank, seed %i", (seed) => {
    const c = matMulCase(seed);
    expect(operatorDifference({ ...c, op: form(c.op) })).toBeLessThan(2e-6);
  });
  it.each(["int32", "int64", "uint32", "float64"] as const)("MatMul of %s", (dtype) => {
    const random = randomFrom(5);
    const inputs = [randomIntegers(dtype, [3, 4], 0, 2 ** 20, random), randomIntegers(dtype, [4, 2], 0, 2 ** 20, random)].map((tensor) => ({ tensor }));
    expect(operatorDifference({ op: form(MatMul), inputs })).toBe(0);
  });
  it.each(seeds)("Gemm, seed %i", (seed) => {
    const random = randomFrom(seed), [m, k, n] = [1 + random.int(4), 1 + random.int(4), 1 + random.int(4)];
    const transA = random.int(2), transB = random.int(2), c = random.int(4) ? random.pick([[], [n], [m, 1], [1, n], [m, n]]) : undefined;
    expect(operatorDifference({
      op: form(Gemm), attributes: { transA, transB, alpha: random.pick([1, 0.3]), beta: random.pick([1, 0, -2]) },
      inputs: [{ tensor: randomTensor(transA ? [k, m] : [m, k], random) }, { tensor: randomTensor(transB ? [n, k] : [k, n], random) }, c && { tensor: randomTensor(c, random) }],
    })).toBeLessThan(1e-5);
  });
  it.each(seeds)("integer products exactly, seed %i", (seed) => {
    const random = randomFrom(seed), [m, k, n] = [1 + random.int(4), 1 + random.int(9), 1 + random.int(4)];
    const a = { tensor: randomIntegers("uint8", [2, m, k], 0, 255, random) }, b = { tensor: randomIntegers("int8", [k, n], -128, 127, random), constant: true };
    const aZero = { tensor: randomIntegers("uint8", random.pick([[], [m], [2, m, 1]]), 0, 255, random) };
    const bZero = { tensor: randomIntegers("int8", random.pick([[], [n]]), -9, 9, random) };
    expect(operatorDifference({ op: form(MatMulInteger), inputs: [a, b, random.int(3) ? aZero : undefined, random.int(3) ? bZero : undefined] })).toBe(0);
    const scale = (dims: readonly number[]): { tensor: Tensor } => ({ tensor: fromNumbers("float32", dims, Array.from({ length: dims.reduce((p, d) => p * d, 1) }, () => random() * 0.05 + 0.001)) });
    expect(operatorDifference({
      op: form(QLinearMatMul), inputs: [a, scale(aZero.tensor.dims), aZero, b, scale(bZero.tensor.dims), bZero, scale([]), { tensor: randomIntegers("uint8", [], 0, 255, random) }],
    })).toBe(0);
  });
  it.each(seeds)("FlashAttention, seed %i", (seed) => {
    const random = randomFrom(seed), rank = 2 + random.int(3), keyHeads = 1 + random.int(2), heads = keyHeads * (1 + random.int(2));
    const [batch, s, t, d, e] = [1 + random.int(2), 1 + random.int(4), 1 + random.int(5), 1 + random.int(4), 1 + random.int(4)];
    const last = <T>(four: readonly T[]): T[] => four.slice(4 - rank);
    const h = rank === 4 ? heads : 1, kh = rank === 4 ? keyHeads : 1;
    const mask = random.int(3) ? random.pick([[s, t], [1, t], [t]]) : undefined;
    expect(operatorDifference({
      op: form(FlashAttention), attributes: { scale: random.pick([1, 0.35]), scale_position: random.pick(["pre", "post"]) },
      inputs: [
        { tensor: randomTensor(last([batch, h, s, d]), random), shape: last(["batch", h, "s", d]) },
        { tensor: randomTensor(last([batch, kh, t, d]), random), shape: last(["batch", kh, "t", d]) },
        { tensor: randomTensor(last([batch, kh, t, e]), random), shape: last(["batch", kh, "t", e]) },
        mask && { tensor: randomTensor(mask, random) },
      ],
    })).toBeLessThan(2e-5);
  });
});

it("sees one wrong element", () => {
  const { expected, actual } = runOperator(matMulCase(2));
  const [e] = expected, [a] = actual;
  expect(e && a && difference(perturbed(a, 1e-3), e)).toBeGreaterThan(2e-6);
});

it("attention over a fully masked row gives what softmax gives: not a number", () => {
  const random = randomFrom(1), mask = fromNumbers("float32", [2, 3], [-Infinity, -Infinity, -Infinity, 0, 0, 0]);
  const c: OperatorCase = {
    op: FlashAttention,
    inputs: [{ tensor: randomTensor([2, 4], random) }, { tensor: randomTensor([3, 4], random) }, { tensor: randomTensor([3, 1], random) }, { tensor: mask }],
  };
  const { expected, actual } = runOperator(c);
  expect(Number.isNaN(Number(expected[0]?.data[0]))).toBe(true);
  expect(Number.isNaN(Number(actual[0]?.data[0]))).toBe(true);
  expect(Number.isFinite(Number(actual[0]?.data[1]))).toBe(true);
});
