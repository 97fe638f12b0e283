/** Factors of a convolution's input channels, moved into its weights. */
import { sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node } from "../graph/graph.ts";
import type { ConstantValue } from "../rewrite/pattern.ts";
import { isRefusal } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { roundOnce, scaled, whyNotCopied } from "./folded-tensor.ts";

export interface ScaledWeight {
  readonly tensor: Tensor;
  /** Output channels. */
  readonly count: number;
  /** For each output channel: bias + Σ weight · shift of its input channels (by the weights before scaling). */
  sums(shift: Float64Array, bias: ArrayLike<number> | undefined): Float64Array;
}

/** Weights [M, C/groups, kernel…] of a Conv, times `scale` of each of its C input channels. */
export function scaleInputs(weight: ConstantValue, conv: Node, scale: Float64Array): ScaledWeight | Refusal {
  const kept = scale.every((f) => f === 1) ? undefined : whyNotCopied(weight, conv);
  if (kept) return kept;
  const { dims, dtype } = weight.constant;
  const [count = 1, perGroup = 1] = dims, taps = sizeOf(dims.slice(2)), filters = count / Number(conv.attributes["group"]);
  const values = toNumbers(weight.constant);
  // Both by filter: the n-th run of `taps` elements.
  const outputOf = (n: number): number => Math.floor(n / perGroup);
  const inputOf = (n: number): number => Math.floor(outputOf(n) / filters) * perGroup + (n % perGroup);
  const folded = scaled(weight.constant, scale, { count: scale.length, run: taps, of: inputOf });
  const tensor = roundOnce(`the weight of '${conv.name}'`, dtype, dims, folded, { count, run: taps * perGroup, of: (n) => n });
  if (isRefusal(tensor)) return tensor;
  return {
    tensor, count,
    sums(shift, bias) {
      const out = Float64Array.from({ length: count }, (_, m) => bias?.[m] ?? 0);
      for (let i = 0, n = 0; i < values.length; n++) {
        const by = shift[inputOf(n)] ?? 0;
        let sum = out[outputOf(n)] ?? 0;
        for (const end = i + taps; i < end; i++) sum += (values[i] ?? 0) * by;
        out[outputOf(n)] = sum;
      }
      return out;
    },
  };
}
