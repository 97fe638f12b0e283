/** Affine functions of channels, y = scale · x + shift: read from constants beside a contraction, and folded into it. */
import { dimEqual, formatShape, type Dim } from "../core/dim.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Node } from "../graph/graph.ts";
import type { ConstantValue } from "../rewrite/pattern.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

export interface Affine {
  readonly scale: Float64Array;
  readonly shift: Float64Array;
}

/** A tensor's channel axis and how many channels it has. */
export interface Channels { readonly axis: number; readonly count: number }

/** The affine function of a BatchNormalization in inference form. */
export function affineOfBatchNorm(node: Node, parameters: { readonly gamma: ConstantValue; readonly beta: ConstantValue; readonly mean: ConstantValue; readonly variance: ConstantValue }): Affine | Refusal {
  const [gamma, beta, mean, variance] = [parameters.gamma, parameters.beta, parameters.mean, parameters.variance].map((c) => toNumbers(c.constant));
  const epsilon = Number(node.attributes["epsilon"]);
  const scale = Float64Array.from(gamma ?? [], (g, c) => g / Math.sqrt((variance?.[c] ?? 0) + epsilon));
  const bad = scale.findIndex((s) => !Number.isFinite(s));
  if (bad >= 0) return refuse("not-finite", `channel ${bad} of '${node.name}' has scale ${gamma?.[bad]} and variance ${variance?.[bad]}: its factor is ${scale[bad]}`, "use finite parameters and a positive variance");
  return { scale, shift: Float64Array.from(scale, (s, c) => (beta?.[c] ?? 0) - (mean?.[c] ?? 0) * s) };
}

/**
 * A constant's value at each channel of a tensor it is combined with by broadcasting. Refuses with `shape-grows`
 * where broadcasting would enlarge the tensor, and with `not-per-channel` where it varies along another axis.
 */
export function perChannel(c: ConstantValue, shape: readonly Dim[], { axis, count }: Channels): Float64Array | Refusal {
  const { dims } = c.constant;
  const said = `'${c.name}' has shape [${dims.join(", ")}], the tensor ${formatShape(shape)}`;
  const grows = refuse("shape-grows", `${said}: broadcasting would enlarge it`, "give the constant the shape of one channel");
  if (dims.length > shape.length) return grows;
  for (const [i, d] of dims.entries()) {
    const at = shape.length - dims.length + i;
    if (d === 1) continue;
    if (at === axis ? d !== count : dimEqual(shape[at] ?? 0, 1)) return grows;
    if (at !== axis) return refuse("not-per-channel", `${said}: it varies along axis ${at}, channels are axis ${axis}`, "give the constant one value per channel");
  }
  const values = toNumbers(c.constant);
  return Float64Array.from({ length: count }, (_, channel) => values[values.length === 1 ? 0 : channel] ?? NaN);
}
