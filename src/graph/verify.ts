/**
 * Verifies a graph and its subgraphs: every use has a producer that comes from this graph or one around it, use lists
 * and result lists are exact, nothing is computed twice, the order of computation exists, inputs and attributes fit the
 * operators' schemas, and types are those that inference gives. What it finds is a bug of the pass before it.
 */
import { invariant, InvariantError } from "../core/assert.ts";
import { formatContainer, isUnranked } from "../core/container.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { formatShape, isSymbolic, symbol } from "../core/dim.ts";
import { sizeOf } from "../core/tensor.ts";
import { joinHeldTypes } from "./container-type.ts";
import { captures, subgraphs, type Graph, type Node, type Value } from "./graph.ts";
import { inferNode } from "./infer-node.ts";
import type { TypeInfo } from "./op.ts";

/** Throws an InvariantError that says what is wrong, where. */
export function verifyGraph(graph: Graph): void {
  const graphs = allGraphs(graph);
  const inside = new Set(graphs);
  const uses = new Map<Value, Set<string>>();
  const results = new Map<Value, number>();
  for (const g of graphs) {
    for (const node of g.nodes) {
      verifyNode(node, g, inside);
      node.inputs.forEach((value, index) => {
        if (value) uses.set(value, (uses.get(value) ?? new Set()).add(useKey(node, index)));
      });
    }
    for (const value of g.outputs) {
      verifyVisible(value, g, `an output of ${g.name}`);
      results.set(value, (results.get(value) ?? 0) + 1);
    }
    verifyAcyclic(g);
  }
  const values = new Set([...graphs.flatMap((g) => [...g.inputs, ...g.nodes.flatMap((n) => n.outputs)]), ...uses.keys(), ...results.keys()]);
  for (const value of values) verifyUses(value, uses.get(value) ?? new Set(), results.get(value) ?? 0);
  verifyNames(graphs, values);
}

const allGraphs = (graph: Graph): Graph[] => [graph, ...graph.nodes.flatMap((n) => subgraphs(n).flatMap(allGraphs))];
const useKey = (node: Node, index: number): string => `${node.name}#${index}`;

function verifyNode(node: Node, graph: Graph, inside: ReadonlySet<Graph>): void {
  invariant(node.graph === graph && graph.has(node), `node '${node.name}' is listed in ${graph.name} but not in it`);
  invariant(node.origins.length > 0, `node '${node.name}' has no origins`);
  for (const sub of subgraphs(node)) invariant(sub.parent === graph && inside.has(sub), `a subgraph of '${node.name}' hangs on another graph`);
  node.outputs.forEach((value, index) => {
    invariant(value.producer?.node === node && value.producer.index === index && value.graph === graph, `output ${index} of '${node.name}' has another producer`);
    invariant(!value.constant, `output ${index} of '${node.name}' is a constant`);
  });
  for (const value of node.inputs) if (value) verifyVisible(value, graph, `an input of '${node.name}'`);
  verifyTypes(node);
}

/** The value is an input, a constant or a result of this graph or of one around it. */
function verifyVisible(value: Value, graph: Graph, what: string): void {
  let around: Graph | undefined = graph;
  while (around && around !== value.graph) around = around.parent;
  invariant(around, `${what}, '${value.name}', belongs to ${value.graph.name}, which is not around ${graph.name}`);
  if (value.producer) invariant(value.graph.has(value.producer.node), `${what}, '${value.name}', comes from '${value.producer.node.name}', which was erased`);
  else if (value.constant) verifyConstant(value);
  else invariant(value.graph.inputs.includes(value), `${what}, '${value.name}', has no producer`);
}

function verifyConstant(value: Value): void {
  const { constant, type } = value;
  if (!constant) return;
  invariant(constant.data.length === sizeOf(constant.dims), `constant '${value.name}' has ${constant.data.length} elements for [${constant.dims}]`);
  invariant(constant.dtype === type.dtype && fits(type, { dtype: constant.dtype, shape: constant.dims }), `constant '${value.name}' is ${describe({ dtype: constant.dtype, shape: constant.dims })} of type ${describe(type)}`);
}

