/**
 * What convolutions share: inference, the naive sum and the structure, for Conv, ConvTranspose and their integer forms.
 */
import { dimAdd, dimFloorDiv, dimMax, dimMul, dimSub, formatDim, type Dim } from "../core/dim.ts";
import { int, optional, type Anchor, type AnchorOperand, type AttributeSpec, type ElementFunction, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { add, and, axisOf, computeScalar, constant, dimExpr, div, eq, ge, load, local, lt, mul, rem, reduce, scalarType, sub, type Axis, type Expr, type Scalar } from "../kernel/expr.ts";
import { checkWindows, guarded, operand, readWindow, staticSizes, windowAttributes, windowsOf, type Window, type WindowOptions } from "./window.ts";

export const convolutionAttributes = {
  ...windowAttributes,
  group: int(1),
  kernel_shape: optional("ints"),
} as const satisfies Record<string, AttributeSpec>;

export interface ConvolutionOptions extends WindowOptions {
  readonly group: number;
  readonly kernel_shape: readonly number[] | undefined;
}

/** Sizes of a convolution: weights are [M, C / groups, kernel…], or [C, M / groups, kernel…] transposed. */
export interface Convolution {
  readonly transposed: boolean;
  readonly groups: number;
  /** Input channels a group. */
  readonly inputChannels: number;
  /** Output channels a group. */
  readonly channels: number;
  readonly windows: readonly Window[];
}

/** Sizes, from types that inference has checked. */
export function convolutionOf(x: TypeInfo, w: TypeInfo, options: ConvolutionOptions): Convolution {
  const [m, inputChannels, ...kernel] = w.shape as readonly number[];
  return {
    transposed: false, groups: options.group, inputChannels: inputChannels ?? 1, channels: (m ?? 1) / options.group,
    windows: windowsOf(x.shape.slice(2), kernel, options),
  };
}

/** The output's shape; reports what does not fit. */
export function inferConvolution(x: TypeInfo, w: TypeInfo, bias: TypeInfo | undefined, options: ConvolutionOptions, context: InferContext): readonly Dim[] {
  const [m = 0, c = 0, ...kernel] = checkWeights(x, w, options, context);
  const inputs = x.shape[1] ?? 0;
  if (typeof inputs === "number" && inputs !== c * options.group)
    context.fail("OF3011", `input has ${inputs} channels, weights ask for ${c} × ${options.group} groups`);
  context.agree?.(inputs, c * options.group, "equal");
  if (m % options.group !== 0) context.fail("OF3011", `${m} output channels do not divide into ${options.group} groups`);
  checkBias(bias, m, context);
  const windows = windowsOf(x.shape.slice(2), kernel, options);
  return [x.shape[0] ?? 1, m, ...windows.map((v) => v.output)];
}

/** The weights' sizes, once ranks, kernel and attributes agree. */
export function checkWeights(x: TypeInfo, w: TypeInfo, options: ConvolutionOptions, context: InferContext): readonly number[] {
  const rank = x.shape.length - 2;
  checkWindows(rank, options, context);
  if (w.shape.length !== rank + 2) context.fail("OF3010", `weights have rank ${w.shape.length}, input has rank ${rank + 2}`);
  if (options.group < 1) context.fail("OF3012", `group must be at least 1, got ${options.group}`);
  const sizes = staticSizes(w, 0, "the weight", context);
  const kernel = sizes.slice(2);
  if (options.kernel_shape && (options.kernel_shape.length !== rank || options.kernel_shape.some((k, d) => k !== kernel[d])))
    context.fail("OF3011", `kernel_shape [${options.kernel_shape.join(", ")}] differs from the weights' [${kernel.join(", ")}]`);
  return sizes;
}

export function checkBias(bias: TypeInfo | undefined, channels: number, context: InferContext): void {
  if (!bias) return;
  const [size = 0] = bias.shape;
  if (bias.shape.length !== 1 || (typeof size === "number" && size !== channels))
    context.fail("OF3011", `bias must have ${channels} elements, got [${bias.shape.map(formatDim).join(", ")}]`);
  context.agree?.(size, channels, "equal");
}

/** Pads and sizes of a transposed convolution. */
export interface TransposedOptions extends ConvolutionOptions {
  readonly output_padding: readonly number[] | undefined;
  readonly output_shape: readonly number[] | undefined;
}

/** Windows whose `input` is the smaller side, as ConvStructure.transposed reads them. */
export function transposedWindowsOf(spatial: readonly Dim[], kernel: readonly number[], options: TransposedOptions): readonly Window[] {
  const rank = spatial.length;
  const shape = options.output_shape?.slice(-rank);
  return spatial.map((input, d): Window => {
    const size = kernel[d] ?? 1, stride = options.strides?.[d] ?? 1, dilation = options.dilations?.[d] ?? 1;
    const full = dimAdd(dimMul(dimSub(input, 1), stride), (options.output_padding?.[d] ?? 0) + (size - 1) * dilation + 1);
    const same = options.auto_pad === "SAME_UPPER" || options.auto_pad === "SAME_LOWER";
    const base = { input, kernel: size, stride, dilation, mayUnderrun: true, mayOverrun: true };
    if (shape || same) {
      const output = shape?.[d] ?? dimMul(input, stride);
      const total = dimMax(0, dimSub(full, output));
      const small = dimFloorDiv(total, 2), large = dimSub(total, small);
      const [padBegin, padEnd] = options.auto_pad === "SAME_UPPER" ? [small, large] : [large, small];
      return { ...base, output, padBegin, padEnd };
    }
    const explicit = options.auto_pad === "VALID" ? undefined : options.pads;
    const padBegin = explicit?.[d] ?? 0, padEnd = explicit?.[d + rank] ?? 0;
    return { ...base, output: dimSub(full, padBegin + padEnd), padBegin, padEnd };
  });
}

/** How elements are read: from operands (lowering) or from buffers (anchors). */
interface Reader {
  input(...indices: readonly Expr[]): Expr;
  weight(...indices: readonly Expr[]): Expr;
}

/** Where a product belongs: output element, and taps [input channel, kernel…]. */
interface TermIndices {
  readonly batch: Expr;
  readonly group: Expr;
  readonly channel: Expr;
  readonly output: readonly Expr[];
  readonly taps: readonly Expr[];
}

/** One product of the sum; 0 where the tap falls outside the input. */
function term(c: Convolution, read: Reader, { batch, group, channel, output, taps }: TermIndices): Expr {
  const ci = operand(taps, 0), kernel = taps.slice(1);
  const inputChannel = flat(group, ci, c.groups, c.inputChannels);
  if (!c.transposed) {
    const filter = flat(group, channel, c.groups, c.channels);
    return readWindow(c.windows, output, kernel, (positions) => mul(read.input(batch, inputChannel, ...positions), read.weight(filter, ci, ...kernel)), 0);
  }
  const sources = c.windows.map((w, d) => sourceOf(w, operand(output, d), operand(kernel, d)));
  const product = mul(read.input(batch, inputChannel, ...sources.map((s) => s.position)), read.weight(inputChannel, channel, ...kernel));
  return guarded(sources.flatMap((s) => s.conditions), product, constant(0, product.type));
}

/** Transposed: the input position that tap `k` takes to output `o`, and when there is one. */
function sourceOf(w: Window, o: Expr, k: Expr): { position: Expr; conditions: readonly Expr[] } {
  const forward = w.padBegin === 0 ? o : add(o, dimExpr(w.padBegin));
  const reached = w.kernel === 1 ? forward : sub(forward, w.dilation === 1 ? k : mul(k, w.dilation));
  const inside = (p: Expr): Expr => and(ge(reached, 0), lt(p, dimExpr(w.input)));
  if (w.stride === 1) return { position: reached, conditions: [inside(reached)] };
  const position = div(reached, w.stride);
  return { position, conditions: [and(inside(position), eq(rem(reached, w.stride), 0))] };
}

/** group · size + within, without arithmetic on sizes of 1. */
function flat(group: Expr, within: Expr, groups: number, size: number): Expr {
  if (groups === 1) return within;
  return size === 1 ? group : add(mul(group, size), within);
}

/** Σ input · weight for the output element at [batch, filter, output…]. */
export function convolutionSum(c: Convolution, x: Operand, w: Operand, element: ElementOf, indices: readonly Expr[]): Expr {
  const batch = operand(indices, 0), filter = operand(indices, 1), output = indices.slice(2);
  const group = c.groups === 1 ? constant(0, filter.type) : c.channels === 1 ? filter : div(filter, c.channels);
  const channel = c.groups === 1 ? filter : c.channels === 1 ? constant(0, filter.type) : rem(filter, c.channels);
  const read: Reader = {
    input: (...i) => element.input(x.at(...i)),
    weight: (...i) => element.weight(w.at(...i), filter),
  };
  return reduce("add", [c.inputChannels, ...c.windows.map((v) => v.kernel)], (...taps) => term(c, read, { batch, group, channel, output, taps }));
}

/** What is multiplied, from the elements as stored: zero points subtracted for integer convolution. */
export interface ElementOf {
  input(element: Expr): Expr;
  /** `filter` is the output channel. */
  weight(element: Expr, filter: Expr): Expr;
}
export const plainElements: ElementOf = { input: (e) => e, weight: (e) => e };

/** Lowers a convolution of elements as they are, to which a bias may be added. */
export function lowerConvolution(c: Convolution, x: Operand, w: Operand, bias: Operand | undefined): ElementFunction {
  return (...indices) => {
    const sum = convolutionSum(c, x, w, plainElements, indices);
    return bias ? add(sum, bias.at(operand(indices, 1))) : sum;
  };
}

/** The anchor of what `lowerConvolution` lowers. */
export function anchorBiased(c: Convolution, x: AnchorOperand, w: AnchorOperand, bias: AnchorOperand | undefined): Anchor {
  return anchorConvolution(c, x, w, computeScalar(x.dtype), plainElements, undefined, (accumulator, filter) => (bias ? add(accumulator, bias.at(filter)) : accumulator));
}

/**
 * The anchor of a convolution. `finish` applies what the operator itself does to the accumulator (bias, requantisation)
 * at an output channel; `zeroPoints` are those of the structure.
 */
export function anchorConvolution(
  c: Convolution, x: AnchorOperand, w: AnchorOperand, accumulator: Scalar, element: ElementOf,
  zeroPoints: ((filter: Expr) => { readonly input: Expr; readonly weight: Expr }) | undefined,
  finish: (accumulator: Expr, filter: Expr) => Expr,
): Anchor {
  const spatial = ["d", "h", "w"].slice(-c.windows.length);
  const axis = (name: string, extent: Dim): Axis => ({ name, extent });
  const batch = axis("n", x.shape[0] ?? 1), group = axis("g", c.groups), channel = axis("m", c.channels);
  const output = c.windows.map((v, d) => axis(`o${operand(spatial, d)}`, v.output));
  const inputChannel = axis("c", c.inputChannels);
  const kernel = c.windows.map((v, d) => axis(`k${operand(spatial, d)}`, v.kernel));
  const type = scalarType(accumulator);
  const single = (a: Axis): Expr => (a.extent === 1 ? constant(0, scalarType("i32")) : axisOf(a));
  const filter = c.channels === 1 && c.groups > 1 ? axisOf(group) : c.groups === 1 ? axisOf(channel) : add(mul(axisOf(group), c.channels), axisOf(channel));
  const input = x.buffer(), weight = w.buffer();
  const read: Reader = {
    input: (...i) => element.input(load(input, i)),
    weight: (...i) => element.weight(load(weight, i), filter),
  };
  const body = term(c, read, {
    batch: axisOf(batch), group: single(group), channel: c.groups === 1 ? axisOf(channel) : single(channel),
    output: output.map(axisOf), taps: [inputChannel, ...kernel].map(axisOf),
  });
  const name = "acc";
  const zero = constant(0, type);
  return {
    indices: [axisOf(batch), filter, ...output.map(axisOf)],
    element: finish(local(name, type), filter),
    axes: [batch, ...(c.groups > 1 ? [group] : []), ...(c.channels > 1 || c.groups === 1 ? [channel] : []), ...output],
    accumulate: { kind: "reduce", op: "add", axes: [inputChannel, ...kernel], init: zero, body, type },
    structure: (stores) => ({
      kind: "conv", batch, group, channel, output, inputChannel, kernel,
      strides: c.windows.map((v) => v.stride), dilations: c.windows.map((v) => v.dilation), padsBegin: c.windows.map((v) => v.padBegin),
      transposed: c.transposed, input, weight, ...(zeroPoints ? { zeroPoints: zeroPoints(filter) } : {}),
      accumulator: { name, type }, stores,
    }),
  };
}
