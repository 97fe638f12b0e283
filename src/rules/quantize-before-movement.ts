/** Elements are quantised before they are moved: what moves is then a quarter of the size, and meets its producer. */
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Concat, DequantizeLinear, Flatten, QuantizeLinear, Reshape, Squeeze, Transpose, Unsqueeze } from "../ops/index.ts";
import { anything, op } from "../rewrite/pattern.ts";
import { defineRule, exact } from "../rewrite/rule.ts";
import { allOf, oneScale, quantized, wholeBytes } from "./quantized-operands.ts";

const join = (scale: readonly number[], more: (b: GraphBuilder, joined: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder();
  const part = (name: string): Value => b.add(DequantizeLinear, [b.input(name, ["n", 2, 3], "int8"), b.scalar(0.5), b.scalar(1, "int8")]);
  const joined = b.add(Transpose, [b.add(Concat, [part("x"), part("y")], { axis: 1 })], { perm: [0, 2, 1] });
  const zero = b.numbers(scale.map(() => 1), scale.length === 1 ? [] : [scale.length], "int8");
  return b.build(b.add(QuantizeLinear, [joined, b.numbers(scale, scale.length === 1 ? [] : [scale.length]), zero], { axis: 2 }), ...more(b, joined));
};

export const quantizeBeforeMovement = defineRule({
  name: "quantize-before-movement",
  doc: "QuantizeLinear by one scale of a Reshape, Transpose or Concat becomes that movement of quantised elements.",
  stage: "recognise",
  match: quantized(op([Reshape, Transpose, Flatten, Squeeze, Unsqueeze, Concat], [anything()], { as: "movement", rest: true })),
  where: [({ yNode, yScale }) => allOf(() => oneScale(yNode, yScale), () => wholeBytes(yNode))],
  numerics: exact,
  rewrite({ movement, yNode }, edit) {
    const [, scale, zero] = yNode.inputs;
    const quantize = (v: Value | undefined): Value => edit.insert(QuantizeLinear, [v, scale, zero], { ...yNode.attributes, axis: 0 }, { name: yNode.name });
    const inputs = movesAll(movement) ? movement.inputs.map(quantize) : [quantize(movement.inputs[0]), ...movement.inputs.slice(1)];
    return edit.insert(movement.op, inputs, movement.attributes, { name: movement.name });
  },
  example: join([0.5]),
  examples: [join([0.25]), () => {
    const b = new GraphBuilder();
    const sum = b.add(Add, [b.input("x", [2, 6]), 1]);
    return b.build(b.add(QuantizeLinear, [b.add(Reshape, [sum, b.int64(3, 4)]), b.scalar(0.25), b.scalar(-3, "int8")]));
  }],
  refuses: {
    "per-axis": join([0.5, 0.25, 1, 2].map((s) => s)),
    "quantized-type": () => {
      const b = new GraphBuilder();
      return b.build(b.add(QuantizeLinear, [b.add(Transpose, [b.input("x", [2, 3])]), b.scalar(0.5), b.scalar(0, "int4")]));
    },
    "interior-value-used": join([0.5], (b, joined) => [b.add(Add, [joined, 1])]),
  },
});
const movesAll = (movement: Node): boolean => movement.op === Concat;
