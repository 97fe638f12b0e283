/**
 * Custom rules in GE's graph form as rules of the rewrite engine. What a built-in rule proves by its example, a custom
 * one must show at each site: original and replacement are evaluated there on random inputs and have to agree.
 */
import { invariant, present } from "../../core/assert.ts";
import { fail } from "../../core/diagnostic.ts";
import { fromNumbers, type Tensor } from "../../core/tensor.ts";
import { Graph, type Node, type Value } from "../../graph/graph.ts";
import type { Attributes } from "../../graph/op.ts";
import type { OpTerm } from "../../rewrite/pattern.ts";
import { reassociates, type Rule } from "../../rewrite/rule.ts";
import type { GraphRule, Port } from "./custom-rule.ts";
import { checkConditions, type NamedSite } from "./rule-guards.ts";
import { Picture } from "./rule-picture.ts";
import { agrees, evaluateNode } from "../accounts/site-agreement.ts";

/** How far original and replacement may differ, as a share of the largest element. */
const tolerance = 1e-4;

/** The pattern of a rule's original. Fails with OF4022 for operators that do not exist and OF4023 for graphs that make no single pattern. */
export function patternOf(rule: GraphRule): { readonly picture: Picture; readonly source: Port; readonly match: OpTerm } {
  const wrong = (message: string, hint: string): never => fail("OF4023", `rule '${rule.name}': ${message}`, { hint });
  const output = present(rule.outputs[0], "the output of a rule");
  const picture = new Picture(rule.name, rule.inputs, rule.origin);
  const source = picture.sourceOf(output);
  if (!rule.origin.nodes.some((n) => n.name === source.node)) return wrong("its output is an input", "let a node of OriginGraph produce it");
  if (source.slot !== 0) return wrong(`its output is output ${source.slot} of ${source.node}`, "let it be the first output of a node");
  return { picture, source, match: picture.term(source) };
}

/**
 * The rule that replaces the original by the FusionGraph. `checked` false leaves out the evaluation of each site, for
 * whoever compares by other means. Fails as `patternOf` does; undefined for a rule whose result is one kernel.
 */
export function graphRuleOf(rule: GraphRule, checked = true): Rule | undefined {
  const { match } = patternOf(rule);
  if (rule.becomes.kind === "kernel") return undefined;
  const fusion = new Picture(rule.name, rule.inputs, rule.becomes.graph);
  const from = fusion.sourceOf(present(rule.outputs[0], "output"));
  const numbers = (value: number | readonly number[], root: Node): Tensor => {
    const list = typeof value === "number" ? [value] : value;
    return fromNumbers(root.outputs[0]?.type.dtype ?? "float32", typeof value === "number" ? [] : [list.length], list);
  };
  return {
    name: rule.name, doc: "A custom rule.", stage: "recognise", match, numerics: reassociates(tolerance),
    where: [
      (bindings) => checkConditions(rule.where, siteOf(bindings as Bindings)),
      ...(checked ? [(bindings: object, root: Node) => {
        const b = bindings as Bindings;
        return agrees(root, outerValues(rule, b), (feeds) => fusion.walk<Tensor>(from, {
          outer: (name) => feeds.get(name),
          constant: (value) => numbers(value, root),
          call: (op, inputs, node, count) => evaluateNode(op, inputs, attributesOf(rule, node, b), count),
        }), tolerance);
      }] : []),
    ],
    rewrite(bindings, edit) {
      const b = bindings as Bindings;
      return fusion.walk<Value>(from, {
        outer: (name) => outerValues(rule, b).get(name),
        constant: (value, name) => edit.constant(numbers(value, edit.root), name),
        call: (op, inputs, node, outputCount) => present(edit.insert(op, inputs, attributesOf(rule, node, b), { outputCount }).producer, `node ${node}`).node.outputs,
      });
    },
    example: () => new Graph(rule.name),
    refuses: {},
  };
}

export type Bindings = Readonly<Record<string, Value | Node | undefined>>;
const isNode = (x: Value | Node | undefined): x is Node => x !== undefined && "op" in x;

/** A match by the names of the rule. */
export const siteOf = (bindings: Bindings): NamedSite => ({
  node: (name) => { const found = bindings[name]; return isNode(found) ? found : undefined; },
  value: ({ node, slot }) => { const found = bindings[node]; return isNode(found) ? found.outputs[slot] : found; },
});

function outerValues(rule: GraphRule, bindings: Bindings): Map<string, Value> {
  return new Map(rule.inputs.flatMap((name): [string, Value][] => { const found = bindings[name]; return found === undefined || isNode(found) ? [] : [[name, found]]; }));
}

/** What the rule says of the attributes of a node of the replacement. */
function attributesOf(rule: GraphRule, node: string, bindings: Bindings): Attributes {
  const out: Record<string, Attributes[string]> = {};
  for (const { to, from } of rule.attributes) {
    if (to.node !== node) continue;
    if ("literal" in from) { out[to.attribute] = from.literal; continue; }
    const original = bindings[from.node];
    invariant(isNode(original), `${from.node} is bound to a node`);
    out[to.attribute] = original.attributes[from.attribute];
  }
  return out;
}
