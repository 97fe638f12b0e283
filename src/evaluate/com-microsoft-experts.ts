/**
 * com.microsoft's mixtures of experts, by their definition in float64: each token goes through the k experts that its
 * router's scores rank first, and the results are added by the scores' weights.
 */
import { present } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { zeroPoints, packedAt } from "./packed-integers.ts";
import { numberOf, stringOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** One layer of one expert: outputs of weights [outputs, inputs] and a bias. */
interface Layer { weight(expert: number, output: number, input: number): number; readonly bias: ((expert: number, output: number) => number) | undefined; readonly outputs: number; readonly inputs: number }
interface Experts { readonly first: Layer; readonly second: Layer; readonly gated: Layer | undefined }

function apply({ weight, bias, outputs, inputs }: Layer, expert: number, x: ArrayLike<number>): Float64Array {
  return Float64Array.from({ length: outputs }, (_, o) => {
    let sum = bias?.(expert, o) ?? 0;
    for (let i = 0; i < inputs; i++) sum += (x[i] ?? 0) * weight(expert, o, i);
    return sum;
  });
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
function activate(x: number, type: string): number {
  switch (type) {
    case "relu": return x > 0 ? x : Number.isNaN(x) ? x : 0;
    case "gelu": return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    case "silu": return x * sigmoid(x);
    default: return x;
  }
}

/** One expert on one token. The gate and the linear part of swiglu are interleaved, one after the other, or layers of their own. */
function runExpert({ first, second, gated }: Experts, expert: number, x: ArrayLike<number>, attributes: EvaluateAttributes): Float64Array {
  const hidden = apply(first, expert, x), type = stringOf(attributes, "activation_type", "relu"), fusion = numberOf(attributes, "swiglu_fusion", 0);
  const linear = gated && apply(gated, expert, x);
  if (type !== "swiglu") return apply(second, expert, hidden.map((v, i) => activate(v, type) * (linear ? (linear[i] ?? 0) : 1)));
  const limit = numberOf(attributes, "swiglu_limit", Infinity), alpha = numberOf(attributes, "activation_alpha", 1), beta = numberOf(attributes, "activation_beta", 0);
  const n = second.inputs, part = (i: number, which: 0 | 1): number => (linear ? (which ? linear : hidden)[i] : hidden[fusion === 1 ? 2 * i + which : which * n + i]) ?? 0;
  return apply(second, expert, Float64Array.from({ length: n }, (_, i) => {
    const g = Math.min(part(i, 0), limit), l = Math.max(-limit, Math.min(part(i, 1), limit));
    return g * sigmoid(alpha * g) * (l + beta);
  }));
}

/** The k experts of highest score with their weights; of equal scores the later ones. */
function route(scores: ArrayLike<number>, k: number, weigh: (scores: readonly number[], chosen: readonly number[]) => readonly number[]): readonly (readonly [number, number])[] {
  const all = Array.from(scores), chosen = all.map((_, e) => e).sort((a, b) => (all[b] ?? 0) - (all[a] ?? 0) || b - a).slice(0, k), weights = weigh(all, chosen);
  return chosen.map((e, i) => [e, weights[i] ?? 0]);
}
/** Softmax over all the scores, or over those chosen. */
function softmaxOf(scores: readonly number[], chosen: readonly number[], amongChosen: boolean): number[] {
  const most = Math.max(...scores), among = amongChosen ? chosen.map((e) => at(scores, e)) : scores, sum = among.reduce((s, v) => s + Math.exp(v - most), 0);
  return chosen.map((e) => Math.exp(at(scores, e) - most) / sum);
}

function mix(input: Tensor, router: Tensor, experts: Experts, attributes: EvaluateAttributes, weigh: (token: number) => (scores: readonly number[], chosen: readonly number[]) => readonly number[]): readonly Tensor[] {
  const x = toNumbers(input), scores = toNumbers(router), width = at(input.dims, input.dims.length - 1), count = at(router.dims, 1), k = numberOf(attributes, "k", 1);
  const tokens = sizeOf(input.dims.slice(0, -1)), y = new Float64Array(x.length);
  for (let t = 0; t < tokens; t++) {
    const row = Array.from({ length: width }, (_, i) => x[t * width + i] ?? 0), own = Array.from({ length: count }, (_, e) => scores[t * count + e] ?? 0);
    for (const [e, weight] of route(own, k, weigh(t))) runExpert(experts, e, row, attributes).forEach((v, i) => { y[t * width + i] = (y[t * width + i] ?? 0) + weight * v; });
  }
  return [fromNumbers(input.dtype, input.dims, y)];
}

const biasOf = (bias: Tensor | undefined): Layer["bias"] => {
  if (!bias) return undefined;
  const values = toNumbers(bias), outputs = at(bias.dims, 1);
  return (e, o) => values[e * outputs + o] ?? 0;
};
function layerOf(weights: Tensor, bias: Tensor | undefined): Layer {
  const values = toNumbers(weights), [, outputs = 0, inputs = 0] = weights.dims;
  return { outputs, inputs, bias: biasOf(bias), weight: (e, o, i) => values[(e * outputs + o) * inputs + i] ?? 0 };
}

/** Weights are the softmax of all scores, brought to a sum of 1 where that is asked for. */
export const MoE: Evaluate = ([input, router, w1, b1, w2, b2, w3, b3], attributes) => {
  const experts = { first: layerOf(present(w1, "fc1"), b1), second: layerOf(present(w2, "fc2"), b2), gated: w3 && layerOf(w3, b3) };
  const normalised = numberOf(attributes, "normalize_routing_weights", 0) !== 0;
  return mix(present(input, "input"), present(router, "router_probs"), experts, attributes, () => (scores, chosen) => softmaxOf(scores, chosen, normalised));
};

/** Integers of 2, 4 or 8 bits with a scale and a zero point for each row, or for each block of a row. */
function packedLayer(weights: Tensor, scales: Tensor, zeros: Tensor | undefined, bias: Tensor | undefined, bits: number): Layer {
  const bytes = toNumbers(weights), factors = toNumbers(scales), [, outputs = 0, rowBytes = 0] = weights.dims, inputs = (rowBytes * 8) / bits;
  const blocks = scales.dims[2] ?? 1, block = Math.ceil(inputs / blocks);
  const zeroOf = scales.dims.length === 3 ? zeroPoints(zeros, bits, blocks, true, 2 ** (bits - 1)) : zeroPoints(zeros, bits, outputs, true, 2 ** (bits - 1));
  return {
    outputs, inputs, bias: biasOf(bias),
    weight: (e, o, i) => {
      const row = e * outputs + o, own = Math.floor(i / block), zero = scales.dims.length === 3 ? zeroOf(row, own) : zeroOf(e, o);
      return (packedAt(bytes, bits, rowBytes, row, i) - zero) * (factors[row * blocks + own] ?? 0);
    },
  };
}

/** Weights are the softmax of the chosen scores, or elements of a tensor of their own. */
export const QMoE: Evaluate = ([input, router, w1, s1, b1, w2, s2, b2, w3, s3, b3, z1, z2, z3, own], attributes) => {
  const bits = numberOf(attributes, "expert_weight_bits", 4), layer = (w: Tensor | undefined, s: Tensor | undefined, z: Tensor | undefined, b: Tensor | undefined): Layer => packedLayer(present(w, "weights"), present(s, "scales"), z, b, bits);
  const experts = { first: layer(w1, s1, z1, b1), second: layer(w2, s2, z2, b2), gated: w3 && layer(w3, s3, z3, b3) };
  const given = own && toNumbers(own), count = at(present(router, "router_probs").dims, 1), normalised = numberOf(attributes, "normalize_routing_weights", 0) !== 0;
  return mix(present(input, "input"), present(router, "router_probs"), experts, attributes, (token) => (scores, chosen) => {
    if (!given) return softmaxOf(scores, chosen, true);
    const weights = chosen.map((e) => given[token * count + e] ?? 0), sum = weights.reduce((a, b) => a + b, 0);
    return normalised ? weights.map((w) => (sum === 0 ? 0 : w / sum)) : weights;
  });
};
