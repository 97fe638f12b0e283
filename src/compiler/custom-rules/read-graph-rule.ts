/** Reads one custom rule in GE's graph form. All that is wrong is told to `complain`, with the field and the fix. */
import { nearestName } from "../../core/diagnostic.ts";
import type { Endpoint, GraphRule, Literal, RuleAttribute, RuleGraph } from "./custom-rule.ts";
import { checkRuleGraph } from "./rule-graph-check.ts";
import { readConditions, type Complain, type Condition, type Port } from "./rule-conditions.ts";

type Json = Readonly<Record<string, unknown>>;
const isObject = (x: unknown): x is Json => typeof x === "object" && x !== null && !Array.isArray(x);
const isStrings = (x: unknown): x is readonly string[] => Array.isArray(x) && x.length > 0 && x.every((s) => typeof s === "string" && s !== "");
const isNumbers = (x: unknown): x is readonly number[] => Array.isArray(x) && x.every((n) => typeof n === "number");
/** A name that is one. */
const isName = (x: unknown): x is string => typeof x === "string" && x !== "";
const isLiteral = (x: unknown): x is Literal => typeof x === "number" || typeof x === "string" || isNumbers(x) || (Array.isArray(x) && x.every((s) => typeof s === "string"));

/** The rule; undefined where something is wrong with it. */
export function readGraphRule(name: string, entry: Json, complain: Complain): GraphRule | undefined {
  return new Reader(complain).rule(name, entry);
}

const fields = ["RuleName", "OuterInputs", "OuterOutputs", "OriginGraph", "FusionGraph", "OutputOp", "Attrs", "Conditions", "Description"];

class Reader {
  #good = true;
  readonly #complain: Complain;

  constructor(complain: Complain) {
    this.#complain = (code, field, message, hint) => { this.#good = false; complain(code, field, message, hint); };
  }

  rule(name: string, entry: Json): GraphRule | undefined {
    for (const key of Object.keys(entry)) if (!fields.includes(key)) this.#unknown(key, `there is no field '${key}'`, key, fields);
    if (!isName(entry["RuleName"])) this.#bad("RuleName", "the rule has no name", 'write "RuleName": "MyRule"');
    if (entry["Description"] !== undefined && typeof entry["Description"] !== "string") this.#bad("Description", "Description is not a text", 'write "Description": "…"');
    const inputs = this.#ports(entry, "OuterInputs"), outputs = this.#ports(entry, "OuterOutputs");
    if (Array.isArray(entry["OuterOutputs"]) && entry["OuterOutputs"].length !== 1) this.#bad("OuterOutputs", "a rule replaces one value", "give exactly one OuterOutput");
    const origin = this.#graph(entry, "OriginGraph", inputs, outputs);
    const becomes = this.#becomes(entry, inputs, outputs);
    const attributes = becomes.kind === "graph" ? this.#attributes(entry, origin, becomes.graph) : [];
    const nodes = origin.nodes.map((n) => n.name);
    const where: readonly Condition[] = entry["Conditions"] === undefined ? [] : readConditions(entry["Conditions"], "Conditions", [...inputs, ...nodes], nodes, this.#complain);
    return this.#good ? { kind: "graph", name, inputs, outputs, origin, becomes, attributes, where } : undefined;
  }

  #becomes(entry: Json, inputs: readonly string[], outputs: readonly string[]): GraphRule["becomes"] {
    const outputOp = entry["OutputOp"];
    if (outputOp === undefined) return { kind: "graph", graph: this.#graph(entry, "FusionGraph", inputs, outputs) };
    if (typeof outputOp !== "string" || !/^[A-Za-z]\w*$/.test(outputOp)) this.#bad("OutputOp", "OutputOp is not a name", 'write "OutputOp": "ConvGate"');
    for (const other of ["FusionGraph", "Attrs"]) if (entry[other] !== undefined) this.#bad(other, `the rule has both ${other} and an OutputOp`, "leave one of them out");
    return { kind: "kernel", outputOp: String(outputOp) };
  }

  #ports(entry: Json, field: string): string[] {
    const list = entry[field];
    if (Array.isArray(list) && list.every((p) => isObject(p) && isName(p["name"]))) return list.map((p: Json) => String(p["name"]));
    this.#bad(field, `${field} is not a list of named ports`, `write "${field}": [{"name": "In0"}]`);
    return [];
  }

