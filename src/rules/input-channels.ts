/** Factors of a convolution's input channels, moved into its weights. */
import { sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node } from "../graph/graph.ts";
import type { ConstantValue } from "../rewrite/pattern.ts";
import { isRefusal } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { byFilter } from "./channel-map.ts";
import { scaledOnce, whyNotCopied } from "./folded-tensor.ts";

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
  const { dims } = weight.constant;
  const [count = 1, perGroup = 1] = dims, taps = sizeOf(dims.slice(2)), filters = count / Number(conv.attributes["group"]);
  const values = toNumbers(weight.constant);
  const tensor = scaledOnce(`the weight of '${conv.name}'`, weight.constant, scale, { count: scale.length, run: taps, width: perGroup, repeat: filters }, byFilter(count, taps * perGroup));
  if (isRefusal(tensor)) return tensor;
  return {
    tensor, count,
    sums(shift, bias) {
      const out = Float64Array.from({ length: count }, (_, m) => bias?.[m] ?? 0);
      for (let m = 0, i = 0; m < count; m++) {
        const first = Math.floor(m / filters) * perGroup;
        let sum = out[m] ?? 0;
        for (let c = 0; c < perGroup; c++) {
          const by = shift[first + c] ?? 0;
          for (const end = i + taps; i < end; i++) sum += (values[i] ?? 0) * by;
        }
        out[m] = sum;
      }
      return out;
    },
  };
}
