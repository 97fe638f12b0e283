/**
 * Graph → Regions: which nodes share one kernel, from the operators' fusion kinds. Contractions take their followers
 * first (grow-anchored.ts), then loops over elements and rows grow into each other (merge-elements.ts). Nodes with side
 * effects, host operators and control flow stand alone; views cost nothing. The graph is not changed.
 */
import { invariant } from "../core/assert.ts";
import { hasKernel } from "../graph/has-kernel.ts";
import { subgraphs, type Graph, type Node } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { SharedMemory } from "../graph/shared-memory.ts";
import { Copy, SiblingMatMul, ValueCheck, ValueRange } from "../ops/index.ts";
import type { Site } from "../rewrite/site.ts";
import { growAnchored } from "./grow-anchored.ts";
import { Groups, type Group } from "./groups.ts";
import { joinRanges } from "./join-ranges.ts";
import { joinPools } from "./join-pools.ts";
import { joinStrips } from "./join-strips.ts";
import { isFree, mergeElements } from "./merge-elements.ts";
import { PartitionContext, type PartitionOptions } from "./partition-context.ts";
import { firedSite } from "./partition-sites.ts";
import { fusedTypes } from "./region-kind.ts";
import { regionOf } from "./region-of.ts";

export type { PartitionOptions } from "./partition-context.ts";
export interface Partition {
  /** Every node in exactly one region; producers first. */
  readonly regions: readonly Region[];
  /** Regions that fused original nodes, and near misses with their reasons. */
  readonly sites: readonly Site[];
}

export function partition(graph: Graph, options: PartitionOptions): Partition {
  const cycle = graph.sort();
  invariant(!cycle, `the graph has a cycle: ${cycle?.join(", ")}`);
  const groups = new Groups(graph);
  const memory = new SharedMemory();
  for (const node of graph.nodes) place(node, groups, memory);
  const context = new PartitionContext(options, groups);
  if (options.fusion) {
    growAnchored(groups, context);
    joinStrips(groups, context);
    mergeElements(groups, context);
    joinPools(groups, context);
    joinRanges(groups);
  }
  const sites: Site[] = [];
  const regions = groups.inOrder().map((group) => {
    const { region, inner } = finish(group, groups, context, options);
    sites.push(...inner, ...fired(region, group, groups, options));
    return region;
  });
  return { regions, sites: [...sites, ...context.refusals] };
}

function place(node: Node, groups: Groups, memory: SharedMemory): void {
  if (standsAlone(node)) groups.add(node, "alone");
  else if (looksOnly(node) && memory.add(node)) groups.add(node, "view");
  else if (node.op.anchor) groups.add(node, isSumsOnly(node) ? "anchored" : "alone", node);
  else if (node.op.whole) groups.add(node, "alone", node);
  else groups.add(node, isFree(node) ? "free" : "alone");
}

/** Whether every output is an accumulator that an epilogue may read. */
const isSumsOnly = (node: Node): boolean => node.outputs.length === 1 || node.op === SiblingMatMul;

/** Operators that compilation adds, each with a kernel of its own. */
const isAdded = ({ op }: Node): boolean => op === ValueRange || op === Copy;
const standsAlone = (node: Node): boolean => subgraphs(node).length > 0 || isAdded(node) || !hasKernel(node) || node.outputs.every((v) => v.type.elements);
/** Whether a node could be a view or a concatenation; nothing else is worth asking. */
export const mayShareMemory = (node: Node): boolean => !standsAlone(node) && looksOnly(node);
const looksOnly = ({ op }: Node): boolean => op.fusionKind === "injective" || op.fusionKind === "broadcast" || op.fusionKind === "elementwise";

function finish(group: Group, groups: Groups, context: PartitionContext, options: PartitionOptions): { readonly region: Region; readonly inner: readonly Site[] } {
  const nodes = groups.ordered(group.nodes);
  const [only] = nodes;
  invariant(only, "an empty group");
  if (only.op === ValueCheck) return { region: regionOf(only.op.type, nodes, "check"), inner: [] };
  const own = nodes.filter((n) => !isAdded(n));
  const kind = options.fusion && own.length > 0 ? context.kind(own, group.anchor) : only.op.type;
  const graphs = subgraphs(only);
  if (graphs.length) {
    const branches = graphs.map((g) => partition(g, options));
    return { region: { ...regionOf(only.op.type, nodes, "control"), branches: branches.map((b) => b.regions) }, inner: branches.flatMap((b) => b.sites) };
  }
  const execution = group.role === "view" ? "view" : nodes.length === 1 && !hasKernel(only) ? "host" : "kernel";
  const above = group.above && regionOf(context.kind(group.above.nodes, group.above.anchor), groups.ordered(group.above.nodes), "kernel", group.above.anchor);
  return { region: regionOf(execution === "kernel" ? kind : only.op.type, nodes, execution, group.anchor, above, group.pool), inner: [] };
}

function fired(region: Region, group: Group, groups: Groups, options: PartitionOptions): Site[] {
  const nodes = groups.ordered(group.nodes).filter((n) => !isAdded(n));
  const root = group.anchor ?? nodes[nodes.length - 1];
  const fuses = region.execution === "kernel" && (nodes.length > 1 || fusedTypes(nodes, options.opTypesOf).size > 1);
  return root && fuses ? [firedSite(region.kind, root, nodes)] : [];
}
