/** Optionals: a value, or null for one that holds nothing. */
import { fail } from "../core/diagnostic.ts";
import type { EvaluateData } from "../core/evaluate.ts";
import { fromNumbers } from "../core/tensor.ts";

export const Optional: EvaluateData = ([held]) => [held ?? null];

export const OptionalHasElement: EvaluateData = ([optional]) => [fromNumbers("bool", [], [optional === undefined || optional === null ? 0 : 1])];

export const OptionalGetElement: EvaluateData = ([optional]) =>
  [optional ?? fail("OF7014", "the optional holds nothing", { hint: "feed it a value, or test it with OptionalHasElement" })];
