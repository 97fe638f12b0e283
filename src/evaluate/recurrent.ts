/** LSTM, GRU and RNN, by ONNX's equations, in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { numberOf, numbersOf, stringOf, stringsOf } from "./read-attribute.ts";
import { at } from "./window.ts";

type Activation = (x: number) => number;

/** The activation's default parameters, absent where it takes none, and its function. */
const activations: Readonly<Record<string, { alpha?: number; beta?: number; of: (alpha: number, beta: number) => Activation }>> = {
  sigmoid: { of: () => (x) => 1 / (1 + Math.exp(-x)) },
  tanh: { of: () => Math.tanh },
  relu: { of: () => (x) => Math.max(0, x) },
  softsign: { of: () => (x) => x / (1 + Math.abs(x)) },
  softplus: { of: () => (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))) },
  affine: { alpha: 1, beta: 0, of: (a, b) => (x) => a * x + b },
  hardsigmoid: { alpha: 0.2, beta: 0.5, of: (a, b) => (x) => Math.min(1, Math.max(0, a * x + b)) },
  scaledtanh: { alpha: 1, beta: 1, of: (a, b) => (x) => a * Math.tanh(b * x) },
  leakyrelu: { alpha: 0.01, of: (a) => (x) => (x >= 0 ? x : a * x) },
  thresholdedrelu: { alpha: 1, of: (a) => (x) => (x > a ? x : 0) },
  elu: { alpha: 1, of: (a) => (x) => (x >= 0 ? x : a * Math.expm1(x)) },
};

/** Each direction's activations; alpha and beta are consumed in order by those that take them. */
function activationsOf(attributes: EvaluateAttributes, missing: readonly string[], directions: number): Activation[][] {
  const names = stringsOf(attributes, "activations") ?? Array.from({ length: directions }, () => missing).flat();
  const alphas = [...(numbersOf(attributes, "activation_alpha") ?? [])], betas = [...(numbersOf(attributes, "activation_beta") ?? [])];
  const all = names.map((name) => {
    const a = present(activations[name.toLowerCase()], `activation ${name}`);
    const alpha = a.alpha === undefined ? 0 : (alphas.shift() ?? a.alpha), beta = a.beta === undefined ? 0 : (betas.shift() ?? a.beta);
    return a.of(alpha, beta);
  });
  return Array.from({ length: directions }, (_, d) => all.slice(d * missing.length, (d + 1) * missing.length));
}

interface Sizes { readonly sequence: number; readonly batch: number; readonly input: number; readonly hidden: number; readonly directions: number }

/** One direction's parameters: the raw matrices of all gates. */
interface Direction {
  readonly w: ArrayLike<number>;
  readonly r: ArrayLike<number>;
  readonly b: ArrayLike<number>;
  readonly p: ArrayLike<number>;
  readonly activations: readonly Activation[];
}

/** x·Wᵀ for gate row `row` of `width` columns. */
function dot(weights: ArrayLike<number>, row: number, x: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += (weights[row * x.length + i] ?? 0) * (x[i] ?? 0);
  return sum;
}

interface Cell { readonly gates: number; readonly defaults: readonly string[]; readonly step: Step }
interface State { readonly h: Float64Array; readonly c: Float64Array }
type Step = (x: ArrayLike<number>, state: State, d: Direction, hidden: number, options: Options) => State;
interface Options { readonly clip: (x: number) => number; readonly linearBeforeReset: boolean; readonly inputForget: boolean }

/** Input part, recurrent part and both biases of gate `g`, unit `j`. */
const gate = (x: ArrayLike<number>, h: ArrayLike<number>, d: Direction, hidden: number, gates: number, g: number, j: number): number =>
  dot(d.w, g * hidden + j, x) + dot(d.r, g * hidden + j, h) + (d.b[g * hidden + j] ?? 0) + (d.b[(gates + g) * hidden + j] ?? 0);

const rnn: Step = (x, { h, c }, d, hidden, { clip }) => {
  const f = at(d.activations, 0);
  return { h: h.map((_, j) => f(clip(gate(x, h, d, hidden, 1, 0, j)))), c };
};

const gru: Step = (x, { h, c }, d, hidden, { clip, linearBeforeReset }) => {
  const f = at(d.activations, 0), g = at(d.activations, 1);
  const z = h.map((_, j) => f(clip(gate(x, h, d, hidden, 3, 0, j))));
  const r = h.map((_, j) => f(clip(gate(x, h, d, hidden, 3, 1, j))));
  const reset = h.map((v, j) => v * (r[j] ?? 0));
  const candidate = h.map((_, j) => {
    const row = 2 * hidden + j, wb = d.b[row] ?? 0, rb = d.b[5 * hidden + j] ?? 0;
    const recurrent = linearBeforeReset ? (r[j] ?? 0) * (dot(d.r, row, h) + rb) : dot(d.r, row, reset) + rb;
    return g(clip(dot(d.w, row, x) + wb + recurrent));
  });
  return { h: h.map((v, j) => (1 - (z[j] ?? 0)) * (candidate[j] ?? 0) + (z[j] ?? 0) * v), c };
};

