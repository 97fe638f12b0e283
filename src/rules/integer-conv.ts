/** Conv of dequantised operands sums integers, whatever comes after it. */
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { Add, Cast, Conv, ConvInteger, Mul, Reshape, Sigmoid } from "../ops/index.ts";
import { op, optionalInput } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { bias } from "./quantized-bias.ts";
import { convolutionFits } from "./quantized-convolution.ts";
import { allOf, asScalar, dequantized, dequantizedSecond, eightBits, floatScale, oneScale, quantizedType, scaleAlong, zeroPoint } from "./quantized-operands.ts";
import { quantizedConv, type QuantizedConvCase } from "./quantize-conv.ts";

const open = (c: QuantizedConvCase = {}) => quantizedConv(c, (b, y) => [b.add(Sigmoid, [y]), y]);

export const integerConv = defineRule({
  name: "integer-conv",
  doc: "Conv of dequantised 8-bit operands becomes ConvInteger, whose exact int32 sums are scaled and biased in float32 in the same kernel, and then go into whatever follows.",
  stage: "decompose",
  match: op(Conv, [dequantized, dequantizedSecond, optionalInput(bias)], { as: "conv" }),
  where: [
    (m) => allOf(() => eightBits(m.xNode), () => eightBits(m.wNode), () => floatScale(m.xNode, m.xScale), () => floatScale(m.wNode, m.wScale)),
    (m) => allOf(() => oneScale(m.xNode, m.xScale), () => scaleAlong(m.wNode, m.wScale, 0)),
    (m) => convolutionFits(m.conv, { x: m.x, w: m.w, wNode: m.wNode, wScale: m.wScale, wZero: m.wZero }),
  ],
  numerics: reassociates(),
  rewrite(m, edit) {
    const rank = m.w.type.shape.length, perChannel = (count: number): readonly number[] => (count === 1 ? [] : [count, ...Array.from({ length: rank - 2 }, () => 1)]);
    const one = (v: Value): Value => asScalar(v, edit);
    const sums = edit.insert(ConvInteger, [m.x, m.w, one(zeroPoint(m.xZero, m.xScale, quantizedType(m.xNode), edit)), one(zeroPoint(m.wZero, m.wScale, quantizedType(m.wNode), edit))], m.conv.attributes, { name: m.conv.name });
    const x = toNumbers(m.xScale.constant)[0] ?? 0, scales = Array.from(toNumbers(m.wScale.constant), (w) => x * w);
    const scale = edit.constant(fromNumbers("float32", perChannel(sizeOf(m.wScale.constant.dims)), scales), `${m.conv.name}_scale`);
    const scaled = edit.insert(Mul, [edit.insert(Cast, [sums], { to: 1 }), scale]);
    if (!m.bias) return scaled;
    const shape = fromNumbers("int64", [rank - 1], [-1, ...Array.from({ length: rank - 2 }, () => 1)]);
    return edit.insert(Add, [scaled, edit.insert(Reshape, [m.bias, edit.constant(shape, "channels")])]);
  },
  example: open(),
  examples: [open({ x: "int8", perChannel: true, bias: "float", wZero: [1, 0, -2, 3] }), open({ w: "uint8", wZero: [60], group: 4, bias: "integer" })],
  refuses: {
    "quantized-type": open({ x: "int16" }),
    "scale-type": open({ scaleType: "float16" }),
    "per-axis": open({ perChannel: true, axis: 1 }),
    "accumulator-overflow": open({ channels: 20000 }),
  },
});
