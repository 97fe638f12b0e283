/** Gemm of dequantised operands sums integers, whatever comes after it. */
import { GraphBuilder } from "../graph/build.ts";
import { fromNumbers } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { Add, DequantizeLinear, Gemm, Mul, Sigmoid, Transpose } from "../ops/index.ts";
import { op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";
import { scaledSums } from "./integer-matmul.ts";
import { dequantized, dequantizedSecond } from "./quantized-operands.ts";
import { productFits, productOf, productOperands, type ProductCase } from "./quantized-product.ts";

const build = (c: ProductCase = {}, attributes: Readonly<Record<string, number>> = {}, bias = true) => () => {
  const b = new GraphBuilder();
  const y = productOf(b, c, (x, w) => b.add(Gemm, [x, w, bias ? b.random([3]) : undefined], attributes, "gemm"));
  return b.build(b.add(Sigmoid, [y]), y);
};

export const integerGemm = defineRule({
  name: "integer-gemm",
  doc: "Gemm of dequantised 8-bit operands becomes MatMulInteger, whose exact int32 sums are scaled and added to C in float32 in the same kernel, and then go into whatever follows.",
  stage: "decompose",
  match: op(Gemm, [dequantized, dequantizedSecond, optionalInput(value("summand"))], { as: "gemm" }),
  where: [
    ({ gemm }) => !gemm.attributes["transA"] || refuse("transposed", `'${gemm.name}' transposes its left operand`, "transpose it before it is quantised"),
    (m) => productOperands(m, m.gemm.attributes["transB"] ? 0 : 1),
    (m) => productFits(m.gemm, m, m.gemm.attributes["transB"] ? 0 : 1),
  ],
  numerics: reassociates(),
  rewrite(m, edit) {
    const { transB, alpha, beta } = m.gemm.attributes;
    const w = transB ? edit.insert(Transpose, [m.w], { perm: [1, 0] }) : m.w;
    const product = scaledSums(m, w, Number(alpha), m.gemm.name, edit);
    if (!m.summand || beta === 0) return product;
    const summand: Value = beta === 1 ? m.summand : edit.insert(Mul, [m.summand, edit.constant(fromNumbers("float32", [], [Number(beta)]), "beta")]);
    return edit.insert(Add, [product, summand]);
  },
  example: build(),
  examples: [build({ x: "int8", perColumn: true, wZero: [1, -2, 0] }, { alpha: 0.5, beta: 2 }), build({ w: "uint8", wZero: [50] }, {}, false), () => {
    const b = new GraphBuilder();
    const x = b.add(DequantizeLinear, [b.input("x", ["n", 5], "uint8"), b.scalar(0.5)]);
    const w = b.add(DequantizeLinear, [b.random([3, 5], { low: -99, high: 99, dtype: "int8" }), b.numbers([0.25, 0.5, 1])], { axis: 0 });
    return b.build(b.add(Sigmoid, [b.add(Gemm, [x, w, b.random([1, 3])], { transB: 1 })]));
  }],
  refuses: {
    "quantized-type": build({ x: "int16" }),
    "scale-type": build({ scaleType: "float16" }, {}, false),
    "per-axis": build({ perColumn: true, axis: 0, depth: 3 }),
    transposed: () => {
      const b = new GraphBuilder();
      const x = b.add(DequantizeLinear, [b.input("x", [5, "n"], "uint8"), b.scalar(0.5)]), w = b.add(DequantizeLinear, [b.random([5, 3], { low: -99, high: 99, dtype: "int8" }), b.scalar(0.5)]);
      return b.build(b.add(Gemm, [x, w], { transA: 1 }));
    },
    "accumulator-overflow": build({ depth: 200000 }),
  },
});
