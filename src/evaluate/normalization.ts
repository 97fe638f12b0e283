/** Normalising operators, by their definitions; moments in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { axisGroups, groupOf, positiveAxes } from "./axis-groups.ts";
import { broadcastSources } from "../core/strided.ts";
import { numberOf, numbersOf } from "./read-attribute.ts";
import { at } from "./window.ts";

const meanOf = (row: Float64Array): number => row.reduce((a, b) => a + b, 0) / row.length;
const varianceOf = (row: Float64Array, mean: number): number => row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length;
const from = (first: number, rank: number): number[] => Array.from({ length: rank - first }, (_, i) => first + i);

/** Mean and variance of each channel of a batch, or of each element of its samples. */
function batchMoments(values: ArrayLike<number>, dims: readonly number[], perElement: boolean): { means: number[]; variances: number[] } {
  const groups = axisGroups(dims, perElement ? [0] : dims.map((_, d) => d).filter((d) => d !== 1));
  const rows = groups.starts.map((_, g) => groupOf(values, groups, g)), means = rows.map(meanOf);
  return { means, variances: rows.map((row, g) => varianceOf(row, at(means, g))) };
}

export const BatchNormalization: Evaluate = ([X, scale, B, M, V], attributes, { outputCount }) => {
  const x = present(X, "X"), values = toNumbers(x);
  const s = toNumbers(present(scale, "scale")), b = toNumbers(present(B, "B"));
  const mean = present(M, "mean"), variance = present(V, "var");
  const inputMean = toNumbers(mean), inputVariance = toNumbers(variance);
  const epsilon = numberOf(attributes, "epsilon"), momentum = numberOf(attributes, "momentum");
  const training = numberOf(attributes, "training_mode") !== 0 || outputCount > 1;
  const perElement = numberOf(attributes, "spatial", 1) === 0;
  const features = perElement ? x.dims.slice(1) : [x.dims[1] ?? 1];
  const plane = perElement ? 1 : sizeOf(x.dims.slice(2)), count = sizeOf(features);
  const moments = training ? batchMoments(values, x.dims, perElement) : { means: Array.from(inputMean), variances: Array.from(inputVariance) };
  const { means, variances } = moments, deviations = variances.map((v) => Math.sqrt(v + epsilon));
  const y = new Float64Array(values.length);
  for (let i = 0; i < y.length; i += plane) {
    const c = (i / plane) % count, mean = means[c] ?? 0, deviation = deviations[c] ?? 1, factor = s[c] ?? 0, shift = b[c] ?? 0;
    for (let j = i; j < i + plane; j++) y[j] = (((values[j] ?? 0) - mean) / deviation) * factor + shift;
  }
  const out = fromNumbers(x.dtype, x.dims, y);
  if (!training) return [out];
  const running = (before: ArrayLike<number>, now: readonly number[]): number[] => now.map((v, c) => (before[c] ?? 0) * momentum + v * (1 - momentum));
  return [
    out,
    fromNumbers(mean.dtype, features, running(inputMean, means)), fromNumbers(variance.dtype, features, running(inputVariance, variances)),
    fromNumbers(mean.dtype, features, means), fromNumbers(variance.dtype, features, variances),
  ];
};

export const InstanceNormalization: Evaluate = ([X, scale, B], attributes) => {
  const x = present(X, "input"), values = toNumbers(x), channels = at(x.dims, 1);
  const s = toNumbers(present(scale, "scale")), b = toNumbers(present(B, "B"));
  const groups = axisGroups(x.dims, from(2, x.dims.length)), y = new Float64Array(values.length);
  groups.starts.forEach((start, g) => {
    const row = groupOf(values, groups, g), mean = meanOf(row), deviation = Math.sqrt(varianceOf(row, mean) + numberOf(attributes, "epsilon"));
    row.forEach((v, e) => { y[start + at(groups.steps, e)] = ((v - mean) / deviation) * (s[g % channels] ?? 0) + (b[g % channels] ?? 0); });
  });
  return [fromNumbers(x.dtype, x.dims, y)];
};

export const GroupNormalization: Evaluate = ([X, scale, B], attributes) => {
  const x = present(X, "X"), channels = at(x.dims, 1), groups = numberOf(attributes, "num_groups");
  const values = toNumbers(x), s = toNumbers(present(scale, "scale")), b = toNumbers(present(B, "bias"));
  const perGroup = numberOf(attributes, "per_group", 0) !== 0;
  const plane = sizeOf(x.dims.slice(2)), size = (channels / groups) * plane, y = new Float64Array(values.length);
  for (let start = 0; start < values.length; start += size) {
    const row = Float64Array.from({ length: size }, (_, i) => values[start + i] ?? 0);
    const mean = meanOf(row), deviation = Math.sqrt(varianceOf(row, mean) + numberOf(attributes, "epsilon"));
    row.forEach((v, e) => {
      const channel = Math.floor((start + e) / plane) % channels;
      const c = perGroup ? Math.floor(channel / (channels / groups)) : channel;
      y[start + e] = ((v - mean) / deviation) * (s[c] ?? 0) + (b[c] ?? 0);
    });
  }
  return [fromNumbers(x.dtype, x.dims, y)];
};

