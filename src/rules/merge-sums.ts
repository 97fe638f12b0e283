/** A sum of sums, a mean of means and a product of products of floats are one reduction, where overflow may differ. */
import { isInteger } from "../core/dtype.ts";
import { Neg, ReduceMean, ReduceProd, ReduceSum } from "../ops/index.ts";
import { anyOf } from "../rewrite/pattern.ts";
import { approximates, defineRule } from "../rewrite/rule.ts";
import { knownAxes, ofFloats, reduceOnce, reductionOf, reductions } from "./reductions.ts";

export const mergeSums = defineRule({
  name: "merge-sums",
  doc: "A sum of sums, a mean of means or a product of products of floats becomes one reduction over the axes of both.",
  match: anyOf(...[ReduceSum, ReduceMean, ReduceProd].map((op) => reductionOf(op, op))),
  // Sums and products of integers are the other rule's.
  beside: ({ inner, outer, x }) => (inner.op !== ReduceMean && isInteger(x.type.dtype) ? undefined : [inner, outer]),
  where: [knownAxes, ofFloats],
  numerics: approximates(1e-5, "in another order a sum or product may overflow where it did not"),
  rewrite: (m, edit) => reduceOnce(m, m.inner.op, edit),
  example: reductions({ inner: ReduceSum }),
  examples: [
    reductions({ inner: ReduceMean, axes: [[2], [1]], keep: [0, 0] }),
    reductions({ inner: ReduceMean, axes: [[1], [1, 2]] }),
    reductions({ inner: ReduceProd, axes: [[0], [1]], keep: [0, 1] }),
    reductions({ inner: ReduceMean, axes: [[1], [2]], keep: [1, 0] }),
  ],
  refuses: {
    approximate: reductions({ inner: ReduceSum }),
    axes: reductions({ inner: ReduceMean, computed: true }),
    dtype: reductions({ inner: ReduceMean, dtype: "int32" }),
    "interior-value-used": reductions({ inner: ReduceSum, more: (b, first) => [b.add(Neg, [first])] }),
  },
});
