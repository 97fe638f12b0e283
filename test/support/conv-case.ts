/** Convolution kernels of every form, as their operators lower them. */
import { present } from "../../src/core/assert.ts";
import { dimMul, evaluateDim as evaluate, symbol, type Dim } from "../../src/core/dim.ts";
import { fromNumbers, toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { named, type AnchorOperand, type OpDef } from "../../src/graph/op.ts";
import { add, constant, div, f32, load, max, mul, sqrt, type Buffer, type Expr } from "../../src/kernel/expr.ts";
import type { Layout } from "../../src/kernel/kernel.ts";
import type { EpilogueStore } from "../../src/kernel/structure.ts";
import { Conv } from "../../src/ops/conv.ts";
import { naiveBody, structuredKernel, wholeNumbers, type KernelCase } from "./kernel-case.ts";

export interface ConvOptions {
  readonly op?: OpDef;
  /** [N, C, spatial…] and [M, C/group, kernel…] (transposed: [C, M/group, kernel…]). */
  readonly x: readonly number[]; readonly w: readonly number[];
  readonly group?: number; readonly strides?: readonly number[]; readonly pads?: readonly number[]; readonly dilations?: readonly number[];
  readonly outputPadding?: readonly number[];
  readonly symbolic?: boolean;
  /** Layout of input and output. */
  readonly layout?: "rows" | "channels-last" | "channels-last in";
  readonly residual?: boolean;
  /** An epilogue of many operations, all exact on whole numbers. */
  readonly costly?: boolean;
  /** Sums times gamma / √(variance + ε) of their channel. */
  readonly normalised?: boolean;
}

const operand = (buffer: Buffer): AnchorOperand => ({ dtype: buffer.dtype, shape: buffer.shape, at: (...i) => load(buffer, i), buffer: () => buffer });

function channelsLast(shape: readonly Dim[]): Layout {
  const [, c = 1, ...spatial] = shape;
  const strides: Dim[] = [];
  let total: Dim = c;
  for (const d of [...spatial].reverse()) { strides.unshift(total); total = dimMul(total, d); }
  return { strides: [total, 1, ...strides], offset: 0 };
}

/** The kernel and its data; `make` gives the contents of input and weights. */
export function convCase(o: ConvOptions, make: (dims: readonly number[], seed: number) => Tensor = (dims, seed) => wholeNumbers(dims, seed, "float32", 5)): { c: KernelCase; out: Buffer } {
  const op = o.op ?? Conv, rank = o.x.length - 2;
  const names = ["b", "c", "h", "w"];
  const shape = (dims: readonly number[]): Dim[] => dims.map((d, i) => (o.symbolic && i !== 1 ? symbol(present(names[i === 0 ? 0 : i + 2 - rank], "name")) : d));
  const x: Buffer = { name: "X", dtype: "float32", shape: shape(o.x) }, w: Buffer = { name: "W", dtype: "float32", shape: o.w };
  const attributes = {
    auto_pad: "NOTSET", group: o.group ?? 1, strides: o.strides ?? o.x.slice(2).map(() => 1), dilations: o.dilations ?? o.x.slice(2).map(() => 1),
    pads: o.pads ?? o.x.slice(2).flatMap(() => [0, 0]), kernel_shape: o.w.slice(2), ...(o.outputPadding ? { output_padding: o.outputPadding } : {}),
  };
  const inputs = named(op, [operand(x), operand(w)]);
  const fail = (code: string, message: string): never => { throw new Error(`${code} ${message}`); };
  const type = present(op.infer(inputs, attributes, { fail, fresh: (h) => symbol(h), outputCount: 1 })[0], "type");
  const anchor = present(op.anchor, "anchor")(inputs, attributes, { outputs: [type] });
  const y: Buffer = { name: "Y", dtype: "float32", shape: type.shape }, bias: Buffer = { name: "bias", dtype: "float32", shape: [type.shape[1] ?? 1] };
  const residual: Buffer = { name: "R", dtype: "float32", shape: type.shape };
  const channel = present(anchor.indices[1], "channel index");
  const [gamma, variance] = ["gamma", "variance"].map((name): Buffer => ({ name, dtype: "float32", shape: bias.shape })) as [Buffer, Buffer];
  const sum = o.normalised ? mul(anchor.element, div(load(gamma, [channel]), sqrt(add(load(variance, [channel]), constant(Math.fround(1e-3), f32))))) : anchor.element;
  let value: Expr = add(sum, load(bias, [channel]));
  if (o.residual) value = max(add(value, load(residual, anchor.indices)), constant(0, f32));
  if (o.costly) for (let i = 0; i < 9; i++) value = max(add(value, constant(-3, f32)), constant(-60 - i, f32));
  const store: EpilogueStore = { buffer: y, indices: anchor.indices, value };
  const kernel = structuredKernel("conv", anchor.structure([store]), [x, w, bias, ...(o.normalised ? [gamma, variance] : []), ...(o.residual ? [residual] : [])], [y], naiveBody(anchor.axes, "acc", anchor.accumulate, [store]));
  const sizes: Record<string, number> = { b: o.x[0] ?? 1, h: rank === 2 ? o.x[2] ?? 1 : 1, w: o.x[o.x.length - 1] ?? 1 };
  const binding = (s: string): number => present(sizes[s], s);
  const outDims = type.shape.map((d) => evaluate(d, binding));
  const positive = (seed: number): Tensor => { const t = wholeNumbers([outDims[1] ?? 1], seed); return fromNumbers("float32", t.dims, Array.from(toNumbers(t), (v) => Math.abs(v) + 1)); };
  const data = new Map([[gamma, positive(5)], [variance, positive(6)], [x, make(o.x, 1)], [w, make(o.w, 2)], [bias, wholeNumbers([outDims[1] ?? 1], 3)], [residual, wholeNumbers(outDims, 4)]]);
  const layouts = new Map<Buffer, Layout>();
  if (o.layout !== undefined && o.layout !== "rows") {
    layouts.set(x, channelsLast(x.shape));
    if (o.layout === "channels-last") { layouts.set(y, channelsLast(y.shape)); layouts.set(residual, channelsLast(residual.shape)); }
  }
  return { c: { kernel, data, weights: new Set([w]), layouts, dims: binding }, out: y };
}

