/**
 * A softmax made safe for rows that are masked everywhere, where it gives NaN: its weights chosen as 0 where they are NaN,
 * as PyTorch writes scaled dot-product attention for ONNX, or in rows whose scores are all -∞ (its `_safe_softmax`).
 */
import type { Node, Value } from "../graph/graph.ts";
import { Cast, Equal, Expand, IsNaN, Not, ReduceMax, ReduceMin, Where } from "../ops/index.ts";
import { reducedAxes } from "../ops/reduce.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { anyOf, anything, commuted, literal, op, optionalInput, value, type Pattern } from "../rewrite/pattern.ts";
import { refuse, type Verdict } from "../rewrite/rule.ts";
import { shapeEqual } from "../core/dim.ts";

/** What the pattern binds beside the softmax. */
export interface RowWeights {
  /** Scores that are compared with -∞, and the reduction over each row of comparisons. */
  readonly compared: Value | undefined; readonly rows: Node | undefined;
  /** Says where weights are NaN. */
  readonly undefinedAt: Node | undefined;
}

/** `softmax`, perhaps with such a choice behind it. */
export function chosenWeights(softmax: Pattern): Pattern {
  const zeros = anyOf(literal(0), op(Expand, [literal(0), anything()]));
  const isNaN = op(IsNaN, [softmax], { as: "undefinedAt" }), hidden = commuted(Equal, [value("compared"), literal(-Infinity)]);
  const over = (reduction: typeof ReduceMin, inner: Pattern): Pattern => op(reduction, [inner, optionalInput(anything())], { as: "rows" });
  const everywhere = anyOf(
    op(Cast, [over(ReduceMin, anyOf(op(Cast, [hidden]), hidden))]),
    over(ReduceMin, hidden),
    op(Not, [op(Cast, [over(ReduceMax, op(Cast, [op(Not, [hidden])]))])]),
    commuted(Equal, [over(ReduceMax, value("compared")), literal(-Infinity)]),
  );
  return anyOf(
    softmax,
    op(Where, [anyOf(isNaN, everywhere), zeros, softmax]),
    op(Where, [op(Not, [anyOf(isNaN, everywhere)]), softmax, zeros]),
  );
}

/** Whether the choice is by whole rows of the softmax's own scores, and enlarges nothing. */
export function rowsFit({ compared, rows }: RowWeights, softmax: Node, weights: Value | undefined): Verdict {
  const [scores] = softmax.inputs, [own] = softmax.outputs;
  if (!scores || !own || !weights || !shapeEqual(own.type.shape, weights.type.shape)) return refuse("shape-grows", `what chooses the weights enlarges those of '${softmax.name}'`, "choose by rows");
  if (!rows || !compared) return true;
  if (compared !== scores) return refuse("different-operand", `'${compared.name}' is compared with -∞, and '${scores.name}' is what '${softmax.name}' reads`, "compare the scores");
  if (rows.attributes["keepdims"] !== 1) return refuse("keepdims", `'${rows.name}' does not keep the axis of keys`, "set keepdims to 1");
  const rank = scores.type.shape.length, axes = reducedAxes(rank, rows.inputs[1] && typeWithConstant(rows.inputs[1]), { noop_with_empty_axes: Number(rows.attributes["noop_with_empty_axes"]) });
  return (axes?.length === 1 && axes[0] === rank - 1) || refuse("axes", `'${rows.name}' does not reduce the last axis`, "reduce over the keys");
}

/** Which rows of weights are 0, for FlashAttention. */
export const emptyRowsOf = ({ undefinedAt, rows }: RowWeights): { readonly empty_rows?: string } => (undefinedAt ? { empty_rows: "undefined" } : rows ? { empty_rows: "hidden" } : {});
