/** A reduction of a reduction, where neither order nor rounding in between matters, is one over the axes of both. */
import { isInteger } from "../core/dtype.ts";
import type { OpDef } from "../graph/op.ts";
import { Neg, ReduceL1, ReduceL2, ReduceLogSumExp, ReduceMax, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare } from "../ops/index.ts";
import { anyOf } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { knownAxes, ofFloats, reduceOnce, reductionOf, reductions } from "./reductions.ts";

/** What integers do the same in any order. */
const wraps: ReadonlySet<OpDef> = new Set([ReduceMax, ReduceMin, ReduceSum, ReduceProd]);

export const mergeReductions = defineRule({
  name: "merge-reductions",
  doc: "The maximum of maxima, the minimum of minima, an L1 or L2 norm of such norms, a sum of L1 norms or of sums of squares, a logarithm of summed exponentials of such, and sums and products of integers are one reduction over the axes of both.",
  match: anyOf(
    ...[ReduceMax, ReduceMin, ReduceL1, ReduceL2, ReduceLogSumExp, ReduceSum, ReduceProd].map((op) => reductionOf(op, op)),
    reductionOf(ReduceSum, ReduceL1), reductionOf(ReduceSum, ReduceSumSquare),
  ),
  // Sums and products of floats are the other rule's.
  beside: ({ inner, outer, x }) => ((inner.op === ReduceSum || inner.op === ReduceProd) && !isInteger(x.type.dtype) ? undefined : [inner, outer]),
  where: [knownAxes, (m) => wraps.has(m.inner.op) || ofFloats(m)],
  numerics: reassociates(1e-5),
  rewrite: (m, edit) => reduceOnce(m, m.inner.op, edit),
  example: reductions({ inner: ReduceMax }),
  examples: [
    reductions({ inner: ReduceMin, axes: [[2], [0]], keep: [0, 0] }),
    reductions({ inner: ReduceL1, axes: [[0], [1]], keep: [0, 1] }),
    reductions({ inner: ReduceL2, axes: [[0, 2], [1]], keep: [1, 0] }),
    reductions({ inner: ReduceLogSumExp, axes: [[-1], [-1]], keep: [0, 0] }),
    reductions({ inner: ReduceL1, outer: ReduceSum }),
    reductions({ inner: ReduceSumSquare, outer: ReduceSum, axes: [[1, 2], [1]], keep: [1, 0] }),
    reductions({ inner: ReduceSum, dtype: "int32", axes: [[2], [1]], keep: [0, 0] }),
    reductions({ inner: ReduceProd, dtype: "int32" }),
  ],
  refuses: {
    axes: reductions({ inner: ReduceMax, computed: true }),
    dtype: reductions({ inner: ReduceL1, dtype: "int32" }),
    "interior-value-used": reductions({ inner: ReduceMax, more: (b, first) => [b.add(Neg, [first])] }),
  },
});
