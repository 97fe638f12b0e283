/** DequantizeLinear, MatMul, QuantizeLinear become QLinearMatMul. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import type { Value } from "../graph/graph.ts";
import { MatMul, QLinearMatMul, QuantizeLinear, Relu } from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, reassociates } from "../rewrite/rule.ts";
import { allOf, asScalar, dequantized, dequantizedSecond, eightBits, floatScale, oneScale, quantized, quantizedType, zeroPoint } from "./quantized-operands.ts";
import { productFits, productOf, productOperands, type ProductCase } from "./quantized-product.ts";

const build = (c: ProductCase & { readonly y?: DType } = {}, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), y = productOf(b, c), float = c.scaleType ?? "float32";
  return b.build(b.add(QuantizeLinear, [y, b.scalar(0.25, float), b.scalar(7, c.y ?? c.x ?? "uint8")]), ...more(b, y));
};

export const quantizeMatmul = defineRule({
  name: "quantize-matmul",
  doc: "MatMul between DequantizeLinear and QuantizeLinear becomes QLinearMatMul: 8-bit operands, exact int32 sums, one rounding. Values within float32's rounding error of the middle between two steps may round to the other.",
  match: quantized(op(MatMul, [dequantized, dequantizedSecond], { as: "product" })),
  where: [
    (m) => productOperands(m, m.w.type.shape.length - 1),
    (m) => allOf(() => eightBits(m.yNode), () => floatScale(m.yNode, m.yScale), () => oneScale(m.yNode, m.yScale)),
    (m) => productFits(m.product, m, m.w.type.shape.length - 1),
  ],
  numerics: reassociates(),
  rewrite(m, edit) {
    const one = (v: Value): Value => asScalar(v, edit);
    return edit.insert(QLinearMatMul, [
      m.x, one(m.xScale), one(zeroPoint(m.xZero, m.xScale, quantizedType(m.xNode), edit)),
      m.w, one(m.wScale), one(zeroPoint(m.wZero, m.wScale, quantizedType(m.wNode), edit)),
      one(m.yScale), one(zeroPoint(m.yZero, m.yScale, quantizedType(m.yNode), edit)),
    ], {}, { name: m.product.name });
  },
  example: build(),
  examples: [build({ x: "int8", perColumn: true, wZero: [1, -2, 0] }), build({ w: "uint8", wZero: [50], stack: true }), build({ y: "int8" })],
  refuses: {
    "quantized-type": build({ x: "int16" }),
    "scale-type": build({ scaleType: "float16" }),
    "per-axis": build({ perColumn: true, axis: 0, depth: 3 }),
    "interior-value-used": build({}, (b, y) => [b.add(Relu, [y])]),
    "accumulator-overflow": build({ depth: 200000 }),
  },
});
