/**
 * The graph: what is computed. Mutable behind one door: nodes and values are changed only through Graph's methods,
 * which keep use lists exact, across subgraphs too. Every node keeps the names of the original nodes it came from.
 */
import type { NodeAgreement } from "../core/agreement.ts";
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
  /** The graphs that return it (its own, or nested ones that capture it), once per place in their outputs. */
  readonly resultOf: readonly Graph[];
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

/** A value with its use list, kept as a set so that adding and dropping a use takes constant time. */
class GraphValue implements Value {
  name: string;
  type: TypeInfo;
  producer?: { readonly node: Node; readonly index: number };
  readonly graph: Graph;
  constant?: Tensor;
  default?: Tensor;
  readonly users = new Set<Use>();
  readonly returns: Graph[] = [];
  #uses: readonly Use[] | undefined;

  constructor(name: string, type: TypeInfo, graph: Graph) {
    this.name = name;
    this.type = type;
    this.graph = graph;
  }
  get uses(): readonly Use[] { return (this.#uses ??= [...this.users]); }
  get resultOf(): readonly Graph[] { return this.returns; }
  addUse(use: Use): void { this.users.add(use); this.#uses = undefined; }
  dropUse(use: Use): void { this.users.delete(use); this.#uses = undefined; }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** A node with one use record per input, and its neighbours in the graph's order. */
interface GraphNode extends Mutable<Omit<Node, "inputs" | "outputs">> {
  inputs: (Value | undefined)[];
  outputs: Value[];
  useOf: (Use | undefined)[];
  previous: GraphNode | undefined;
  next: GraphNode | undefined;
}
const mutable = (value: Value): GraphValue => value as GraphValue;
const linked = (node: Node): GraphNode => node as GraphNode;

/** What a run gives as `output`, the next one takes as `input`: by name. */
export interface StateLink { readonly input: string; readonly output: string }

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
  /** Values that are carried from one run to the next. */
  states: readonly StateLink[] = [];
  /** Sizes that nodes of this graph need to agree; those of a model's main graph are in its `ModelInfo`. */
  agreements: readonly NodeAgreement[] = [];
  #first: GraphNode | undefined;
  #last: GraphNode | undefined;
  #count = 0;
  #list: readonly Node[] | undefined;
  readonly #inputs: Value[] = [];
  readonly #outputs: Value[] = [];
  /** Names of values, and of nodes: two name spaces, each shared with the graphs around and inside. */
  readonly #names: Set<string>;
  readonly #nodeNames: Set<string>;
  #counter = { n: 0 };

  constructor(name = "main", parent?: Graph) {
    this.name = name;
    this.parent = parent;
    this.#names = parent ? parent.#names : new Set();
    this.#nodeNames = parent ? parent.#nodeNames : new Set();
    if (parent) this.#counter = parent.#counter;
  }

  /** Nodes in an order where producers come before consumers, as long as `sort` has run since the last insertion out of order. */
  get nodes(): readonly Node[] {
    if (this.#list) return this.#list;
    const list: Node[] = [];
    for (let node = this.#first; node; node = node.next) list.push(node);
    return (this.#list = list);
  }
  get nodeCount(): number { return this.#count; }
  get inputs(): readonly Value[] { return this.#inputs; }
  /** The same value may stand more than once. */
  get outputs(): readonly Value[] { return this.#outputs; }
  /** Whether the node is in this graph and not erased. */
  has(node: Node): boolean { return node.graph === this && (this.#first === node || linked(node).previous !== undefined); }

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
  /** Gives up a constant that nothing uses, and its name. */
  removeConstant(value: Value): void {
    invariant(value.constant && value.uses.length === 0 && value.resultOf.length === 0, `constant ${value.name} is used`);
    this.#names.delete(value.name);
  }
  /** Removes a graph input that nothing uses. */
  removeInput(value: Value): void {
    invariant(value.uses.length === 0 && value.resultOf.length === 0, `input ${value.name} is used`);
    this.#inputs.splice(this.#inputs.indexOf(value), 1);
    this.#names.delete(value.name);
  }
  setOutputs(values: readonly Value[]): void {
    for (const v of this.#outputs) { const { returns } = mutable(v); returns.splice(returns.indexOf(this), 1); }
    for (const v of values) mutable(v).returns.push(this);
    this.#outputs.splice(0, this.#outputs.length, ...values);
  }
  isOutput(value: Value): boolean { return value.resultOf.includes(this); }

  /** Inserts a node: before `before`, or at the end. */
  insert(spec: NodeSpec, before?: Node): Node {
    const name = this.#unique(spec.name ?? spec.op.type, this.#nodeNames);
    const attributes: Record<string, Attributes[string]> = {};
    for (const [key, a] of Object.entries(spec.op.attributes)) if (a.default !== undefined) attributes[key] = a.default;
    Object.assign(attributes, spec.attributes);
    const node: GraphNode = {
      op: spec.op, name, inputs: spec.inputs.map(() => undefined), attributes, outputs: [], graph: this, origins: spec.origins,
      useOf: [], previous: undefined, next: undefined,
    };
    node.outputs = spec.outputs.map((type, index) => {
      const value = this.#value(spec.outputNames?.[index] ?? `${name}_${index}`, type);
      value.producer = { node, index };
      return value;
    });
    spec.inputs.forEach((v, index) => this.setInput(node, index, v));
    this.#link(node, before && linked(before));
    return node;
  }

  /** Makes every use of `old` (also as graph output, here and in nested graphs) a use of `by`. */
  replaceUses(old: Value, by: Value): void {
    if (old === by) return;
    for (const use of old.uses) this.setInput(use.node, use.index, by);
    for (const graph of new Set(old.resultOf)) graph.setOutputs(graph.outputs.map((v) => (v === old ? by : v)));
  }
  setInput(node: Node, index: number, value: Value | undefined): void {
    const { inputs, useOf } = linked(node);
    const before = inputs[index], use = useOf[index];
    if (before === value) return;
    if (before && use) mutable(before).dropUse(use);
    inputs[index] = value;
    useOf[index] = value && { node, index };
    if (value) mutable(value).addUse(useOf[index] as Use);
  }
  /** Drops trailing absent inputs, or adds room for more. */
  setInputCount(node: Node, count: number): void {
    for (let i = count; i < node.inputs.length; i++) this.setInput(node, i, undefined);
    const { inputs } = linked(node);
    inputs.length = Math.min(inputs.length, count);
    while (inputs.length < count) inputs.push(undefined);
  }
  setAttributes(node: Node, attributes: Attributes): void { linked(node).attributes = { ...node.attributes, ...attributes }; }
  setType(value: Value, type: TypeInfo): void { mutable(value).type = type; }
  addOrigins(node: Node, origins: readonly string[]): void { linked(node).origins = [...new Set([...node.origins, ...origins])]; }
  /** Gives a value another name (graph outputs keep theirs through rewriting). */
  rename(value: Value, name: string): void {
    this.#names.delete(value.name);
    mutable(value).name = name;
    this.#names.add(name);
  }

  /** Gives a node another name, made unique. */
  renameNode(node: Node, name: string): void {
    this.#nodeNames.delete(node.name);
    linked(node).name = this.#unique(name, this.#nodeNames);
  }

  /** Removes a node none of whose outputs is used. */
  erase(node: Node): void {
    invariant(node.outputs.every((v) => v.uses.length === 0 && v.resultOf.length === 0), `${node.name} is used`);
    node.inputs.forEach((_, i) => this.setInput(node, i, undefined));
    for (const a of Object.values(node.attributes)) if (a instanceof Graph) a.#clear();
    this.#unlink(linked(node));
    this.#nodeNames.delete(node.name);
    for (const v of node.outputs) this.#names.delete(v.name);
  }
  #clear(): void {
    this.setOutputs([]);
    for (const node of [...this.nodes].reverse()) this.erase(node);
  }

  /** Reorders nodes so that producers come first; stable. Throws a cycle's node names as a list when there is one. */
  sort(): string[] | undefined {
    const order = new Set<Node>();
    const open = new Set<Node>();
    const inputsOf = (node: Node): Node[] => dependencies(node, this);
    for (const root of this.nodes) {
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
    for (const node of this.nodes) this.#unlink(linked(node));
    for (const node of order) this.#link(linked(node), undefined);
    return undefined;
  }

  /** A value name not yet used in this graph, its parents or their subgraphs. */
  freshName(hint: string): string { return this.#unique(hint, this.#names); }

  #value(name: string | undefined, type: TypeInfo): GraphValue {
    return new GraphValue(this.#unique(name ?? "value", this.#names), type, this);
  }
  #unique(hint: string, names: Set<string>): string {
    let name = hint;
    while (names.has(name) || name === "") name = `${hint}__${this.#counter.n++}`;
    names.add(name);
    return name;
  }
  #link(node: GraphNode, before: GraphNode | undefined): void {
    invariant(!before || this.has(before), `${before?.name} is not in the graph`);
    const previous = before ? before.previous : this.#last;
    node.previous = previous;
    node.next = before;
    if (previous) previous.next = node; else this.#first = node;
    if (before) before.previous = node; else this.#last = node;
    this.#count++;
    this.#list = undefined;
  }
  #unlink(node: GraphNode): void {
    if (node.previous) node.previous.next = node.next; else this.#first = node.next;
    if (node.next) node.next.previous = node.previous; else this.#last = node.previous;
    node.previous = node.next = undefined;
    this.#count--;
    this.#list = undefined;
  }
}

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
