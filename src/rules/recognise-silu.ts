/** x · sigmoid(αx) is Swish. */
import { GraphBuilder } from "../graph/build.ts";
import { Add, Mul, Relu, Sigmoid, Swish } from "../ops/index.ts";
import { anyOf, commuted, numberIn, op, scalar, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";

export const recogniseSilu = defineRule({
  name: "recognise-silu",
  doc: "x times sigmoid(x), or times sigmoid(αx) with a constant α, becomes Swish.",
  stage: "recognise",
  match: anyOf(
    commuted(Mul, [value("x"), op(Sigmoid, [value("x")])]),
    commuted(Mul, [value("x"), op(Sigmoid, [commuted(Mul, [value("x"), scalar("alpha")])])]),
  ),
  numerics: reassociates(),
  rewrite: ({ x, alpha }, edit) => edit.insert(Swish, [x], { alpha: alpha ? numberIn(alpha) : 1 }),
  example() {
    const b = new GraphBuilder();
    const x = b.add(Add, [b.input("x", ["n", 5]), 0.1]);
    return b.build(b.add(Mul, [b.add(Sigmoid, [x]), x]));
  },
  examples: [() => {
    const b = new GraphBuilder();
    const x = b.input("x", [3, 5]);
    return b.build(b.add(Mul, [x, b.add(Sigmoid, [b.add(Mul, [1.702, x])])]));
  }],
  refuses: {
    "different-operand"() {
      const b = new GraphBuilder();
      return b.build(b.add(Mul, [b.input("x", [3]), b.add(Sigmoid, [b.input("y", [3])])]));
    },
    "interior-value-used"() {
      const b = new GraphBuilder();
      const x = b.input("x", [3]), gate = b.add(Sigmoid, [x]);
      return b.build(b.add(Mul, [x, gate]), b.add(Relu, [gate]));
    },
    "constant-differs"() {
      const b = new GraphBuilder();
      const x = b.input("x", [3]);
      return b.build(b.add(Mul, [x, b.add(Sigmoid, [b.add(Mul, [x, b.random([3])])])]));
    },
  },
});
