/** log(1 + eˣ) is Softplus, which does not overflow. */
import { GraphBuilder } from "../graph/build.ts";
import { Add, Exp, Log, Softplus } from "../ops/index.ts";
import { op, value } from "../rewrite/pattern.ts";
import { approximates, defineRule } from "../rewrite/rule.ts";
import { plus } from "./spellings.ts";

const build = (one: number) => () => {
  const b = new GraphBuilder();
  return b.build(b.add(Log, [b.add(Add, [b.add(Exp, [b.input("x", ["n", 7])]), one])]));
};

export const recogniseSoftplus = defineRule({
  name: "recognise-softplus",
  doc: "log(1 + exp(x)) becomes Softplus.",
  stage: "recognise",
  match: op(Log, [plus(op(Exp, [value("x")]), 1)]),
  numerics: approximates(1e-5, "Softplus is finite where exp(x) overflows and the original is infinite"),
  rewrite: ({ x }, edit) => edit.insert(Softplus, [x]),
  example: build(1),
  refuses: { approximate: build(1), "constant-differs": build(2) },
});