/** Inference of the node on its inputs' types agrees with the outputs' types, as far as sizes are numbers. */
function verifyTypes(node: Node): void {
  let types: readonly TypeInfo[];
  try {
    types = inferNode(node.op, node.inputs, node.attributes, node.outputs.length, { place: { node: node.name }, fresh: (hint) => symbol(`verify.${hint}`) });
  } catch (error) {
    if (error instanceof DiagnosticError) throw new InvariantError(`node '${node.name}' does not type: ${error.message}`);
    throw error;
  }
  node.outputs.forEach((value, i) => {
    const inferred = types[i];
    invariant(inferred && inferred.dtype === value.type.dtype && fits(inferred, value.type), `output ${i} of '${node.name}' is ${describe(value.type)}, inference says ${inferred && describe(inferred)}`);
  });
}

/** A value may be known to have a rank where inference of its node alone cannot tell. */
function fits(inferred: TypeInfo, type: TypeInfo): boolean {
  if (isUnranked(inferred) && !type.container) return true;
  return inferred.container || type.container ? joinHeldTypes(inferred, type) !== undefined && (inferred.container === undefined) === (type.container === undefined) : shapesFit(inferred, type);
}
const shapesFit = (a: TypeInfo, b: TypeInfo): boolean =>
  a.shape.length === b.shape.length && a.shape.every((d, i) => { const other = b.shape[i] ?? -1; return isSymbolic(d) || isSymbolic(other) || d === other; });
const describe = (type: TypeInfo): string => type.container ? formatContainer(type.container) : `${type.dtype}${formatShape(type.shape)}`;

function verifyUses(value: Value, expected: ReadonlySet<string>, results: number): void {
  const listed = value.uses.map((u) => useKey(u.node, u.index));
  invariant(new Set(listed).size === listed.length, `a use of '${value.name}' is listed twice`);
  const missing = [...expected].find((use) => !listed.includes(use));
  invariant(missing === undefined, `the use ${missing} of '${value.name}' is not listed`);
  for (const use of value.uses) invariant(use.node.inputs[use.index] === value, `'${value.name}' lists a use by '${use.node.name}', which does not read it`);
  invariant(listed.length === expected.size, `'${value.name}' lists uses by nodes outside the graph`);
  invariant(value.resultOf.length === results, `'${value.name}' is listed as result of ${value.resultOf.length} graphs, it is of ${results}`);
}

function verifyNames(graphs: readonly Graph[], values: ReadonlySet<Value>): void {
  const seen = new Map<string, Value>();
  for (const value of values) {
    const other = seen.get(value.name);
    invariant(!other || other === value, `two values are called '${value.name}'`);
    seen.set(value.name, value);
  }
  const nodes = new Set<string>();
  for (const g of graphs) for (const node of g.nodes) {
    invariant(!nodes.has(node.name), `two nodes are called '${node.name}'`);
    nodes.add(node.name);
  }
}

/** Removes nodes whose needs are met until none is left (Kahn's algorithm). */
function verifyAcyclic(graph: Graph): void {
  const dependents = new Map<Node, Node[]>();
  const waiting = new Map<Node, number>();
  for (const node of graph.nodes) {
    const needs = new Set<Node>();
    for (const value of [...node.inputs, ...subgraphs(node).flatMap(captures)]) if (value?.producer?.node.graph === graph) needs.add(value.producer.node);
    waiting.set(node, needs.size);
    for (const need of needs) { const list = dependents.get(need); if (list) list.push(node); else dependents.set(need, [node]); }
  }
  const ready = graph.nodes.filter((n) => waiting.get(n) === 0);
  for (let node = ready.pop(); node; node = ready.pop()) {
    waiting.delete(node);
    for (const dependent of dependents.get(node) ?? []) {
      const left = (waiting.get(dependent) ?? 0) - 1;
      waiting.set(dependent, left);
      if (left === 0) ready.push(dependent);
    }
  }
  invariant(waiting.size === 0, `nodes need each other: ${[...waiting.keys()].map((n) => n.name).join(", ")}`);
}
