/** Reshape to a matrix of the first axis and the rest as Flatten, which reads no shape when it runs. */
import { dimEqual } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph } from "../graph/graph.ts";
import { Flatten, Reshape } from "../ops/index.ts";
import { constant, op, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Rule } from "../rewrite/rule.ts";

const build = (...target: readonly number[]) => (): Graph => {
  const b = new GraphBuilder();
  return b.build(b.add(Reshape, [b.input("x", ["n", 3, 4]), b.int64(...target)]));
};

export const flattenReshape = (): Rule => defineRule({
  name: "flatten-reshape",
  doc: "A Reshape that keeps the first axis and joins the others becomes Flatten.",
  match: op(Reshape, [value("x"), constant("target")]),
  where: [({ x, target }, root) => {
    const from = x.type.shape, to = root.outputs[0]?.type.shape ?? [];
    return (to.length === 2 && from.length > 1 && dimEqual(from[0] ?? -1, to[0] ?? -2)) || refuse("shape", `'${target.name}' does not join all axes but the first`, "leave it as it is");
  }],
  numerics: exact,
  rewrite: ({ x }, edit) => edit.insert(Flatten, [x], { axis: 1 }),
  example: build(0, -1),
  examples: [build(-1, 12)],
  refuses: { shape: build(0, 2, 6) },
});