  #graph(entry: Json, field: string, inputs: readonly string[], outputs: readonly string[]): RuleGraph {
    const value = entry[field];
    if (!isObject(value)) {
      this.#bad(field, `${field} is missing`, field === "FusionGraph" ? 'write "FusionGraph": {"Nodes": […], "Edges": […]}, or "OutputOp": "Name" for one kernel' : `write "${field}": {"Nodes": […], "Edges": […]}`);
      return { nodes: [], constants: [], edges: [] };
    }
    const nodes = listOf(value["Nodes"]).flatMap((n, i) => {
      const types = isObject(n) && (isName(n["type"]) ? [n["type"]] : isStrings(n["type"]) ? n["type"] : undefined);
      if (isObject(n) && isName(n["name"]) && types) return [{ name: n["name"], types }];
      this.#bad(`${field}.Nodes[${i}]`, "the node has no name or type", 'write {"name": "Mul0", "type": ["Mul"]}');
      return [];
    });
    if (nodes.length === 0) this.#bad(`${field}.Nodes`, "there are no nodes", 'write "Nodes": [{"name": "Mul0", "type": ["Mul"]}]');
    for (const list of ["Constants", "Edges"]) if (!Array.isArray(value[list]) && (list === "Edges" || value[list] !== undefined)) this.#bad(`${field}.${list}`, `${list} is not a list`, `write "${list}": […]`);
    const constants = listOf(value["Constants"]).flatMap((c, i): RuleGraph["constants"] => {
      const number = isObject(c) ? c["value"] : undefined;
      if (isObject(c) && isName(c["name"]) && (typeof number === "number" || (field === "FusionGraph" && isNumbers(number)))) return [{ name: c["name"], value: number }];
      this.#bad(`${field}.Constants[${i}]`, "the constant has no name or number", 'write {"name": "Half", "value": 0.5}');
      return [];
    });
    const known = [...nodes, ...constants].map((n) => n.name).concat(inputs, outputs);
    const edges = listOf(value["Edges"]).map((e, i) => {
      const at = `${field}.Edges[${i}]`;
      const { src, dst } = isObject(e) ? e : {};
      if (!isName(src) || !isName(dst)) this.#bad(at, "the edge does not lead from one name to another", 'write {"src": "In0", "dst": "Mul0:0"}');
      return { from: this.#port(src, `${at}.src`, known), to: this.#port(dst, `${at}.dst`, known) };
    });
    for (const o of outputs) if (!edges.some((e) => e.to.node === o)) this.#bad(`${field}.Edges`, `nothing leads to output '${o}'`, `add {"src": "<node>:0", "dst": "${o}"}`);
    checkRuleGraph({ nodes, constants, edges }, inputs, outputs, (message, hint) => { this.#bad(`${field}.Edges`, message, hint); });
    return { nodes, constants, edges };
  }

  #port(text: unknown, at: string, known: readonly string[]): Port {
    const [, node = "", slot = "0"] = typeof text === "string" ? (/^(.+?)(?::(\d{1,3}))?$/.exec(text) ?? []) : [];
    if (!known.includes(node)) this.#unknown(at, `there is no node or port '${String(text)}'`, String(text), known);
    return { node, slot: Number(slot) };
  }

  #attributes(entry: Json, origin: RuleGraph, fusion: RuleGraph): readonly RuleAttribute[] {
    const inner = isObject(entry["FusionGraph"]) ? entry["FusionGraph"]["Attrs"] : undefined;
    const lists = [entry["Attrs"], inner].filter((l) => l !== undefined);
    if (!lists.every(Array.isArray)) { this.#bad("Attrs", "Attrs is not a list", 'write "Attrs": [{"attr": "New.axis", "value": "Old.axis", "expr": "="}]'); return []; }
    return lists.flat().flatMap((a, i): readonly RuleAttribute[] => {
      if (isObject(a) && "literal" in a === "value" in a) { this.#bad(`Attrs[${i}]`, "the attribute has not one of value and literal", 'write "value": "Old.axis" or "literal": 1'); return []; }
      if (isObject(a) && "expr" in a && a["expr"] !== "=") this.#bad(`Attrs[${i}].expr`, "expr is not '='", 'write "expr": "=", or leave it out');
      const to = this.#endpoint(a, "attr", fusion, i);
      if (isObject(a) && "literal" in a) {
        if (!isLiteral(a["literal"])) { this.#bad(`Attrs[${i}].literal`, "literal is not a number, a text or a list of them", 'write "literal": 1'); return []; }
        return to ? [{ to, from: { literal: a["literal"] } }] : [];
      }
      const from = this.#endpoint(a, "value", origin, i);
      return to && from ? [{ to, from }] : [];
    });
  }
  #endpoint(a: unknown, key: string, graph: RuleGraph, i: number): Endpoint | undefined {
    const [, node, attribute] = isObject(a) && typeof a[key] === "string" ? (/^(.+)\.(\w+)$/.exec(a[key]) ?? []) : [];
    if (node === undefined) { this.#bad(`Attrs[${i}].${key}`, `${key} is no attribute of a node`, "write Node.attribute"); return undefined; }
    if (attribute !== undefined && graph.nodes.some((n) => n.name === node)) return { node, attribute };
    this.#complain("OF4022", `Attrs[${i}].${key}`, `'${isObject(a) ? String(a[key]) : ""}' names no attribute of a node`, "write Node.attribute");
    return undefined;
  }

  #bad(field: string, message: string, hint: string): void { this.#complain("OF4021", field, message, hint); }
  #unknown(field: string, message: string, name: string, names: readonly string[]): void {
    const near = nearestName(name, names);
    this.#complain("OF4022", field, message, near === undefined ? `there are ${names.join(", ")}` : `did you mean '${near}'?`);
  }
}
const listOf = (x: unknown): readonly unknown[] => (Array.isArray(x) ? x : []);
