/** An If whose condition is known runs only one branch: its nodes move into the place of the If. */
import { invariant } from "../core/assert.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import type { Attributes, AttributeValue } from "../graph/op.ts";
import { Identity, If } from "../ops/index.ts";
import { knownCondition } from "../ops/if.ts";
import { countNodes, type Ledger } from "./ledger.ts";
import { replaceOutput } from "./replace.ts";

/** Returns whether any If went. */
export function inlineKnownIfs(graph: Graph, ledger: Ledger): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (inlineKnownIfs(inner, ledger)) changed = true;
    const [condition] = node.inputs;
    const taken = node.op === If && condition ? knownCondition(typeWithConstant(condition)) : undefined;
    if (taken === undefined) continue;
    inlineBranch(node, taken ? "then_branch" : "else_branch", ledger);
    changed = true;
  }
  return changed;
}

function inlineBranch(node: Node, name: "then_branch" | "else_branch", ledger: Ledger): void {
  const branch = node.attributes[name];
  invariant(branch instanceof Graph, `${node.name} has no ${name}`);
  const { graph } = node;
  const before = countNodes(graph);
  const copies = new Map<Value, Value>();
  for (const inner of branch.nodes) copyNode(inner, graph, node, copies);
  const results = branch.outputs.map((v) => copyOf(v, graph, copies));
  for (const [i, old] of node.outputs.entries()) {
    const by = results[i];
    if (!by || (old.uses.length === 0 && old.resultOf.length === 0)) continue;
    replaceKeepingName(node, i, by);
  }
  if (graph.has(node)) graph.erase(node);
  ledger.record("inlined", "If", before - countNodes(graph));
}

/** An Identity stands between where a graph output cannot take over its name. */
function replaceKeepingName(node: Node, index: number, by: Value): void {
  const old = node.outputs[index];
  if (!old) return;
  if (old.resultOf.length === 0) { node.graph.replaceUses(old, by); return; }
  const identity = node.graph.insert({ op: Identity, inputs: [by], outputs: [by.type], name: old.name, origins: node.origins }, node);
  const [copy] = identity.outputs;
  if (!copy) return;
  const { name } = old;
  node.graph.replaceUses(old, copy);
  node.graph.rename(old, node.graph.freshName(name));
  node.graph.rename(copy, name);
  replaceOutput(identity, by);
}

/** Copies a node of a branch, with its subgraphs, to before `at`. */
function copyNode(inner: Node, graph: Graph, at: Node | undefined, copies: Map<Value, Value>): void {
  const attributes: Record<string, AttributeValue | undefined> = {};
  for (const [key, a] of Object.entries(inner.attributes)) attributes[key] = a instanceof Graph ? copyGraph(a, graph, copies) : a;
  const copy = graph.insert({
    op: inner.op, inputs: inner.inputs.map((v) => v && copyOf(v, graph, copies)), attributes: attributes as Attributes,
    outputs: inner.outputs.map((v) => v.type), outputNames: inner.outputs.map((v) => v.name), name: inner.name, origins: inner.origins,
  }, at);
  inner.outputs.forEach((v, i) => { const c = copy.outputs[i]; if (c) copies.set(v, c); });
}
function copyGraph(of: Graph, parent: Graph, copies: Map<Value, Value>): Graph {
  const copy = new Graph(of.name, parent);
  for (const v of of.inputs) copies.set(v, copy.addInput(v.name, v.type, v.default));
  for (const node of of.nodes) copyNode(node, copy, undefined, copies);
  copy.setOutputs(of.outputs.map((v) => copyOf(v, copy, copies)));
  return copy;
}
/** What stands for a value of the branch: its copy, a constant made anew, or itself where it is captured. */
function copyOf(v: Value, graph: Graph, copies: Map<Value, Value>): Value {
  const known = copies.get(v);
  if (known) return known;
  if (!v.constant || v.graph === graph || v.graph.parent === undefined) return v;
  const constant = graph.addConstant(v.constant, v.name, v.type);
  copies.set(v, constant);
  return constant;
}
