/** Where results that are computed side by side meet again, element by element. */
import { shapeEqual } from "../core/dim.ts";
import type { Node, Value } from "../graph/graph.ts";
import { isElementWise } from "./siblings.ts";

/** Nodes behind a value among which another one's are looked for. */
const reach = 24;

/** What is computed from a value element by element, in its own shape. */
export function behind(result: Value | undefined): ReadonlySet<Node> {
  const found = new Set<Node>(), graph = result?.producer?.node.graph, front = result ? [result] : [];
  for (let v = front.pop(); v && found.size < reach; v = front.pop()) {
    for (const { node } of v.uses) {
      const [next] = node.outputs;
      if (found.has(node) || node.graph !== graph || !isElementWise(node) || !next || node.outputs.length !== 1 || !shapeEqual(next.type.shape, v.type.shape)) continue;
      found.add(node);
      front.push(next);
    }
  }
  return found;
}

/** Whether what is computed from one value also reads what is computed from the other. */
export function meet(a: Value | undefined, b: Value | undefined): boolean {
  const own = behind(a);
  return [...behind(b)].some((n) => own.has(n));
}
