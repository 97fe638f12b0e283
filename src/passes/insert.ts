/** Inserts a node with one result whose type is inferred. */
import { present } from "../core/assert.ts";
import { freshSymbol } from "../graph/fresh.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import type { Attributes, OpDef } from "../graph/op.ts";

export interface InsertPlace {
  readonly graph: Graph;
  /** At the end of the graph where absent. */
  readonly before?: Node;
  readonly name: string;
  readonly origins: readonly string[];
}

/** The new node's result. */
export function insertNode({ graph, before, name, origins }: InsertPlace, op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes = {}): Value {
  const outputs = inferNode(op, inputs, attributes, 1, { place: { node: name }, fresh: (hint) => freshSymbol(graph, hint) });
  return present(graph.insert({ op, inputs, attributes, outputs, name, origins }, before).outputs[0], `result of ${name}`);
}
