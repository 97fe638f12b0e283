/** Which boxes a graph is drawn with: its nodes, or groups of them by step or by repeated block, and the edges between. */
import type { PageGraph } from "./page-data.ts";

export type Collapse = "nodes" | "steps" | "blocks";
export interface Box {
  readonly label: string;
  /** Indices of the graph's nodes. */
  readonly nodes: readonly number[];
  /** Absent for a single node. */
  readonly key?: string;
  /** The one step of all nodes in it. */
  readonly step?: number;
}
export interface Boxes {
  readonly boxes: readonly Box[];
  readonly edges: readonly (readonly [from: number, to: number])[];
  /** The box of each node. */
  readonly boxOf: readonly number[];
}

/** Groups whose key is in `open` are drawn node by node. `nameOf` names a step. */
export function boxesOf({ nodes, edges, blocks }: PageGraph, collapse: Collapse, open: ReadonlySet<string>, nameOf: (step: number) => string): Boxes {
  const groups = new Map<string, number[]>();
  nodes.forEach((n, i) => {
    const group = collapse === "blocks" ? n.block : collapse === "steps" ? n.step : undefined;
    const key = group === undefined || open.has(`${collapse} ${group}`) ? `node ${i}` : `${collapse} ${group}`;
    const members = groups.get(key);
    if (members) members.push(i); else groups.set(key, [i]);
  });
  const boxOf: number[] = [];
  const boxes = [...groups].map(([key, members], b): Box => {
    for (const i of members) boxOf[i] = b;
    const steps = new Set(members.map((i) => nodes[i]?.step)), [step] = steps;
    const one = steps.size === 1 && step !== undefined ? { step } : {}, only = nodes[members[0] ?? 0];
    if (members.length === 1) return { label: only?.type ?? "", nodes: members, ...one };
    const label = collapse === "blocks" ? blocks[only?.block ?? 0]?.label ?? "" : `${nameOf(only?.step ?? 0)} (${members.length})`;
    return { label, nodes: members, key, ...one };
  });
  const between = new Map<string, readonly [number, number]>();
  for (const [a, b] of edges) {
    const from = boxOf[a] ?? 0, to = boxOf[b] ?? 0;
    if (from !== to) between.set(`${from} ${to}`, [from, to]);
  }
  return { boxes, edges: [...between.values()], boxOf };
}

/** Few enough boxes to draw at once, as detailed as possible. */
export function suited(graph: PageGraph, most = 400): Collapse {
  const count = (c: Collapse): number => boxesOf(graph, c, new Set(), () => "").boxes.length;
  if (graph.nodes.length <= most) return "nodes";
  const steps = count("steps"), blocks = count("blocks");
  return steps <= most || steps < blocks ? "steps" : "blocks";
}
