/** x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), in its usual spellings, is Gelu with the tanh approximation. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Gelu, Mul, Pow, Relu, Tanh } from "../ops/index.ts";
import { anyOf, commuted, op, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { cubed, plus, squared, times } from "./spellings.ts";

type X = { readonly x: Value };
const outer = Math.sqrt(2 / Math.PI), inner = 0.044715;
const x = (): Pattern<X> => value("x");
const argument = (): Pattern<X> => anyOf(
  times(commuted(Add, [x(), times(cubed(x()), inner)]) as Pattern<X>, outer),
  commuted(Mul, [times(x(), outer), plus(times(squared(x()), inner), 1)]),
  commuted(Mul, [x(), plus(times(squared(x()), inner * outer), outer)]),
  times(commuted(Mul, [x(), plus(times(squared(x()), inner), 1)]) as Pattern<X>, outer),
) as Pattern<X>;
const gate = (): Pattern<X> => plus(op(Tanh, [argument()]) as Pattern<X>, 1);
const build = (spell: (b: GraphBuilder, x: Value) => Value, half: (b: GraphBuilder, x: Value, gate: Value) => Value = (b, v, g) => b.add(Mul, [b.add(Mul, [v, 0.5]), g])) => () => {
  const b = new GraphBuilder();
  const v = b.input("x", ["n", 7]);
  return b.build(half(b, v, b.add(Add, [b.add(Tanh, [spell(b, v)]), 1])));
};
const byPower = (b: GraphBuilder, v: Value, factor = inner): Value => b.add(Mul, [outer, b.add(Add, [v, b.add(Mul, [factor, b.add(Pow, [v, 3])])])]);

export const recogniseGeluTanh = defineRule({
  name: "recognise-gelu-tanh",
  gePass: "GeluFusionPass",
  doc: "The tanh approximation of GELU, with its cube as power or product and its factors inside or outside, becomes Gelu with approximate = tanh.",
  stage: "recognise",
  match: anyOf(
    times(commuted(Mul, [x(), gate()]) as Pattern<X>, 0.5),
    commuted(Mul, [x(), times(gate(), 0.5)]),
    commuted(Mul, [times(x(), 0.5), gate()]),
  ),
  hallmarks: [Tanh],
  numerics: reassociates(3e-5),
  rewrite: (m, edit) => edit.insert(Gelu, [m.x], { approximate: "tanh" }),
  example: build(byPower),
  examples: [
    build((b, v) => b.add(Mul, [b.add(Mul, [v, outer]), b.add(Add, [1, b.add(Mul, [b.add(Mul, [v, v]), inner])])])),
    build((b, v) => b.add(Mul, [v, b.add(Add, [b.add(Mul, [b.add(Mul, [v, v]), inner * outer]), outer])]), (b, v, g) => b.add(Mul, [0.5, b.add(Mul, [g, v])])),
    build((b, v) => b.add(Mul, [0.7979, b.add(Add, [v, b.add(Mul, [b.add(Mul, [b.add(Mul, [v, v]), v]), inner])])]), (b, v, g) => b.add(Mul, [b.add(Mul, [g, 0.5]), v])),
  ],
  refuses: {
    "constant-differs": build((b, v) => byPower(b, v, 0.05)),
    "interior-value-used"() {
      const b = new GraphBuilder();
      const v = b.input("x", [3]), t = b.add(Tanh, [byPower(b, v)]);
      return b.build(b.add(Mul, [b.add(Mul, [v, 0.5]), b.add(Add, [t, 1])]), b.add(Relu, [t]));
    },
  },
});
