/** x · tanh(softplus(x)) is Mish. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Exp, Log, Mish, Mul, Relu, Softplus, Tanh } from "../ops/index.ts";
import { commuted, op, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { softplusOf } from "./spellings.ts";

const build = (soft: (b: GraphBuilder, x: Value) => Value, factor?: (b: GraphBuilder, x: Value) => Value) => () => {
  const b = new GraphBuilder();
  const x = b.input("x", ["n", 7]);
  return b.build(b.add(Mul, [factor ? factor(b, x) : x, b.add(Tanh, [soft(b, x)])]));
};

export const recogniseMish = defineRule({
  name: "recognise-mish",
  doc: "x · tanh(softplus(x)), with softplus as an operator or as log(1 + exp(x)), becomes Mish.",
  stage: "recognise",
  match: commuted(Mul, [value("x"), op(Tanh, [softplusOf(value("x"))])]),
  numerics: reassociates(),
  rewrite: ({ x }, edit) => edit.insert(Mish, [x]),
  example: build((b, x) => b.add(Softplus, [x])),
  examples: [build((b, x) => b.add(Log, [b.add(Add, [1, b.add(Exp, [x])])]))],
  refuses: {
    "different-operand": build((b, x) => b.add(Softplus, [x]), (b, x) => b.add(Relu, [x])),
    "constant-differs": build((b, x) => b.add(Log, [b.add(Add, [2, b.add(Exp, [x])])])),
    "graph-output"() {
      const b = new GraphBuilder();
      const x = b.input("x", [3]), t = b.add(Tanh, [b.add(Softplus, [x])]);
      return b.build(b.add(Mul, [x, t]), t);
    },
  },
});
