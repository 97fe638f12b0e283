/** Zeros padded before a convolution become its own padding. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Conv, Pad, Relu } from "../ops/index.ts";
import { op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal } from "../rewrite/rule.ts";
import { mergedPads, padded } from "./pads.ts";

interface Case { readonly pads?: readonly number[]; readonly fill?: number; readonly axes?: readonly number[]; readonly mode?: string; readonly conv?: Readonly<Record<string, string | readonly number[]>> }
const build = (c: Case, more: (b: GraphBuilder, p: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder();
  const x = b.input("x", ["n", 2, 5, 6]);
  const p = b.add(Pad, [x, b.int64(...(c.pads ?? [0, 0, 1, 2, 0, 0, 0, 1])), c.fill, c.axes && b.int64(...c.axes)], { mode: c.mode ?? "constant" });
  return b.build(b.add(Conv, [p, b.random([3, 2, 3, 3]), b.random([3])], c.conv ?? { pads: [1, 0, 0, 1] }), ...more(b, p));
};

export const padIntoConv = defineRule({
  name: "pad-into-conv",
  gePass: "PadConv2dFusionPass",
  doc: "A Pad with zeros of spatial axes before Conv goes into the convolution's pads. A Pad that others read stays for them.",
  match: op(Conv, [padded, value("weight"), optionalInput(value("bias"))], { as: "conv" }),
  numerics: exact,
  rewrite({ x, pad, weight, bias, conv }, edit) {
    const pads = mergedPads(pad, conv, 0);
    return isRefusal(pads) ? pads : edit.insert(Conv, [x, weight, bias], { ...conv.attributes, auto_pad: "NOTSET", pads }, { name: conv.name });
  },
  example: build({}),
  examples: [
    build({ pads: [1, 1, 2, 0], axes: [-1, 2], fill: 0, conv: { auto_pad: "VALID" } }),
    build({}, (b, p) => [b.add(Relu, [p])]),
  ],
  refuses: {
    "pad-value": build({ fill: 1 }),
    "pad-mode": build({ mode: "edge" }),
    "negative-pad": build({ pads: [0, 0, -1, 0, 0, 0, 0, 0] }),
    "pad-axes": build({ pads: [1, 0, 0, 0, 0, 0, 0, 0] }),
    "auto-pad": build({ conv: { auto_pad: "SAME_UPPER" } }),
  },
});
