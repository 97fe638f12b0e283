/**
 * What classifiers and regressors of ai.onnx.ml do with their scores: the transforms they may ask for, and the second
 * score where one stands for two classes. PROBIT is Winitzki's closed form of the inverse error function (a = 0.147),
 * which the standard's reference and onnxruntime share.
 */
import { invariant } from "../core/assert.ts";
import { fromNumbers, tensor, type Tensor } from "../core/tensor.ts";
import type { EvaluateAttributes } from "../core/evaluate.ts";
import { numbersOf, stringsOf } from "./read-attribute.ts";

const logistic = (x: number): number => 1 / (1 + Math.exp(-x));

function inverseErf(x: number): number {
  const l = Math.log((1 - x) * (1 + x)), a = 0.147, v = 2 / (Math.PI * a) + l / 2;
  return Math.sign(x) * Math.sqrt(Math.sqrt(v * v - l / a) - v);
}
const probit = (x: number): number => Math.SQRT2 * inverseErf(2 * x - 1);

function softmax(scores: readonly number[], skipsZeros: boolean): number[] {
  const most = Math.max(...scores), isZero = (s: number): boolean => skipsZeros && Math.abs(s) <= 1e-7;
  const powers = scores.map((s) => (isZero(s) ? s * Math.exp(-most) : Math.exp(s - most)));
  const sum = powers.reduce((a, p, i) => (isZero(scores[i] ?? 0) ? a : a + p), 0);
  return powers.map((p) => p / sum);
}

/** A row of scores as `post_transform` says. */
export function transformScores(scores: readonly number[], transform: string): number[] {
  switch (transform) {
    case "NONE": return [...scores];
    case "LOGISTIC": return scores.map(logistic);
    case "PROBIT": return scores.map(probit);
    case "SOFTMAX": return softmax(scores, false);
    case "SOFTMAX_ZERO": return softmax(scores, true);
    default: return invariant(false, `post_transform ${transform}`) as never;
  }
}

/**
 * Both scores where one stands for two classes. A vote of the positive class alone is a share, whose rest is the other's;
 * any other score has its opposite. LOGISTIC makes both probabilities.
 */
export function bothScores(score: number, transform: string, isShare: boolean): number[] {
  if (transform === "LOGISTIC") return [logistic(-score), logistic(score)];
  if (transform === "PROBIT") return [probit(1 - score), probit(score)];
  return isShare ? [1 - score, score] : [-score, score];
}

/** The labels a classifier chooses from; strings or integers. */
export interface Labels { readonly count: number; tensorOf(classes: readonly number[]): Tensor }
export function labelsOf(attributes: EvaluateAttributes, integers: string, strings: string): Labels {
  const names = stringsOf(attributes, strings) ?? [], numbers = numbersOf(attributes, integers) ?? [];
  if (names.length) return { count: names.length, tensorOf: (classes) => tensor("string", [classes.length], classes.map((c) => names[c] ?? "")) };
  return { count: numbers.length, tensorOf: (classes) => fromNumbers("int64", [classes.length], classes.map((c) => numbers[c] ?? c)) };
}

/** The first of the greatest. */
export const greatestOf = (scores: readonly number[]): number => scores.reduce((best, s, i) => (s > (scores[best] ?? 0) ? i : best), 0);

/** Rows of a matrix; a vector is one row. */
export function rowsOf(dims: readonly number[], data: ArrayLike<number>): number[][] {
  const width = dims[dims.length - 1] ?? 1, count = dims.length < 2 ? 1 : dims[0] ?? 0;
  return Array.from({ length: count }, (_, r) => Array.from({ length: width }, (_, c) => data[r * width + c] ?? 0));
}

/** Rows of equal length as a float32 matrix. */
export const matrixOf = (rows: readonly (readonly number[])[], width: number): Tensor => fromNumbers("float32", [rows.length, width], rows.flat());
