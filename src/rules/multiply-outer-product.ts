/**
 * A product over one term is a multiplication: columns times rows, such as frequencies times positions, then is
 * element-wise work that joins what is before and behind it.
 */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Cos, MatMul, Mul } from "../ops/index.ts";
import { op, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";

const build = (left: (b: GraphBuilder) => Value, right: (b: GraphBuilder) => Value) => () => {
  const b = new GraphBuilder();
  return b.build(b.add(Cos, [b.add(MatMul, [left(b), right(b)])]));
};

export const multiplyOuterProduct = defineRule({
  name: "multiply-outer-product",
  doc: "MatMul of columns by rows, over one term, where the rows are not constant (frequencies times positions of a rotary embedding), is Mul.",
  stage: "recognise",
  match: op(MatMul, [value("columns"), value("rows")]),
  beside: ({ columns, rows }, root) => (columns.type.shape.length > 1 && rows.type.shape.length > 1 && columns.type.shape.at(-1) === 1 && rows.type.shape.at(-2) === 1 ? [root] : undefined),
  where: [({ rows }) => !rows.constant || refuse("constant", `'${rows.name}' is constant`, "none: a projection of one number is joined with those beside it")],
  numerics: reassociates(),
  rewrite: ({ columns, rows }, edit) => edit.insert(Mul, [columns, rows]),
  example: build((b) => b.random([1, 4, 1]), (b) => b.input("positions", ["n", 1, "s"])),
  examples: [build((b) => b.input("x", [3, 1]), (b) => b.input("y", ["n", 2, 1, 5]))],
  refuses: { constant: build((b) => b.input("x", ["n", 3, 1]), (b) => b.random([1, 4])) },
});
