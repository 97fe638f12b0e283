/** Operators that onnxruntime's optimiser writes (com.microsoft), by their definitions. */
import { invariant, present } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { axisGroups, groupOf } from "./axis-groups.ts";
import { Conv } from "./conv.ts";
import { erf } from "./erf.ts";
import { mapNumbers } from "./map-elements.ts";
import { broadcastDims, broadcastSources } from "../core/strided.ts";
import { Gemm, multiply, planMatMul } from "./matmul.ts";
import { Transpose } from "./movement.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";
import { at } from "./window.ts";

const gelu = (x: number): number => 0.5 * x * (1 + erf(x / Math.SQRT2));
const geluTanh = (x: number): number => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/** f(x + bias), in float64. */
function biased(X: Tensor | undefined, bias: Tensor | undefined, f: (x: number) => number): readonly Tensor[] {
  const x = present(X, "X"), values = toNumbers(x);
  if (!bias) return [mapNumbers(x, f)];
  const dims = broadcastDims(x.dims, bias.dims), b = toNumbers(bias), from = broadcastSources(x.dims, dims), of = broadcastSources(bias.dims, dims);
  return [fromNumbers(x.dtype, dims, Float64Array.from(from, (i, e) => f((values[i] ?? 0) + (b[of[e] ?? 0] ?? 0))))];
}

export const Gelu: Evaluate = ([X]) => biased(X, undefined, gelu);
export const BiasGelu: Evaluate = ([X, bias]) => biased(X, bias, gelu);
export const FastGelu: Evaluate = ([X, bias]) => biased(X, bias, geluTanh);
export const QuickGelu: Evaluate = ([X], attributes) => {
  const alpha = numberOf(attributes, "alpha");
  return biased(X, undefined, (x) => x / (1 + Math.exp(-alpha * x)));
};

/** An operand of a product: its first axis behind those of the batch, its last two exchanged, as asked. */
function operand(t: Tensor, swap: number, batch: number): Tensor {
  const rank = t.dims.length, axes = t.dims.map((_, d) => d);
  if (rank < 2) return t;
  const placed = batch ? [...axes.slice(1, -1), 0, rank - 1] : axes, perm = swap ? [...placed.slice(0, -2), rank - 1, at(placed, rank - 2)] : placed;
  return present(Transpose([t], { perm }, { outputCount: 1 })[0], "transposed");
}

export const FusedMatMul: Evaluate = ([A, B], attributes) => {
  const flag = (name: string): number => numberOf(attributes, name, 0), alpha = numberOf(attributes, "alpha");
  const a = operand(present(A, "A"), flag("transA"), flag("transBatchA")), b = operand(present(B, "B"), flag("transB"), flag("transBatchB")), plan = planMatMul(a.dims, b.dims);
  return [fromNumbers(a.dtype, plan.dims, multiply(toNumbers(a), toNumbers(b), plan).map((v) => alpha * v))];
};

export const BiasAdd: Evaluate = ([X, bias, skip]) => {
  const x = present(X, "X"), values = toNumbers(x), b = toNumbers(present(bias, "bias")), s = toNumbers(present(skip, "skip"));
  return [fromNumbers(x.dtype, x.dims, Float64Array.from(values, (v, i) => v + (b[i % b.length] ?? 0) + (s[i] ?? 0)))];
};

export const BiasSplitGelu: Evaluate = ([X, bias]) => {
  const x = present(X, "X"), values = toNumbers(x), b = toNumbers(present(bias, "bias")), width = at(x.dims, x.dims.length - 1), half = width / 2;
  const sum = (i: number): number => (values[i] ?? 0) + (b[i % width] ?? 0);
  return [fromNumbers(x.dtype, [...x.dims.slice(0, -1), half], Float64Array.from({ length: values.length / 2 }, (_, i) => {
    const from = Math.floor(i / half) * width + (i % half);
    return sum(from) * gelu(sum(from + half));
  }))];
};

