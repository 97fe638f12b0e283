/**
 * Random tensors. With a `seed` a run repeats exactly (mulberry32, Box–Muller); without one, every run takes a new seed,
 * as the specification has it. The numbers are not those of any other runtime.
 */
import { present } from "../core/assert.ts";
import { dtypeFromOnnx, type DType } from "../core/dtype.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { mulberry32 } from "./mulberry.ts";
import { numberOf, numbersOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** Uniform numbers in [0, 1). */
function uniform(attributes: EvaluateAttributes): () => number {
  const seed = attributes["seed"];
  const bits = new Uint32Array(new Float32Array([typeof seed === "number" ? seed : Math.random()]).buffer);
  return mulberry32(bits[0] ?? 0);
}

const normal = (next: () => number): number => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

const filled = (dtype: DType, dims: readonly number[], draw: () => number): readonly Tensor[] =>
  [fromNumbers(dtype, dims, Float64Array.from({ length: sizeOf(dims) }, draw))];

const normals = (dtype: DType, dims: readonly number[], attributes: EvaluateAttributes): readonly Tensor[] => {
  const next = uniform(attributes), mean = numberOf(attributes, "mean"), scale = numberOf(attributes, "scale");
  return filled(dtype, dims, () => mean + scale * normal(next));
};
const uniforms = (dtype: DType, dims: readonly number[], attributes: EvaluateAttributes): readonly Tensor[] => {
  const next = uniform(attributes), low = numberOf(attributes, "low"), high = numberOf(attributes, "high");
  return filled(dtype, dims, () => low + (high - low) * next());
};

const dtypeOf = (attributes: EvaluateAttributes, missing: DType): DType => dtypeFromOnnx(numberOf(attributes, "dtype", 0)) ?? missing;
const shapeOf = (attributes: EvaluateAttributes): readonly number[] => present(numbersOf(attributes, "shape"), "shape");

export const RandomNormal: Evaluate = (_, attributes) => normals(dtypeOf(attributes, "float32"), shapeOf(attributes), attributes);
export const RandomUniform: Evaluate = (_, attributes) => uniforms(dtypeOf(attributes, "float32"), shapeOf(attributes), attributes);
export const RandomNormalLike: Evaluate = ([X], attributes) => {
  const x = present(X, "input");
  return normals(dtypeOf(attributes, x.dtype), x.dims, attributes);
};
export const RandomUniformLike: Evaluate = ([X], attributes) => {
  const x = present(X, "input");
  return uniforms(dtypeOf(attributes, x.dtype), x.dims, attributes);
};

/** 1 with the probability that each element of the input says. */
export const Bernoulli: Evaluate = ([X], attributes) => {
  const x = present(X, "input"), next = uniform(attributes);
  return [fromNumbers(dtypeOf(attributes, x.dtype), x.dims, Float64Array.from(toNumbers(x), (p) => (next() < p ? 1 : 0)))];
};

/** Samples of class indices, from unnormalised log probabilities [batch, classes]. */
export const Multinomial: Evaluate = ([X], attributes) => {
  const x = present(X, "input"), values = toNumbers(x), next = uniform(attributes);
  const batch = at(x.dims, 0), classes = at(x.dims, 1), samples = numberOf(attributes, "sample_size");
  const draw = (row: number): number => {
    const logits = Array.from({ length: classes }, (_, c) => values[row * classes + c] ?? 0), most = Math.max(...logits);
    const weights = logits.map((l) => Math.exp(l - most));
    let rest = next() * weights.reduce((a, b) => a + b, 0);
    const found = weights.findIndex((w) => (rest -= w) < 0);
    return found < 0 ? classes - 1 : found;
  };
  return [fromNumbers(dtypeOf(attributes, "int32"), [batch, samples], Array.from({ length: batch * samples }, (_, i) => draw(Math.floor(i / samples))))];
};
