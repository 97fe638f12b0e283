import { setFlagsFromString } from "node:v8";
import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import { dimMul, evaluateDim, symbol, type Dim } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../../core/tensor.ts";
import { named, type AnchorOperand, type OpDef } from "../../graph/op.ts";
import { load, type Buffer } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import type { EpilogueStore } from "../../kernel/structure.ts";
import { ConvInteger, QLinearConv } from "../../ops/integer-convolution.ts";
import { MatMulInteger, QLinearMatMul } from "../../ops/integer-matmul.ts";
import { contextOf, difference, naiveBody, runKernel, structuredKernel, wholeNumbers, type KernelCase } from "../../../test/support/kernel-case.ts";
import { scheduleStructure } from "./structures.ts";

/** An operand by name: contents, and whether they are known when compiling. */
interface Input { readonly tensor: Tensor; readonly constant?: boolean; readonly shape?: readonly Dim[] }

// Node 20 knows the relaxed instructions only when asked; newer versions ignore the flag.
setFlagsFromString("--experimental-wasm-relaxed-simd");
// Its quick code doubles dot products of bytes (backends/wasm/load.ts looks for that).
setFlagsFromString("--no-liftoff");

const bytes = (dims: readonly number[], seed: number, dtype: DType = "uint8"): Tensor => wholeNumbers(dims, seed, dtype, 200);
const scalar = (dtype: DType, value: number): Tensor => ({ dtype, dims: [], data: dtype === "float32" ? Float32Array.of(value) : dtype === "uint8" ? Uint8Array.of(value) : Int8Array.of(value) });
const fixed = (tensor: Tensor): Input => ({ tensor, constant: true });

function channelsLast(shape: readonly Dim[]): Layout {
  const [, c = 1, ...spatial] = shape;
  const strides: Dim[] = [];
  let total: Dim = c;
  for (const d of [...spatial].reverse()) { strides.unshift(total); total = dimMul(total, d); }
  return { strides: [total, 1, ...strides], offset: 0 };
}

function integerCase(op: OpDef, inputs: readonly (Input | undefined)[], attributes: Readonly<Record<string, unknown>>, sizes: Readonly<Record<string, number>>, last: boolean): { c: KernelCase; out: Buffer } {
  const data = new Map<Buffer, Tensor>(), weights = new Set<Buffer>(), buffers: Buffer[] = [];
  const operands = inputs.map((input, i): AnchorOperand | undefined => {
    if (!input) return undefined;
    const { tensor } = input;
    const buffer: Buffer = { name: `in${i}`, dtype: tensor.dtype, shape: input.shape ?? tensor.dims };
    data.set(buffer, tensor);
    buffers.push(buffer);
    if (input.constant) weights.add(buffer);
    return { dtype: buffer.dtype, shape: buffer.shape, ...(input.constant ? { constant: tensor } : {}), at: (...x) => load(buffer, x), buffer: () => buffer };
  });
  const context = { fail: (code: string, message: string): never => { throw new Error(`${code} ${message}`); }, fresh: (h: string) => symbol(h), outputCount: 1 };
  const type = present(op.infer(named(op, operands), attributes as never, context)[0], "type");
  const anchor = present(op.anchor, "anchor")(named(op, operands), attributes as never, { outputs: [type] });
  const out: Buffer = { name: "Y", dtype: type.dtype, shape: type.shape };
  const store: EpilogueStore = { buffer: out, indices: anchor.indices, value: anchor.element };
  const kernel = structuredKernel("int", anchor.structure([store]), buffers, [out], naiveBody(anchor.axes, "acc", anchor.accumulate, [store]));
  const layouts = new Map<Buffer, Layout>();
  const x = present(buffers[0], "input");
  if (last && x.shape.length > 2) layouts.set(x, channelsLast(x.shape)).set(out, channelsLast(out.shape));
  return { c: { kernel, data, weights, layouts, dims: (s) => present(sizes[s], s) }, out };
}

