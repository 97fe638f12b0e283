/**
 * Custom fusion rules as JSON, in two forms: a linear chain of operators (`{"name": {"pattern", "output_op",
 * "conditions"}}`), and GE's graph form (`RuleName, OuterInputs, OuterOutputs, OriginGraph, FusionGraph`). This part
 * reads and checks them; every error names the rule, the field and the fix. Schemas are in schemas/.
 */
import { DiagnosticError, fail, nearestName, type Diagnostic } from "../core/diagnostic.ts";
import { readJsonText } from "../core/json-text.ts";

/** A chain whose operators become one kernel, named `outputOp`. */
export interface ChainRule {
  readonly kind: "chain";
  readonly name: string;
  readonly pattern: readonly string[];
  readonly outputOp: string;
  readonly conditions: Conditions;
}
export interface Conditions {
  /** What BatchNormalization must be doing. */
  readonly bn_mode?: "inference" | "training";
  /** The element type of the chain's result. */
  readonly dtype?: string;
}

/** A sub-graph, and what replaces it. */
export interface GraphRule {
  readonly kind: "graph";
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly origin: RuleGraph;
  readonly fusion: RuleGraph;
  /** `Node.attribute` of the replacement takes `Node.attribute` of the original. */
  readonly attributes: readonly { readonly to: Endpoint; readonly from: Endpoint }[];
}
export interface RuleGraph {
  readonly nodes: readonly { readonly name: string; readonly types: readonly string[] }[];
  readonly edges: readonly { readonly from: Port; readonly to: Port }[];
}
/** A node's slot; outer inputs and outputs have slot 0. */
export interface Port { readonly node: string; readonly slot: number }
export interface Endpoint { readonly node: string; readonly attribute: string }
export type CustomRule = ChainRule | GraphRule;

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
  const report: Report = (code, rule, field, message, hint) => {
    const line = locate(rule);
    problems.push({ code, message: `rule '${rule}': ${message}`, place: { field, ...(file === undefined ? {} : { file }), ...(line === undefined ? {} : { line }) }, ...(hint === undefined ? {} : { hint }) });
  };
  const rules = entriesOf(value).flatMap(([name, entry]) => {
    if (isObject(entry) && ("RuleName" in entry || "OriginGraph" in entry)) return graphRule(name, entry, report) ?? [];
    return chainRule(name, entry, report) ?? [];
  });
  if (problems.length) throw new DiagnosticError(problems);
  return rules;
}
type Report = (code: string, rule: string, field: string, message: string, hint?: string) => void;

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
  const list = value["Rules"];
  return Array.isArray(list) ? list.map(named) : Object.entries(value);
}

const chainFields = ["pattern", "output_op", "conditions"];
const conditionValues: Readonly<Record<keyof Conditions, readonly string[] | undefined>> = { bn_mode: ["inference", "training"], dtype: ["float32", "float16", "float64", "bfloat16"] };

function chainRule(name: string, entry: unknown, report: Report): ChainRule | undefined {
  const say = (field: string, message: string, hint?: string): void => report("OF4021", name, `${name}.${field}`, message, hint);
  if (!isObject(entry)) { report("OF4021", name, name, "it is not an object", 'write {"pattern": […], "output_op": "…", "conditions": {}}'); return undefined; }
  for (const key of Object.keys(entry)) if (!chainFields.includes(key)) report("OF4022", name, `${name}.${key}`, `there is no field '${key}'`, didYouMean(key, chainFields));
  const { pattern, output_op: outputOp, conditions = {} } = entry;
  let good = true;
  const bad = (field: string, message: string, hint: string): void => { good = false; say(field, message, hint); };
  if (!isStrings(pattern) || pattern.length < 2) bad("pattern", "the pattern is not a list of at least two operator types", 'write "pattern": ["Conv", "BatchNormalization", "Relu"]');
  if (typeof outputOp !== "string" || !/^[A-Za-z]\w*$/.test(outputOp)) bad("output_op", "output_op is not a name", 'write "output_op": "ConvBNReLU"');
  if (!isObject(conditions)) bad("conditions", "conditions is not an object", 'write "conditions": {}');
  else for (const [key, wanted] of Object.entries(conditions)) {
    const values = Object.entries(conditionValues).find(([k]) => k === key)?.[1];
    if (!values) { good = false; report("OF4022", name, `${name}.conditions.${key}`, `there is no condition '${key}'`, didYouMean(key, Object.keys(conditionValues))); }
    else if (typeof wanted !== "string" || !values.includes(wanted)) bad(`conditions.${key}`, `'${String(wanted)}' is not a value of ${key}`, `write one of ${values.join(", ")}`);
  }
  return good ? { kind: "chain", name, pattern: pattern as readonly string[], outputOp: outputOp as string, conditions: conditions as Conditions } : undefined;
}

