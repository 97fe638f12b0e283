/** x/2 · (1 + erf(x/√2)), with the half in any of its places, is Gelu. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Div, Erf, Gelu, Mul, Relu } from "../ops/index.ts";
import { anyOf, commuted, op, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { plus, times } from "./spellings.ts";

type X = { readonly x: Value };
const x = (): Pattern<X> => value("x");
const gate = (): Pattern<X> => plus(op(Erf, [times(x(), Math.SQRT1_2)]) as Pattern<X>, 1);
const build = (spell: (b: GraphBuilder, x: Value, gate: Value) => Value, root: (b: GraphBuilder, x: Value) => Value = (b, v) => b.add(Div, [v, Math.SQRT2])) => () => {
  const b = new GraphBuilder();
  const v = b.input("x", ["n", 7]);
  return b.build(spell(b, v, b.add(Add, [1, b.add(Erf, [root(b, v)])])));
};

export const recogniseGelu = defineRule({
  name: "recognise-gelu",
  gePass: "GeluFusionPass",
  doc: "The error function form of GELU, x/2 · (1 + erf(x/√2)), in every order, with the root as divisor or factor, becomes Gelu.",
  stage: "recognise",
  match: anyOf(
    times(commuted(Mul, [x(), gate()]) as Pattern<X>, 0.5),
    commuted(Mul, [x(), times(gate(), 0.5)]),
    commuted(Mul, [times(x(), 0.5), gate()]),
  ),
  hallmarks: [Erf],
  numerics: reassociates(2e-5),
  rewrite: (m, edit) => edit.insert(Gelu, [m.x]),
  example: build((b, v, g) => b.add(Mul, [b.add(Mul, [v, g]), 0.5])),
  examples: [
    build((b, v, g) => b.add(Mul, [b.add(Mul, [0.5, v]), g]), (b, v) => b.add(Mul, [v, 0.7071])),
    build((b, v, g) => b.add(Mul, [b.add(Mul, [g, 0.5]), v]), (b, v) => b.add(Div, [v, 1.4142135])),
    build((b, v, g) => b.add(Div, [b.add(Mul, [g, v]), 2]), (b, v) => b.add(Mul, [0.70710677, v])),
  ],
  refuses: {
    "constant-differs": build((b, v, g) => b.add(Mul, [b.add(Mul, [v, g]), 0.5]), (b, v) => b.add(Div, [v, 1.5])),
    "different-operand": build((b, _, g) => b.add(Mul, [b.add(Mul, [b.input("y", ["n", 7]), g]), 0.5])),
    "interior-value-used"() {
      const b = new GraphBuilder();
      const v = b.input("x", [3]), g = b.add(Add, [b.add(Erf, [b.add(Div, [v, Math.SQRT2])]), 1]);
      return b.build(b.add(Mul, [b.add(Mul, [v, g]), 0.5]), b.add(Relu, [g]));
    },
  },
});
