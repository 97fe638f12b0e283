/**
 * Custom fusion rules as JSON, in two forms: a linear chain of operators (`{"name": {"pattern", "output_op",
 * "conditions"}}`), and GE's graph form (`RuleName, OuterInputs, OuterOutputs, OriginGraph, FusionGraph`), both with
 * conditions. This part reads and checks them; every error names the rule, the field and the fix. Schemas are in schemas/.
 */
import { DiagnosticError, fail, nearestName, type Diagnostic } from "../../core/diagnostic.ts";
import { readJsonText } from "../../core/json-text.ts";
import { chainNodes, type ChainConditions, type ChainRule, type CustomRule } from "./custom-rule.ts";
import { readGraphRule } from "./read-graph-rule.ts";
import { readConditions, type Complain, type Condition } from "./rule-conditions.ts";

type Json = Readonly<Record<string, unknown>>;
const isObject = (x: unknown): x is Json => typeof x === "object" && x !== null && !Array.isArray(x);
const isStrings = (x: unknown): x is readonly string[] => Array.isArray(x) && x.every((s) => typeof s === "string" && s !== "");

/** Finds the line on which a rule starts. */
type Locate = (rule: string) => number | undefined;

/**
 * The rules in JSON text or its value. Fails with OF4020 (not JSON), OF4021 (a field is missing or of the wrong type) or
 * OF4022 (a name that nothing has); all that is wrong is reported at once.
 */
export function readCustomRules(source: unknown, file?: string): readonly CustomRule[] {
  const text = typeof source === "string" ? source : undefined;
  const value = text === undefined ? source : parse(text, file);
  const locate: Locate = (rule) => { const at = text?.indexOf(JSON.stringify(rule)) ?? -1; return at < 0 ? undefined : text?.slice(0, at).split("\n").length; };
  const problems: Diagnostic[] = [];
  const report = (code: string, rule: string, field: string, message: string, hint?: string): void => {
    const line = locate(rule);
    problems.push({ code, message: `rule '${rule}': ${message}`, place: { field, ...(file === undefined ? {} : { file }), ...(line === undefined ? {} : { line }) }, ...(hint === undefined ? {} : { hint }) });
  };
  const rules = entriesOf(value).flatMap(([name, entry]) => {
    const complain: Complain = (code, field, message, hint) => report(code, name, field, message, hint);
    if (isObject(entry) && ("RuleName" in entry || "OriginGraph" in entry)) return readGraphRule(name, entry, complain) ?? [];
    return chainRule(name, entry, complain) ?? [];
  });
  if (problems.length) throw new DiagnosticError(problems);
  return rules;
}

/** The rules' JSON by name. Fails with OF4020 or OF4021 where there are no entries. */
export const ruleEntries = (source: unknown, file?: string): readonly (readonly [string, unknown])[] => entriesOf(typeof source === "string" ? parse(source, file) : source);

function parse(text: string, file: string | undefined): unknown {
  const read = readJsonText(text);
  return "value" in read ? read.value : fail("OF4020", `the rules are not JSON: ${read.reason}`, { place: { ...(file === undefined ? {} : { file }), line: read.line } });
}

/** Rules by name: of an object of rules, one GE rule, or a list of them. */
function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  const named = (rule: unknown, i: number): readonly [string, unknown] => [isObject(rule) && typeof rule["RuleName"] === "string" ? rule["RuleName"] : `#${i + 1}`, rule];
  if (Array.isArray(value)) return value.map(named);
  if (!isObject(value)) return fail("OF4021", "the rules are neither an object nor a list", { hint: 'write {"name": {"pattern": ["MatMul", "Relu"], "output_op": "MatMulReLU", "conditions": {}}}' });
  if ("RuleName" in value) return [named(value, 0)];
  const { Rules: list, ...others } = value;
  if (!Array.isArray(list)) return Object.entries(value);
  const [other] = Object.keys(others);
  if (other !== undefined) fail("OF4021", `there is '${other}' beside the list of rules`, { place: { field: other }, hint: 'put it into "Rules", or leave "Rules" out' });
  return list.map(named);
}

const chainFields = ["pattern", "output_op", "conditions"];
const conditionFields = ["bn_mode", "dtype", "where"];
const conditionValues: Readonly<Record<"bn_mode" | "dtype", readonly string[]>> = { bn_mode: ["inference", "training"], dtype: ["float32", "float16", "float64", "bfloat16"] };

function chainRule(name: string, entry: unknown, complain: Complain): ChainRule | undefined {
  if (!isObject(entry)) { complain("OF4021", name, "it is not an object", 'write {"pattern": […], "output_op": "…", "conditions": {}}'); return undefined; }
  let good = true;
  const spoil: Complain = (code, field, message, hint) => { good = false; complain(code, `${name}.${field}`, message, hint); };
  const bad = (field: string, message: string, hint: string): void => spoil("OF4021", field, message, hint);
  for (const key of Object.keys(entry)) if (!chainFields.includes(key)) complain("OF4022", `${name}.${key}`, `there is no field '${key}'`, didYouMean(key, chainFields));
  const { pattern, output_op: outputOp, conditions = {} } = entry;
  const types = isStrings(pattern) ? pattern : [];
  if (types.length < 2) bad("pattern", "the pattern is not a list of at least two operator types", 'write "pattern": ["Conv", "BatchNormalization", "Relu"]');
  if (typeof outputOp !== "string" || !/^[A-Za-z]\w*$/.test(outputOp)) bad("output_op", "output_op is not a name", 'write "output_op": "ConvBNReLU"');
  let where: readonly Condition[] = [];
  if (!isObject(conditions)) bad("conditions", "conditions is not an object", 'write "conditions": {}');
  else {
    for (const [key, wanted] of Object.entries(conditions)) {
      const values = Object.entries(conditionValues).find(([k]) => k === key)?.[1];
      if (!conditionFields.includes(key)) spoil("OF4022", `conditions.${key}`, `there is no condition '${key}'`, didYouMean(key, conditionFields));
      else if (values && (typeof wanted !== "string" || !values.includes(wanted))) bad(`conditions.${key}`, `'${String(wanted)}' is not a value of ${key}`, `write one of ${values.join(", ")}`);
    }
    const nodes = chainNodes(types);
    if (conditions["where"] !== undefined) where = readConditions(conditions["where"], "conditions.where", ["input", ...nodes], nodes, spoil);
  }
  if (!good || typeof outputOp !== "string") return undefined;
  const { bn_mode, dtype } = conditions as ChainConditions;
  return { kind: "chain", name, pattern: types, outputOp, conditions: { ...(bn_mode === undefined ? {} : { bn_mode }), ...(dtype === undefined ? {} : { dtype }) }, where };
}

const didYouMean = (name: string, names: readonly string[]): string => {
  const near = nearestName(name, names);
  return near === undefined ? `there are ${names.join(", ")}` : `did you mean '${near}'?`;
};
