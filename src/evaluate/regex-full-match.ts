/** RegexFullMatch: whether whole strings match a pattern. */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, stringsOf } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { stringOf } from "./read-attribute.ts";
import { fullMatcher } from "../core/regular-expression.ts";

export const RegexFullMatch: Evaluate = (inputs, attributes) => {
  const X = input(inputs, 0), matches = fullMatcher(stringOf(attributes, "pattern", ""));
  return [fromNumbers("bool", X.dims, stringsOf(X).map((s) => Number(matches(s))))];
};
