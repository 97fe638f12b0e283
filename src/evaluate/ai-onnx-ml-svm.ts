/**
 * Evaluation of support vector machines, by libsvm's definitions: one classifier for each pair of classes, votes, and
 * probabilities coupled by Wu, Lin and Weng's second method.
 */
import { invariant } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { toNumbers } from "../core/tensor.ts";
import { bothScores, greatestOf, labelsOf, matrixOf, rowsOf, transformScores } from "./class-scores.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";

type Kernel = (x: readonly number[], y: readonly number[]) => number;
function kernelOf(attributes: EvaluateAttributes, isLinear: boolean): Kernel {
  const [gamma = 0, coef0 = 0, degree = 0] = numbersOf(attributes, "kernel_params") ?? [];
  const dot: Kernel = (x, y) => x.reduce((sum, v, i) => sum + v * (y[i] ?? 0), 0);
  switch (isLinear ? "LINEAR" : stringOf(attributes, "kernel_type")) {
    case "LINEAR": return dot;
    case "POLY": return (x, y) => (gamma * dot(x, y) + coef0) ** degree;
    case "SIGMOID": return (x, y) => Math.tanh(gamma * dot(x, y) + coef0);
    case "RBF": return (x, y) => Math.exp(-gamma * x.reduce((sum, v, i) => sum + (v - (y[i] ?? 0)) ** 2, 0));
    default: return invariant(false, "kernel_type") as never;
  }
}
const list = (attributes: EvaluateAttributes, name: string): readonly number[] => numbersOf(attributes, name) ?? [];
function splitRows(flat: readonly number[], count: number): number[][] {
  const width = count ? flat.length / count : 0;
  return Array.from({ length: count }, (_, i) => flat.slice(i * width, (i + 1) * width));
}

export const SVMRegressor: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), count = numberOf(attributes, "n_supports"), coefficients = list(attributes, "coefficients"), rho = list(attributes, "rho")[0] ?? 0;
  const kernel = kernelOf(attributes, count === 0), supports = splitRows(list(attributes, "support_vectors"), count);
  const value = (row: readonly number[]): number => (count ? supports.reduce((sum, s, i) => sum + kernel(row, s) * (coefficients[i] ?? 0), rho) : kernel(row, coefficients) + rho);
  const finish = (v: number): number => (numberOf(attributes, "one_class") ? (v > 0 ? 1 : -1) : v);
  return [matrixOf(rowsOf(x.dims, toNumbers(x)).map((row) => transformScores([finish(value(row))], stringOf(attributes, "post_transform"))), 1)];
};

export const SVMClassifier: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), labels = labelsOf(attributes, "classlabels_ints", "classlabels_strings");
  const judge = list(attributes, "vectors_per_class").some((n) => n > 0) ? pairwise(attributes, labels.count) : oneAgainstRest(attributes, labels.count);
  const judged = rowsOf(x.dims, toNumbers(x)).map(judge);
  return [labels.tensorOf(judged.map((j) => j.best)), matrixOf(judged.map((j) => j.scores), judged[0]?.scores.length ?? labels.count)];
};

interface Judgement { readonly best: number; readonly scores: readonly number[] }

function oneAgainstRest(attributes: EvaluateAttributes, classes: number): (row: readonly number[]) => Judgement {
  const weights = splitRows(list(attributes, "coefficients"), classes), rho = list(attributes, "rho")[0] ?? 0, kernel = kernelOf(attributes, true);
  const allPositive = weights.flat().every((w) => w >= 0);
  return (row) => {
    const scores = weights.map((w) => kernel(row, w) + rho), greatest = greatestOf(scores), most = scores[greatest] ?? 0;
    const positive = classes === 2 && (allPositive ? most >= 0.5 : most > 0);
    return { best: positive ? 1 : greatest, scores: transformScores(scores, stringOf(attributes, "post_transform")) };
  };
}

function pairwise(attributes: EvaluateAttributes, classes: number): (row: readonly number[]) => Judgement {
  const perClass = list(attributes, "vectors_per_class"), total = perClass.reduce((a, b) => a + b, 0), kernel = kernelOf(attributes, false);
  const supports = splitRows(list(attributes, "support_vectors"), total), coefficients = splitRows(list(attributes, "coefficients"), classes - 1);
  const starts = perClass.map((_, c) => perClass.slice(0, c).reduce((a, b) => a + b, 0));
  const rho = list(attributes, "rho"), a = list(attributes, "prob_a"), b = list(attributes, "prob_b"), transform = stringOf(attributes, "post_transform");
  return (row) => {
    const near = supports.map((s) => kernel(row, s));
    const part = (of: number, by: number): number => Array.from({ length: perClass[of] ?? 0 }, (_, m) => (starts[of] ?? 0) + m).reduce((sum, v) => sum + (coefficients[by]?.[v] ?? 0) * (near[v] ?? 0), 0);
    const scores: number[] = [], votes = new Array<number>(classes).fill(0);
    for (let i = 0; i < classes; i++) for (let j = i + 1; j < classes; j++) {
      const score = part(i, j - 1) + part(j, i) + (rho[scores.length] ?? 0), winner = score > 0 ? i : j;
      scores.push(score);
      votes[winner] = (votes[winner] ?? 0) + 1;
    }
    const best = greatestOf(votes);
    if (a.length) return { best, scores: transformScores(coupled(scores.map((s, p) => 1 / (1 + Math.exp(s * (a[p] ?? 0) + (b[p] ?? 0)))), classes), transform) };
    if (scores.length === 1) return { best, scores: bothScores(scores[0] ?? 0, transform, transform !== "NONE") };
    return { best, scores: transformScores(scores, transform) };
  };
}

/** Probabilities of the classes from those of each pair: pᵢⱼ is how likely i is where it is i or j. */
function coupled(pairs: readonly number[], classes: number): number[] {
  const r = Array.from({ length: classes }, () => new Array<number>(classes).fill(0));
  const set = (i: number, j: number, v: number): void => { const line = r[i]; if (line) line[j] = v; };
  let next = 0;
  for (let i = 0; i < classes; i++) for (let j = i + 1; j < classes; j++) {
    const p = Math.min(1 - 1e-7, Math.max(1e-7, pairs[next++] ?? 0));
    set(i, j, p);
    set(j, i, 1 - p);
  }
  const at = (i: number, j: number): number => r[i]?.[j] ?? 0;
  const q = Array.from({ length: classes }, (_, i) => Array.from({ length: classes }, (_, j) =>
    i === j ? Array.from({ length: classes }, (_, k) => (k === i ? 0 : at(k, i) ** 2)).reduce((s, v) => s + v, 0) : -at(j, i) * at(i, j)));
  let p = new Array<number>(classes).fill(1 / classes);
  for (let round = 0; round < 100; round++) {
    let qp = q.map((line) => line.reduce((sum, v, j) => sum + v * (p[j] ?? 0), 0)), pqp = p.reduce((sum, v, i) => sum + v * (qp[i] ?? 0), 0);
    if (Math.max(...qp.map((v) => Math.abs(v - pqp))) < 0.005 / classes) break;
    for (let i = 0; i < classes; i++) {
      const own = q[i]?.[i] ?? 1, step = (pqp - (qp[i] ?? 0)) / own;
      pqp = (pqp + step * (step * own + 2 * (qp[i] ?? 0))) / (1 + step) ** 2;
      qp = qp.map((v, j) => (v + step * (q[i]?.[j] ?? 0)) / (1 + step));
      p = p.map((v, j) => (v + (j === i ? step : 0)) / (1 + step));
    }
  }
  return p;
}
