/**
 * Quantised values as rules see them: a DequantizeLinear or QuantizeLinear with known scale and zero point, and the
 * conditions under which integer operators take their place.
 */
import { isSymbolic } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sameTensor, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { DequantizeLinear, QuantizeLinear } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { constant, op, optionalInput, value, type ConstantValue, type OpPattern, type Pattern } from "../rewrite/pattern.ts";
import { refuse, type Editor, type Verdict } from "../rewrite/rule.ts";

export interface Dequantized { readonly x: Value; readonly xScale: ConstantValue; readonly xZero: ConstantValue | undefined; readonly xNode: Node }
/** A value that is dequantised; others may read its float form too. */
export const dequantized: OpPattern<Dequantized> = op(DequantizeLinear, [value("x"), constant("xScale"), optionalInput(constant("xZero"))], { as: "xNode", shared: true });

export interface DequantizedSecond { readonly w: Value; readonly wScale: ConstantValue; readonly wZero: ConstantValue | undefined; readonly wNode: Node }
/** The second operand of a product: weights, or another activation. */
export const dequantizedSecond: OpPattern<DequantizedSecond> = op(DequantizeLinear, [value("w"), constant("wScale"), optionalInput(constant("wZero"))], { as: "wNode", shared: true });

export interface Quantized { readonly yScale: ConstantValue; readonly yZero: ConstantValue | undefined; readonly yNode: Node }
/** `inner`, quantised. */
export const quantized = <B extends object>(inner: Pattern<B>): OpPattern<B & Quantized> =>
  op(QuantizeLinear, [inner, constant("yScale"), optionalInput(constant("yZero"))], { as: "yNode" }) as OpPattern<B & Quantized>;

/** Whether one scale holds for all elements. */
export const isPerTensor = (scale: ConstantValue): boolean => sizeOf(scale.constant.dims) === 1;

/** The axis of a node's scales, counted from the front. */
export function scaleAxis(node: Node): number {
  const axis = Number(node.attributes["axis"]), rank = node.inputs[0]?.type.shape.length ?? 0;
  return axis < 0 ? axis + rank : axis;
}

/** The dtype of what a QuantizeLinear gives or a DequantizeLinear reads. */
export const quantizedType = (node: Node): DType => (node.op === QuantizeLinear ? node.outputs[0] : node.inputs[0])?.type.dtype ?? "uint8";

const plainName = (node: Node): string => `${node.op.type} '${node.name}'`;

/** Refuses all but float32 scales, which the integer operators know. */
export function floatScale(node: Node, scale: ConstantValue): Verdict {
  if (scale.constant.dtype === "float32" && !Number(node.attributes["output_dtype"] ?? 0)) return true;
  return scale.constant.dtype === "float32" && node.op === QuantizeLinear ? true
    : refuse("scale-type", `${plainName(node)} scales in ${scale.constant.dtype}`, "store its scale as float32");
}
/** Refuses all but 8-bit values. */
export function eightBits(node: Node): Verdict {
  const dtype = quantizedType(node);
  return dtype === "int8" || dtype === "uint8" || refuse("quantized-type", `${plainName(node)} is of ${dtype}`, "quantise to int8 or uint8");
}
/** Refuses all but integers of 8 and 16 bits, which every operator that moves elements knows. */
export function wholeBytes(node: Node): Verdict {
  const dtype = quantizedType(node);
  return ["int8", "uint8", "int16", "uint16"].includes(dtype) || refuse("quantized-type", `${plainName(node)} is of ${dtype}`, "quantise to integers of 8 or 16 bits");
}
/** Refuses scales of their own along an axis. */
export const oneScale = (node: Node, scale: ConstantValue): Verdict =>
  isPerTensor(scale) || refuse("per-axis", `${plainName(node)} has a scale of its own for each index of axis ${scaleAxis(node)}`, "give it one scale");
/** Refuses scales along any other axis than `axis`, and in blocks. */
export function scaleAlong(node: Node, scale: ConstantValue, axis: number): Verdict {
  if (isPerTensor(scale)) return true;
  if (Number(node.attributes["block_size"])) return refuse("blocked", `${plainName(node)} has its scales in blocks`, "give it one scale a channel");
  return scaleAxis(node) === axis || refuse("per-axis", `${plainName(node)} has its scales along axis ${scaleAxis(node)}`, `quantise it along axis ${axis}`);
}
/** Half to even, as quantisation rounds. */
export function nearestEven(x: number): number {
  const floor = Math.floor(x), rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}

