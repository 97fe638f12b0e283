/** Evaluation of com.microsoft's Unique: the distinct elements in order of appearance, the place of each element among them, and counts. */
import type { Evaluate } from "../core/evaluate.ts";
import { present } from "../core/assert.ts";
import { Unique as standard } from "./order.ts";

export const Unique: Evaluate = (inputs) => {
  const [values, , inverse, counts] = standard(inputs, { sorted: 0 }, { outputCount: 4 });
  return [present(values, "values"), present(inverse, "the inverse"), present(counts, "counts")];
};
