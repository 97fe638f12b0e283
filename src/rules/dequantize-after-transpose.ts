/** Integers are transposed instead of what they stand for, so that a product sees dequantised operands. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Conv, DequantizeLinear, Gemm, MatMul, Relu, Transpose } from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";
import { dequantized, isPerTensor, scaleAxis } from "./quantized-operands.ts";

const contractions = [Conv, MatMul, Gemm];

const build = (perAxis: boolean, more: (b: GraphBuilder, w: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder();
  const w = b.add(DequantizeLinear, [b.input("w", [4, 3], "int8"), perAxis ? b.numbers([0.5, 0.3, 0.2, 0.1]) : b.scalar(0.3)], { axis: 0 });
  const turned = b.add(Transpose, [w]);
  return b.build(b.add(MatMul, [b.input("x", ["n", 3]), turned]), ...more(b, turned));
};

export const dequantizeAfterTranspose = defineRule({
  name: "dequantize-after-transpose",
  doc: "Transpose of DequantizeLinear, where contractions read it, becomes DequantizeLinear of Transpose: the contraction then meets its quantised operand.",
  stage: "recognise",
  match: op(Transpose, [dequantized], { as: "transpose" }),
  where: [
    ({ transpose }) => {
      const other = transpose.outputs[0]?.uses.find((u) => !contractions.includes(u.node.op))?.node;
      return !other || refuse("other-consumer", `${other.op.type} '${other.name}' reads '${transpose.name}' too`, "give the contraction a transposition of its own");
    },
    ({ transpose }) => (transpose.outputs[0]?.uses.length ?? 0) > 0 || refuse("other-consumer", `'${transpose.name}' is read by no contraction`, "none: nothing would be gained"),
    ({ xNode }) => !Number(xNode.attributes["block_size"]) || refuse("blocked", `'${xNode.name}' has its scales in blocks`, "none: blocks are dequantised as they lie"),
  ],
  numerics: exact,
  rewrite({ x, xScale, xZero, xNode, transpose }, edit) {
    const perm = transpose.attributes["perm"], rank = x.type.shape.length;
    const from = Array.isArray(perm) ? perm.map(Number) : Array.from({ length: rank }, (_, i) => rank - 1 - i);
    const moved = edit.insert(Transpose, [x], transpose.attributes, { name: transpose.name });
    return edit.insert(DequantizeLinear, [moved, xScale, xZero], { ...xNode.attributes, axis: isPerTensor(xScale) ? 0 : from.indexOf(scaleAxis(xNode)) }, { name: xNode.name });
  },
  example: build(true),
  examples: [build(false)],
  refuses: {
    "other-consumer": build(true, (b, w) => [b.add(Relu, [w])]),
    blocked: () => {
      const b = new GraphBuilder();
      const w = b.add(DequantizeLinear, [b.input("w", [4, 2], "int8"), b.random([2, 2], { low: 0.1 })], { axis: 0, block_size: 2 });
      return b.build(b.add(MatMul, [b.input("x", ["n", 2]), b.add(Transpose, [w])]));
    },
  },
});
