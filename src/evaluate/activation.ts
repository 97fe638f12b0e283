/** Evaluation of activation functions, element by element in float64. */
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { isFloat } from "../core/dtype.ts";
import { toBigInts, toNumbers } from "../core/tensor.ts";
import { erf } from "./erf.ts";
import { input, mapElements, mapNumbers, zipElements } from "./map-elements.ts";
import { numberOf, stringOf } from "./read-attribute.ts";

const activation = (make: (attributes: EvaluateAttributes) => (x: number) => number): Evaluate =>
  (inputs, attributes) => [mapNumbers(input(inputs, 0), make(attributes))];

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
/** ln(1 + eˣ) without overflow. */
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
/** min and max that pass NaN of x on and keep x where it equals the bound. */
const within = (x: number, low: number, high: number): number => { const y = x < low ? low : x; return high < y ? high : y; };
const hardSigmoid = (alpha: number, beta: number) => (x: number): number => within(alpha * x + beta, 0, 1);

export const Relu: Evaluate = (inputs) => [mapElements(input(inputs, 0), (x) => (x < 0 ? 0 : x), (x) => (x < 0n ? 0n : x))];
export const LeakyRelu: Evaluate = activation((a) => { const alpha = numberOf(a, "alpha"); return (x) => (x < 0 ? alpha * x : x); });
export const PRelu: Evaluate = (inputs) => [zipElements(input(inputs, 0), input(inputs, 1), (x, s) => (x < 0 ? s * x : x), (x, s) => (x < 0n ? s * x : x))];
export const Sigmoid: Evaluate = activation(() => sigmoid);
export const HardSigmoid: Evaluate = activation((a) => hardSigmoid(numberOf(a, "alpha"), numberOf(a, "beta")));
export const HardSwish: Evaluate = activation(() => { const gate = hardSigmoid(1 / 6, 0.5); return (x) => x * gate(x); });
export const Elu: Evaluate = activation((a) => { const alpha = numberOf(a, "alpha"); return (x) => (x < 0 ? alpha * Math.expm1(x) : x); });
export const Selu: Evaluate = activation((a) => {
  const alpha = numberOf(a, "alpha"), gamma = numberOf(a, "gamma");
  return (x) => gamma * (x < 0 ? alpha * Math.expm1(x) : x);
});
export const Celu: Evaluate = activation((a) => { const alpha = numberOf(a, "alpha"); return (x) => (x < 0 ? alpha * Math.expm1(x / alpha) : x); });
export const ThresholdedRelu: Evaluate = activation((a) => { const alpha = numberOf(a, "alpha"); return (x) => (x > alpha ? x : 0); });
export const Softplus: Evaluate = activation(() => softplus);
export const Softsign: Evaluate = activation(() => (x) => x / (1 + Math.abs(x)));
export const Mish: Evaluate = activation(() => (x) => x * Math.tanh(softplus(x)));
export const Swish: Evaluate = activation((a) => { const alpha = numberOf(a, "alpha"); return (x) => x * sigmoid(alpha * x); });
export const Gelu: Evaluate = activation((a) => stringOf(a, "approximate") === "tanh"
  ? (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))
  : (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)));
export const Shrink: Evaluate = (inputs, a) => {
  const lambd = numberOf(a, "lambd"), bias = numberOf(a, "bias");
  return [mapNumbers(input(inputs, 0), (x) => (x < -lambd ? x + bias : x > lambd ? x - bias : 0))];
};

export const Clip: Evaluate = (inputs) => {
  const x = input(inputs, 0), [, low, high] = inputs;
  if (isFloat(x.dtype)) {
    const least = low && toNumbers(low)[0], most = high && toNumbers(high)[0];
    return [mapNumbers(x, (v) => within(v, least ?? -Infinity, most ?? Infinity))];
  }
  const least = low && toBigInts(low)[0], most = high && toBigInts(high)[0];
  return [mapElements(x, (v) => v, (v) => { const y = least !== undefined && v < least ? least : v; return most !== undefined && y > most ? most : y; })];
};
