/** A shift of each input channel, as images are centred, goes into the bias of the convolution that reads them. */
import { toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Conv, Relu, Sub } from "../ops/index.ts";
import { anyOf, commuted, constant, op, optionalInput, parameter, value } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse } from "../rewrite/rule.ts";
import { perChannel } from "./affine.ts";
import { oneChannel } from "./channel-map.ts";
import { roundOnce } from "./folded-tensor.ts";
import { scaleInputs } from "./input-channels.ts";

const build = (shift: (b: GraphBuilder, x: Value) => Value, attributes: Readonly<Record<string, number | readonly number[]>> = {}, used = false) => () => {
  const b = new GraphBuilder(), shifted = shift(b, b.input("x", ["n", 4, 5, 5]));
  return b.build(b.add(Conv, [shifted, b.random([6, 2, 3, 3]), b.random([6])], { group: 2, ...attributes }), ...(used ? [b.add(Relu, [shifted])] : []));
};

export const foldAddIntoFollowingConv = defineRule({
  name: "fold-add-into-following-conv",
  doc: "A sum with, or difference to, a constant of one value a channel, then a Conv that does not pad: the shift goes into the bias.",
  match: op(Conv, [
    anyOf(commuted(Add, [value("x"), parameter("shift")], { as: "sum" }), op(Sub, [value("x"), parameter("shift")], { as: "sum" })),
    constant("weight"), optionalInput(constant("bias")),
  ], { as: "conv" }),
  commonplace: ["other-operator"],
  where: [({ conv, sum }) => {
    const { pads, auto_pad: autoPad } = conv.attributes;
    const isPadded = (Array.isArray(pads) && pads.some((p) => p !== 0)) || autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER";
    return !isPadded || refuse("padded-shift", `'${conv.name}' pads with zeros, which '${sum.name}' does not shift`, "none: along the border the shift would be missing");
  }],
  numerics: reassociates(),
  rewrite({ x, shift, sum, weight, bias, conv }, edit) {
    const count = (weight.constant.dims[1] ?? 1) * Number(conv.attributes["group"]);
    const values = perChannel(shift, x.type.shape, { axis: 1, count });
    if (isRefusal(values)) return values;
    const plain = scaleInputs(weight, conv, new Float64Array(count).fill(1));
    if (isRefusal(plain)) return plain;
    const signed = sum.op === Sub ? values.map((v) => -v) : values;
    const folded = roundOnce(`the bias of '${conv.name}'`, weight.constant.dtype, [plain.count], plain.sums(signed, bias && toNumbers(bias.constant)), oneChannel);
    return isRefusal(folded) ? folded : edit.insert(Conv, [x, weight, edit.constant(folded, `${conv.name}_bias`)], conv.attributes, { name: conv.name });
  },
  example: build((b, x) => b.add(Add, [b.random([1, 4, 1, 1]), x])),
  examples: [build((b, x) => b.add(Sub, [x, b.random([4, 1, 1])]), { strides: [2, 2] }), build((b, x) => b.add(Add, [x, 0.5]))],
  refuses: {
    "padded-shift": build((b, x) => b.add(Add, [x, 0.5]), { pads: [1, 1, 1, 1] }),
    "not-per-channel": build((b, x) => b.add(Add, [x, b.random([5])])),
    "interior-value-used": build((b, x) => b.add(Add, [x, 0.5]), {}, true),
    "not-constant": build((b, x) => b.add(Add, [x, b.input("s", [1])])),
  },
});
