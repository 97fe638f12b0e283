/** Evaluation of one step of Momentum, Adam and Adagrad, by their definitions in ai.onnx.preview.training. */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, stringOf } from "./read-attribute.ts";

/** Inputs are the rate, the count of updates, then `kinds` tensors for each variable, kind after kind. */
function optimizer(kinds: number, step: (rate: number, count: number, attribute: (name: string) => number, mode: string) => (...own: readonly number[]) => readonly number[]): Evaluate {
  return (inputs, attributes) => {
    const rate = Number(toNumbers(input(inputs, 0))[0]), count = Number(toNumbers(input(inputs, 1))[0]), tensors = inputs.slice(2).filter((t): t is Tensor => t !== undefined);
    const next = step(rate, count, (name) => numberOf(attributes, name), stringOf(attributes, "mode", ""));
    const variables = tensors.length / kinds, results: Tensor[][] = [];
    for (let v = 0; v < variables; v++) {
      const own = Array.from({ length: kinds }, (_, k) => input(tensors, k * variables + v)), values = own.map(toNumbers), [x] = own;
      const rows = Array.from({ length: values[0]?.length ?? 0 }, (_, i) => next(...values.map((list) => list[i] ?? 0)));
      results.push(Array.from({ length: kinds - 1 }, (_, k) => fromNumbers(x?.dtype ?? "float32", x?.dims ?? [], rows.map((row) => row[k] ?? 0))));
    }
    return Array.from({ length: kinds - 1 }, (_, k) => results.map((r) => input(r, k))).flat();
  };
}

export const Momentum: Evaluate = optimizer(3, (rate, count, attribute, mode) => (x = 0, g = 0, v = 0) => {
  const gradient = attribute("norm_coefficient") * x + g, momentum = attribute("alpha") * v + (count > 0 ? attribute("beta") : 1) * gradient;
  return [x - rate * (mode === "nesterov" ? gradient + attribute("alpha") * momentum : momentum), momentum];
});

export const Adam: Evaluate = optimizer(4, (rate, count, attribute) => {
  const alpha = attribute("alpha"), beta = attribute("beta"), adjusted = count > 0 ? (rate * Math.sqrt(1 - beta ** count)) / (1 - alpha ** count) : rate;
  return (x = 0, g = 0, v = 0, h = 0) => {
    const gradient = attribute("norm_coefficient") * x + g, momentum = alpha * v + (1 - alpha) * gradient, square = beta * h + (1 - beta) * gradient * gradient;
    return [(1 - attribute("norm_coefficient_post")) * (x - (adjusted * momentum) / (Math.sqrt(square) + attribute("epsilon"))), momentum, square];
  };
});

export const Adagrad: Evaluate = optimizer(3, (rate, count, attribute) => (x = 0, g = 0, h = 0) => {
  const gradient = attribute("norm_coefficient") * x + g, square = h + gradient * gradient;
  return [x - ((rate / (1 + count * attribute("decay_factor"))) * gradient) / (Math.sqrt(square) + attribute("epsilon")), square];
});
