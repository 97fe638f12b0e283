/** max(x, αx) is LeakyRelu for α between 0 and 1. */
import { GraphBuilder } from "../graph/build.ts";
import { LeakyRelu, Max, Mul } from "../ops/index.ts";
import { commuted, numberIn, scalar, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";

const build = (alpha: number) => () => {
  const b = new GraphBuilder();
  const x = b.input("x", ["n", 7]);
  return b.build(b.add(Max, [b.add(Mul, [x, alpha]), x]));
};

export const recogniseLeakyRelu = defineRule({
  name: "recognise-leaky-relu",
  doc: "max(x, αx) with a constant α between 0 and 1 becomes LeakyRelu.",
  stage: "recognise",
  match: commuted(Max, [value("x"), commuted(Mul, [value("x"), scalar("alpha")])]),
  where: [({ x, alpha }) => {
    const a = numberIn(alpha);
    if (alpha.constant.dims.length > x.type.shape.length) return refuse("shape-grows", `'${alpha.name}' has rank ${alpha.constant.dims.length}, '${x.name}' has ${x.type.shape.length}`, "use a scalar");
    return a > 0 && a < 1 ? true : refuse("constant-differs", `α is ${a}, wanted one between 0 and 1`, "use LeakyRelu itself");
  }],
  numerics: exact,
  rewrite: ({ x, alpha }, edit) => edit.insert(LeakyRelu, [x], { alpha: numberIn(alpha) }),
  example: build(0.1),
  refuses: { "constant-differs": build(1.5) },
});
