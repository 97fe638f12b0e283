/** Operators that choose among elements choose among integers as well: dequantising and quantising around them go. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { DequantizeLinear, DepthToSpace, Expand, Gather, GatherElements, GatherND, GlobalMaxPool, MaxPool, QuantizeLinear, ReduceMax, Relu, Resize, ReverseSequence, Slice, SpaceToDepth, Tile } from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";
import { allOf, dequantized, eightBits, floatScale, oneScale, quantized, sameQuantization } from "./quantized-operands.ts";

/** Those that compare keep their choice only under a scale above 0, and know 8-bit integers. */
const comparing = [MaxPool, GlobalMaxPool, ReduceMax];

const build = (scale = 0.5, type: DType = "uint8", more: (b: GraphBuilder, y: Value) => readonly Value[] = () => [], out = scale) => () => {
  const b = new GraphBuilder();
  const x = b.add(DequantizeLinear, [b.input("x", ["n", 2, 5, 6], type), b.scalar(scale), b.scalar(3, type)]);
  const y = b.add(MaxPool, [x], { kernel_shape: [2, 2], strides: [2, 2], pads: [1, 0, 0, 1] });
  return b.build(b.add(QuantizeLinear, [y, b.scalar(out), b.scalar(3, type)]), ...more(b, y));
};

/** Whether every element of a Resize is one of its input's. */
const choosesNearest = ({ attributes }: Node): boolean => attributes["mode"] === "nearest" && attributes["coordinate_transformation_mode"] !== "tf_crop_and_resize";

const resized = (attributes: Readonly<Record<string, string>>) => () => {
  const b = new GraphBuilder(), scale = b.scalar(0.5), zero = b.scalar(3, "uint8");
  const x = b.add(DequantizeLinear, [b.input("x", ["n", 2, 5, 6], "uint8"), scale, zero]);
  return b.build(b.add(QuantizeLinear, [b.add(Resize, [x, undefined, b.numbers([1, 1, 2, 1.5])], attributes), scale, zero]));
};

export const quantizeSelection = defineRule({
  name: "quantize-selection",
  doc: "An operator that only chooses elements (MaxPool, ReduceMax, Slice, Gather, Expand, Tile, nearest Resize …), between DequantizeLinear and QuantizeLinear with the same scale and zero point, works on the integers themselves.",
  stage: "recognise",
  match: quantized(op([...comparing, Slice, Gather, GatherElements, GatherND, Expand, Tile, DepthToSpace, SpaceToDepth, ReverseSequence, Resize], [dequantized], { as: "selection", rest: true })),
  where: [
    ({ selection }) => selection.op !== Resize || choosesNearest(selection) || refuse("computes-elements", `'${selection.name}' computes elements that its input does not have`, "resize to the nearest, or leave it in floats"),
    (m) => allOf(() => floatScale(m.xNode, m.xScale), () => oneScale(m.xNode, m.xScale), () => oneScale(m.yNode, m.yScale), () => sameQuantization(m, m)),
    ({ selection, xNode, xScale }) => !comparing.includes(selection.op) || allOf(
      () => eightBits(xNode),
      () => (toNumbers(xScale.constant)[0] ?? 0) > 0 || refuse("scale-range", `the scale of '${xNode.name}' is negative`, "give it a scale above 0")),
  ],
  numerics: exact,
  rewrite: ({ x, selection }, edit) => edit.insert(selection.op, [x, ...selection.inputs.slice(1)], selection.attributes, { name: selection.name }),
  example: build(),
  examples: [build(0.3, "int8"), resized({ mode: "nearest" }), resized({ mode: "nearest", coordinate_transformation_mode: "asymmetric", nearest_mode: "floor" }), () => {
    const b = new GraphBuilder();
    const x = b.add(DequantizeLinear, [b.input("x", ["n", 6], "int8"), b.scalar(-0.3)]);
    const y = b.add(Slice, [x, b.int64(4), b.int64(-6), b.int64(1), b.int64(-2)]);
    return b.build(b.add(QuantizeLinear, [y, b.scalar(-0.3), b.scalar(0, "int8")]));
  }],
  refuses: {
    "computes-elements": resized({ mode: "linear" }),
    "quantization-differs": build(0.5, "uint8", () => [], 0.25),
    "interior-value-used": build(0.5, "uint8", (b, y) => [b.add(Relu, [y])]),
    "scale-range": build(-0.5),
    "quantized-type": build(0.5, "int16"),
  },
});
