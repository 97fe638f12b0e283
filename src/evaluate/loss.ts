/** Evaluation of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, by their definitions. */
import { fail } from "../core/diagnostic.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { stringOf } from "./read-attribute.ts";
import { LogSoftmax } from "./softmax.ts";

/** −w[target]·x[n, target, …], reduced; a target that is ignored counts nothing. */
function loss(x: Tensor, logs: ArrayLike<number>, target: Tensor, weight: Tensor | undefined, attributes: EvaluateAttributes): Tensor {
  const [, classes = 1] = x.dims, inner = sizeOf(x.dims.slice(2)), targets = toNumbers(target), weights = weight && toNumbers(weight);
  const ignored = attributes["ignore_index"], reduction = stringOf(attributes, "reduction", "mean");
  const losses = new Float64Array(targets.length);
  let total = 0, count = 0;
  for (let i = 0; i < losses.length; i++) {
    const t = targets[i] ?? 0;
    if (t === ignored) continue;
    if (t < 0 || t >= classes) fail("OF7014", `a loss has target ${t} of ${classes} classes`, { hint: "check the labels that are fed, or set ignore_index" });
    const w = weights ? weights[t] ?? 1 : 1;
    losses[i] = -w * (logs[(Math.floor(i / inner) * classes + t) * inner + (i % inner)] ?? 0);
    total += losses[i] ?? 0;
    count += w;
  }
  if (reduction === "none") return fromNumbers(x.dtype, target.dims, losses);
  return fromNumbers(x.dtype, [], [reduction === "mean" ? total / count : total]);
}

export const NegativeLogLikelihoodLoss: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0);
  return [loss(x, toNumbers(x), input(inputs, 1), inputs[2], attributes)];
};

export const SoftmaxCrossEntropyLoss: Evaluate = (inputs, attributes, context) => {
  const x = input(inputs, 0);
  const wide = fromNumbers("float64", x.dims, toNumbers(x)), [logs] = LogSoftmax([wide], { axis: 1 }, context), values = toNumbers(logs ?? wide);
  return [loss(x, values, input(inputs, 1), inputs[2], attributes), fromNumbers(x.dtype, x.dims, values)];
};
