/**
 * Infers the types of all values again, from the graph inputs on, to a fixpoint: shapes with symbolic sizes, elements
 * of small integer values, constants. What is known already is refined and never lost. Sizes that only running can
 * tell keep the symbols they have.
 */
import { symbolsOf, type Dim } from "../core/dim.ts";
import { freshSymbol } from "../graph/fresh.ts";
import { subgraphs, type Graph, type Node } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import type { TypeInfo } from "../graph/op.ts";
import { refineType, sameType } from "../graph/refine.ts";

/** Sweeps are bounded: each can only refine, and what refines is finite; loops need a second one. */
const maxSweeps = 8;

/** Nodes with what they were inferred from: while that stays, inferring them again finds nothing. */
export class InferredNodes {
  readonly #from = new Map<Node, readonly unknown[]>();

  /** Whether a node has to be inferred; then it counts as done, as long as `forget` is not called. */
  takes(node: Node): boolean {
    const now = [node.attributes, ...node.inputs.flatMap((v) => [v, v?.type])], before = this.#from.get(node);
    if (before && before.length === now.length && now.every((x, i) => x === before[i])) return false;
    this.#from.set(node, now);
    return true;
  }
  forget(node: Node): void { this.#from.delete(node); }
}

/** Returns whether any type became more precise. */
export function infer(graph: Graph, inferred = new InferredNodes()): boolean {
  let changed = false;
  for (let sweep = 0; sweep < maxSweeps && sweepOver(graph, inferred); sweep++) changed = true;
  return changed;
}

function sweepOver(graph: Graph, inferred: InferredNodes): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    const inside = subgraphs(node);
    for (const inner of inside) if (sweepOver(inner, inferred)) changed = true;
    if (inside.length > 0 ? inferOutputs(node) : inferred.takes(node) && inferOutputs(node, inferred)) changed = true;
  }
  return changed;
}

/** Refines the types of a node's outputs; whether any changed. */
export function inferOutputs(node: Node, inferred?: InferredNodes): boolean {
  const made = new Set<string>();
  const types = inferNode(node.op, node.inputs, node.attributes, node.outputs.length, {
    place: { node: node.name },
    fresh: (hint) => {
      const d = freshSymbol(node.graph, hint);
      symbolsOf(d, made);
      return d;
    },
  });
  // A size that only running can tell gets a new symbol every time.
  if (made.size > 0) inferred?.forget(node);
  let changed = false;
  node.outputs.forEach((value, i) => {
    const inferred = types[i];
    if (!inferred) return;
    const refined = refineType(value.type, keepKnown(value.type, inferred, made));
    if (sameType(refined, value.type)) return;
    node.graph.setType(value, refined);
    changed = true;
  });
  return changed;
}

/** The inferred type with declared sizes in place of symbols made just now. */
function keepKnown(declared: TypeInfo, inferred: TypeInfo, made: ReadonlySet<string>): TypeInfo {
  if (made.size === 0) return inferred;
  const isNew = (d: Dim): boolean => [...symbolsOf(d)].some((s) => made.has(s));
  const pick = (own: readonly Dim[], known: readonly Dim[] | undefined): Dim[] => own.map((d, i) => (isNew(d) ? known?.[i] ?? d : d));
  return { ...inferred, shape: pick(inferred.shape, declared.shape), ...(inferred.elements ? { elements: pick(inferred.elements, declared.elements) } : {}) };
}
