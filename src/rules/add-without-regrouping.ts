/**
 * A mask for each window of a picture is added where the first axis has been split into pictures and windows, and the
 * axis is joined again behind it (Swin's shifted windows): the same sum without the detour, so that attention is found.
 */
import { dimEqual, dimMul, shapeEqual, type Dim } from "../core/dim.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Relu, Reshape } from "../ops/index.ts";
import { commuted, op, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";

/** The sizes of the sum where its first axis is split; undefined where the two Reshapes do anything else. */
function splitShape(x: Value, sum: Node, root: Node): readonly Dim[] | undefined {
  const before = x.type.shape, split = sum.outputs[0]?.type.shape ?? [], [outer = 0, inner = 0, ...rest] = split;
  const splits = split.length === before.length + 1 && split.length > 2 && shapeEqual(rest, before.slice(1)) && dimEqual(dimMul(outer, inner), before[0] ?? 0);
  return splits && shapeEqual(root.outputs[0]?.type.shape ?? [], before) ? split : undefined;
}
/** The mask's sizes, as many as the sum has. */
const padded = ({ type: { shape } }: Value, rank: number): readonly Dim[] => [...Array.from({ length: rank - shape.length }, () => 1), ...shape];
const isKnown = (d: Dim | undefined): boolean => typeof d === "number";

type Mask = (b: GraphBuilder) => Value;
const build = (batch: number | string, mask: Mask, back: readonly number[] = [-1, 2, 4, 4], more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), x = b.add(Reshape, [b.add(Relu, [b.input("x", [batch, 6, 4, 4])]), b.int64(-1, 2, 4, 4)]);
  const y = b.add(Add, [b.add(Reshape, [x, b.int64(-1, 3, 2, 4, 4)]), mask(b)]);
  return b.build(b.add(Reshape, [y, b.int64(...back)]), ...more(b, y));
};
const windows: Mask = (b) => b.random([1, 3, 1, 4, 4]);

export const addWithoutRegrouping = defineRule({
  name: "add-without-regrouping",
  doc: "Reshape that splits the first axis in two, Add of a mask for the inner one, and Reshape that joins them again, for one picture or with a mask that is the same for all windows, is one Add: of the windows' mask as it lies.",
  stage: "recognise",
  match: op(Reshape, [commuted(Add, [op(Reshape, [value("x"), value("target")]), value("mask")], { as: "sum" }), value("back")]),
  beside: ({ x, sum }, root) => (splitShape(x, sum, root) ? [sum] : undefined),
  where: [
    ({ mask, sum }) => {
      const [pictures, each] = sum.outputs[0]?.type.shape ?? [], [outer, inner] = padded(mask, sum.outputs[0]?.type.shape.length ?? 0);
      const fits = outer === 1 ? inner === 1 || pictures === 1 : outer === pictures && inner === each;
      return fits || refuse("batch-differs", `'${mask.name}' holds masks for windows of ${typeof pictures === "number" ? pictures : "an unknown number of"} pictures`, "give the batch the size 1, by --input_shape or --dim");
    },
    ({ mask }) => mask.type.shape.every((d) => isKnown(d)) || refuse("unknown-size", `the sizes of the mask '${mask.name}' are not known`, "make them fixed"),
  ],
  numerics: exact,
  rewrite({ x, mask, sum }, edit) {
    const split = sum.outputs[0]?.type.shape ?? [], [outer = 1, inner = 1, ...rest] = padded(mask, split.length).map(Number);
    const sizes = [outer * inner, ...rest];
    const joined = mask.constant ? edit.constant({ ...mask.constant, dims: sizes }, mask.name)
      : edit.insert(Reshape, [mask, edit.constant(fromNumbers("int64", [sizes.length], sizes), `${mask.name}_sizes`)], {}, { name: `${mask.name}_joined` });
    return edit.insert(Add, [x, joined], {}, { name: sum.name });
  },
  example: build(1, windows),
  examples: [
    build("n", (b) => b.random([2, 4, 4])),
    build(1, (b) => b.input("mask", [3, 2, 1, 4])),
    build(2, (b) => b.random([2, 3, 1, 4, 1])),
  ],
  refuses: {
    "batch-differs": build("n", windows),
    "unknown-size": build(1, (b) => b.input("mask", [1, 1, 1, 1, "n"])),
    "interior-value-used": build(1, windows, [-1, 2, 4, 4], (b, y) => [b.add(Relu, [y])]),
  },
});