/** The first refusal. */
export function allOf(...verdicts: readonly (() => Verdict)[]): Verdict {
  for (const verdict of verdicts) { const answer = verdict(); if (answer !== true) return answer; }
  return true;
}

/** Zero points, zeros where they are not given. */
export const zeroPointTensor = (zero: ConstantValue | undefined, scale: ConstantValue, dtype: DType): Tensor =>
  zero?.constant ?? fromNumbers(dtype, scale.constant.dims, new Float64Array(sizeOf(scale.constant.dims)));

/** A zero point as an input that must be given. */
export const zeroPoint = (zero: ConstantValue | undefined, scale: ConstantValue, dtype: DType, edit: Editor): Value =>
  zero ?? edit.constant(zeroPointTensor(undefined, scale, dtype), `${scale.name}_zero_point`);

/** A scale or zero point of one element as a scalar; others stay. */
export function asScalar(v: Value, edit: Editor): Value {
  if (!isConstant(v) || v.constant.dims.length === 0 || sizeOf(v.constant.dims) !== 1) return v;
  return edit.constant({ ...v.constant, dims: [] }, `${v.name}_scalar`);
}

/** Whether quantising with the second pair undoes dequantising with the first, for every integer of the type. */
export function sameQuantization(x: Dequantized, y: Quantized): Verdict {
  const type = quantizedType(x.xNode), given = quantizedType(y.yNode);
  const differs = (what: string, a: unknown, b: unknown): Verdict => refuse("quantization-differs", `'${x.xNode.name}' has ${what} ${String(a)}, '${y.yNode.name}' ${String(b)}`, "quantise both alike");
  if (type !== given) return differs("the type", type, given);
  const whole = wholeBytes(x.xNode);
  if (whole !== true) return whole;
  if (!sameTensor(x.xScale.constant, y.yScale.constant)) return differs("the scale", toNumbers(x.xScale.constant)[0], toNumbers(y.yScale.constant)[0]);
  const before = zeroPointTensor(x.xZero, x.xScale, type), after = zeroPointTensor(y.yZero, y.yScale, type);
  if (!sameNumbers(before, after)) return differs("the zero point", toNumbers(before)[0], toNumbers(after)[0]);
  const usable = Array.from(toNumbers(x.xScale.constant)).every((s) => s !== 0 && Number.isFinite(Math.fround(65535 * s)));
  return usable || refuse("scale-range", `a scale of '${x.xNode.name}' is 0, or so large that steps overflow`, "give it a scale that is a normal number");
}
const sameNumbers = (a: Tensor, b: Tensor): boolean => { const x = toNumbers(a), y = toNumbers(b); return x.length === y.length && Array.from(x).every((v, i) => v === y[i]); };

/** How large a sum of products of integers less their zero points can get. */
export interface SumBound { readonly x: Value; readonly w: Value; readonly wZero: Tensor; readonly terms: number | undefined; /** The channel of an element of w; zero points repeat over channels. */ readonly channelOf: (i: number) => number; readonly bias?: Tensor }

/** Refuses where int32 sums might wrap. */
export function sumFits(anchor: Node, { x, w, wZero, terms, channelOf, bias }: SumBound): Verdict {
  const most = largestSum(w, wZero, terms, channelOf) * (x.type.dtype === "int8" || x.type.dtype === "uint8" ? 255 : 65535);
  const added = bias ? Array.from(toNumbers(bias)).reduce((m, v) => Math.max(m, Math.abs(v)), 0) : 0;
  return most + added < 2 ** 31 || refuse("accumulator-overflow", `sums of '${anchor.name}' may reach ${Number.isFinite(most) ? (most + added).toExponential(1) : "any size"}, more than int32 holds`, "make the contracted axis shorter, or its size known");
}
function largestSum(w: Value, wZero: Tensor, terms: number | undefined, channelOf: (i: number) => number): number {
  if (!isConstant(w)) return terms === undefined ? Infinity : 255 * terms;
  const values = toNumbers(w.constant), zeros = toNumbers(wZero), sums = new Map<number, number>();
  let most = 0;
  for (let i = 0; i < values.length; i++) {
    const channel = channelOf(i), sum = (sums.get(channel) ?? 0) + Math.abs((values[i] ?? 0) - (zeros[channel % zeros.length] ?? 0));
    sums.set(channel, sum);
    most = Math.max(most, sum);
  }
  return most;
}

/** A size where it is known. */
export const knownSize = (v: Value, axis: number): number | undefined => { const d = v.type.shape.at(axis); return d === undefined || isSymbolic(d) ? undefined : d; };
