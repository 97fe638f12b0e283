/** Einsum: sums of products over labelled axes, as one naive reduction. */
import { broadcastDim, type Dim } from "../core/dim.ts";
import { Einsum as evaluate, einsumLabels, type EinsumLabels } from "../evaluate/einsum.ts";
import { defineOp, required, type TypeInfo } from "../graph/op.ts";
import { mul, reduce, type Expr } from "../kernel/expr.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkSameType, checkType, narrow, outputOf } from "./element-wise.ts";
import { origin } from "./index-map.ts";

/** The size of every label; undefined where operands disagree. */
function labelSizes(inputs: readonly TypeInfo[], labels: EinsumLabels): ReadonlyMap<string, Dim> | undefined {
  const size = new Map<string, Dim>();
  for (const [i, own] of labels.operands.entries()) for (const [d, l] of own.entries()) {
    const joined = broadcastDim(size.get(l) ?? 1, inputs[i]?.shape[d] ?? 1);
    if (joined === undefined) return undefined;
    size.set(l, joined);
  }
  return size;
}

export const Einsum = defineOp({
  type: "Einsum", domain: "", since: 12, evaluate,
  inputs: { Inputs: "variadic" },
  attributes: { equation: required("string") },
  fusionKind: "reduction",
  infer: ({ Inputs }, { equation }, context) => {
    const [first] = Inputs;
    if (!first) return context.fail("OF3001", "needs at least one input");
    checkType(context, first, "Inputs", "numeric");
    checkSameType(context, Inputs);
    const labels = einsumLabels(equation, Inputs.map((t) => t.shape.length)) ?? context.fail("OF3012", `equation '${equation}' does not fit ${Inputs.length} operands of ranks ${Inputs.map((t) => t.shape.length).join(", ")}`);
    const size = labelSizes(Inputs, labels) ?? context.fail("OF3011", `sizes of one label differ in '${equation}'`);
    Inputs.forEach((t, i) => agreeSizes(context, `operand ${i}`, t, (labels.operands[i] ?? []).map((l, d) => size.get(l) ?? t.shape[d] ?? 1), "broadcast"));
    return [{ dtype: first.dtype, shape: labels.result.map((l) => size.get(l) ?? context.fail("OF3012", `result label '${l}' is in no operand`)) }];
  },
  lower: ({ Inputs }, { equation }, context) => {
    const labels = einsumLabels(equation, Inputs.map((t) => t.shape.length)) ?? { operands: [], result: [] };
    const size = labelSizes(Inputs, labels) ?? new Map<string, Dim>();
    const summed = [...size.keys()].filter((l) => !labels.result.includes(l));
    return [(...indices) => {
      const product = (...k: readonly Expr[]): Expr => {
        const at = (l: string): Expr => indices[labels.result.indexOf(l)] ?? k[summed.indexOf(l)] ?? origin;
        return Inputs.map((t, i) => t.at(...(labels.operands[i] ?? []).map((l, d) => (t.shape[d] === 1 ? origin : at(l))))).reduce(mul);
      };
      return narrow(summed.length ? reduce("add", summed.map((l) => size.get(l) ?? 1), product) : product(), outputOf(context).dtype);
    }];
  },
});
