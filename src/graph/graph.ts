/**
 * The graph: what is computed. Mutable behind one door: nodes and values are changed only through Graph's methods,
 * which keep use lists exact, across subgraphs too. Every node keeps the names of the original nodes it came from.
 */
import { invariant } from "../core/assert.ts";
import type { Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Attributes, OpDef, TypeInfo } from "./op.ts";

/** One use of a value: as input `index` of `node`. */
export interface Use { readonly node: Node; readonly index: number }

export interface Value {
  readonly name: string;
  readonly type: TypeInfo;
  /** The node and output index that computes it; absent for graph inputs and constants. */
  readonly producer?: { readonly node: Node; readonly index: number };
  /** The graph it belongs to. */
  readonly graph: Graph;
  /** A constant's elements (also in `type.constant`). */
  readonly constant?: Tensor;
  /** A graph input's stored default (an overridable initializer). */
  readonly default?: Tensor;
  /** Uses as node inputs, in this graph and in subgraphs nested in it. */
  readonly uses: readonly Use[];
}

export interface Node {
  readonly op: OpDef;
  readonly name: string;
  readonly inputs: readonly (Value | undefined)[];
  readonly attributes: Attributes;
  readonly outputs: readonly Value[];
  readonly graph: Graph;
  /** Names of the original ONNX nodes this one stands for; never empty. */
  readonly origins: readonly string[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type MutableValue = Mutable<Omit<Value, "uses">> & { uses: Use[] };
type MutableNode = Omit<Mutable<Node>, "inputs" | "outputs"> & { inputs: (Value | undefined)[]; outputs: Value[] };

export interface NodeSpec {
  readonly op: OpDef;
  readonly inputs: readonly (Value | undefined)[];
  readonly attributes?: Attributes;
  /** Types of the outputs. */
  readonly outputs: readonly TypeInfo[];
  readonly outputNames?: readonly (string | undefined)[];
  readonly name?: string;
  readonly origins: readonly string[];
}

export class Graph {
  readonly name: string;
  /** The graph whose values this one may capture. */
  readonly parent: Graph | undefined;
  readonly #nodes = new Set<Node>();
  readonly #inputs: Value[] = [];
  readonly #outputs: Value[] = [];
  readonly #names: Set<string>;
  #counter = { n: 0 };

  constructor(name = "main", parent?: Graph) {
    this.name = name;
    this.parent = parent;
    this.#names = parent ? parent.#names : new Set();
    if (parent) this.#counter = parent.#counter;
  }

  /** Nodes in an order where producers come before consumers, as long as `sort` has run since the last insertion out of order. */
  get nodes(): readonly Node[] { return [...this.#nodes]; }
  get nodeCount(): number { return this.#nodes.size; }
  get inputs(): readonly Value[] { return this.#inputs; }
  /** The same value may stand more than once. */
  get outputs(): readonly Value[] { return this.#outputs; }
  has(node: Node): boolean { return this.#nodes.has(node); }

  addInput(name: string, type: TypeInfo, defaultValue?: Tensor): Value {
    const value = this.#value(name, type);
    if (defaultValue) value.default = defaultValue;
    this.#inputs.push(value);
    return value;
  }
  addConstant(tensor: Tensor, name?: string, type?: TypeInfo): Value {
    const value = this.#value(name, type ?? { dtype: tensor.dtype, shape: tensor.dims, constant: tensor });
    value.constant = tensor;
    return value;
  }
  /** Removes a graph input that nothing uses. */
  removeInput(value: Value): void {
    invariant(value.uses.length === 0 && !this.#outputs.includes(value), `input ${value.name} is used`);
    this.#inputs.splice(this.#inputs.indexOf(value), 1);
  }
  setOutputs(values: readonly Value[]): void { this.#outputs.splice(0, this.#outputs.length, ...values); }
  isOutput(value: Value): boolean { return this.#outputs.includes(value); }

  /** Inserts a node: before `before`, or at the end. */
  insert(spec: NodeSpec, before?: Node): Node {
    const name = this.#unique(spec.name ?? spec.op.type);
    const attributes: Record<string, Attributes[string]> = {};
    for (const [key, a] of Object.entries(spec.op.attributes)) if (a.default !== undefined) attributes[key] = a.default;
    Object.assign(attributes, spec.attributes);
    const node: MutableNode = { op: spec.op, name, inputs: [...spec.inputs], attributes, outputs: [], graph: this, origins: spec.origins };
    node.outputs = spec.outputs.map((type, index) => {
      const value = this.#value(spec.outputNames?.[index] ?? `${name}_${index}`, type);
      value.producer = { node, index };
      return value;
    });
    node.inputs.forEach((v, index) => { if (v) (v as MutableValue).uses.push({ node, index }); });
    if (before) this.#insertBefore(node, before);
    else this.#nodes.add(node);
    return node;
  }

  /** Makes every use of `old` (also as graph output, here and in nested graphs) a use of `by`. */
  replaceUses(old: Value, by: Value): void {
    if (old === by) return;
    for (const use of [...old.uses]) this.setInput(use.node, use.index, by);
    for (const graph of graphsAround(old)) graph.#outputs.forEach((v, i) => { if (v === old) graph.#outputs[i] = by; });
  }
  setInput(node: Node, index: number, value: Value | undefined): void {
    const before = node.inputs[index] as MutableValue | undefined;
    if (before === value) return;
    if (before) before.uses = before.uses.filter((u) => u.node !== node || u.index !== index);
    (node as MutableNode).inputs[index] = value;
    if (value) (value as MutableValue).uses.push({ node, index });
  }
  /** Drops trailing absent inputs, or adds room for more. */
  setInputCount(node: Node, count: number): void {
    for (let i = count; i < node.inputs.length; i++) this.setInput(node, i, undefined);
    const inputs = (node as MutableNode).inputs;
    inputs.length = Math.min(inputs.length, count);
    while (inputs.length < count) inputs.push(undefined);
  }
  setAttributes(node: Node, attributes: Attributes): void { (node as MutableNode).attributes = { ...node.attributes, ...attributes }; }
  setType(value: Value, type: TypeInfo): void { (value as MutableValue).type = type; }
  addOrigins(node: Node, origins: readonly string[]): void { (node as MutableNode).origins = [...new Set([...node.origins, ...origins])]; }
  /** Gives a value another name (graph outputs keep theirs through rewriting). */
  rename(value: Value, name: string): void {
    this.#names.delete(value.name);
    (value as MutableValue).name = name;
    this.#names.add(name);
  }

  /** Removes a node none of whose outputs is used. */
  erase(node: Node): void {
    invariant(node.outputs.every((v) => v.uses.length === 0 && !graphsAround(v).some((g) => g.#outputs.includes(v))), `${node.name} is used`);
    node.inputs.forEach((_, i) => this.setInput(node, i, undefined));
    for (const a of Object.values(node.attributes)) if (a instanceof Graph) a.#clear();
    this.#nodes.delete(node);
    for (const v of node.outputs) this.#names.delete(v.name);
  }
  #clear(): void {
    this.#outputs.length = 0;
    for (const node of [...this.#nodes].reverse()) this.erase(node);
  }

  /** Reorders nodes so that producers come first; stable. Throws a cycle's node names as a list when there is one. */
  sort(): string[] | undefined {
    const order = new Set<Node>();
    const open = new Set<Node>();
    const inputsOf = (node: Node): Node[] => dependencies(node, this);
    for (const root of this.#nodes) {
      if (order.has(root)) continue;
      const stack: { node: Node; next: Node[] }[] = [{ node: root, next: inputsOf(root) }];
      open.add(root);
      while (stack.length) {
        const top = stack[stack.length - 1] as { node: Node; next: Node[] };
        const dependency = top.next.shift();
        if (!dependency) { order.add(top.node); open.delete(top.node); stack.pop(); continue; }
        if (order.has(dependency)) continue;
        if (open.has(dependency)) return [...stack.map((s) => s.node.name), dependency.name];
        open.add(dependency);
        stack.push({ node: dependency, next: inputsOf(dependency) });
      }
    }
    this.#nodes.clear();
    for (const node of order) this.#nodes.add(node);
    return undefined;
  }

  /** A name not yet used in this graph, its parents or their subgraphs. */
  freshName(hint: string): string { return this.#unique(hint); }

  #value(name: string | undefined, type: TypeInfo): MutableValue {
    return { name: this.#unique(name ?? "value"), type, graph: this, uses: [] };
  }
  #unique(hint: string): string {
    let name = hint;
    while (this.#names.has(name) || name === "") name = `${hint}__${this.#counter.n++}`;
    this.#names.add(name);
    return name;
  }
  #insertBefore(node: Node, before: Node): void {
    const all = [...this.#nodes];
    const at = all.indexOf(before);
    invariant(at >= 0, `${before.name} is not in the graph`);
    all.splice(at, 0, node);
    this.#nodes.clear();
    for (const n of all) this.#nodes.add(n);
  }
}

/** The graphs whose output lists may name this value: its own, and those nested in it that capture it. */
function graphsAround(value: Value): Graph[] {
  const out = new Set<Graph>([value.graph]);
  const visit = (graph: Graph): void => {
    for (const node of graph.nodes) for (const a of Object.values(node.attributes)) if (a instanceof Graph && !out.has(a)) { out.add(a); visit(a); }
  };
  if (hasSubgraphs(value.graph)) visit(value.graph);
  return [...out];
}
const hasSubgraphs = (graph: Graph): boolean => graph.nodes.some((n) => Object.values(n.attributes).some((a) => a instanceof Graph));

/** Subgraphs of a node, by attribute name. */
export const subgraphs = (node: Node): readonly Graph[] => Object.values(node.attributes).filter((a): a is Graph => a instanceof Graph);

/** Outer values that a graph (with those nested in it) reads: as node inputs or as its outputs. */
export function captures(graph: Graph): Value[] {
  const own = new Set<Graph>();
  const collect = (g: Graph): void => { own.add(g); for (const n of g.nodes) subgraphs(n).forEach(collect); };
  collect(graph);
  const out = new Set<Value>();
  for (const g of own) {
    for (const n of g.nodes) for (const v of n.inputs) if (v && !own.has(v.graph)) out.add(v);
    for (const v of g.outputs) if (!own.has(v.graph)) out.add(v);
  }
  return [...out];
}

/** Nodes of `graph` that `node` needs: producers of its inputs and of what its subgraphs capture. */
function dependencies(node: Node, graph: Graph): Node[] {
  const values = [...node.inputs, ...subgraphs(node).flatMap(captures)];
  const out: Node[] = [];
  for (const v of values) if (v?.producer && v.producer.node.graph === graph) out.push(v.producer.node);
  return out;
}

export const dtypeOf = (value: Value): DType => value.type.dtype;
export const shapeOf = (value: Value): readonly Dim[] => value.type.shape;
