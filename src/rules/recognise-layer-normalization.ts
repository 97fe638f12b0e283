/** (x − mean) / √(variance + ε) · γ + β over the last axes or over one, spelled out, is LayerNormalization. */
import { present } from "../core/assert.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Div, LayerNormalization, Mul, Pow, ReduceMean, Reciprocal, Relu, Sqrt, Sub } from "../ops/index.ts";
import { numberIn, op, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse } from "../rewrite/rule.ts";
import { byItsDeviation, meanOf, normalisedAxes, parametersOf, Rows, scaledAndShifted, storesFloat32 } from "./normalisation.ts";

const centred = op(Sub, [value("x"), meanOf(value("x"), "mean")]) as Pattern<{ readonly x: Value; readonly mean: Node }>;

interface Spelling {
  readonly square?: (b: GraphBuilder, d: Value) => Value;
  readonly divide?: (b: GraphBuilder, d: Value, deviation: Value) => Value;
  readonly end?: (b: GraphBuilder, normal: Value) => Value | readonly Value[];
  readonly axes?: readonly number[];
  readonly squareAxes?: readonly number[];
  readonly keepdims?: number;
  readonly dims?: readonly (number | string)[];
}
const build = (s: Spelling) => () => {
  const b = new GraphBuilder();
  const x = b.input("x", s.dims ?? ["n", 4, 6]);
  const mean = (v: Value, keepdims: number, axes: readonly number[]): Value => b.add(ReduceMean, [v, b.int64(...axes)], { keepdims });
  const d = b.add(Sub, [x, mean(x, s.keepdims ?? 1, s.axes ?? [-1])]);
  const variance = mean((s.square ?? ((g, v) => g.add(Pow, [v, 2])))(b, d), 1, s.squareAxes ?? s.axes ?? [-1]);
  const normal = (s.divide ?? ((g, v, by) => g.add(Div, [v, by])))(b, d, b.add(Sqrt, [b.add(Add, [variance, 1e-5])]));
  const y = (s.end ?? affine([6]))(b, normal);
  return b.build(...(isList(y) ? y : [y]));
};
const isList = (y: Value | readonly Value[]): y is readonly Value[] => Array.isArray(y);
const affine = (gamma: readonly number[], beta = gamma) => (b: GraphBuilder, n: Value): Value => b.add(Add, [b.add(Mul, [n, b.random(gamma)]), b.random(beta)]);

export const recogniseLayerNormalization = defineRule({
  name: "recognise-layer-normalization",
  gePass: "LayerNormFusionPass",
  doc: "Layer normalisation over the last axes or a single one (the channels of a picture), with the square as power or product, the root as divisor or factor, with or without scale and bias, becomes LayerNormalization.",
  stage: "recognise",
  match: scaledAndShifted(byItsDeviation(centred)),
  hallmarks: [ReduceMean],
  where: [({ x }) => storesFloat32.has(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: only float32 and narrower floats are recognised")],
  numerics: reassociates(2e-5),
  rewrite(m, edit) {
    const axes = normalisedAxes(m.x, m.mean, m.square);
    if (isRefusal(axes)) return axes;
    const rows = new Rows(m.x, axes), parameters = parametersOf(m, rows, edit);
    if (isRefusal(parameters)) return parameters;
    const { scale, bias } = parameters;
    return rows.apply(edit, (x, axis) => edit.insert(LayerNormalization, [x, scale(), ...(bias ? [bias()] : [])], { axis, epsilon: numberIn(m.epsilon) }));
  },
  example: build({}),
  examples: [
    build({ square: (b, d) => b.add(Mul, [d, d]) }),
    build({ divide: (b, d, by) => b.add(Mul, [b.add(Reciprocal, [by]), d]) }),
    build({ divide: (b, d, by) => b.add(Mul, [d, b.add(Div, [1, by])]), end: (_, n) => n }),
    build({ end: (b, n) => b.add(Mul, [b.random([6]), n]) }),
    build({ end: (b, n) => b.add(Add, [n, b.random([6])]) }),
    build({ end: (b, n) => b.add(Add, [n, b.input("residual", ["n", 4, 6])]) }),
    build({ axes: [1, 2], dims: ["n", 4, 6], end: affine([4, 6], [6]) }),
    build({ end: affine([1, 6], [1]) }),
    build({ dims: [2, 4, 6], end: affine([4, 6]) }),
    build({ axes: [1], dims: ["n", 4, 5, 6], end: affine([4, 1, 1], [1, 4, 1, 1]) }),
    build({ axes: [1], dims: ["n", 4, "w"], end: (_, n) => n }),
    build({ end: (b, n) => [affine([6])(b, n), b.add(Relu, [n])] }),
  ],
  refuses: {
    keepdims: build({ keepdims: 0, dims: [6, 6], end: (_, n) => n }),
    axes: build({ axes: [1], squareAxes: [2], end: (_, n) => n }),
    "interior-value-used": build({ divide: (b, d, by) => b.add(Add, [b.add(Relu, [d]), b.add(Div, [d, by])]) }),
    "graph-output": build({ end: (b, n) => [affine([6])(b, n), present(n.producer?.node.inputs[1], "the deviation")] }),
    "unknown-size": build({ dims: [2, 3, "d"], end: (_, n) => n }),
  },
});
