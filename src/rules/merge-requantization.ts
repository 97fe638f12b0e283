/** From one quantisation to another by a single factor, where that gives the same integers. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { DequantizeLinear, QuantizeLinear, Transpose } from "../ops/index.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";
import { allOf, dequantized, eightBits, floatScale, nearestEven, oneScale, quantized, quantizedType, zeroPointTensor, type Dequantized, type Quantized } from "./quantized-operands.ts";

const build = (from: number, to: number, type: DType = "uint8") => () => {
  const b = new GraphBuilder();
  const x = b.add(DequantizeLinear, [b.add(Transpose, [b.input("x", ["n", 7], type)]), b.scalar(from), b.scalar(3, type)]);
  return b.build(b.add(QuantizeLinear, [x, b.scalar(to), b.scalar(100, type)]));
};

/** The float32 numbers nearest to x, the nearest first. */
function neighbours(x: number): readonly number[] {
  const bits = new Int32Array(Float32Array.of(x).buffer)[0] ?? 0;
  return [0, 1, -1, 2, -2].map((d) => new Float32Array(Int32Array.of(bits + d).buffer)[0] ?? NaN);
}

/** A factor by which every integer comes out as by way of both scales; undefined where there is none, or where the second scale is 1 already. */
function factorOf(m: Dequantized & Quantized): number | undefined {
  const from = toNumbers(m.xScale.constant)[0] ?? NaN, to = toNumbers(m.yScale.constant)[0] ?? NaN, type = quantizedType(m.xNode);
  const zero = toNumbers(zeroPointTensor(m.xZero, m.xScale, type))[0] ?? 0, least = type === "int8" ? -128 : 0;
  if (!Number.isFinite(from / to) || from === 0) return undefined;
  const steps = Array.from({ length: 256 }, (_, i) => least + i - zero);
  return neighbours(Math.fround(from / to)).find((f) => steps.every((s) => nearestEven(Math.fround(s * f)) === nearestEven(Math.fround(Math.fround(s * from) / to))));
}

export const mergeRequantization = defineRule({
  name: "merge-requantization",
  doc: "DequantizeLinear and QuantizeLinear of 8 bits with different scales keep one factor, the second scale becoming 1, where all 256 integers come out the same.",
  match: quantized(dequantized),
  where: [
    (m) => allOf(() => eightBits(m.xNode), () => eightBits(m.yNode), () => floatScale(m.xNode, m.xScale), () => floatScale(m.yNode, m.yScale), () => oneScale(m.xNode, m.xScale), () => oneScale(m.yNode, m.yScale)),
    ({ yScale, yNode }) => toNumbers(yScale.constant)[0] !== 1 || refuse("merged", `'${yNode.name}' has scale 1`, "none: there is nothing to divide by"),
    (m) => factorOf(m) !== undefined || refuse("no-factor", `no factor takes '${m.xNode.name}' to '${m.yNode.name}' with the same rounding`, "quantise both alike"),
  ],
  numerics: exact,
  rewrite(m, edit) {
    const { x, xZero, xNode, yZero, yNode } = m;
    const factor = edit.constant(fromNumbers("float32", [], [factorOf(m) ?? NaN]), `${xNode.name}_factor`), one = edit.constant(fromNumbers("float32", [], [1]), "one");
    const scaled = edit.insert(DequantizeLinear, [x, factor, xZero], xNode.attributes, { name: xNode.name });
    return edit.insert(QuantizeLinear, [scaled, one, yZero], yNode.attributes, { name: yNode.name });
  },
  example: build(0.0131, 0.0217),
  examples: [build(0.05, 0.031, "int8")],
  refuses: {
    "quantized-type": build(0.1, 0.2, "int16"),
    merged: build(0.3, 1),
    "no-factor": build(0, 0.5),
  },
});
