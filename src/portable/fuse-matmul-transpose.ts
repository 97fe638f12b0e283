/** MatMul of matrices that are transposed first as onnxruntime's FusedMatMul. */
import { GraphBuilder } from "../graph/build.ts";
import type { Graph } from "../graph/graph.ts";
import { FusedMatMul, MatMul, Transpose } from "../ops/index.ts";
import { anyOf, op, value, type Predicate } from "../rewrite/pattern.ts";
import type { Attributes } from "../graph/op.ts";
import { defineRule, exact, type Rule } from "../rewrite/rule.ts";
import { kernelFor, type Provider } from "./kernels.ts";

/** A permutation that exchanges the last two axes alone. */
const lastTwo: Predicate<Attributes> = {
  wants: "a permutation of the last two axes alone", code: "other-axes",
  holds({ perm }) {
    const axes = Array.isArray(perm) ? perm.map(Number) : [], rank = axes.length;
    return rank >= 2 && axes.every((a, i) => a === (i < rank - 2 ? i : i === rank - 2 ? rank - 1 : rank - 2));
  },
};
const build = (perm: readonly number[], dtype: "float32" | "float64" = "float32") => (): Graph => {
  const b = new GraphBuilder();
  return b.build(b.add(MatMul, [b.input("x", [2, 4, 3], dtype), b.add(Transpose, [b.input("y", [2, 5, 3], dtype)], { perm })]));
};
const transposed = <const N extends string, const A extends string>(name: N, as: A) => op(Transpose, [value(name)], { as, attributes: lastTwo, shared: true });

export const fuseMatMulTranspose = (provider: Provider): Rule => defineRule({
  name: "fuse-matmul-transpose",
  doc: "MatMul of operands whose last two axes a Transpose has exchanged becomes com.microsoft.FusedMatMul.",
  match: anyOf(op(MatMul, [transposed("a", "first"), transposed("b", "second")]), op(MatMul, [transposed("a", "first"), value("b")]), op(MatMul, [value("a"), transposed("b", "second")])),
  where: [({ a }) => kernelFor(provider, FusedMatMul, a)],
  numerics: exact,
  rewrite: ({ a, b, first, second }, edit) => edit.insert(FusedMatMul, [a, b], { transA: first ? 1 : 0, transB: second ? 1 : 0 }),
  example: build([0, 2, 1]),
  examples: [() => {
    const b = new GraphBuilder();
    return b.build(b.add(MatMul, [b.add(Transpose, [b.input("x", [3, 4])], { perm: [1, 0] }), b.add(Transpose, [b.input("y", [5, 3])], { perm: [1, 0] })]));
  }],
  refuses: {
    "other-axes"() {
      const b = new GraphBuilder();
      return b.build(b.add(MatMul, [b.input("x", [2, 4, 3]), b.add(Transpose, [b.input("y", [3, 2, 5])], { perm: [1, 0, 2] })]));
    },
    "no-kernel": build([0, 2, 1], "float64"),
  },
});
