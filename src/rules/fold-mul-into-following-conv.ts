/** A factor of each input channel, as images are normalised, goes into the convolution that reads them. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Conv, Div, Mul, Relu } from "../ops/index.ts";
import { anyOf, commuted, constant, op, optionalInput, parameter, value } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates } from "../rewrite/rule.ts";
import { perChannel } from "./affine.ts";
import { scaleInputs } from "./input-channels.ts";

const build = (scale: (b: GraphBuilder, x: Value) => Value, used = false) => () => {
  const b = new GraphBuilder();
  const scaled = scale(b, b.input("x", ["n", 4, 5, 5]));
  return b.build(b.add(Conv, [scaled, b.random([6, 2, 3, 3])], { group: 2, pads: [1, 1, 1, 1] }), ...(used ? [b.add(Relu, [scaled])] : []));
};

export const foldMulIntoFollowingConv = defineRule({
  name: "fold-mul-into-following-conv",
  doc: "A product with, or quotient by, a constant of one value a channel, then Conv: the factors go into the weights.",
  match: op(Conv, [
    anyOf(commuted(Mul, [value("x"), parameter("factor")], { as: "product" }), op(Div, [value("x"), parameter("factor")], { as: "product" })),
    constant("weight"), optionalInput(value("bias")),
  ], { as: "conv" }),
  numerics: reassociates(),
  rewrite({ x, factor, product, weight, bias, conv }, edit) {
    const { shape } = x.type, count = weight.constant.dims[1] ?? 1;
    const factors = perChannel(factor, shape, { axis: 1, count: count * Number(conv.attributes["group"]) });
    if (isRefusal(factors)) return factors;
    const scaled = scaleInputs(weight, conv, product.op === Div ? factors.map((f) => 1 / f) : factors);
    return isRefusal(scaled) ? scaled : edit.insert(Conv, [x, edit.constant(scaled.tensor, `${weight.name}_folded`), bias], conv.attributes, { name: conv.name });
  },
  example: build((b, x) => b.add(Mul, [b.random([1, 4, 1, 1]), x])),
  examples: [build((b, x) => b.add(Div, [x, 255])), build((b, x) => b.add(Div, [x, b.random([4, 1, 1], { low: 0.5, high: 2 })]))],
  refuses: {
    "not-per-channel": build((b, x) => b.add(Mul, [x, b.random([5])])),
    "interior-value-used": build((b, x) => b.add(Mul, [x, 2]), true),
    "not-constant": build((b, x) => b.add(Mul, [x, b.input("s", [1])])),
    "not-finite": build((b, x) => b.add(Div, [x, 0])),
  },
});