const didYouMean = (name: string, names: readonly string[]): string => {
  const near = nearestName(name, names);
  return near === undefined ? `there are ${names.join(", ")}` : `did you mean '${near}'?`;
};

function graphRule(name: string, entry: Json, report: Report): GraphRule | undefined {
  let good = true;
  const bad = (field: string, message: string, hint: string): void => { good = false; report("OF4021", name, field, message, hint); };
  const names = (field: string): string[] => {
    const list = entry[field];
    if (Array.isArray(list) && list.every((p) => isObject(p) && typeof p["name"] === "string")) return list.map((p: Json) => String(p["name"]));
    bad(field, `${field} is not a list of named ports`, `write "${field}": [{"name": "In0"}]`);
    return [];
  };
  if (typeof entry["RuleName"] !== "string") bad("RuleName", "the rule has no name", 'write "RuleName": "MyRule"');
  const inputs = names("OuterInputs"), outputs = names("OuterOutputs");
  const graph = (field: string): RuleGraph => {
    const value = entry[field];
    if (!isObject(value)) { bad(field, `${field} is missing`, `write "${field}": {"Nodes": […], "Edges": […]}`); return { nodes: [], edges: [] }; }
    const nodes = (Array.isArray(value["Nodes"]) ? value["Nodes"] : []).flatMap((n: unknown, i) => {
      const types = isObject(n) && (typeof n["type"] === "string" ? [n["type"]] : isStrings(n["type"]) ? n["type"] : undefined);
      if (isObject(n) && typeof n["name"] === "string" && types) return [{ name: n["name"], types }];
      bad(`${field}.Nodes[${i}]`, "the node has no name or type", 'write {"name": "Mul0", "type": ["Mul"]}');
      return [];
    });
    if (nodes.length === 0) bad(`${field}.Nodes`, "there are no nodes", 'write "Nodes": [{"name": "Mul0", "type": ["Mul"]}]');
    const known = new Set([...nodes.map((n) => n.name), ...inputs, ...outputs]);
    const port = (text: unknown, at: string): Port => {
      const parts = typeof text === "string" ? /^(.+?)(?::(\d+))?$/.exec(text) : null;
      const node = parts?.[1] ?? "";
      if (!known.has(node)) { good = false; report("OF4022", name, at, `there is no node or port '${String(text)}'`, didYouMean(String(text), [...known])); }
      return { node, slot: Number(parts?.[2] ?? 0) };
    };
    const edges = (Array.isArray(value["Edges"]) ? value["Edges"] : []).map((e: unknown, i) => {
      const at = `${field}.Edges[${i}]`;
      if (!isObject(e)) bad(at, "the edge is not an object", 'write {"src": "In0", "dst": "Mul0:0"}');
      const { src, dst } = isObject(e) ? e : {};
      return { from: port(src, `${at}.src`), to: port(dst, `${at}.dst`) };
    });
    for (const o of outputs) if (!edges.some((e) => e.to.node === o)) bad(`${field}.Edges`, `nothing leads to output '${o}'`, `add {"src": "<node>:0", "dst": "${o}"}`);
    return { nodes, edges };
  };
  const origin = graph("OriginGraph"), fusion = graph("FusionGraph");
  const attributes = readAttributes(entry, name, origin, fusion, report, () => { good = false; });
  return good ? { kind: "graph", name, inputs, outputs, origin, fusion, attributes } : undefined;
}

function readAttributes(entry: Json, name: string, origin: RuleGraph, fusion: RuleGraph, report: Report, spoil: () => void): GraphRule["attributes"] {
  const inner = isObject(entry["FusionGraph"]) ? entry["FusionGraph"]["Attrs"] : undefined;
  const list: unknown = entry["Attrs"] ?? inner ?? [];
  if (!Array.isArray(list)) { spoil(); report("OF4021", name, "Attrs", "Attrs is not a list", 'write "Attrs": [{"attr": "New.axis", "value": "Old.axis", "expr": "="}]'); return []; }
  return list.flatMap((a: unknown, i) => {
    const end = (key: string, graph: RuleGraph): Endpoint | undefined => {
      const parts = isObject(a) && typeof a[key] === "string" ? /^(.+)\.(\w+)$/.exec(a[key]) : null;
      const node = parts?.[1], attribute = parts?.[2];
      if (node !== undefined && attribute !== undefined && graph.nodes.some((n) => n.name === node)) return { node, attribute };
      spoil();
      report("OF4022", name, `Attrs[${i}].${key}`, `'${isObject(a) ? String(a[key]) : ""}' names no attribute of a node`, "write Node.attribute");
      return undefined;
    };
    const to = end("attr", fusion), from = end("value", origin);
    return to && from ? [{ to, from }] : [];
  });
}