const lstm: Step = (x, { h, c }, d, hidden, { clip, inputForget }) => {
  const f = at(d.activations, 0), g = at(d.activations, 1), output = at(d.activations, 2);
  const peephole = (p: number, j: number): number => d.p[p * hidden + j] ?? 0;
  const nextC = new Float64Array(hidden), nextH = new Float64Array(hidden);
  for (let j = 0; j < hidden; j++) {
    const before = c[j] ?? 0;
    const i = f(clip(gate(x, h, d, hidden, 4, 0, j) + peephole(0, j) * before));
    const forget = inputForget ? 1 - i : f(clip(gate(x, h, d, hidden, 4, 2, j) + peephole(2, j) * before));
    const now = forget * before + i * g(clip(gate(x, h, d, hidden, 4, 3, j)));
    const o = f(clip(gate(x, h, d, hidden, 4, 1, j) + peephole(1, j) * now));
    nextC[j] = now;
    nextH[j] = o * output(now);
  }
  return { h: nextH, c: nextC };
};

const part = (t: Tensor | undefined, direction: number): ArrayLike<number> => {
  if (!t) return [];
  const size = sizeOf(t.dims.slice(1)), values = toNumbers(t);
  return Float64Array.from({ length: size }, (_, i) => values[direction * size + i] ?? 0);
};

/** Runs all directions of one node. Inputs in ONNX's order: X, W, R, B, sequence_lens, initial_h, initial_c, P. */
function recurrent({ gates, defaults, step }: Cell, inputs: readonly (Tensor | undefined)[], attributes: EvaluateAttributes): readonly Tensor[] {
  const [X, W, R, B, lengths, initialH, initialC, P] = inputs;
  const x = present(X, "X"), w = present(W, "W"), r = present(R, "R");
  const batchFirst = numberOf(attributes, "layout", 0) === 1;
  const size: Sizes = {
    sequence: at(x.dims, batchFirst ? 1 : 0), batch: at(x.dims, batchFirst ? 0 : 1), input: at(x.dims, 2),
    hidden: at(r.dims, 2), directions: at(w.dims, 0),
  };
  const direction = stringOf(attributes, "direction");
  const functions = activationsOf(attributes, defaults, size.directions);
  const clipAt = numberOf(attributes, "clip", 0);
  const options: Options = {
    clip: clipAt > 0 ? (v) => Math.min(clipAt, Math.max(-clipAt, v)) : (v) => v,
    linearBeforeReset: numberOf(attributes, "linear_before_reset", 0) !== 0, inputForget: numberOf(attributes, "input_forget", 0) !== 0,
  };
  const { sequence, batch, input, hidden, directions } = size;
  const values = toNumbers(x), limits = lengths && toNumbers(lengths);
  const y = new Float64Array(sequence * directions * batch * hidden), yH = new Float64Array(directions * batch * hidden), yC = new Float64Array(yH.length);
  const stateAt = (d: number, n: number): number => (batchFirst ? n * directions + d : d * batch + n) * hidden;
  const yAt = (t: number, d: number, n: number): number => (batchFirst ? (n * sequence + t) * directions + d : (t * directions + d) * batch + n) * hidden;
  const firstH = initialH && toNumbers(initialH), firstC = initialC && toNumbers(initialC);
  const startOf = (first: ArrayLike<number> | undefined, d: number, n: number): Float64Array =>
    Float64Array.from({ length: hidden }, (_, j) => first?.[stateAt(d, n) + j] ?? 0);
  for (let d = 0; d < directions; d++) {
    const parameters: Direction = { w: part(w, d), r: part(r, d), b: part(B, d), p: part(P, d), activations: at(functions, d) };
    const reverse = direction === "reverse" || d === 1;
    for (let n = 0; n < batch; n++) {
      let state: State = { h: startOf(firstH, d, n), c: startOf(firstC, d, n) };
      const steps = limits ? (limits[n] ?? sequence) : sequence;
      for (let s = 0; s < steps; s++) {
        const t = reverse ? steps - 1 - s : s;
        const from = (batchFirst ? n * sequence + t : t * batch + n) * input;
        state = step(Float64Array.from({ length: input }, (_, i) => values[from + i] ?? 0), state, parameters, hidden, options);
        y.set(state.h, yAt(t, d, n));
      }
      yH.set(state.h, stateAt(d, n));
      yC.set(state.c, stateAt(d, n));
    }
  }
  const stateDims = batchFirst ? [batch, directions, hidden] : [directions, batch, hidden];
  const yDims = batchFirst ? [batch, sequence, directions, hidden] : [sequence, directions, batch, hidden];
  const out = [fromNumbers(x.dtype, yDims, y), fromNumbers(x.dtype, stateDims, yH), fromNumbers(x.dtype, stateDims, yC)];
  return gates === 4 ? out : out.slice(0, 2);
}

export const LSTM: Evaluate = (inputs, attributes) => recurrent({ gates: 4, defaults: ["Sigmoid", "Tanh", "Tanh"], step: lstm }, inputs, attributes);
export const GRU: Evaluate = (inputs, attributes) => recurrent({ gates: 3, defaults: ["Sigmoid", "Tanh"], step: gru }, inputs, attributes);
export const RNN: Evaluate = (inputs, attributes) => recurrent({ gates: 1, defaults: ["Tanh"], step: rnn }, inputs, attributes);
