/** Rules as callers without types may give them: whole, named apart, and made of this package's operators. */
import { fail } from "../core/diagnostic.ts";
import type { OpDef } from "../graph/op.ts";
import { operators } from "../ops/index.ts";
import type { Term } from "../rewrite/pattern.ts";
import { stages, type Rule } from "../rewrite/rule.ts";
import { rules as builtInRules } from "../rules/index.ts";

const isObject = (x: unknown): x is Readonly<Record<string, unknown>> => typeof x === "object" && x !== null;

/** Whether something looks like a rule; `checkRules` says what is wrong with it. */
export const isRuleLike = (x: unknown): boolean => isObject(x) && "match" in x && "rewrite" in x;

/**
 * The rules. Fails with OF4024 for one that lacks something, OF4025 for a name that another has, OF4026 for one made with
 * another copy of onnxfuse.
 */
export function checkRules(given: readonly unknown[]): readonly Rule[] {
  const names = new Set(builtInRules.map((r) => r.name));
  return given.map((rule, i) => {
    checkRule(rule, i);
    if (names.has(rule.name)) fail("OF4025", `there are two rules '${rule.name}'`, { place: { field: rule.name }, hint: "give the rule a name of its own" });
    names.add(rule.name);
    const stranger = operatorsIn(rule.match).find((op) => !operators.includes(op));
    if (stranger) fail("OF4026", `rule '${rule.name}' matches an operator ${stranger.type} that is not this package's`, { place: { field: rule.name }, hint: 'take it from this copy of onnxfuse: export default ({ defineRule, operator, pattern }) => [ … ]' });
    return rule;
  });
}

function checkRule(rule: unknown, i: number): asserts rule is Rule {
  const at = isObject(rule) && typeof rule["name"] === "string" && rule["name"] !== "" ? rule["name"] : `#${i + 1}`;
  const wrong = (field: string, message: string, hint: string): never => fail("OF4024", `rule '${at}': ${message}`, { place: { field: `${at}.${field}` }, hint });
  if (!isObject(rule)) return wrong("", "it is not an object", "make it with defineRule");
  const isFunction = (x: unknown): boolean => typeof x === "function";
  if (typeof rule["name"] !== "string" || !/^[\w-]+$/.test(rule["name"])) wrong("name", "it has no name", 'write name: "fold-my-scale"');
  if (!isTerm(rule["match"])) wrong("match", "its pattern is not an operator, nor alternatives of operators", "build it with pattern.op or pattern.anyOf");
  if (!isFunction(rule["rewrite"])) wrong("rewrite", "it does not say what it makes", "write rewrite(match, edit) { return edit.insert(…); }");
  if (!isFunction(rule["example"])) wrong("example", "it has no example", "write example: () => a graph on which it fires; rule check proves it there");
  const { numerics, where, stage, refuses } = rule;
  if (!isObject(numerics) || !["exact", "reassociates", "approximates"].includes(String(numerics["kind"]))) wrong("numerics", "it does not say how exact it is", "write numerics: exact, reassociates() or approximates(bound, why)");
  if (where !== undefined && !(Array.isArray(where) && where.every(isFunction))) wrong("where", "its conditions are not a list of functions", "write where: [(match) => true]");
  if (stage !== undefined && !stages.some((s) => s === stage)) wrong("stage", `there is no stage '${String(stage)}'`, `use one of ${stages.join(", ")}`);
  if (!isObject(refuses) || !Object.values(refuses).every(isFunction)) wrong("refuses", "it does not say where it must refuse", "write refuses: { code: () => a graph }, or refuses: {}");
}

const isTerm = (x: unknown): boolean => isObject(x) && (x["kind"] === "op" || (x["kind"] === "any" && Array.isArray(x["terms"]) && x["terms"].length > 0 && x["terms"].every(isTerm)));

/** Operators that a pattern speaks of. */
function operatorsIn(term: Term): readonly OpDef[] {
  switch (term.kind) {
    case "value": case "constant": case "absent": return [];
    case "optional": return operatorsIn(term.term);
    case "any": return term.terms.flatMap(operatorsIn);
    case "op": return [...term.ops, ...term.inputs.flatMap(operatorsIn)];
  }
}
