/**
 * Makes states grow in place: where the parts behind a state cannot be computed where its next value lies (one is a view
 * of something else, or no kernel computes it), they are copied there, which is all that a run then adds. Without that
 * the concatenation would copy the whole state.
 */
import { present } from "../core/assert.ts";
import type { Graph, Node } from "../graph/graph.ts";
import { continuesState, SharedMemory } from "../graph/shared-memory.ts";
import { Copy } from "../ops/index.ts";
import { mayShareMemory } from "./partition.ts";

/** Inserts the copies that a graph's states need. */
export function placeStates(graph: Graph): void {
  if (graph.states.length === 0) return;
  graph.sort();
  const memory = new SharedMemory();
  for (const node of graph.nodes) if (mayShareMemory(node) && !memory.add(node) && continuesState(node)) {
    copyParts(graph, node);
    memory.add(node);
  }
}

function copyParts(graph: Graph, node: Node): void {
  for (const [i, part] of node.inputs.entries()) if (part && i > 0) {
    const { dtype, shape } = part.type;
    const copy = graph.insert({ op: Copy, inputs: [part], outputs: [{ dtype, shape }], name: `${node.name}_part${i}`, origins: node.origins.slice(0, 1) }, node);
    graph.setInput(node, i, present(copy.outputs[0], "copy"));
  }
}
