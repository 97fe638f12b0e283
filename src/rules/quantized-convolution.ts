/** Whether int32 holds the sums of a convolution of dequantised operands. */
import type { Node, Value } from "../graph/graph.ts";
import type { Verdict } from "../rewrite/rule.ts";
import { isConstant } from "../rewrite/match.ts";
import { biasIntegers } from "./quantized-bias.ts";
import { knownSize, quantizedType, sumFits, zeroPointTensor, type DequantizedSecond } from "./quantized-operands.ts";

export function convolutionFits(conv: Node, m: DequantizedSecond & { readonly x: Value; readonly bias?: Value | undefined }): Verdict {
  const filter = m.w.type.shape.slice(1).map((_, d) => knownSize(m.w, d + 1));
  const terms = filter.reduce<number | undefined>((n, d) => (n === undefined || d === undefined ? undefined : n * d), 1);
  const integers = biasIntegers(m.bias);
  return sumFits(conv, {
    x: m.x, w: m.w, wZero: zeroPointTensor(m.wZero, m.wScale, quantizedType(m.wNode)), terms,
    channelOf: (i) => Math.floor(i / (terms ?? 1)), ...(integers && isConstant(integers) && integers.type.dtype === "int32" ? { bias: integers.constant } : {}),
  });
}
