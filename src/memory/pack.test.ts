import { describe, expect, it } from "vitest";
import type { PackSpec } from "../core/pack-spec.ts";
import { fromNumbers, tensor } from "../core/tensor.ts";
import { packedLength, packTensor, packUniformInto } from "./pack.ts";
import { packWinograd, packWinogradQuickly } from "./winograd-kernels.ts";

const count = (...dims: readonly number[]) => fromNumbers("float32", dims, Array.from({ length: dims.reduce((n, d) => n * d, 1) }, (_, i) => i + 1));

describe("packed weights", () => {
  it("panels of a matrix, filled up with zeros", () => {
    const spec: PackSpec = { kind: "panels", groups: 1, k: 2, n: 5, nr: 4, kStep: 1, strideG: 0, strideK: [{ size: 2, stride: 5 }], strideN: 1, as: "float32" };
    expect([...packTensor(count(2, 5), spec).data]).toEqual([1, 2, 3, 4, 6, 7, 8, 9, 5, 0, 0, 0, 10, 0, 0, 0]);
    expect(packedLength([2, 5], spec)).toBe(16);
  });
  it("pairs, less a zero point for each column", () => {
    const spec: PackSpec = { kind: "panels", groups: 1, k: 3, n: 2, nr: 4, kStep: 2, strideG: 0, strideK: [{ size: 3, stride: 2 }], strideN: 1, as: "int16", subtract: [1, 2] };
    expect([...packTensor(tensor("uint8", [3, 2], Uint8Array.of(10, 20, 30, 40, 50, 60)), spec).data]).toEqual([9, 29, 18, 38, 0, 0, 0, 0, 49, 0, 58, 0, 0, 0, 0, 0]);
  });
  it("groups, an offset, padded and backward axes", () => {
    const spec: PackSpec = { kind: "panels", groups: 2, k: 4, n: 1, nr: 1, kStep: 1, strideG: 6, strideK: [{ size: 2, stride: -3 }, { size: 1, stride: 1, padded: 2 }], strideN: 0, as: "float32", offset: 3 };
    expect([...packTensor(count(12), spec).data]).toEqual([4, 0, 1, 0, 10, 0, 7, 0]);
  });
  it("permutations keep the dtype, or change it", () => {
    const spec: PackSpec = { kind: "permute", shape: [3, 2], strides: [1, 3] };
    expect([...packTensor(tensor("int64", [2, 3], BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 6n)), spec).data]).toEqual([1n, 4n, 2n, 5n, 3n, 6n]);
    expect(packTensor(tensor("float16", [1], Uint16Array.of(0x3e00)), { kind: "permute", shape: [1], strides: [1], as: "float32" }).data[0]).toBe(1.5);
  });
  it.each([[4, 16, 3, 8], [4, 13, 5, 8], [2, 7, 2, 4], [2, 1, 1, 1]] as const)("Winograd kernels of one number, F(%i) of %i filters", (tile, m, c, nr) => {
    const spec: PackSpec = { kind: "winograd", tile, m, c, nr }, length = packedLength([m, c, 3, 3], spec);
    const one = fromNumbers("float32", [1], [0.3]), all = fromNumbers("float32", [m, c, 3, 3], new Array<number>(m * c * 9).fill(0.3));
    const packed = (source: typeof one): Float32Array => {
      const out = new Float32Array(length).fill(7);
      packUniformInto(out, source, () => expect.fail("no tensor of all elements is needed"), spec);
      return out;
    };
    expect(packed(one)).toEqual(packTensor(all, spec).data);
    expect(packed(fromNumbers("float32", [1], [0.4]))).not.toEqual(packTensor(all, spec).data);
  });
  it.each([[1, 6, 10, 4], [3, 2, 8, 4], [2, 5, 3, 8]])("panels of one number: %i groups of %i x %i in columns of %i", (groups, k, n, nr) => {
    const spec: PackSpec = { kind: "panels", groups, k, n, nr, kStep: 1, strideG: k * n, strideK: [{ size: k, stride: n }], strideN: 1, as: "float32" };
    const dims = [groups, k, n], one = fromNumbers("float32", [1], [0.3]), all = fromNumbers("float32", dims, new Array<number>(groups * k * n).fill(0.3));
    const out = new Float32Array(packedLength(dims, spec)).fill(7), pairs = new Float32Array(packedLength(dims, { ...spec, kStep: 2 }));
    packUniformInto(out, one, () => expect.fail("no tensor of all elements is needed"), spec);
    expect(out).toEqual(packTensor(all, spec).data);
    packUniformInto(pairs, one, () => all, { ...spec, kStep: 2 });
    expect(pairs).toEqual(packTensor(all, { ...spec, kStep: 2 }).data);
  });
  it.each([[16, 40, 8], [13, 131, 8], [256, 1, 8], [8, 256, 8], [64, 2, 4], [3, 2, 8]])("Winograd kernels of %i filters of %i channels by WebAssembly are the same bits", (m, c, nr) => {
    const spec = { kind: "winograd", tile: 4, m, c, nr } as const, from = Float32Array.from({ length: m * c * 9 }, (_, i) => Math.sin(i * i) * 10 ** ((i % 7) - 3));
    from.set([0, -0, 1e-42, Infinity, NaN, 3e38].slice(0, 6), 0);
    const length = packedLength([m, c, 3, 3], spec), naive = new Float32Array(length).fill(7), quick = new Float32Array(length).fill(8);
    packWinograd(naive, from, spec);
    packWinogradQuickly(quick, from, spec);
    expect(quick).toEqual(naive);
    packWinogradQuickly(quick, from.map((x) => x * 1.0001), spec);
    expect(quick).not.toEqual(naive);
  });
  it("Winograd kernels: a tile times them sums to the convolution", () => {
    const weights = count(1, 1, 3, 3);
    const u = packTensor(weights, { kind: "winograd", tile: 4, m: 1, c: 1, nr: 1 }).data as Float32Array;
    const rows = [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]];
    const ones = rows.map((r) => r.reduce((s, x) => s + x, 0));
    const back = [1, 1, 1, 1, 1, 0];
    let sum = 0;
    for (let i = 0; i < 6; i++) for (let j = 0; j < 6; j++) sum += (back[i] ?? 0) * (back[j] ?? 0) * (ones[i] ?? 0) * (ones[j] ?? 0) * (u[i * 6 + j] ?? 0);
    expect(sum).toBeCloseTo(45, 4);
  });
});
