/** Regions from sets of nodes: what a region reads and what it must store. */
import { captures, subgraphs, type Node, type Value } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";

/** Values that something outside `nodes` reads, or that a graph returns. */
export function storedValues(nodes: ReadonlySet<Node>): Value[] {
  return [...nodes].flatMap((n) => n.outputs).filter((v) => v.resultOf.length > 0 || v.uses.some((u) => !nodes.has(u.node)));
}
/** Values from outside that the nodes read, captures of their subgraphs included. */
export function readValues(nodes: ReadonlySet<Node>): Value[] {
  const out = new Set<Value>();
  for (const n of nodes) for (const v of [...n.inputs, ...subgraphs(n).flatMap(captures)]) if (v && !(v.producer && nodes.has(v.producer.node))) out.add(v);
  return [...out];
}

/** A region of nodes in topological order. */
export function regionOf(kind: string, nodes: readonly Node[], execution: Region["execution"], anchor?: Node, above?: Region, pool?: Node): Region {
  const set = new Set(nodes);
  return { kind, nodes, inputs: readValues(set), outputs: storedValues(set), execution, ...(anchor ? { anchor } : {}), ...(above ? { above } : {}), ...(pool ? { pool } : {}) };
}
