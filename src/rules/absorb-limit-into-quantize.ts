/** Relu and Clip before QuantizeLinear, where saturation limits as tightly. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import { toNumbers } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Abs, Add, Clip, QuantizeLinear, Relu } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { anything, anyOf, op, optionalInput, value, type ConstantValue } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Verdict } from "../rewrite/rule.ts";
import { allOf, floatScale, nearestEven, oneScale, quantized, quantizedType, zeroPointTensor } from "./quantized-operands.ts";

const ranges: Partial<Readonly<Record<DType, readonly [number, number]>>> = { int8: [-128, 127], uint8: [0, 255], int16: [-32768, 32767], uint16: [0, 65535] };

interface Case { readonly limit?: readonly (number | undefined)[]; readonly scale?: number; readonly zero?: number; readonly type?: DType }
const build = (c: Case, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), type = c.type ?? "uint8";
  const x = b.add(Add, [b.input("x", ["n", 5]), 0.25]);
  const y = c.limit ? b.add(Clip, [x, ...c.limit]) : b.add(Relu, [x]);
  return b.build(b.add(QuantizeLinear, [y, b.scalar(c.scale ?? 0.02), b.scalar(c.zero ?? 0, type)]), ...more(b, y));
};

/** Quantisation is monotone, so a limit does nothing where the limit itself becomes the end of the range. */
function reachesEnds(limit: Node, quantize: Node, scale: ConstantValue, zero: ConstantValue | undefined): Verdict {
  const type = quantizedType(quantize), [low, high] = ranges[type] ?? [NaN, NaN], s = toNumbers(scale.constant)[0] ?? NaN;
  if (!(s > 0)) return refuse("scale-range", `the scale of '${quantize.name}' is ${s}`, "give it a scale above 0");
  const z = toNumbers(zeroPointTensor(zero, scale, type))[0] ?? 0;
  const bound = (v: Value | undefined, missing: number): number => (v === undefined ? missing : isConstant(v) ? (toNumbers(v.constant)[0] ?? NaN) : NaN);
  const least = limit.op === Relu ? 0 : bound(limit.inputs[1], -Infinity), most = limit.op === Relu ? Infinity : bound(limit.inputs[2], Infinity);
  if (Number.isNaN(least) || Number.isNaN(most)) return refuse("not-constant", `the limits of '${limit.name}' are not known`, "make them constant");
  const at = (x: number): number => Math.min(high, Math.max(low, nearestEven(Math.fround(x / s)) + z));
  if (least <= most && at(least) === low && at(most) === high) return true;
  return refuse("range-exceeds", `'${quantize.name}' reaches from ${(low - z) * s} to ${(high - z) * s}, '${limit.name}' allows ${least} to ${most}`, "quantise to the range that the limit leaves");
}

export const absorbLimitIntoQuantize = defineRule({
  name: "absorb-limit-into-quantize",
  doc: "Relu or Clip before QuantizeLinear goes where the quantised range ends at the same limits: saturation does the same.",
  stage: "recognise",
  match: quantized(anyOf(op(Relu, [value("of")], { as: "limit" }), op(Clip, [value("of"), optionalInput(anything()), optionalInput(anything())], { as: "limit" }))),
  where: [
    ({ yNode, yScale }) => allOf(() => floatScale(yNode, yScale), () => oneScale(yNode, yScale)),
    ({ limit, yNode, yScale, yZero }) => reachesEnds(limit, yNode, yScale, yZero),
  ],
  numerics: exact,
  rewrite: ({ of, yNode }, edit) => edit.insert(QuantizeLinear, [of, ...yNode.inputs.slice(1)], yNode.attributes, { name: yNode.name }),
  example: build({}),
  examples: [build({ limit: [0, 6], scale: 6 / 255 }), build({ limit: [-1, 3], type: "int8", scale: 4 / 255, zero: -64 }), build({ limit: [undefined, 127], type: "int8", scale: 1 })],
  refuses: {
    "range-exceeds": build({ type: "int8" }),
    "interior-value-used": build({}, (b, y) => [b.add(Abs, [y])]),
    "scale-range": build({ scale: -0.5 }),
  },
});
