/** Graph → Regions: which nodes share one kernel. */
import { subgraphs, type Graph, type Node } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { concatenationOf, viewOf } from "../graph/view.ts";
import type { Site } from "../rewrite/site.ts";
import { hasKernel, regionOf } from "./region-of.ts";

export interface PartitionOptions {
  /** False: every node stands alone. */
  readonly fusion: boolean;
  /** Whether regions of this kind may be built at these nodes. */
  readonly isEnabled: (kind: string, nodes: readonly Node[]) => boolean;
  /** The original operator type of an original node, for names. */
  readonly opTypesOf: (origin: string) => string | undefined;
}
export interface Partition {
  /** Every node in exactly one region; producers first. */
  readonly regions: readonly Region[];
  readonly sites: readonly Site[];
}

export function partition(graph: Graph, options: PartitionOptions): Partition {
  const parts = graph.nodes.map((node) => single(node, options));
  return { regions: parts.map((p) => p.region), sites: parts.flatMap((p) => p.sites) };
}

function single(node: Node, options: PartitionOptions): { region: Region; sites: readonly Site[] } {
  const graphs = subgraphs(node);
  if (graphs.length) {
    const branches = graphs.map((g) => partition(g, options));
    return { region: { ...regionOf(node.op.type, [node], "control"), branches: branches.map((b) => b.regions) }, sites: branches.flatMap((b) => b.sites) };
  }
  if (!hasKernel(node)) return { region: regionOf(node.op.type, [node], "host"), sites: [] };
  const looks = node.op.fusionKind === "injective" && (node.outputs.every((_, i) => viewOf(node, i)) || concatenationOf(node) !== undefined);
  return { region: regionOf(node.op.type, [node], looks ? "view" : "kernel", node.op.anchor || node.op.whole ? node : undefined), sites: [] };
}
