/** Ranges of values that are looked at are computed by a kernel that reads the values anyway. */
import { dimProduct } from "../core/dim.ts";
import { elementWork, estimate } from "../graph/element-loops.ts";
import type { Node, Value } from "../graph/graph.ts";
import { ValueRange } from "../ops/index.ts";
import { storesOf, type Group, type Groups } from "./groups.ts";

/** Operations that an element of the value may cost in two passes more, and that one kernel call is worth. */
const elementCost = 16, callCost = 400;

/**
 * Joins each ValueRange with a group of loops over elements that reads the same value. A group that computes it itself
 * computes it twice more, so that must be cheap. Nothing but the look depends on a range, so no cycle can arise.
 */
export function joinRanges(groups: Groups): void {
  for (const range of groups.graph.nodes) {
    const [value] = range.inputs;
    if (range.op !== ValueRange || !value) continue;
    const readers = value.uses.flatMap(({ node }) => (node.graph === groups.graph && node.op !== ValueRange ? [groups.of(node)] : []));
    const host = readers.find((g) => g.role === "free" && !groups.whyFull([...g.nodes, range]) && (groups.producer(value) !== g || isCheap(g, range, value)));
    if (host) groups.merge(host, groups.of(range));
  }
}

function isCheap(group: Group, range: Node, value: Value): boolean {
  const joined = new Set([...group.nodes, range]);
  const before = elementWork(group.nodes, storesOf(group.nodes)), after = elementWork(joined, storesOf(joined));
  return after.cost - before.cost <= callCost + elementCost * estimate(dimProduct(value.type.shape)) && (before.nested || !after.nested);
}
