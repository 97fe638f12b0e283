/** DequantizeLinear, Conv, QuantizeLinear become QLinearConv. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import type { Value } from "../graph/graph.ts";
import { Conv, DequantizeLinear, QLinearConv, QuantizeLinear, Relu } from "../ops/index.ts";
import { op, optionalInput } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { bias, biasIntegers, checkBias } from "./quantized-bias.ts";
import { convolutionFits } from "./quantized-convolution.ts";
import { allOf, asScalar, dequantized, dequantizedSecond, eightBits, floatScale, oneScale, quantized, quantizedType, scaleAlong, zeroPoint } from "./quantized-operands.ts";

export interface QuantizedConvCase {
  readonly x?: DType; readonly w?: DType; readonly y?: DType; readonly perChannel?: boolean; readonly axis?: number; readonly wZero?: readonly number[];
  readonly bias?: "none" | "integer" | "float" | "other-scale"; readonly group?: number; readonly yScales?: number; readonly scaleType?: DType; readonly channels?: number;
}
const wScales = [1 / 64, 1 / 32, 1 / 64, 1 / 128];
/** A quantised convolution; scales are powers of two, so that float32 computes it exactly. */
export const quantizedConv = (c: QuantizedConvCase, after: (b: GraphBuilder, y: Value) => readonly Value[]) => () => {
  const b = new GraphBuilder(), group = c.group ?? 1, x = c.x ?? "uint8", w = c.w ?? "int8", float = c.scaleType ?? "float32", channels = c.channels ?? 4;
  const input = b.add(DequantizeLinear, [b.input("x", ["n", channels, 5, 6], x), b.scalar(0.5, float), b.scalar(x === "uint8" ? 3 : -2, x)]);
  const scale = c.perChannel ? b.numbers(wScales, [4], float) : b.scalar(1 / 64, float);
  const zero = c.perChannel ? b.numbers(c.wZero ?? [0, 0, 0, 0], [4], w) : b.scalar(c.wZero?.[0] ?? 0, w);
  const weight = b.add(DequantizeLinear, [b.random([4, channels / group, 3, 3], { low: w === "int8" ? -99 : 0, high: 99, dtype: w }), scale, zero], { axis: c.axis ?? 0 });
  const biasScale = c.bias === "other-scale" ? b.scalar(0.3, float) : c.perChannel ? b.numbers(wScales.map((s) => s / 2), [4], float) : b.scalar(1 / 128, float);
  const summand = c.bias === "none" || c.bias === undefined ? undefined : c.bias === "float" ? b.random([4]) : b.add(DequantizeLinear, [b.random([4], { low: -500, high: 500, dtype: "int32" }), biasScale], { axis: 0 });
  return b.build(...after(b, b.add(Conv, [input, weight, summand], { pads: [1, 0, 1, 1], group, strides: [1, 2] }, "conv")));
};
const closed = (c: QuantizedConvCase = {}, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => quantizedConv(c, (b, y) => {
  const type = c.y ?? c.x ?? "uint8", several = c.yScales ?? 0, float = c.scaleType ?? "float32";
  const scale = several ? b.numbers(Array.from({ length: several }, () => 0.25), [several], float) : b.scalar(0.25, float);
  return [b.add(QuantizeLinear, [y, scale, several ? b.numbers(Array.from({ length: several }, () => 0), [several], type) : b.scalar(7, type)], { axis: 1 }), ...more(b, y)];
});

export const quantizeConv = defineRule({
  name: "quantize-conv",
  doc: "Conv between DequantizeLinear and QuantizeLinear becomes QLinearConv: 8-bit operands, exact int32 sums, one rounding. Values within float32's rounding error of the middle between two steps may round to the other.",
  match: quantized(op(Conv, [dequantized, dequantizedSecond, optionalInput(bias)], { as: "conv" })),
  where: [
    (m) => allOf(() => eightBits(m.xNode), () => eightBits(m.wNode), () => eightBits(m.yNode)),
    (m) => allOf(() => floatScale(m.xNode, m.xScale), () => floatScale(m.wNode, m.wScale), () => floatScale(m.yNode, m.yScale)),
    (m) => allOf(() => oneScale(m.xNode, m.xScale), () => scaleAlong(m.wNode, m.wScale, 0), () => oneScale(m.yNode, m.yScale)),
    (m) => checkBias(m.conv, m.bias, m.xScale, m.wScale),
    (m) => convolutionFits(m.conv, m),
  ],
  numerics: reassociates(),
  rewrite(m, edit) {
    const one = (v: Value): Value => asScalar(v, edit);
    const wZero = zeroPoint(m.wZero, m.wScale, quantizedType(m.wNode), edit);
    const inputs = [m.x, one(m.xScale), one(zeroPoint(m.xZero, m.xScale, quantizedType(m.xNode), edit)), m.w, one(m.wScale), one(wZero), one(m.yScale), one(zeroPoint(m.yZero, m.yScale, quantizedType(m.yNode), edit))];
    return edit.insert(QLinearConv, m.bias ? [...inputs, biasIntegers(m.bias)] : inputs, m.conv.attributes, { name: m.conv.name });
  },
  example: closed(),
  examples: [
    closed({ x: "int8", perChannel: true, bias: "integer" }), closed({ w: "uint8", wZero: [60], group: 2, bias: "integer" }),
    closed({ perChannel: true, wZero: [0, 1, -2, 3], group: 4, y: "int8" }),
  ],
  refuses: {
    "quantized-type": closed({ x: "int16" }),
    "scale-type": closed({ scaleType: "float16" }),
    "per-axis": closed({ perChannel: true, axis: 1 }),
    "bias-scale": closed({ bias: "other-scale" }),
    "bias-not-quantized": closed({ bias: "float" }),
    "interior-value-used": closed({}, (b, y) => [b.add(Relu, [y])]),
    "accumulator-overflow": closed({ channels: 20000 }),
  },
});
