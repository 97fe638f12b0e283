/**
 * The mask of keys that encoders add to their scores, (1 − mask) · −10000, as onnxruntime's optimiser reads it: it makes
 * one Attention of the operators around it only where two Unsqueezes give the mask its axes.
 */
import { dimEqual } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Add, Cast, Mul, Neg, Reshape, Softmax, Sub, Unsqueeze } from "../ops/index.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { anything, op, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";

/** The nodes that alone read a node's result, where all are of one operator. */
function readers(node: Node, of: OpDef): readonly Node[] {
  const uses = node.outputs[0]?.uses ?? [];
  return uses.every((u) => u.node.op === of) ? uses.map((u) => u.node) : [];
}
const isNumber = (v: Value | undefined, wanted: number): boolean => v?.constant !== undefined && v.constant.data.length === 1 && toNumbers(v.constant)[0] === wanted;

/** Whether 1 less the node's result, cast perhaps, times −10000 is added to what a Softmax takes. */
function isMask(node: Node): boolean {
  const [only, ...others] = [...readers(node, Cast), ...readers(node, Sub)];
  if (!only || others.length > 0) return false;
  if (only.op === Cast) return isMask(only);
  const scaled = readers(only, Mul), added = scaled.flatMap((m) => readers(m, Add));
  return isNumber(only.inputs[0], 1) && scaled.length === 1 && isNumber(scaled[0]?.inputs[1], -10000)
    && added.length > 0 && added.every((a) => readers(a, Softmax).length === 1);
}

const build = (factor: number, dims: readonly number[] = [2, 1, 1, 5]) => (): Graph => {
  const b = new GraphBuilder();
  const mask = b.add(Cast, [b.add(Reshape, [b.input("mask", [2, 5], "int64"), b.int64(...dims)])], { to: 1 });
  const added = b.add(Mul, [b.add(Sub, [1, mask]), b.scalar(factor)]);
  return b.build(...["s", "t"].map((name) => b.add(Softmax, [b.add(Add, [b.input(name, [2, 3, 5, 5]), added])], { axis: 3 })), b.add(Neg, [b.input("other", [1])]));
};

export const unsqueezeMask = defineRule({
  name: "unsqueeze-mask",
  doc: "The Reshape of a mask of keys to [batch, 1, 1, keys] becomes two Unsqueezes.",
  match: op(Reshape, [value("mask"), anything()]),
  where: [
    ({ mask }, root) => {
      const from = mask.type.shape, to = root.outputs[0]?.type.shape ?? [];
      return (from.length === 2 && to.length === 4 && to[1] === 1 && to[2] === 1 && dimEqual(from[0] ?? -1, to[0] ?? -2) && dimEqual(from[1] ?? -1, to[3] ?? -2)) || refuse("shape", `'${root.name}' does not give '${mask.name}' two axes in its middle`, "leave it as it is");
    },
    (_, root) => isMask(root) || refuse("not-a-mask", `'${root.name}' is not subtracted from 1, multiplied by -10000 and added to scores`, "leave it as it is"),
  ],
  numerics: exact,
  rewrite: ({ mask }, edit) => [1, 2].reduce((x, axis) => edit.insert(Unsqueeze, [x, edit.constant(fromNumbers("int64", [1], [axis]), `${mask.name}_axis`)]), mask),
  example: build(-10000),
  refuses: { "shape": build(-10000, [2, 1, 5, 1]), "not-a-mask": build(-9999) },
});