function check(op: OpDef, inputs: readonly (Input | undefined)[], attributes: Readonly<Record<string, unknown>> = {}, sizes: Readonly<Record<string, number>> = {}, bits?: 7): void {
  for (const last of [false, true]) {
    const { c, out } = integerCase(op, inputs, attributes, sizes, last);
    const { context, packed, quads } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule");
    const expected = present(runKernel(c, c.kernel).get(out), "result"), actual = present(runKernel(c, scheduled, packed).get(out), "result");
    expect(expected.length).toBe(out.shape.reduce<number>((n, d) => n * evaluateDim(d, (s) => present(sizes[s], s)), out.dtype === "int32" ? 4 : 1));
    expect(difference(out.dtype, expected, actual), `${op.type} ${JSON.stringify(inputs.map((i) => i?.tensor.dims))}`).toBe(0);
    const compiled = present(runKernel(c, scheduled, packed, "wasm").get(out), "result");
    expect(difference(out.dtype, expected, compiled), `${op.type} compiled`).toBe(0);
    if (bits === 7) expect(quads.size, `${op.type} has quads`).toBe(1);
    if (quads.size === 0) continue;
    const held = new Map([...packed, ...quads]);
    for (const engine of ["interpreter", "wasm"] as const) {
      expect(difference(out.dtype, expected, present(runKernel(c, scheduled, held, engine, true).get(out), "result")), `${op.type} relaxed, ${engine}`).toBe(0);
      // With weights as other engines hold them, it gives something else: this is the way that was taken.
      if (bits === 7) expect(difference(out.dtype, expected, present(runKernel(c, scheduled, packed, "wasm", true).get(out), "result"))).not.toBe(0);
    }
  }
}

describe("integer products", () => {
  it("MatMulInteger: constant and computed right operands, odd depths", () => {
    for (const [m, k, n] of [[1, 7, 33], [5, 8, 9], [13, 3, 4], [4, 1, 1], [70, 10, 8]] as const) for (const constant of [true, false]) for (const bType of ["int8", "uint8"] as const) {
      const a = { tensor: bytes([m, k], 1) }, b: Input = { tensor: bytes([k, n], 2, bType), constant };
      check(MatMulInteger, [a, b, { tensor: scalar("uint8", 131) }, fixed(scalar(bType, 3))]);
      check(MatMulInteger, [{ tensor: a.tensor, shape: [symbol("m"), k] }, b, undefined, undefined], {}, { m });
    }
  });
  it("MatMulInteger: a zero point a column, batches", () => {
    check(MatMulInteger, [{ tensor: bytes([3, 6], 1) }, fixed(bytes([6, 5], 2)), undefined, fixed(bytes([5], 3))]);
    check(MatMulInteger, [{ tensor: bytes([2, 3, 5], 1) }, { tensor: bytes([2, 5, 9], 2), constant: true }, undefined, undefined]);
  });
  it("QLinearMatMul requantises in vectors and tails alike", () => {
    for (const n of [3, 8, 21]) check(QLinearMatMul, [{ tensor: bytes([6, 9], 1) }, fixed(scalar("float32", 0.02)), fixed(scalar("uint8", 120)), fixed(bytes([9, n], 2, "int8")), fixed(scalar("float32", 0.01)), fixed(scalar("int8", 0)), fixed(scalar("float32", 0.3)), fixed(scalar("uint8", 100))]);
  });
});

interface Conv { readonly bits?: 7; readonly x: readonly number[]; readonly w: readonly number[]; readonly group?: number; readonly pads?: readonly number[]; readonly strides?: readonly number[]; readonly dilations?: readonly number[] }

