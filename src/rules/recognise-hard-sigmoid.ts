/** clip(αx + β, 0, 1) and clip(x + 3, 0, 6) / 6 are HardSigmoid. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Clip, Div, HardSigmoid, Mul, Relu } from "../ops/index.ts";
import { anyOf, commuted, literal, numberIn, op, scalar, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { clippedToSix, times } from "./spellings.ts";

const build = (spell: (b: GraphBuilder, x: Value) => Value) => () => {
  const b = new GraphBuilder();
  return b.build(spell(b, b.input("x", ["n", 7])));
};

export const recogniseHardSigmoid = defineRule({
  name: "recognise-hard-sigmoid",
  doc: "clip(αx + β, 0, 1) with constants α and β, and clip(x + 3, 0, 6) / 6, become HardSigmoid.",
  stage: "recognise",
  match: anyOf(
    op(Clip, [commuted(Add, [commuted(Mul, [value("x"), scalar("alpha")]), scalar("beta")]), literal(0), literal(1)]),
    times(clippedToSix(value("x")), 1 / 6),
  ),
  hallmarks: [Clip],
  numerics: reassociates(3e-5),
  rewrite: ({ x, alpha, beta }, edit) =>
    edit.insert(HardSigmoid, [x], { alpha: alpha ? numberIn(alpha) : Math.fround(1 / 6), beta: beta ? numberIn(beta) : 0.5 }),
  example: build((b, x) => b.add(Clip, [b.add(Add, [b.add(Mul, [0.2, x]), 0.5]), 0, 1])),
  examples: [
    build((b, x) => b.add(Div, [b.add(Clip, [b.add(Add, [x, 3]), 0, 6]), 6])),
    build((b, x) => b.add(Mul, [b.add(Clip, [b.add(Add, [x, 3]), 0, 6]), 0.16667])),
  ],
  refuses: {
    "constant-differs": build((b, x) => b.add(Clip, [b.add(Add, [b.add(Mul, [0.2, x]), 0.5]), 0, 2])),
    "interior-value-used"() {
      const b = new GraphBuilder();
      const sum = b.add(Add, [b.add(Mul, [0.2, b.input("x", [3])]), 0.5]);
      return b.build(b.add(Clip, [sum, 0, 1]), b.add(Relu, [sum]));
    },
  },
});
