/** A sum and the normalisation of its rows as onnxruntime's SkipLayerNormalization, whose fourth output is the sum. */
import { dimEqual } from "../core/dim.ts";
import { present } from "../core/assert.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Add, LayerNormalization, Neg, RMSNormalization, SimplifiedLayerNormalization, SkipLayerNormalization, SkipSimplifiedLayerNormalization } from "../ops/index.ts";
import { anyOf, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse, type Rule } from "../rewrite/rule.ts";
import { kernelFor, type Provider } from "./kernels.ts";

const sum = op(Add, [value("a"), value("b")], { as: "sum", shared: true });
const skipping = (normalization: OpDef): OpDef => (normalization === LayerNormalization ? SkipLayerNormalization : SkipSimplifiedLayerNormalization);
const isLastAxis = ({ attributes }: Node, rank: number): boolean => [-1, rank - 1].includes(Number(attributes["axis"]));

const build = (make: (b: GraphBuilder, sum: Value) => readonly Value[], { dtype = "float32", other = ["n", 3, 4] }: { readonly dtype?: "float32" | "float64"; readonly other?: readonly (number | string)[] } = {}) => (): Graph => {
  const b = new GraphBuilder();
  return b.build(...make(b, b.add(Add, [b.input("x", ["n", 3, 4], dtype), b.input("y", other, dtype)])));
};
const layer = (b: GraphBuilder, x: Value, axis = -1): Value => b.add(LayerNormalization, [x, b.random([4], { dtype: x.type.dtype }), b.random([4], { dtype: x.type.dtype })], { axis });

export const fuseSkipNormalization = (provider: Provider): Rule => defineRule({
  name: "fuse-skip-normalization",
  doc: "The sum of two values of one shape and its LayerNormalization or RMSNormalization over the last axis become com.microsoft.SkipLayerNormalization or SkipSimplifiedLayerNormalization; who reads the sum reads their fourth output.",
  match: anyOf(op(LayerNormalization, [sum, value("scale"), optionalInput(value("bias"))], { as: "normal" }), op(RMSNormalization, [sum, value("scale")], { as: "normal" }), op(SimplifiedLayerNormalization, [sum, value("scale")], { as: "normal" })),
  where: [
    ({ a, normal }) => kernelFor(provider, skipping(normal.op), a),
    ({ a, b }) => (a.type.shape.length === 3 && b.type.shape.length === 3 && a.type.shape.every((d, i) => dimEqual(d, b.type.shape[i] ?? -1))) || refuse("shape", `'${a.name}' and '${b.name}' are not of one shape of three axes`, "leave the sum as it is"),
    ({ normal, scale, a }) => (isLastAxis(normal, 3) && scale.type.shape.length === 1 && dimEqual(scale.type.shape[0] ?? 0, a.type.shape[2] ?? -1)) || refuse("axis", `'${normal.name}' is not over the last axis`, "normalise rows of the last axis"),
    ({ normal }) => normal.outputs.slice(1).every((v) => v.uses.length === 0 && v.resultOf.length === 0) || refuse("statistics-used", `the statistics of '${normal.name}' are used`, "leave them out"),
    ({ sum: node }) => (node.outputs[0]?.resultOf.length ?? 0) === 0 || refuse("graph-output", `'${node.outputs[0]?.name ?? ""}' is a graph output`, "remove it from the graph's outputs"),
  ],
  numerics: reassociates(),
  rewrite({ a, b, scale, normal, sum: node, ...rest }, edit) {
    const { bias } = rest as { readonly bias?: Value }, added = present(node.outputs[0], "a sum");
    const shared = added.uses.some((u) => u.node !== normal);
    const result = edit.insert(skipping(normal.op), bias ? [a, b, scale, bias] : [a, b, scale], { epsilon: normal.attributes["epsilon"] }, { outputCount: shared ? 4 : 1 });
    return shared ? new Map([[present(normal.outputs[0], "a result"), result], [added, present(result.producer?.node.outputs[3], "the sum")]]) : result;
  },
  example: build((b, x) => [layer(b, x)]),
  examples: [build((b, x) => [layer(b, x), b.add(Neg, [x])]), build((b, x) => [b.add(RMSNormalization, [x, b.random([4])])])],
  refuses: {
    "shape": build((b, x) => [layer(b, x)], { other: [4] }),
    "axis": build((b, x) => [b.add(LayerNormalization, [x, b.random([3, 4])], { axis: 1 })]),
    "graph-output": build((b, x) => [layer(b, x), x]),
    "no-kernel": build((b, x) => [layer(b, x)], { dtype: "float64" }),
  },
});

export const simplifyRmsNormalization = (provider: Provider): Rule => defineRule({
  name: "simplify-rms-normalization",
  doc: "RMSNormalization becomes onnxruntime's SimplifiedLayerNormalization, which every opset has there.",
  match: op(RMSNormalization, [value("x"), value("scale")], { as: "normal" }),
  where: [({ x }) => kernelFor(provider, SimplifiedLayerNormalization, x)],
  numerics: reassociates(),
  rewrite: ({ x, scale, normal }, edit) => edit.insert(SimplifiedLayerNormalization, [x, scale], { axis: normal.attributes["axis"], epsilon: normal.attributes["epsilon"] }),
  example: build((b, x) => [b.add(RMSNormalization, [x, b.random([4])])]),
  refuses: { "no-kernel": build((b, x) => [b.add(RMSNormalization, [x, b.random([4], { dtype: "float64" })])], { dtype: "float64" }) },
});
