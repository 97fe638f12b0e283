/** x · clip(x + 3, 0, 6) / 6, in any order, is HardSwish. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Clip, Div, HardSigmoid, HardSwish, Mul, Relu } from "../ops/index.ts";
import { anyOf, commuted, op, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { clippedToSix, shortened, times } from "./spellings.ts";

const x = (): Pattern<{ readonly x: Value }> => value("x");
const gate = op(HardSigmoid, [x()], {
  attributes: { wants: "alpha 1/6 and beta 0.5", holds: (a) => Math.abs(Number(a["alpha"]) * 6 - 1) <= shortened && a["beta"] === 0.5 },
});
const build = (spell: (b: GraphBuilder, x: Value, clipped: Value) => Value, low = 0) => () => {
  const b = new GraphBuilder();
  const v = b.input("x", ["n", 7]);
  return b.build(spell(b, v, b.add(Clip, [b.add(Add, [v, 3]), low, 6])));
};

export const recogniseHardSwish = defineRule({
  name: "recognise-hard-swish",
  doc: "x · clip(x + 3, 0, 6) / 6, with the sixth in any of its places, or x · HardSigmoid(x), becomes HardSwish.",
  stage: "recognise",
  match: anyOf(
    times(commuted(Mul, [x(), clippedToSix(x())]) as Pattern<{ readonly x: Value }>, 1 / 6),
    commuted(Mul, [x(), times(clippedToSix(x()), 1 / 6)]),
    commuted(Mul, [times(x(), 1 / 6), clippedToSix(x())]),
    commuted(Mul, [x(), gate]),
  ),
  hallmarks: [Clip, HardSigmoid],
  numerics: reassociates(3e-5),
  rewrite: (m, edit) => edit.insert(HardSwish, [m.x]),
  example: build((b, v, clipped) => b.add(Div, [b.add(Mul, [v, clipped]), 6])),
  examples: [
    build((b, v, clipped) => b.add(Mul, [b.add(Mul, [clipped, v]), 1 / 6])),
    build((b, v, clipped) => b.add(Mul, [b.add(Div, [clipped, 6]), v])),
    build((b, v, clipped) => b.add(Mul, [b.add(Mul, [0.166667, clipped]), v])),
    build((b, v, clipped) => b.add(Mul, [clipped, b.add(Div, [v, 6])])),
    build((b, v) => b.add(Mul, [b.add(HardSigmoid, [v], { alpha: Math.fround(1 / 6), beta: 0.5 }), v])),
  ],
  refuses: {
    "constant-differs": build((b, v, clipped) => b.add(Div, [b.add(Mul, [v, clipped]), 6]), -1),
    "different-operand": build((b, _, clipped) => b.add(Div, [b.add(Mul, [b.input("y", ["n", 7]), clipped]), 6])),
    "attribute-differs": build((b, v) => b.add(Mul, [b.add(HardSigmoid, [v]), v])),
    "interior-value-used"() {
      const b = new GraphBuilder();
      const v = b.input("x", [3]), product = b.add(Mul, [v, b.add(Clip, [b.add(Add, [v, 3]), 0, 6])]);
      return b.build(b.add(Div, [product, 6]), b.add(Relu, [product]));
    },
  },
});
