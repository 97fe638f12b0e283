/** Dequantising and quantising again by the same scale and zero point gives the integers one had. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import { DequantizeLinear, QuantizeLinear, Transpose } from "../ops/index.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";
import { allOf, dequantized, floatScale, quantized, sameQuantization, scaleAxis, isPerTensor } from "./quantized-operands.ts";

interface Case { readonly scale?: number; readonly zero?: number; readonly type?: DType; readonly float?: DType }
const build = (c: Case) => () => {
  const b = new GraphBuilder(), float = c.float ?? "float32";
  const x = b.input("x", ["n", 3], c.type ?? "int8"), first = b.scalar(0.3, float);
  const y = b.add(DequantizeLinear, [b.add(Transpose, [x]), first, b.scalar(3, c.type ?? "int8")]);
  return b.build(b.add(QuantizeLinear, [y, b.scalar(c.scale ?? 0.3, float), b.scalar(c.zero ?? 3, c.type ?? "int8")]));
};

export const dropRequantization = defineRule({
  name: "drop-requantization",
  doc: "QuantizeLinear of DequantizeLinear with the same scale and zero point gives back the integers: both go.",
  stage: "recognise",
  match: quantized(dequantized),
  where: [
    (m) => allOf(() => floatScale(m.xNode, m.xScale), () => sameQuantization(m, m)),
    ({ xNode, yNode, xScale }) => isPerTensor(xScale) || (scaleAxis(xNode) === scaleAxis(yNode) && xNode.attributes["block_size"] === yNode.attributes["block_size"])
      || refuse("per-axis", `'${xNode.name}' and '${yNode.name}' have their scales along different axes`, "use one axis"),
  ],
  numerics: exact,
  rewrite: ({ x }) => x,
  example: build({}),
  examples: [build({ type: "uint8" }), () => {
    const b = new GraphBuilder();
    const x = b.add(Transpose, [b.input("x", [2, 3], "int8")]), scale = b.numbers([0.1, 0.2, 0.7]);
    return b.build(b.add(QuantizeLinear, [b.add(DequantizeLinear, [x, scale], { axis: 0 }), scale, b.numbers([0, 0, 0], [3], "int8")], { axis: 0 }));
  }],
  refuses: {
    "quantization-differs": build({ scale: 0.31 }),
    "scale-type": build({ float: "float16" }),
    "scale-range": () => {
      const b = new GraphBuilder(), scale = b.scalar(3e38);
      return b.build(b.add(QuantizeLinear, [b.add(DequantizeLinear, [b.input("x", [3], "uint8"), scale]), scale]));
    },
    "graph-output": () => {
      const b = new GraphBuilder(), scale = b.scalar(0.5);
      return b.build(b.add(QuantizeLinear, [b.add(DequantizeLinear, [b.input("x", [3], "uint8"), scale]), scale]));
    },
  },
});
