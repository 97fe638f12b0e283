/**
 * What reading a model is made of: the state that all of it shares, scopes of names, and the bodies (main graph,
 * functions, branches) into which nodes are read.
 */
import { fail, type Diagnostic } from "../core/diagnostic.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { Require } from "../ops/require.ts";
import type { Assumptions } from "./assumptions.ts";
import type { ExternalFiles } from "./external-data.ts";
import type { NodeAgreement } from "../core/agreement.ts";
import type { Operators, Opsets } from "./operators.ts";
import type { NamedNode } from "./order.ts";
import type { AttributeProto, GraphProto } from "./schema/onnx_pb.ts";
import type { Symbols } from "./symbols.ts";
import { readTensor } from "./tensor-proto.ts";

/** What the whole reading of a model shares. */
export interface ReadState {
  readonly operators: Operators;
  readonly files: ExternalFiles;
  readonly symbols: Symbols;
  /** Names of the main graph's values, which nested ones avoid. */
  readonly mainNames: ReadonlySet<string>;
  /** Names of nodes so far, with the types the file gives them. */
  readonly nodeTypes: Map<string, string>;
  readonly warnings: Diagnostic[];
  /** Sizes that nodes of the main graph need to agree, by their text. */
  readonly agreements: Map<string, NodeAgreement>;
  readonly main: Graph;
  /** Conditions over sizes that are taken to hold, or not. */
  readonly assumptions: Assumptions;
  /** Subgraphs and constants so far, so that those of an attempt that fails can be taken apart. */
  readonly subgraphs: Graph[];
  readonly constants: Value[];
  /** Reads nodes, in an order of their own making, into a body. */
  readonly readNodes: (nodes: readonly NamedNode[], body: Body, state: ReadState) => void;
}

/** Values by the names a file uses for them; names of subgraphs hide those around them. */
export class Scope {
  readonly #values = new Map<string, Value>();
  readonly #around: Scope | undefined;
  constructor(around?: Scope) { this.#around = around; }
  get(name: string): Value | undefined { return this.#values.get(name) ?? this.#around?.get(name); }
  set(name: string, value: Value): void { this.#values.set(name, value); }
  names(): ReadonlySet<string> { return new Set(this.#values.keys()); }
}

/** Where nodes are read: into which graph, under which names. */
export interface Body {
  readonly graph: Graph;
  readonly scope: Scope;
  readonly opsets: Opsets;
  /** Put before names: the call through which a function's body is read. */
  readonly prefix: string;
  /** Attributes of the call, which the body's may refer to. */
  readonly references: ReadonlyMap<string, GivenAttribute>;
  /** Inputs of the function that the call leaves out. */
  readonly absent: ReadonlySet<string>;
  /** Names that results of a function's body or of a branch have outside. */
  readonly resultNames: ReadonlyMap<string, string>;
  /** Whether this is anything but the main graph's own nodes: then names give way to the main graph's. */
  readonly nested: boolean;
}

/** An attribute under its name, where it was written. */
export interface GivenAttribute { readonly name: string; readonly proto: AttributeProto; readonly body: Body }

/** Adds a graph's initializers that are not there as inputs yet, as constants. */
export function readInitializers(proto: GraphProto, body: Body, state: ReadState): void {
  const sparse = proto.sparseInitializer[0];
  if (sparse) fail("OF2012", `initializer '${sparse.values?.name ?? ""}' is sparse, which is not supported`, { place: { value: sparse.values?.name ?? "" }, hint: "store it as a dense tensor" });
  const own = body.scope.names();
  const seen = new Set<string>();
  for (const t of proto.initializer) {
    if (seen.has(t.name)) fail("OF2021", `initializer '${t.name}' is given twice`, { place: { value: t.name } });
    seen.add(t.name);
    if (!own.has(t.name)) addConstant(readTensor(t, state.files), t.name, body, state);
  }
}

/** A constant under the file's name for it. */
export function addConstant(tensor: Tensor, name: string, body: Body, state: ReadState): void {
  body.scope.set(name, newConstant(tensor, displayName(name, body, state), body.graph, state));
}

export function newConstant(tensor: Tensor, name: string, graph: Graph, state: ReadState): Value {
  const value = graph.addConstant(tensor, name);
  state.constants.push(value);
  return value;
}

export function valueOf(name: string, body: Body, node: string): Value {
  return body.scope.get(name) ?? fail("OF2022", `'${name}' is read by '${node}', but nothing computes it`, { place: { node, value: name } });
}

/** The name a value gets: the file's own in the main graph, elsewhere one that leaves the main graph's alone. */
export function displayName(name: string, body: Body, state: ReadState): string {
  const outside = body.resultNames.get(name);
  if (outside !== undefined) return outside;
  const own = body.prefix + name;
  return body.nested && state.mainNames.has(own) ? `${body.graph.name}/${own}` : own;
}

/** Puts a node that stops the run unless the condition is as it was taken to be. */
export function require(condition: Value, holds: boolean, reason: string, node: string, graph: Graph): void {
  graph.insert({ op: Require, inputs: [condition], attributes: { holds: Number(holds), node, reason }, outputs: [], name: `${node}/Require`, origins: [node] });
}