/** The activation of a fused convolution or product, with its parameters. */
function activationOf(attributes: EvaluateAttributes): (x: number) => number {
  const name = stringOf(attributes, "activation", ""), [a = 0, b = 0] = numbersOf(attributes, "activation_params") ?? [];
  switch (name) {
    case "": return (x) => x;
    case "Relu": return (x) => (x < 0 ? 0 : x);
    case "Tanh": return Math.tanh;
    case "Sigmoid": return (x) => 1 / (1 + Math.exp(-x));
    case "LeakyRelu": return (x) => (x < 0 ? a * x : x);
    case "Clip": return (x) => Math.min(b, Math.max(a, x));
    case "HardSigmoid": return (x) => Math.min(1, Math.max(0, a * x + b));
    case "Elu": return (x) => (x < 0 ? a * Math.expm1(x) : x);
    case "ThresholdedRelu": return (x) => (x > a ? x : 0);
    case "Softplus": return (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
    case "Softsign": return (x) => x / (1 + Math.abs(x));
    default: return invariant(false, `activation ${name} is known`) as never;
  }
}

/** The first parameter of a product's activation where it is not given: that of the standard's operator. */
export const usualSlope = (activation: string): number => (activation === "LeakyRelu" ? 0.01 : activation === "HardSigmoid" ? 0.2 : 1);

/** activation(alpha · A' · B' + beta · C) */
export const FusedGemm: Evaluate = (inputs, attributes, context) => {
  const name = stringOf(attributes, "activation", ""), slope = usualSlope(name);
  const f = activationOf({ activation: name, activation_params: [numberOf(attributes, "activation_alpha", slope), numberOf(attributes, "activation_beta", 0.5)] });
  return [mapNumbers(present(Gemm(inputs, attributes, context)[0], "Y"), f)];
};

/** activation(Conv(X, W, B) + Z) */
export const FusedConv: Evaluate = ([X, W, B, Z], attributes, context) => {
  const y = present(Conv([X, W, B], attributes, context)[0], "Y"), f = activationOf(attributes);
  return Z ? biased(y, Z, f) : [mapNumbers(y, f)];
};

/** input + skip + bias normalised over the last axis; also the moments and that sum. */
function skipNormalization(parts: readonly (Tensor | undefined)[], gamma: Tensor | undefined, beta: Tensor | undefined, epsilon: number, centred: boolean): readonly Tensor[] {
  const x = present(parts[0], "input"), dims = x.dims, sum = new Float64Array(x.data.length);
  for (const part of parts) {
    if (!part) continue;
    const values = toNumbers(part);
    broadcastSources(part.dims, dims).forEach((from, i) => { sum[i] = (sum[i] ?? 0) + (values[from] ?? 0); });
  }
  const g = toNumbers(present(gamma, "gamma")), b = beta && toNumbers(beta), y = new Float64Array(sum.length);
  const groups = axisGroups(dims, [dims.length - 1]), means: number[] = [], inverses: number[] = [];
  groups.starts.forEach((start, r) => {
    const row = groupOf(sum, groups, r), mean = centred ? row.reduce((a, v) => a + v, 0) / row.length : 0;
    const inverse = 1 / Math.sqrt(row.reduce((a, v) => a + (v - mean) ** 2, 0) / row.length + epsilon);
    means.push(mean);
    inverses.push(inverse);
    row.forEach((v, e) => { y[start + e] = (v - mean) * inverse * (g[e] ?? 0) + (b?.[e] ?? 0); });
  });
  const reduced = [...dims.slice(0, -1), 1];
  return [fromNumbers(x.dtype, dims, y), fromNumbers("float32", reduced, means), fromNumbers("float32", reduced, inverses), fromNumbers(x.dtype, dims, sum)];
}

export const SkipLayerNormalization: Evaluate = ([X, skip, gamma, beta, bias], attributes) =>
  skipNormalization([X, skip, bias], gamma, beta, numberOf(attributes, "epsilon"), true);
export const SkipSimplifiedLayerNormalization: Evaluate = ([X, skip, gamma, bias], attributes) =>
  skipNormalization([X, skip, bias], gamma, undefined, numberOf(attributes, "epsilon"), false);
