/** x / √(mean(x²) + ε) · γ over the last axes or over one, spelled out, is RMSNormalization. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Div, Mul, Pow, Reciprocal, ReduceMean, Relu, RMSNormalization, Sqrt } from "../ops/index.ts";
import { anyOf, commuted, numberIn, value, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import type { Node } from "../graph/graph.ts";
import { defineRule, isRefusal, reassociates, refuse } from "../rewrite/rule.ts";
import { byItsDeviation, normalisedAxes, parameterOf, Rows, storesFloat32 } from "./normalisation.ts";

const normal = byItsDeviation(value("x"));
interface Match { readonly x: Value; readonly square: Node; readonly epsilon: ConstantValue; readonly gamma: Value | undefined }

const build = (divide: (b: GraphBuilder, x: Value, deviation: Value) => Value, end: (b: GraphBuilder, normal: Value) => readonly Value[], axes = [-1], keepdims = 1) => () => {
  const b = new GraphBuilder();
  const x = b.input("x", ["n", 6, 6]);
  const mean = b.add(ReduceMean, [b.add(Pow, [x, 2]), b.int64(...axes)], { keepdims });
  return b.build(...end(b, divide(b, x, b.add(Sqrt, [b.add(Add, [mean, 1e-5])]))));
};
const divided = (b: GraphBuilder, x: Value, by: Value): Value => b.add(Div, [x, by]);
const scaled = (b: GraphBuilder, n: Value): readonly Value[] => [b.add(Mul, [b.random([6]), n])];

export const recogniseRmsNormalization = defineRule({
  name: "recognise-rms-normalization",
  doc: "Normalisation of rows by their root mean square, with the square as power or product, the root as divisor or factor, with or without scale, becomes RMSNormalization.",
  stage: "recognise",
  match: anyOf(commuted(Mul, [normal, value("gamma")]), normal) as Pattern<Match>,
  hallmarks: [ReduceMean],
  where: [({ x }) => storesFloat32.has(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: only float32 and narrower floats are recognised")],
  numerics: reassociates(2e-5),
  rewrite(m, edit) {
    const axes = normalisedAxes(m.x, m.square);
    if (isRefusal(axes)) return axes;
    const rows = new Rows(m.x, axes), scale = parameterOf(m.gamma, 1, rows, "scale", edit);
    if (isRefusal(scale)) return scale;
    return rows.apply(edit, (x, axis) => edit.insert(RMSNormalization, [x, scale()], { axis, epsilon: numberIn(m.epsilon) }));
  },
  example: build(divided, scaled),
  examples: [
    build((b, x, by) => b.add(Mul, [x, b.add(Reciprocal, [by])]), scaled),
    build((b, x, by) => b.add(Mul, [b.add(Div, [1, by]), x]), (_, n) => [n]),
    build(divided, scaled, [1, 2]),
    build(divided, (b, n) => [b.add(Mul, [b.random([6, 1]), n])], [1]),
    build(divided, (b, n) => [b.add(Mul, [n, b.random([6, 1])])]),
    build(divided, (b, n) => [...scaled(b, n), b.add(Relu, [n])]),
  ],
  refuses: {
    keepdims: build((b, x, by) => b.add(Div, [x, by]), scaled, [-1], 0),
    axes: build(divided, scaled, [0, 1]),
    "interior-value-used": build((b, x, by) => b.add(Add, [b.add(Relu, [by]), b.add(Div, [x, by])]), scaled),
  },
});
