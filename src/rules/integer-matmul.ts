/** MatMul of dequantised operands sums integers, whatever comes after it. */
import { GraphBuilder } from "../graph/build.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { Cast, MatMul, MatMulInteger, Mul, Sigmoid } from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, reassociates, type Editor } from "../rewrite/rule.ts";
import { asScalar, dequantized, dequantizedSecond, quantizedType, zeroPoint } from "./quantized-operands.ts";
import { productFits, productOf, productOperands, type ProductCase, type ProductOperands } from "./quantized-product.ts";

/** Σ (x − zero) · (w − zero), times both scales and `factor`. */
export function scaledSums(m: ProductOperands, w: Value, factor: number, name: string, edit: Editor): Value {
  const one = (v: Value): Value => asScalar(v, edit);
  const sums = edit.insert(MatMulInteger, [m.x, w, one(zeroPoint(m.xZero, m.xScale, quantizedType(m.xNode), edit)), one(zeroPoint(m.wZero, m.wScale, quantizedType(m.wNode), edit))], {}, { name });
  const x = toNumbers(m.xScale.constant)[0] ?? 0, scales = Array.from(toNumbers(m.wScale.constant), (s) => factor * x * s);
  const scale = edit.constant(fromNumbers("float32", scales.length === 1 ? [] : [scales.length], scales), `${name}_scale`);
  return edit.insert(Mul, [edit.insert(Cast, [sums], { to: 1 }), scale]);
}

const build = (c: ProductCase = {}) => () => {
  const b = new GraphBuilder(), y = productOf(b, c);
  return b.build(b.add(Sigmoid, [y]), y);
};

export const integerMatmul = defineRule({
  name: "integer-matmul",
  doc: "MatMul of dequantised 8-bit operands becomes MatMulInteger, whose exact int32 sums are scaled in float32 in the same kernel, and then go into whatever follows.",
  stage: "decompose",
  match: op(MatMul, [dequantized, dequantizedSecond], { as: "product" }),
  where: [
    (m) => productOperands(m, m.w.type.shape.length - 1),
    (m) => productFits(m.product, m, m.w.type.shape.length - 1),
  ],
  numerics: reassociates(),
  rewrite: (m, edit) => scaledSums(m, m.w, 1, m.product.name, edit),
  example: build(),
  examples: [build({ x: "int8", perColumn: true, wZero: [1, -2, 0] }), build({ w: "uint8", wZero: [50], stack: true })],
  refuses: {
    "quantized-type": build({ x: "int16" }),
    "scale-type": build({ scaleType: "float16" }),
    "per-axis": build({ xScales: 6 }),
    "accumulator-overflow": build({ depth: 200000 }),
  },
});
