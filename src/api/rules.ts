/**
 * Rules of one's own: everything that `defineRule` takes. The same names are what a file given with `--rules` gets as its
 * argument, so that it needs no import: `export default ({ defineRule, operator, pattern }) => [ … ]`.
 */
import { fail, nearestName } from "../core/diagnostic.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { OpDef } from "../graph/op.ts";
import { operators } from "../ops/index.ts";
import * as terms from "../rewrite/pattern.ts";
import { approximates, defineRule, exact, reassociates, refuse } from "../rewrite/rule.ts";

/** An operator by its type, of the standard domain unless said otherwise. Fails with OF4022 where there is none. */
export function operator(type: string, domain = ""): OpDef {
  const found = operators.find((op) => op.type === type && op.domain === domain);
  if (found) return found;
  const near = nearestName(type, operators.filter((op) => op.domain === domain).map((op) => op.type));
  return fail("OF4022", `there is no operator '${domain === "" ? type : `${domain}.${type}`}'`, { hint: near === undefined ? "docs/operators.md lists them" : `did you mean '${near}'?` });
}

/** Pattern terms, from the last operator backwards. */
export const pattern = {
  op: terms.op, commuted: terms.commuted, maybe: terms.maybe, anyOf: terms.anyOf,
  value: terms.value, anything: terms.anything, constant: terms.constant, scalar: terms.scalar, literal: terms.literal,
  absent: terms.absent, optionalInput: terms.optionalInput,
} as const;

/** A tensor of numbers, for constants; and the numbers in one. */
export const tensorOf = fromNumbers, numbersOf = toNumbers;

/** What a file of rules gets. */
export const ruleKit = { defineRule, operator, pattern, exact, reassociates, approximates, refuse, tensorOf, numbersOf, GraphBuilder } as const;
export type RuleKit = typeof ruleKit;

export { approximates, defineRule, exact, GraphBuilder, reassociates, refuse };
export type { Editor, Guard, Numerics, Replacements, Rule, RuleSpec, Verdict } from "../rewrite/rule.ts";
export type { ConstantValue, Pattern, Predicate } from "../rewrite/pattern.ts";
export type { Graph, Node, Value } from "../graph/graph.ts";
export type { OpDef } from "../graph/op.ts";
