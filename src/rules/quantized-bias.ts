/** The bias of a quantised contraction: int32, in units of the product of both operands' scales. */
import { toNumbers } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { DequantizeLinear } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { value, type ConstantValue } from "../rewrite/pattern.ts";
import { refuse, type Verdict } from "../rewrite/rule.ts";

export const bias = value("bias");

/** How far a bias' scale may be from the product, which exporters round in several ways. */
const scaleTolerance = 1e-6;

/** Refuses biases that cannot be added to the int32 sums as they are. */
export function checkBias(anchor: Node, of: Value | undefined, xScale: ConstantValue, wScale: ConstantValue): Verdict {
  if (!of) return true;
  const source = of.producer?.node, [integers, scale, zero] = source?.inputs ?? [];
  if (source?.op !== DequantizeLinear || integers?.type.dtype !== "int32" || !isConstant(integers))
    return refuse("bias-not-quantized", `the bias '${of.name}' of '${anchor.name}' is no dequantised int32 constant`, "quantise the bias to int32, in units of the product of both scales");
  if (zero && !(isConstant(zero) && Array.from(toNumbers(zero.constant)).every((z) => z === 0)))
    return refuse("bias-not-quantized", `the bias '${of.name}' has a zero point`, "quantise it with zero point 0");
  const units = scale && isConstant(scale) ? toNumbers(scale.constant) : [], channels = toNumbers(wScale.constant), x = toNumbers(xScale.constant)[0] ?? NaN;
  const count = Math.max(units.length, channels.length);
  for (let c = 0; c < count; c++) {
    const unit = units[units.length === 1 ? 0 : c] ?? NaN, product = x * (channels[channels.length === 1 ? 0 : c] ?? NaN);
    if (!(Math.abs(unit - product) <= scaleTolerance * Math.abs(product)))
      return refuse("bias-scale", `the bias '${of.name}' has scale ${unit}, the sums of '${anchor.name}' have ${product}`, "quantise the bias by the product of both scales");
  }
  return true;
}

/** The int32 elements of a bias that `checkBias` allowed. */
export const biasIntegers = (of: Value | undefined): Value | undefined => of?.producer?.node.inputs[0];