export const LayerNormalization: Evaluate = ([X, Scale, B], attributes) => {
  const x = present(X, "X"), scale = present(Scale, "Scale"), rank = x.dims.length;
  const values = toNumbers(x), s = toNumbers(scale), b = B && toNumbers(B);
  const axes = from(at(positiveAxes([numberOf(attributes, "axis")], rank), 0), rank);
  const groups = axisGroups(x.dims, axes), y = new Float64Array(values.length);
  const scaleOf = broadcastSources(scale.dims, x.dims), biasOf = B && broadcastSources(B.dims, x.dims);
  const means: number[] = [], inverses: number[] = [];
  groups.starts.forEach((start, g) => {
    const row = groupOf(values, groups, g), mean = meanOf(row), inverse = 1 / Math.sqrt(varianceOf(row, mean) + numberOf(attributes, "epsilon"));
    means.push(mean);
    inverses.push(inverse);
    row.forEach((v, e) => {
      const i = start + at(groups.steps, e);
      y[i] = (v - mean) * inverse * (s[scaleOf[i] ?? 0] ?? 0) + (b && biasOf ? (b[biasOf[i] ?? 0] ?? 0) : 0);
    });
  });
  const reduced = x.dims.map((d, i) => (axes.includes(i) ? 1 : d));
  const stash = numberOf(attributes, "stash_type") === 1 ? "float32" : x.dtype;
  return [fromNumbers(scale.dtype, x.dims, y), fromNumbers(stash, reduced, means), fromNumbers(stash, reduced, inverses)];
};

export const RMSNormalization: Evaluate = ([X, Scale], attributes) => {
  const x = present(X, "X"), scale = present(Scale, "scale"), rank = x.dims.length;
  const values = toNumbers(x), s = toNumbers(scale);
  const groups = axisGroups(x.dims, from(at(positiveAxes([numberOf(attributes, "axis")], rank), 0), rank)), y = new Float64Array(values.length);
  const scaleOf = broadcastSources(scale.dims, x.dims);
  groups.starts.forEach((start, g) => {
    const row = groupOf(values, groups, g), inverse = 1 / Math.sqrt(varianceOf(row, 0) + numberOf(attributes, "epsilon"));
    row.forEach((v, e) => {
      const i = start + at(groups.steps, e);
      y[i] = v * inverse * (s[scaleOf[i] ?? 0] ?? 0);
    });
  });
  return [fromNumbers(x.dtype, x.dims, y)];
};

/** Divides rows by their norm; a row of norm 0 stays 0. */
export const LpNormalization: Evaluate = ([X], attributes) => {
  const x = present(X, "input"), values = toNumbers(x), p = numberOf(attributes, "p");
  const groups = axisGroups(x.dims, positiveAxes([numberOf(attributes, "axis")], x.dims.length)), y = new Float64Array(values.length);
  groups.starts.forEach((start, g) => {
    const row = groupOf(values, groups, g);
    const norm = p === 1 ? row.reduce((a, b) => a + Math.abs(b), 0) : Math.sqrt(row.reduce((a, b) => a + b * b, 0));
    row.forEach((v, e) => { y[start + at(groups.steps, e)] = norm === 0 ? 0 : v / norm; });
  });
  return [fromNumbers(x.dtype, x.dims, y)];
};

export const LRN: Evaluate = ([X], attributes) => {
  const x = present(X, "X"), values = toNumbers(x), channels = at(x.dims, 1), plane = sizeOf(x.dims.slice(2));
  const size = numberOf(attributes, "size"), alpha = numberOf(attributes, "alpha"), beta = numberOf(attributes, "beta"), bias = numberOf(attributes, "bias");
  const y = Float64Array.from(values, (v, i) => {
    const c = Math.floor(i / plane) % channels;
    const first = Math.max(0, c - Math.floor((size - 1) / 2)), last = Math.min(channels - 1, c + Math.ceil((size - 1) / 2));
    let squares = 0;
    for (let j = first; j <= last; j++) squares += (values[i + (j - c) * plane] ?? 0) ** 2;
    return v / (bias + (alpha / size) * squares) ** beta;
  });
  return [fromNumbers(x.dtype, x.dims, y)];
};

export const MeanVarianceNormalization: Evaluate = ([X], attributes) => {
  const x = present(X, "X"), values = toNumbers(x);
  const groups = axisGroups(x.dims, positiveAxes(numbersOf(attributes, "axes") ?? [0, 2, 3], x.dims.length));
  const y = new Float64Array(values.length);
  groups.starts.forEach((start, g) => {
    const row = groupOf(values, groups, g), mean = meanOf(row), deviation = Math.sqrt(varianceOf(row, mean)) + 1e-9;
    row.forEach((v, e) => { y[start + at(groups.steps, e)] = (v - mean) / deviation; });
  });
  return [fromNumbers(x.dtype, x.dims, y)];
};