function checkConv(o: Conv): void {
  const m = o.w[0] ?? 1;
  const attributes = { auto_pad: "NOTSET", group: o.group ?? 1, strides: o.strides ?? o.x.slice(2).map(() => 1), dilations: o.dilations ?? o.x.slice(2).map(() => 1), pads: o.pads ?? o.x.slice(2).flatMap(() => [0, 0]), kernel_shape: o.w.slice(2) };
  for (const wType of ["int8", "uint8"] as const) {
    const x = { tensor: bytes(o.x, 1) }, w = fixed(o.bits ? wholeNumbers(o.w, 2, wType, 128) : bytes(o.w, 2, wType));
    check(ConvInteger, [x, w, { tensor: scalar("uint8", 121) }, o.bits && wType === "uint8" ? fixed(scalar("uint8", 128)) : undefined], attributes, {}, o.bits);
    const bias: Tensor = { dtype: "int32", dims: [m], data: Int32Array.from({ length: m }, (_, i) => i * 31 - 50) };
    const scales: Tensor = { dtype: "float32", dims: [m], data: Float32Array.from({ length: m }, (_, i) => 0.01 + i * 0.001) };
    const zeros = o.bits ? scalar(wType, wType === "int8" ? 1 : 120) : bytes([m], 5, wType);
    check(QLinearConv, [x, fixed(scalar("float32", 0.02)), fixed(scalar("uint8", 121)), w, fixed(scales), fixed(zeros), fixed(scalar("float32", 0.4)), fixed(scalar("uint8", 7)), fixed(bias)], attributes, {}, o.bits);
  }
}

/** Every column has the ends of 7 bits somewhere from -128 to 127, or from 0 to 255, `down` by so much a column; rows have the ends of 8 bits. */
function extremes(m: number, k: number, n: number, aType: DType, bType: DType, down = 0): { readonly a: Tensor; readonly b: Tensor } {
  const least = (dtype: DType): number => (dtype === "int8" ? -128 : 0), noise = toNumbers(bytes([m, k], 4, aType));
  const element = (i: number, j: number): number => least(bType) + Math.floor((1 - down) * ((j * 37) % 129)) + (i % 3 === 0 ? 127 : i % 3 === 1 ? 0 : (i * 53 + j) % 128);
  const end = (at: number, i: number, j: number): number => ((i + j) % 4 < 2 ? least(aType) + ((i + j) % 4 === 0 ? 255 : 0) : noise[at] ?? 0);
  const a = Array.from({ length: m * k }, (_, at) => end(at, Math.floor(at / k), at % k)), b = Array.from({ length: k * n }, (_, at) => element(Math.floor(at / n), at % n));
  return { a: fromNumbers(aType, [m, k], a), b: fromNumbers(bType, [k, n], b) };
}

describe("integer products by dot products of bytes", () => {
  it("MatMulInteger: extremes of both operands, zero points at both ends, rows and columns left over", () => {
    for (const [m, k, n] of [[1, 8, 33], [5, 16, 9], [13, 20, 40], [4, 64, 24]] as const) for (const aType of ["uint8", "int8"] as const) for (const bType of ["int8", "uint8"] as const) {
      const { a, b } = extremes(m, k, n, aType, bType), ends = (t: DType): readonly number[] => (t === "int8" ? [-128, 127, 0] : [0, 255]);
      // The weights less their zero point must still fit int8.
      const middle = bType === "int8" ? 0 : 128;
      for (const zero of ends(aType)) check(MatMulInteger, [{ tensor: a }, fixed(b), { tensor: scalar(aType, zero) }, fixed(scalar(bType, middle))], {}, {}, 7);
      check(MatMulInteger, [{ tensor: a, shape: [symbol("m"), k] }, fixed(b), fixed(scalar(aType, 3)), fixed(scalar(bType, middle))], {}, { m }, 7);
    }
  });
  it("QLinearMatMul, batches of rows, and a zero point a column at the end of its columns", () => {
    const { a, b } = extremes(6, 12, 21, "uint8", "uint8", 1), zeros = Uint8Array.from({ length: 21 }, (_, j) => (j % 2 === 0 ? 0 : 127));
    const product = (zero: Tensor, x: Tensor): readonly Input[] => [{ tensor: x }, fixed(scalar("float32", 0.02)), fixed(scalar("uint8", 255)), fixed(b), fixed(scalar("float32", 0.01)), fixed(zero), fixed(scalar("float32", 30)), fixed(scalar("uint8", 100))];
    check(QLinearMatMul, product({ dtype: "uint8", dims: [21], data: zeros }, a), {}, {}, 7);
    check(QLinearMatMul, product(scalar("uint8", 127), { ...a, dims: [2, 3, 12] }), {}, {}, 7);
  });
  it("a matrix for each of a batch", () => {
    const { a, b } = extremes(10, 16, 11, "uint8", "int8"), more = extremes(10, 16, 11, "uint8", "int8", 0.5);
    const both = (x: Tensor, y: Tensor): Tensor => fromNumbers(x.dtype, [2, ...x.dims], [x, y].flatMap((t) => Array.from(toNumbers(t))));
    check(MatMulInteger, [{ tensor: both(a, more.a) }, fixed(both(b, more.b)), { tensor: scalar("uint8", 77) }, undefined], {}, {}, 7);
  });
  it("a column of 8 bits, or a depth that is no multiple of four, leaves the kernel to pairs", () => {
    const { a, b } = extremes(4, 8, 9, "uint8", "int8");
    const wide = fromNumbers("int8", [8, 9], Array.from(toNumbers(b), (v, at) => (at === 3 ? -128 : at === 12 ? 127 : v)));
    const quadsOf = (x: Tensor, y: Tensor): number => {
      const { c } = integerCase(MatMulInteger, [{ tensor: x }, fixed(y)], {}, {}, false), { context, quads } = contextOf(c);
      scheduleStructure(c.kernel, context);
      return quads.size;
    };
    expect([quadsOf(a, b), quadsOf(a, wide)]).toEqual([1, 0]);
    const odd = extremes(4, 10, 9, "uint8", "int8"), even = extremes(4, 12, 9, "uint8", "int8");
    expect([quadsOf(odd.a, odd.b), quadsOf(even.a, even.b)]).toEqual([0, 1]);
  });
});

