/** Copies of a subgraph's nodes in the graph around it, or in another subgraph. */
import type { NodeAgreement } from "../core/agreement.ts";
import { Graph, type Node, type Value } from "../graph/graph.ts";
import type { Attributes, AttributeValue, TypeInfo } from "../graph/op.ts";
import { Identity } from "../ops/index.ts";
import { replaceOutput } from "./replace.ts";

type Retype = (type: TypeInfo) => TypeInfo;
const same: Retype = (type) => type;

/** Copies a node of a subgraph, with subgraphs of its own, to before `at`. `copies` says what stands for values, `retype` what types they get. */
export function copyNode(inner: Node, graph: Graph, at: Node | undefined, copies: Map<Value, Value>, retype: Retype = same): void {
  const attributes: Record<string, AttributeValue | undefined> = {};
  for (const [key, a] of Object.entries(inner.attributes)) attributes[key] = a instanceof Graph ? copyGraph(a, graph, copies, retype) : a;
  const copy = graph.insert({
    op: inner.op, inputs: inner.inputs.map((v) => v && copyOf(v, graph, copies)), attributes: attributes as Attributes,
    outputs: inner.outputs.map((v) => retype(v.type)), outputNames: inner.outputs.map((v) => v.name), name: inner.name, origins: inner.origins,
  }, at);
  inner.outputs.forEach((v, i) => { const c = copy.outputs[i]; if (c) copies.set(v, c); });
}
function copyGraph(of: Graph, parent: Graph, copies: Map<Value, Value>, retype: Retype): Graph {
  const copy = new Graph(of.name, parent);
  copy.agreements = agreementsOf(of, retype);
  for (const v of of.inputs) copies.set(v, copy.addInput(v.name, retype(v.type), v.default));
  for (const node of of.nodes) copyNode(node, copy, undefined, copies, retype);
  copy.setOutputs(of.outputs.map((v) => copyOf(v, copy, copies)));
  return copy;
}
/** The sizes that a graph needs to agree, as a copy of it needs them. */
export const agreementsOf = (of: Graph, retype: Retype = same): readonly NodeAgreement[] => of.agreements.map((own) => {
  const [a = own.a, b = own.b, ...where] = retype({ dtype: "int64", shape: [own.a, own.b, ...(own.where ?? [])] }).shape;
  return { ...own, a, b, ...(own.where ? { where } : {}) };
});
/** What stands for a value of the subgraph: its copy, a constant made anew, or itself where it is captured. */
export function copyOf(v: Value, graph: Graph, copies: Map<Value, Value>): Value {
  const known = copies.get(v);
  if (known) return known;
  if (!v.constant || v.graph === graph || v.graph.parent === undefined) return v;
  const constant = graph.addConstant(v.constant, v.name, v.type);
  copies.set(v, constant);
  return constant;
}

/** Puts `by` in the place of a node's output; an Identity stands between where a graph output cannot take over its name. */
export function replaceKeepingName(node: Node, index: number, by: Value): void {
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
