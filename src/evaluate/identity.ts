/** Evaluation of operators that pass their input on. */
import type { Evaluate, EvaluateData } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { input, mapNumbers } from "./map-elements.ts";
import { mulberry32 } from "./mulberry.ts";
import { numberOf } from "./read-attribute.ts";

/** Of a value of any kind. */
export const Identity: EvaluateData = ([value]) => [value ?? null];

/** Inference passes the data on with an all-true mask. Training drops by a seeded generator (mulberry32) and scales what is left. */
export const Dropout: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), [, ratioInput, trainingInput] = inputs;
  const ratio = ratioInput ? toNumbers(ratioInput)[0] ?? 0.5 : 0.5;
  const training = trainingInput !== undefined && toNumbers(trainingInput)[0] !== 0;
  const count = sizeOf(data.dims);
  if (!training || ratio === 0) return [data, fromNumbers("bool", data.dims, new Uint8Array(count).fill(1))];
  const next = mulberry32(numberOf(attributes, "seed", 0));
  const mask = Uint8Array.from({ length: count }, () => (next() >= ratio ? 1 : 0));
  let i = 0;
  return [mapNumbers(data, (x) => (mask[i++] ? x / (1 - ratio) : 0)), fromNumbers("bool", data.dims, mask)];
};
