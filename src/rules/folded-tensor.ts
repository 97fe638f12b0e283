/** Folded constants: computed in float64 and rounded once to the dtype they are stored in, if that keeps their value. */
import type { DType } from "../core/dtype.ts";
import { byteLength, fromNumbers, numericData, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node } from "../graph/graph.ts";
import type { ConstantValue } from "../rewrite/pattern.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { ChannelWalk, type ChannelMap } from "./channel-map.ts";

/** What rounding may cost: the root of the summed squared errors of a channel, relative to that of its values. */
const tolerance: Partial<Readonly<Record<DType, number>>> = { float16: 1e-3, bfloat16: 8e-3, float32: 1e-6, float64: 1e-14 };

/**
 * The values in `dtype`. Refuses with `not-finite` where a value is NaN or infinite already, and with `precision-loss`
 * where rounding overflows, or loses more than the dtype's tolerance of a channel.
 */
export function roundOnce(what: string, dtype: DType, dims: readonly number[], values: Float64Array, channels: ChannelMap): Tensor | Refusal {
  const limit = tolerance[dtype];
  if (limit === undefined) return refuse("dtype", `${what} is ${dtype}; only floats are folded`, "use a float model");
  const rounded = fromNumbers(dtype, dims, values);
  const stored = toNumbers(rounded);
  const error = new Float64Array(channels.count), size = new Float64Array(channels.count);
  const walk = new ChannelWalk(channels);
  for (let i = 0; i < values.length; walk.next()) {
    const { channel } = walk;
    let wrong = error[channel] ?? 0, all = size[channel] ?? 0;
    const begin = i, end = Math.min(walk.end, values.length);
    for (; i < end; i++) {
      const value = values[i] ?? NaN, difference = (stored[i] ?? NaN) - value;
      wrong += difference * difference;
      all += value * value;
    }
    const refusal = Number.isFinite(wrong + all) ? undefined : whyNotFinite(what, dtype, values, stored, begin, end);
    if (refusal) return refusal;
    error[channel] = wrong;
    size[channel] = all;
  }
  const lost = losses(error, size), worst = lost.findIndex((l) => l > limit);
  if (worst < 0) return rounded;
  return refuse("precision-loss", `${what} would lose ${lost[worst]?.toExponential(1)} of channel ${worst} in ${dtype}, more than ${limit}`, "keep this model's weights in float32");
}

/** For each channel, the root of its summed squared errors relative to that of its values. */
const losses = (error: Float64Array, size: Float64Array): Float64Array => error.map((e, channel) => (e === 0 ? 0 : Math.sqrt(e / (size[channel] ?? 1))));

/** What is wrong with the first of some elements that is not finite, or is stored so; undefined where only their squares are. */
function whyNotFinite(what: string, dtype: DType, values: Float64Array, stored: ArrayLike<number>, begin: number, end: number): Refusal | undefined {
  for (let i = begin; i < end; i++) {
    const value = values[i] ?? NaN;
    if (!Number.isFinite(value)) return refuse("not-finite", `${what} would hold ${value} at element ${i}`, "use finite weights");
    if (!Number.isFinite(stored[i] ?? NaN)) return refuse("precision-loss", `${what} would hold ${value.toPrecision(4)} at element ${i}, which overflows ${dtype}`, "keep this model's weights in float32");
  }
  return undefined;
}

/** Beside a term of this size, a float32 product that overflows may still belong to a sum that does not. */
const largestTerm = 1e30;

/**
 * Why a term may not be added to a product instead of being taken from its factor: a product that overflows, where the
 * difference that was multiplied before did not, would turn a finite result into an infinite one.
 */
export function whyNotAdded(what: string, dtype: DType, values: Float64Array): Refusal | undefined {
  const at = dtype === "float32" ? values.findIndex((v) => Math.abs(v) > largestTerm) : -1;
  return at < 0 ? undefined : refuse("scale-range", `${what} would be ${values[at]?.toPrecision(4)} at element ${at}, and what it is added to might overflow`, `use parameters that keep it below ${largestTerm}`);
}

/** A weight of more bytes than these is not stored once more where other nodes read it as it is. */
const largestCopy = 16 * 1024 * 1024;

/** Why a weight stays as it is: `shared-weight` where others read it, and a changed copy beside it would be large. */
export function whyNotCopied(weight: ConstantValue, reader: Node): Refusal | undefined {
  const bytes = byteLength(weight.constant), others = weight.uses.filter((u) => u.node !== reader);
  if (bytes <= largestCopy || (others.length === 0 && weight.resultOf.length === 0)) return undefined;
  const by = others[0] ? `${others[0].node.op.type} '${others[0].node.name}'` : "the graph's outputs";
  return refuse("shared-weight", `'${weight.name}' has ${bytes} bytes, more than ${largestCopy}, and is read by ${by} too`, `none: '${reader.name}' would need ${bytes} bytes more`);
}

/**
 * The weight with each element times the factor of its channel by `factored`, rounded once. Refuses as `roundOnce` does,
 * which judges it by `channels`.
 */
export function scaledOnce(what: string, weight: Tensor, factors: Float64Array, factored: ChannelMap, channels: ChannelMap): Tensor | Refusal {
  const { dtype, dims } = weight;
  const data = dtype === "float32" ? scaledFloats(numericData(weight) as Float32Array, factors, factored, channels) : undefined;
  return data ? tensor(dtype, dims, data) : roundOnce(what, dtype, dims, scaled(weight, factors, factored), channels);
}

function scaled(weight: Tensor, factors: Float64Array, factored: ChannelMap): Float64Array {
  const out = new Float64Array(toNumbers(weight)), walk = new ChannelWalk(factored);
  for (let i = 0; i < out.length; walk.next()) {
    const factor = factors[walk.channel] ?? 1;
    for (const end = Math.min(walk.end, out.length); i < end; i++) out[i] = (out[i] ?? 0) * factor;
  }
  return out;
}

/** What `scaled` and `roundOnce` make of float32, in one pass over the weights; undefined where they refuse. */
function scaledFloats(weight: Float32Array, factors: Float64Array, factored: ChannelMap, channels: ChannelMap): Float32Array | undefined {
  const out = new Float32Array(weight.length), error = new Float64Array(channels.count), size = new Float64Array(channels.count);
  const walk = new ChannelWalk(channels), scale = new ChannelWalk(factored);
  for (let i = 0; i < weight.length; walk.next()) {
    const { channel } = walk, end = Math.min(walk.end, weight.length);
    let wrong = error[channel] ?? 0, all = size[channel] ?? 0;
    while (i < end) {
      const factor = factors[scale.channel] ?? 1, until = Math.min(scale.end, end);
      for (; i < until; i++) {
        const value = (weight[i] ?? 0) * factor, stored = Math.fround(value), difference = stored - value;
        out[i] = stored;
        wrong += difference * difference;
        all += value * value;
      }
      if (i === scale.end) scale.next();
    }
    if (!Number.isFinite(wrong + all)) return undefined;
    error[channel] = wrong;
    size[channel] = all;
  }
  const limit = tolerance.float32 ?? 0;
  return losses(error, size).some((l) => l > limit) ? undefined : out;
}
