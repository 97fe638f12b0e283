/**
 * What a rule's example may stand in: its inner values read, returned or captured by others, its weights shared or
 * replaceable, sizes unknown or zero, float16, twice over the same weights, inside a branch. Each takes a graph and
 * gives another one that computes something else or more, and on which a rule may fire or not, but must stay right.
 */
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { symbol } from "../../src/core/dim.ts";
import { fromNumbers, toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { freshSymbol } from "../../src/graph/fresh.ts";
import { Graph, subgraphs, type Node, type Value } from "../../src/graph/graph.ts";
import { inferNode } from "../../src/graph/infer-node.ts";
import type { TypeInfo } from "../../src/graph/op.ts";
import * as ops from "../../src/ops/index.ts";

/** Where something may be changed; undefined stands for a graph that does not have so many places. */
export type Surrounding = (graph: Graph, at: number) => Graph | undefined;

const add = (graph: Graph, op: typeof ops.Cast, inputs: readonly Value[], attributes: Parameters<typeof inferNode>[2], name: string): Value => {
  const outputs = inferNode(op, inputs, attributes, 1, { place: { node: name }, fresh: (hint) => freshSymbol(graph, hint) });
  const [value] = graph.insert({ op, inputs, attributes, outputs, name, origins: [name] }).outputs;
  if (!value) throw new Error(`${op.type} has no output`);
  return value;
};
const asFloat = (graph: Graph, v: Value): Value => add(graph, ops.Cast, [v], { to: 1 }, "surrounding");
const innerValues = (graph: Graph): readonly Value[] => graph.nodes.flatMap((n) => n.outputs).filter((v) => v.uses.length > 0);
export const constantsOf = (graph: Graph): readonly Value[] => [...new Set(graph.nodes.flatMap((n) => n.inputs).filter((v): v is Value => v?.constant !== undefined))];

const read: Surrounding = (graph, at) => {
  const v = innerValues(graph)[at];
  if (v) graph.setOutputs([...graph.outputs, asFloat(graph, v)]);
  return v && graph;
};
const returned: Surrounding = (graph, at) => {
  const v = innerValues(graph).filter((x) => !graph.isOutput(x))[at];
  if (v) graph.setOutputs([...graph.outputs, v]);
  return v && graph;
};
const returnedTwice: Surrounding = (graph, at) => {
  const v = graph.outputs[at];
  if (v) graph.setOutputs([...graph.outputs, v]);
  return v && graph;
};
const captured: Surrounding = (graph, at) => {
  const v = innerValues(graph)[at];
  if (!v) return undefined;
  const condition = graph.addInput("surrounding_condition", { dtype: "bool", shape: [] });
  const branch = (op: typeof ops.Neg): Graph => {
    const g = new Graph(op.type, graph);
    g.setOutputs([add(g, op, [asFloat(g, v)], {}, op.type)]);
    return g;
  };
  const attributes = { then_branch: branch(ops.Neg), else_branch: branch(ops.Abs) };
  graph.setOutputs([...graph.outputs, add(graph, ops.If, [condition], attributes, "choose")]);
  return graph;
};
const sharedWeight: Surrounding = (graph, at) => {
  const v = constantsOf(graph)[at];
  if (v) graph.setOutputs([...graph.outputs, asFloat(graph, v)]);
  return v && graph;
};
/** A weight becomes an input with a default, which feeds may replace. */
const replaceable: Surrounding = (graph, at) => {
  const v = constantsOf(graph)[at];
  if (!v?.constant) return undefined;
  const { constant } = v;
  return copied(graph, { constant: (c, into) => (c === v ? into.addInput("replaceable", { dtype: constant.dtype, shape: constant.dims }, constant) : undefined) });
};
const symbolic: Surrounding = (graph, at) => {
  const sizes = graph.inputs.flatMap((v) => v.type.shape.map((d, axis) => ({ v, axis, d }))).filter((s) => typeof s.d === "number");
  const one = sizes[at];
  const chosen = at === sizes.length && sizes.length > 1 ? sizes : one ? [one] : [];
  if (chosen.length === 0) return undefined;
  const shapeOf = (v: Value): TypeInfo["shape"] => v.type.shape.map((d, axis) => (chosen.some((s) => s.v === v && s.axis === axis) ? symbol(`size_${d}`) : d));
  return copied(graph, { input: (v) => ({ ...v.type, shape: shapeOf(v) }) });
};
const narrow = (t: Tensor): Tensor => (t.dtype === "float32" ? fromNumbers("float16", t.dims, Array.from(toNumbers(t))) : t);
const half: Surrounding = (graph, at) => (at > 0 ? undefined : copied(graph, {
  input: (v) => (v.type.dtype === "float32" ? { ...v.type, dtype: "float16" } : v.type),
  constant: (c, into) => c.constant && into.addConstant(narrow(c.constant), c.name),
}));
const twice: Surrounding = (graph, at) => {
  if (at > 0 || hasBranches(graph)) return undefined;
  const own = new Map<Value, Value>();
  for (const node of [...graph.nodes]) copyNode(node, graph, (v) => own.get(v) ?? v, own, "_again");
  graph.setOutputs([...graph.outputs, ...graph.outputs.map((v) => own.get(v) ?? v).filter((v) => !graph.isOutput(v))]);
  return graph;
};
/** The whole graph in one branch of an If; the other gives the same by another way. */
const inBranch: Surrounding = (graph, at) => {
  if (at > 0 || hasBranches(graph)) return undefined;
  const outer = new Graph("outer");
  const inputs = new Map(graph.inputs.map((v) => [v, outer.addInput(v.name, v.type, v.default)]));
  const condition = outer.addInput("surrounding_condition", { dtype: "bool", shape: [] });
  const branch = (name: string): Graph => {
    const g = new Graph(name, outer);
    const own = new Map(inputs);
    for (const node of graph.nodes) copyNode(node, g, (v) => own.get(v) ?? constantIn(g, v, own), own, "");
    g.setOutputs(graph.outputs.map((v) => own.get(v) ?? v));
    return g;
  };
  const attributes = { then_branch: branch("yes"), else_branch: branch("no") };
  const types = inferNode(ops.If, [condition], attributes, graph.outputs.length, { place: { node: "choose" }, fresh: (hint) => freshSymbol(outer, hint) });
  outer.setOutputs(outer.insert({ op: ops.If, inputs: [condition], attributes, outputs: types, name: "choose", outputNames: graph.outputs.map((v) => `${v.name}_chosen`), origins: ["choose"] }).outputs);
  return outer;
};

export const surroundings: Readonly<Record<string, Surrounding>> = {
  "an inner value is read elsewhere": read, "an inner value is returned": returned, "a result is returned twice": returnedTwice,
  "an inner value is captured": captured, "a weight is used elsewhere": sharedWeight, "a weight may be replaced": replaceable,
  "a size is unknown": symbolic, "it is float16": half, "it stands twice": twice, "it stands in a branch": inBranch,
};

const hasBranches = (graph: Graph): boolean => graph.nodes.some((n) => subgraphs(n).length > 0);

interface Changes {
  readonly input?: (v: Value) => TypeInfo;
  readonly constant?: (v: Value, into: Graph) => Value | undefined;
}
/** The graph made anew with other inputs or constants; undefined where the operators do not take those. */
function copied(graph: Graph, { input = (v) => v.type, constant = () => undefined }: Changes): Graph | undefined {
  if (hasBranches(graph)) return undefined;
  const into = new Graph(graph.name), own = new Map<Value, Value>();
  try {
    for (const v of graph.inputs) own.set(v, into.addInput(v.name, input(v), v.default));
    for (const node of graph.nodes) copyNode(node, into, (v) => own.get(v) ?? own.set(v, constant(v, into) ?? constantIn(into, v, own)).get(v) ?? v, own, "");
    into.setOutputs(graph.outputs.map((v) => own.get(v) ?? v));
    return into;
  } catch (e) {
    if (e instanceof DiagnosticError) return undefined;
    throw e;
  }
}
function constantIn(graph: Graph, v: Value, own: Map<Value, Value>): Value {
  if (!v.constant) throw new Error(`'${v.name}' has no copy`);
  const copy = graph.addConstant(v.constant, v.name);
  own.set(v, copy);
  return copy;
}
function copyNode(node: Node, into: Graph, copyOf: (v: Value) => Value, own: Map<Value, Value>, suffix: string): void {
  const inputs = node.inputs.map((v) => v && copyOf(v)), name = node.name + suffix;
  const outputs = inferNode(node.op, inputs, node.attributes, node.outputs.length, { place: { node: name }, fresh: (hint) => freshSymbol(into, hint) });
  const copy = into.insert({ op: node.op, inputs, attributes: node.attributes, outputs, name, outputNames: node.outputs.map((v) => v.name + suffix), origins: [name] });
  node.outputs.forEach((v, i) => { const c = copy.outputs[i]; if (c) own.set(v, c); });
}
