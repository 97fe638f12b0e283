/** A costly function of one quantised value is looked up among its 256 results. */
import { present } from "../core/assert.ts";
import { asTensor } from "../core/datum.ts";
import type { DType } from "../core/dtype.ts";
import type { EvaluateAttribute } from "../core/evaluate.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { evaluationOf } from "../graph/op.ts";
import {
  Acos, Acosh, Asin, Asinh, Atan, Atanh, Celu, Cos, Cosh, DequantizeLinear, Elu, Erf, Exp, Gelu, Log, Mish, QLinearMatMul, QuantizeLinear, Relu, Selu, Sigmoid, Sin, Sinh, Softplus, Softsign,
  Sqrt, Swish, TableLookup, Tan, Tanh, Transpose,
} from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";
import { allOf, dequantized, eightBits, oneScale, quantized } from "./quantized-operands.ts";

/** Functions that cost more than reading a byte of a table. */
const costly = [Sigmoid, Tanh, Erf, Gelu, Swish, Mish, Softplus, Elu, Selu, Celu, Exp, Log, Sqrt, Softsign, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh];

/** The node's result on one constant and its other inputs, which are constants. */
function apply(node: Node, x: Tensor): Tensor {
  const evaluate = present(evaluationOf(node.op), `evaluation of ${node.op.type}`);
  const [result] = evaluate([x, ...node.inputs.slice(1).map((v) => v?.constant)], node.attributes as Readonly<Record<string, EvaluateAttribute | undefined>>, { outputCount: 1, outputDTypes: node.outputs.map((v) => v.type.dtype) });
  return asTensor(present(result, `result of ${node.op.type}`));
}

interface Case { readonly from?: DType; readonly to?: DType; readonly before?: (b: GraphBuilder, x: Value) => Value; readonly scales?: number }
const build = (c: Case = {}, of = Sigmoid, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), from = c.from ?? "uint8", to = c.to ?? from, several = c.scales ?? 0;
  const x = b.input("x", ["n", 5], from), scale = several ? b.random([several], { low: 0.1 }) : b.scalar(0.05);
  const y = b.add(of, [b.add(DequantizeLinear, [c.before?.(b, x) ?? x, scale, several ? undefined : b.scalar(3, from)], { axis: 1 })]);
  return b.build(b.add(QuantizeLinear, [y, b.scalar(1 / 200), b.scalar(1, to)]), ...more(b, y));
};

export const tabulateQuantized = defineRule({
  name: "tabulate-quantized",
  doc: "A function such as Sigmoid, Tanh or Gelu between DequantizeLinear and QuantizeLinear of 8 bits is looked up in a table of its 256 results.",
  match: quantized(op(costly, [dequantized], { as: "of" })),
  where: [
    (m) => allOf(() => eightBits(m.xNode), () => eightBits(m.yNode), () => oneScale(m.xNode, m.xScale), () => oneScale(m.yNode, m.yScale)),
    ({ x }) => !x.producer?.node.op.anchor || refuse("follows-contraction", `'${x.name}' comes from ${x.producer.node.op.type} '${x.producer.node.name}', whose kernel computes it`, "none: it costs no call of its own there"),
  ],
  numerics: exact,
  rewrite({ x, xNode, of, yNode }, edit) {
    const least = x.type.dtype === "int8" ? -128 : 0;
    const all = fromNumbers(x.type.dtype, [256], Array.from({ length: 256 }, (_, i) => least + i));
    const table = [xNode, of, yNode].reduce((values, node) => apply(node, values), all);
    return edit.insert(TableLookup, [x, edit.constant(table, `${of.name}_table`)], {}, { name: of.name });
  },
  example: build(),
  examples: [build({ from: "int8" }, Tanh), build({ to: "int8", before: (b, x) => b.add(Transpose, [x]) }, Gelu), build({}, Log)],
  refuses: {
    "quantized-type": build({ from: "int16" }),
    "per-axis": build({ scales: 5 }),
    "interior-value-used": build({}, Sigmoid, (b, y) => [b.add(Relu, [y])]),
    "follows-contraction": () => {
      const b = new GraphBuilder();
      const one = b.scalar(1), zero = b.scalar(128, "uint8"), w = b.random([4, 3], { low: 0, high: 255, dtype: "uint8" });
      const sums = b.add(DequantizeLinear, [b.add(QLinearMatMul, [b.input("x", ["n", 4], "uint8"), one, zero, w, b.scalar(0.01), zero, one, zero]), b.scalar(0.05)]);
      return b.build(b.add(QuantizeLinear, [b.add(Sigmoid, [sums]), b.scalar(0.01)]));
    },
  },
});
