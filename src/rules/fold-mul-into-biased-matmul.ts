/**
 * (x·W + b) · c is x·(W·c) + b·c: the factor behind a projection with a bias, such as the scale of the query, goes into
 * both, so that nothing follows one projection alone and those beside it can be joined with it.
 */
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Div, MatMul, Mul, Relu } from "../ops/index.ts";
import { anyOf, commuted, op, parameter, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates } from "../rewrite/rule.ts";
import { perChannel } from "./affine.ts";
import { oneChannel } from "./channel-map.ts";
import { intoMatMul, outputShape, type Operands } from "./contraction.ts";
import { roundOnce, whyNotAdded } from "./folded-tensor.ts";

interface Match extends Operands { readonly summand: ConstantValue; readonly sum: Node; readonly factor: ConstantValue }
const biased = commuted(Add, [intoMatMul.pattern, parameter("summand")], { as: "sum" });

type Make = (b: GraphBuilder, y: Value) => Value | readonly Value[];
const build = (more: Make, summand: readonly number[] = [4]) => () => {
  const b = new GraphBuilder(), y = b.add(Add, [b.random(summand), b.add(MatMul, [b.input("x", [2, "n", 5]), b.random([5, 4])])]), made = more(b, y);
  return b.build(...(isList(made) ? made : [made]));
};
const isList = (x: Value | readonly Value[]): x is readonly Value[] => Array.isArray(x);

export const foldMulIntoBiasedMatMul = defineRule({
  name: "fold-mul-into-biased-matmul",
  doc: "MatMul by a constant and a bias, times or divided by a constant of one value a column: the factors go into the matrix and the bias.",
  match: anyOf(commuted(Mul, [biased, parameter("factor")]), op(Div, [biased, parameter("factor")])) as Pattern<Match>,
  hallmarks: [MatMul],
  numerics: reassociates(),
  rewrite(m, edit) {
    const shape = outputShape(m), channels = intoMatMul.channels(m), { name } = m.sum;
    const factors = perChannel(m.factor, shape, channels);
    if (isRefusal(factors)) return factors;
    const summands = perChannel(m.summand, shape, channels);
    if (isRefusal(summands)) return summands;
    const scale = edit.root.op === Div ? factors.map((c) => 1 / c) : factors, { dtype } = m.summand.constant;
    const shift = summands.map((b, c) => b * (scale[c] ?? NaN)), what = `the bias of '${m.anchor.name}'`;
    const bias = whyNotAdded(what, dtype, shift) ?? roundOnce(what, dtype, [shift.length], shift, oneChannel);
    if (isRefusal(bias)) return bias;
    const product = intoMatMul.fold(m, { scale, shift: new Float64Array(scale.length) }, edit);
    return isRefusal(product) ? product : edit.insert(Add, [product, edit.constant(bias, `${m.anchor.name}_bias`)], {}, { name });
  },
  example: build((b, y) => b.add(Mul, [y, 0.3])),
  examples: [
    build((b, y) => b.add(Div, [y, b.random([4], { low: 0.5, high: 2 })])),
    build((b, y) => b.add(Mul, [b.random([4]), y]), [1]),
  ],
  refuses: {
    "not-per-channel": build((b, y) => b.add(Mul, [y, b.random([2, 1, 1])])),
    "shape-grows": build((b, y) => b.add(Mul, [y, b.random([2, 1, 1, 1])])),
    "not-constant": build((b, y) => b.add(Mul, [y, b.input("s", [1])])),
    "precision-loss": build((b, y) => b.add(Mul, [y, 1e-42])),
    "scale-range": build((b, y) => b.add(Div, [y, 0])),
    "interior-value-used": build((b, y) => [b.add(Mul, [y, 0.3]), b.add(Relu, [y])]),
  },
});