describe("integer convolutions", () => {
  it("pointwise, 3x3, strided, odd channels", () => {
    checkConv({ x: [1, 5, 3, 6], w: [9, 5, 1, 1] });
    checkConv({ x: [2, 3, 5, 7], w: [8, 3, 3, 3], pads: [1, 1, 1, 1] });
    checkConv({ x: [1, 4, 9, 10], w: [3, 4, 3, 3], strides: [2, 2], pads: [0, 0, 1, 1] });
    checkConv({ x: [1, 1, 12, 5], w: [8, 1, 10, 4], strides: [2, 2], pads: [4, 1, 5, 1] });
    checkConv({ x: [1, 6, 11], w: [5, 6, 3], pads: [2, 2], dilations: [2] });
  });
  it("of bytes: pointwise, padded, strided, dilated, groups, one dimension, images", () => {
    checkConv({ bits: 7, x: [1, 8, 3, 6], w: [9, 8, 1, 1] });
    checkConv({ bits: 7, x: [2, 4, 5, 7], w: [8, 4, 3, 3], pads: [1, 1, 1, 1] });
    checkConv({ bits: 7, x: [1, 20, 9, 10], w: [11, 20, 3, 3], strides: [2, 2], pads: [0, 0, 1, 1] });
    checkConv({ bits: 7, x: [1, 8, 9, 6], w: [16, 4, 3, 2], group: 2, dilations: [1, 2], pads: [1, 0, 1, 1] });
    checkConv({ bits: 7, x: [1, 12, 11], w: [5, 12, 3], pads: [2, 2], dilations: [2] });
    checkConv({ bits: 7, x: [1, 16, 1, 40], w: [5, 16, 1, 5], strides: [1, 3], pads: [0, 2, 0, 2] });
  });
  it("groups and depthwise", () => {
    checkConv({ x: [1, 6, 4, 5], w: [4, 3, 3, 3], group: 2, pads: [1, 1, 1, 1] });
    checkConv({ x: [1, 16, 5, 6], w: [16, 1, 3, 3], group: 16, pads: [1, 1, 1, 1] });
    checkConv({ x: [2, 11, 6, 7], w: [11, 1, 3, 3], group: 11, pads: [1, 1, 1, 1], strides: [2, 2] });
    checkConv({ x: [1, 8, 7, 7], w: [8, 1, 5, 5], group: 8, pads: [4, 2, 0, 2], dilations: [1, 2] });
  });
});
