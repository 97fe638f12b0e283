/** Folded constants: computed in float64 and rounded once to the dtype they are stored in, if that keeps their value. */
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

/** What rounding may cost: the root of the summed squared errors of a channel, relative to that of its values. */
const tolerance: Partial<Readonly<Record<DType, number>>> = { float16: 1e-3, bfloat16: 8e-3, float32: 1e-6, float64: 1e-14 };

/**
 * The values in `dtype`. Refuses with `not-finite` where a value is NaN or infinite already, and with `precision-loss`
 * where rounding overflows, or loses more than the dtype's tolerance of a channel (`channelOf` an element's index).
 */
export function roundOnce(what: string, dtype: DType, dims: readonly number[], values: Float64Array, channelOf: (index: number) => number): Tensor | Refusal {
  const limit = tolerance[dtype];
  if (limit === undefined) return refuse("dtype", `${what} is ${dtype}; only floats are folded`, "use a float model");
  const rounded = fromNumbers(dtype, dims, values);
  const stored = toNumbers(rounded);
  const error = new Map<number, number>(), size = new Map<number, number>();
  for (let i = 0; i < values.length; i++) {
    const exact = values[i] ?? NaN, got = stored[i] ?? NaN;
    if (!Number.isFinite(exact)) return refuse("not-finite", `${what} would hold ${exact} at element ${i}`, "use finite weights");
    if (!Number.isFinite(got)) return refuse("precision-loss", `${what} would hold ${exact.toPrecision(4)} at element ${i}, which overflows ${dtype}`, "keep this model's weights in float32");
    const channel = channelOf(i);
    error.set(channel, (error.get(channel) ?? 0) + (got - exact) ** 2);
    size.set(channel, (size.get(channel) ?? 0) + exact ** 2);
  }
  for (const [channel, e] of error) {
    const lost = Math.sqrt(e / (size.get(channel) ?? 1));
    if (lost > limit) return refuse("precision-loss", `${what} would lose ${lost.toExponential(1)} of channel ${channel} in ${dtype}, more than ${limit}`, "keep this model's weights in float32");
  }
  return rounded;
}

/** Each element times its channel's factor. */
export function scaled(weight: Tensor, factors: Float64Array, channelOf: (index: number) => number): Float64Array {
  const values = toNumbers(weight), out = new Float64Array(sizeOf(weight.dims));
  for (let i = 0; i < out.length; i++) out[i] = (values[i] ?? 0) * (factors[channelOf(i)] ?? 1);
  return out;
}
