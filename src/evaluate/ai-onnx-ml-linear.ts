/** Evaluation of the linear models of ai.onnx.ml, accumulated in float64. */
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { toNumbers } from "../core/tensor.ts";
import { bothScores, greatestOf, labelsOf, matrixOf, rowsOf, transformScores } from "./class-scores.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";

/** x · coefficients' + intercepts, for one row. */
function linear(attributes: EvaluateAttributes, row: readonly number[], targets: number): number[] {
  const coefficients = numbersOf(attributes, "coefficients") ?? [], intercepts = numbersOf(attributes, "intercepts") ?? [];
  return Array.from({ length: targets }, (_, t) => row.reduce((sum, x, f) => sum + x * (coefficients[t * row.length + f] ?? 0), intercepts[t] ?? 0));
}

export const LinearRegressor: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), targets = numberOf(attributes, "targets"), transform = stringOf(attributes, "post_transform");
  return [matrixOf(rowsOf(x.dims, toNumbers(x)).map((row) => transformScores(linear(attributes, row, targets), transform)), targets)];
};

export const LinearClassifier: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), labels = labelsOf(attributes, "classlabels_ints", "classlabels_strings"), transform = stringOf(attributes, "post_transform");
  const width = x.dims[x.dims.length - 1] ?? 1, targets = (numbersOf(attributes, "coefficients") ?? []).length / Math.max(1, width);
  const scores = rowsOf(x.dims, toNumbers(x)).map((row) => linear(attributes, row, targets));
  const isPair = targets === 1 && labels.count === 2;
  const classes = scores.map((s) => (targets === 1 ? Number((s[0] ?? 0) > 0) : greatestOf(s)));
  return [labels.tensorOf(classes), matrixOf(scores.map((s) => (isPair ? bothScores(s[0] ?? 0, transform, true) : transformScores(s, transform))), isPair ? 2 : targets)];
};
