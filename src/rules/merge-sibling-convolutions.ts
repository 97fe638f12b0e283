/** Convolutions of one input with the same window (branches of an inception block, heads of a detector) are one, their filters side by side. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { AveragePool, Concat, Conv, MaxPool, Relu, Reshape, Sigmoid } from "../ops/index.ts";
import { anyOf, constant, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, exact } from "../rewrite/rule.ts";
import { siblingRule, type SiblingKind } from "./siblings.ts";

const ofConv: SiblingKind = { op: Conv, weightAxis: () => 0, columnAxis: () => 1, biasInput: 2, accepts: (n) => n.attributes["group"] === 1 };

type Branch = (b: GraphBuilder, x: Value) => Value;
const conv = (filters: number, { window = 1, bias = true, attributes = {} } = {}): Branch => (b, x) =>
  b.add(Conv, [x, b.random([filters, 3, window, window]), bias ? b.random([filters]) : undefined], attributes);
const activated = (filters: number): Branch => (b, x) => b.add(Relu, [conv(filters)(b, x)]);
const pooled = (b: GraphBuilder, results: readonly Value[]): readonly Value[] => results.map((r, i) => b.add(i % 2 ? AveragePool : MaxPool, [r], { kernel_shape: [2, 2] }));
const build = (branches: readonly Branch[], end = pooled) => () => {
  const b = new GraphBuilder(), x = b.input("x", ["n", 3, 5, 6]);
  return b.build(...end(b, branches.map((branch) => branch(b, x))));
};

export const mergeSiblingConvolutions = defineRule({
  name: "merge-sibling-convolutions",
  doc: "Convolutions of one input with the same window, strides and padding become one with all their filters; each result is a view of its channels. What follows all of them alike, such as the same activation, is joined too.",
  stage: "merge",
  match: anyOf(op(Conv, [value("x"), constant("weight"), optionalInput(value("bias"))])),
  numerics: exact,
  ...siblingRule(() => ofConv),
  example: build([conv(4), conv(3)]),
  examples: [
    build([activated(4), activated(5), activated(2)]),
    build([conv(4, { window: 3, attributes: { pads: [1, 1, 1, 1] } }), conv(2, { window: 3, bias: false, attributes: { pads: [1, 1, 1, 1] } })]),
    build([activated(4), activated(5), conv(2)], (b, [first, second, third]) => (first && second && third ? [...pooled(b, [first, second]), b.add(Sigmoid, [third])] : [])),
  ],
  refuses: {
    "own-epilogue": build([activated(4), (b, x) => b.add(Sigmoid, [conv(4)(b, x)])]),
    "graph-output": build([conv(4), conv(4)], (_, results) => results),
    "placed-in-concat": build([conv(4), conv(3)], (b, [first, second]) => (first && second ? [b.add(Concat, [second, first, b.input("y", ["n", 1, 5, 6])], { axis: 1 })] : [])),
    "not-a-view": build([conv(4), conv(4)], (b, results) => results.map((r) => b.add(MaxPool, [b.add(Reshape, [r, b.int64(1, -1, 6)])], { kernel_shape: [2] }))),
  },
});
