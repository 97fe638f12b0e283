/** exp(x − max) / Σ exp(x − max) along one axis, spelled out, is Softmax; x − max − ln Σ exp(x − max) is LogSoftmax. */
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { Div, Exp, Log, LogSoftmax, Mul, Reciprocal, ReduceMax, ReduceSum, Relu, Softmax, Sub } from "../ops/index.ts";
import { reducedAxes } from "../ops/reduce.ts";
import { anyOf, anything, commuted, op, optionalInput, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse, type Verdict } from "../rewrite/rule.ts";
import { storesFloat32 } from "./normalisation.ts";
import { inverted } from "./spellings.ts";

interface Match { readonly x: Value; readonly max: Node; readonly sum: Node }
const kept = { wants: "keepdims 1", code: "keepdims", holds: (a: Node["attributes"]): boolean => a["keepdims"] === 1 };
const shifted = op(Sub, [value("x"), op(ReduceMax, [value("x"), optionalInput(anything())], { as: "max", attributes: kept })]);
const powers = op(Exp, [shifted]);
const sum = op(ReduceSum, [powers, optionalInput(anything())], { as: "sum", attributes: kept });

/** The one axis that a node reduces. */
function axisOf(node: Node, rank: number): number | undefined {
  const axes = reducedAxes(rank, node.inputs[1] && typeWithConstant(node.inputs[1]), { noop_with_empty_axes: Number(node.attributes["noop_with_empty_axes"]) });
  return axes?.length === 1 ? axes[0] : undefined;
}
function oneAxis({ x, max, sum: total }: Match): Verdict {
  const rank = x.type.shape.length, axis = axisOf(max, rank);
  if (axis === undefined) return refuse("axes", `'${max.name}' does not reduce one axis that is known`, "reduce one axis");
  return axisOf(total, rank) === axis || refuse("axes", `'${total.name}' does not sum over the axis ${axis} that '${max.name}' reduces`, "reduce the same axis");
}

type Sum = (b: GraphBuilder, e: Value, axis: number) => Value;
const overAxis: Sum = (b, e, axis) => b.add(ReduceSum, [e, b.int64(axis)]);
type End = (b: GraphBuilder, e: Value, total: Value, d: Value) => Value;
const divided: End = (b, e, total) => b.add(Div, [e, total]);
const build = (end: End, { axis = -1, total = overAxis, most = axis }: { readonly axis?: number; readonly total?: Sum; readonly most?: number } = {}, more?: (b: GraphBuilder, e: Value) => Value) => () => {
  const b = new GraphBuilder(), x = b.input("x", ["n", 4, 5]);
  const d = b.add(Sub, [x, b.add(ReduceMax, [x, b.int64(most)])]), e = b.add(Exp, [d]), y = end(b, e, total(b, e, axis), d);
  return b.build(y, ...(more ? [more(b, e)] : []));
};

export const recogniseSoftmax = defineRule({
  name: "recognise-softmax",
  doc: "exp(x − max) over its sum along one axis, as division or by the reciprocal, becomes Softmax; x − max less the logarithm of that sum becomes LogSoftmax. Spelled out it takes a call that writes the powers and reads them twice.",
  stage: "recognise",
  match: anyOf(
    op(Div, [powers, sum]),
    commuted(Mul, [powers, inverted(sum)]),
    op(Sub, [shifted, op(Log, [sum])]),
  ) as Pattern<Match>,
  hallmarks: [ReduceSum],
  where: [
    ({ x }) => storesFloat32.has(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: only float32 and narrower floats are recognised"),
    oneAxis,
  ],
  numerics: reassociates(1e-5),
  rewrite: ({ x, max }, edit) => edit.insert(edit.root.op === Sub ? LogSoftmax : Softmax, [x], { axis: axisOf(max, x.type.shape.length) ?? -1 }),
  example: build(divided),
  examples: [
    build(divided, { axis: 1 }),
    build((b, e, total) => b.add(Mul, [b.add(Reciprocal, [total]), e])),
    build((b, _, total, d) => b.add(Sub, [d, b.add(Log, [total])])),
  ],
  refuses: {
    axes: build(divided, { most: 1 }),
    "interior-value-used": build(divided, {}, (b, e) => b.add(Relu, [e])),
    "different-operand": build((b, e, total, d) => b.add(Div, [b.add(Exp, [b.add(Sub, [d, b.add(ReduceMax, [d, b.int64(-1)])])]), total])),
    keepdims: build(divided, { total: (b, e) => b.add(ReduceSum, [e, b.int64(0)], { keepdims: 0 }) }),
  },
});
