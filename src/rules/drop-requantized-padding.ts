/** Padding by 0 between conversions of one kind needs none of them behind it: a convolution can then take the padding. */
import { present } from "../core/assert.ts";
import { toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Conv, DequantizeLinear, Pad, QuantizeLinear, Relu } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { constant, op, optionalInput } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Verdict } from "../rewrite/rule.ts";
import { allOf, dequantized, floatScale, oneScale, quantized, sameQuantization } from "./quantized-operands.ts";

/** Refuses padding by anything but zeros, which quantisation keeps. */
function padsZeros(pad: Node): Verdict {
  const [, , value] = pad.inputs;
  if (pad.attributes["mode"] !== "constant") return refuse("pad-mode", `'${pad.name}' repeats elements`, "pad by 0");
  return !value || (isConstant(value) && Object.is(toNumbers(value.constant)[0], 0)) || refuse("pad-value", `'${pad.name}' pads by something else than 0`, "pad by 0");
}

interface Case { readonly scale?: number; readonly again?: number; readonly mode?: string; readonly by?: number; readonly scales?: boolean }
const build = (c: Case = {}, more: (b: GraphBuilder, padded: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), zero = b.scalar(3, "uint8"), scale = b.scalar(c.scale ?? 0.5);
  const x = b.add(DequantizeLinear, [b.input("x", ["n", 2, 5, 6], "uint8"), scale, zero]);
  const padded = b.add(Pad, [x, b.int64(0, 0, 1, 0, 0, 0, 1, 2), c.by === undefined ? undefined : c.by], { mode: c.mode ?? "constant" });
  const y = b.add(DequantizeLinear, [b.add(QuantizeLinear, [padded, scale, zero]), c.scales ? b.numbers([0.5, 0.25]) : b.scalar(c.again ?? c.scale ?? 0.5), c.scales ? undefined : zero], { axis: 1 });
  return b.build(b.add(Conv, [y, b.random([3, 2, 3, 3])]), ...more(b, padded));
};

export const dropRequantizedPadding = defineRule({
  name: "drop-requantized-padding",
  doc: "Pad by 0 of a dequantised value, quantised and dequantised again by the same scale and zero point, is the Pad alone, which a convolution behind it can take.",
  stage: "recognise",
  match: op(DequantizeLinear, [quantized(op(Pad, [dequantized], { as: "pad", rest: true, shared: true })), constant("againScale"), optionalInput(constant("againZero"))], { as: "again" }),
  where: [
    ({ pad }) => padsZeros(pad),
    (m) => allOf(() => floatScale(m.xNode, m.xScale), () => floatScale(m.again, m.againScale), () => oneScale(m.xNode, m.xScale), () => oneScale(m.yNode, m.yScale), () => oneScale(m.again, m.againScale)),
    (m) => sameQuantization(m, m),
    (m) => sameQuantization({ x: m.pad.outputs[0] ?? m.x, xNode: m.again, xScale: m.againScale, xZero: m.againZero }, m),
    ({ xScale, xNode }) => (toNumbers(xScale.constant)[0] ?? 0) > 0 || refuse("scale-range", `the scale of '${xNode.name}' is negative`, "give it a scale above 0"),
  ],
  numerics: exact,
  rewrite: ({ pad }) => present(pad.outputs[0], "the padded value"),
  example: build(),
  examples: [build({ by: 0, scale: 0.3 }), build({}, (b, padded) => [b.add(Relu, [padded])])],
  refuses: {
    "pad-mode": build({ mode: "edge" }),
    "pad-value": build({ by: 1 }),
    "quantization-differs": build({ again: 0.25 }),
    "per-axis": build({ scales: true }),
    "scale-range": build({ scale: -0.5 }),
  },
});
