/** Softmax and AveragePool between DequantizeLinear and QuantizeLinear reduce the integers themselves. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { AveragePool, DequantizeLinear, QLinearAveragePool, QLinearSoftmax, QuantizeLinear, Relu, Softmax } from "../ops/index.ts";
import { poolOptions } from "../ops/microsoft-qlinear.ts";
import { standsInFew } from "../ops/qlinear-reductions.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";
import { allOf, dequantized, eightBits, floatScale, oneScale, quantized } from "./quantized-operands.ts";

interface Case { readonly of?: "softmax" | "pool"; readonly type?: DType; readonly to?: DType; readonly scale?: number; readonly scales?: number; readonly strides?: readonly number[] }
const build = ({ of = "softmax", type = "uint8", to = type, scale = 0.05, scales = 0, strides = [2, 1] }: Case = {}, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), s = scales ? b.random([scales], { low: 0.1 }) : b.scalar(scale), zero = scales ? undefined : b.scalar(7, type);
  const x = b.add(DequantizeLinear, [b.input("x", ["n", 3, 5, 6], type), s, zero], { axis: 1 });
  const y = of === "softmax" ? b.add(Softmax, [x], { axis: -1 }) : b.add(AveragePool, [x], { kernel_shape: [3, 2], strides, pads: [1, 0, 1, 1] });
  return b.build(b.add(QuantizeLinear, [y, b.scalar(of === "softmax" ? 1 / 127 : 0.0371), b.scalar(0, to)]), ...more(b, y));
};

export const quantizeReduction = defineRule({
  name: "quantize-reduction",
  doc: "Softmax or AveragePool between DequantizeLinear and QuantizeLinear of 8 bits reduces the integers themselves, in one kernel that reads and writes bytes, as onnxruntime's QLinearSoftmax and QLinearAveragePool do.",
  stage: "recognise",
  match: quantized(op([Softmax, AveragePool], [dequantized], { as: "of" })),
  where: [
    (m) => allOf(() => eightBits(m.xNode), () => eightBits(m.yNode), () => floatScale(m.xNode, m.xScale), () => floatScale(m.yNode, m.yScale), () => oneScale(m.xNode, m.xScale), () => oneScale(m.yNode, m.yScale)),
    ({ x, yNode }) => x.type.dtype === yNode.outputs[0]?.type.dtype || refuse("quantization-differs", `'${x.name}' is ${x.type.dtype}, '${yNode.name}' gives ${yNode.outputs[0]?.type.dtype}`, "quantise both to one type"),
    ({ of }) => of.op !== AveragePool || standsInFew(poolOptions(of.attributes)) || refuse("windows-overlap", `an element stands in more than four windows of '${of.name}': reading it as a byte in each costs more than a kernel that dequantises it once`, "none: two kernels are cheaper"),
    ({ of, xNode, xScale }) => of.op !== Softmax || (toNumbers(xScale.constant)[0] ?? 0) > 0 || refuse("scale-range", `the scale of '${xNode.name}' is not above 0`, "give it a scale above 0"),
  ],
  numerics: reassociates(),
  rewrite({ x, xNode, yNode, of }, edit) {
    const inputs = [x, ...[1, 2].map((i) => xNode.inputs[i]), ...[1, 2].map((i) => yNode.inputs[i])];
    if (of.op === AveragePool) return edit.insert(QLinearAveragePool, inputs, { ...of.attributes, channels_last: 0 }, { name: of.name });
    const { axis, flatten } = of.attributes;
    return edit.insert(QLinearSoftmax, inputs, { axis, opset: flatten ? 12 : 13 }, { name: of.name });
  },
  example: build(),
  examples: [build({ type: "int8" }), build({ of: "pool" }), build({ of: "pool", type: "int8", scale: -0.02 })],
  refuses: {
    "quantized-type": build({ type: "int16" }),
    "per-axis": build({ scales: 3 }),
    "quantization-differs": build({ to: "int8" }),
    "scale-range": build({ scale: -0.05 }),
    "windows-overlap": build({ of: "pool", strides: [1, 1] }),
    "interior-value-used": build({}, (b, y) => [b.add(Relu, [y])]),
  },
});
