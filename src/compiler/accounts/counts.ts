/**
 * Accounts for every node of the original graph: Σ details.nodesSaved + eliminated + folded − added is exactly the
 * difference between original nodes and program steps.
 */
import type { Region } from "../../graph/region.ts";
import type { Program } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";
import { Copy, ValueRange } from "../../ops/index.ts";
import type { LedgerEntry } from "../../passes/ledger.ts";
import type { Site } from "../../rewrite/site.ts";
import { shortChainOf } from "./operator-names.ts";
import type { Counts, Detail } from "./report.ts";

export interface CountedWork {
  readonly originalNodes: number;
  /** Nodes of the graph as it was read. */
  readonly nodesRead: number;
  /** Original nodes that are Constants. */
  readonly constants: number;
  /** What the passes did before partition. */
  readonly ledger: readonly LedgerEntry[];
  readonly sites: readonly Site[];
  readonly regions: readonly Region[];
  /** Steps, or what stands for them. */
  readonly compiled: number;
  /** Those of them that no region asked for. */
  readonly added: number;
  /** The original operator type of an original node. */
  readonly typeOf: (node: string) => string | undefined;
}

/** Steps of a program: every call, host operator, If and Loop, in all branches. */
export const countSteps = (program: Program): number => [...allSteps(program.steps)].filter((s) => s.kind !== "check").length;

/** Copies and looks at values, which no original node asked for. */
export const countAdded = (program: Program): number => [...allSteps(program.steps)].filter((s) => s.origin.label === "Copy" || s.origin.label === "ValueRange").length;

export function countWork(work: CountedWork): Counts {
  const details = new Map<string, { times: number; nodesSaved: number }>();
  const save = (label: string, nodesSaved: number, times: number): void => {
    const d = details.get(label) ?? { times: 0, nodesSaved: 0 };
    details.set(label, { times: d.times + times, nodesSaved: d.nodesSaved + nodesSaved });
  };
  const regions = flatten(work.regions);
  const regionOf = new Map<string, string>();
  for (const region of regions) {
    const nodes = region.nodes.filter((n) => n.op !== ValueRange && n.op !== Copy);
    const origins = [...new Set(nodes.flatMap((n) => n.origins))];
    const label = detailLabel(region, origins, work.typeOf);
    for (const o of origins) regionOf.set(o, label);
    if (origins.length > 1 && region.execution === "kernel") save(label, nodes.length - 1, 1);
  }
  for (const site of work.sites) {
    if (site.kind !== "rule" || site.outcome !== "fired" || !site.nodesSaved) continue;
    const label = site.nodes.map((n) => regionOf.get(n)).find((l) => l !== undefined);
    save(label ?? site.name, site.nodesSaved, label === undefined ? 1 : 0);
  }
  // Reading turns Constants into constants, and leaves out branches that cannot be taken.
  const atReading = Math.max(0, work.originalNodes - work.nodesRead), constants = Math.min(work.constants, atReading);
  const folded = total(work.ledger.filter((e) => e.kind === "folded")) + constants;
  const saved = [...details.values()].reduce((n, d) => n + d.nodesSaved, 0);
  // What is left: identities, views, dead and equal nodes, branches not taken, and regions whose results nothing reads.
  const eliminated = work.originalNodes - work.compiled - saved - folded + work.added;
  return {
    details: [...details].map(([label, d]): Detail => ({ label, ...d })).sort((a, b) => b.times - a.times || (a.label < b.label ? -1 : 1)),
    eliminated, folded, added: work.added,
  };
}

const total = (entries: readonly LedgerEntry[]): number => entries.reduce((n, e) => n + e.nodes, 0);
const flatten = (regions: readonly Region[]): Region[] => regions.flatMap((r) => [r, ...(r.branches ?? []).flatMap(flatten)]);

function detailLabel(region: Region, origins: readonly string[], typeOf: (node: string) => string | undefined): string {
  if (region.kind === "FusedElementwise") return "ElementWise";
  const types = origins.map(typeOf).filter((t): t is string => t !== undefined && t !== "Constant");
  return types.length <= 4 && types.length > 1 ? shortChainOf(types) : region.kind;
}
