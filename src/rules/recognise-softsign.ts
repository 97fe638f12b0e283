/** x / (1 + |x|) is Softsign. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Abs, Add, Div, Neg, Softsign } from "../ops/index.ts";
import { op, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { plus } from "./spellings.ts";

const build = (over: (b: GraphBuilder, x: Value) => Value, one = 1) => () => {
  const b = new GraphBuilder();
  const x = b.input("x", ["n", 7]);
  return b.build(b.add(Div, [over(b, x), b.add(Add, [b.add(Abs, [x]), one])]));
};

export const recogniseSoftsign = defineRule({
  name: "recognise-softsign",
  doc: "x / (1 + |x|) becomes Softsign.",
  stage: "recognise",
  match: op(Div, [value("x"), plus(op(Abs, [value("x")]), 1)]),
  numerics: reassociates(),
  rewrite: ({ x }, edit) => edit.insert(Softsign, [x]),
  example: build((_, x) => x),
  refuses: { "different-operand": build((b, x) => b.add(Neg, [x])), "constant-differs": build((_, x) => x, 2) },
});
