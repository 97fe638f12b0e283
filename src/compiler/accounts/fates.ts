/**
 * What became of every node of the original model: the region that computes it, or why nothing does. Where it lives is
 * read off the regions; what is gone, off the ledger's trace of the exact passes and the rules' records.
 */
import type { Region } from "../../graph/region.ts";
import { KnownElements } from "../../ops/index.ts";
import type { Departure } from "../../passes/ledger.ts";
import type { Site } from "../../rewrite/site.ts";
import { rules } from "../../rules/index.ts";
import type { Fate, Report } from "./report.ts";

export interface FateSources {
  /** The file's operator type of every original node. */
  readonly nodeTypes: ReadonlyMap<string, string>;
  readonly departures: ReadonlyMap<string, Departure>;
  readonly sites: readonly Site[];
  readonly regions: readonly Region[];
}

/** Every original node in at least one fate; those of kernels are said by the report's traffic and are left out. */
export function fatesOf({ nodeTypes, departures, sites, regions }: FateSources): Fate[] {
  const fates = new Map<string, Fate & { nodes: string[] }>();
  const add = (fate: Omit<Fate, "nodes">, nodes: readonly string[], own = ""): void => {
    const key = JSON.stringify([fate.kind, fate.region, fate.why, own]);
    const known = fates.get(key);
    if (known) known.nodes.push(...nodes);
    else fates.set(key, { ...fate, nodes: [...nodes] });
  };
  const living = new Set<string>();
  flatten(regions).forEach((region, i) => {
    if (region.execution === "check") return;
    const nodes = [...new Set(region.nodes.filter((n) => n.op !== KnownElements || !n.origins.every((o) => departures.has(o))).flatMap((n) => n.origins))].filter((n) => nodeTypes.has(n));
    for (const n of nodes) living.add(n);
    if (region.execution !== "kernel" && nodes.length > 0) add({ kind: region.execution, region: region.kind, why: whyOutside[region.execution] }, nodes, String(i));
  });
  const rewrites = rewritesOf(sites);
  for (const [node, type] of nodeTypes) if (!living.has(node)) add(departureOf(node, type, departures, rewrites), [node]);
  return [...fates.values()];
}

const whyOutside: Readonly<Record<"view" | "host" | "control", string>> = {
  view: "it moves no data: its result is another view of its input's memory",
  host: "it has no kernel and is run by the host",
  control: "it decides what runs",
};

function departureOf(node: string, type: string, departures: ReadonlyMap<string, Departure>, rewrites: ReadonlyMap<string, Site>): Omit<Fate, "nodes"> {
  const departure = departures.get(node), rewrite = rewrites.get(node);
  if (type === "Constant") return { kind: "constant", why: "it is a constant, and takes no step" };
  if (rewrite && (departure === undefined || departure.kind === "eliminated")) return { kind: "rewritten", why: `the rule ${rewrite.name} at '${rewrite.at}' ${rewrite.nodes.includes(node) ? "replaced it" : "left it without a reader"}` };
  if (departure) return { kind: departure.kind === "canonicalised" || departure.kind === "fused" ? "rewritten" : departure.kind, why: departure.why };
  return { kind: "unread", why: "it was left out when the model was read: nothing that can run reaches it" };
}

/** The last rewrite that each node took part in, or went with. */
function rewritesOf(sites: readonly Site[]): ReadonlyMap<string, Site> {
  return new Map(sites.filter((s) => s.kind === "rule" && s.outcome === "fired").flatMap((s) => [...s.nodes, ...(s.gone ?? [])].map((n): [string, Site] => [n, s])));
}

const flatten = (regions: readonly Region[]): Region[] => regions.flatMap((r) => [r, ...(r.branches ?? []).flatMap(flatten)]);

/** What the report says of one node. */
export interface NodeStory {
  readonly node: string;
  /** Where it is computed, or why it is not. */
  readonly fates: readonly NodeFate[];
  /** Sites of rules and regions that it takes part in. */
  readonly sites: readonly Site[];
}
/** A fate with the nodes that share it. */
export type NodeFate = Fate | { readonly kind: "fused" | "step"; readonly region: string; readonly why: string; readonly nodes: readonly string[] };

/** The story of an original node; undefined where the report does not know it. */
export function storyOf(report: Report, node: string): NodeStory | undefined {
  const kernels = report.traffic.filter((t) => t.nodes.includes(node)).map((t): NodeFate => (t.nodes.length === 1
    ? { kind: "step", region: t.region, why: "it is a kernel of its own", nodes: t.nodes }
    : { kind: "fused", region: t.region, why: `the kernel ${t.region} computes it with others`, nodes: t.nodes }));
  const fates = [...kernels, ...report.fates.filter((f) => f.nodes.includes(node))];
  const sites = report.sites.filter((s) => s.nodes.includes(node) || s.at === node || (s.gone ?? []).includes(node));
  return fates.length + sites.length === 0 ? undefined : { node, fates, sites };
}

/** Every original node that the report names. */
export const nodesOf = (report: Report): readonly string[] => [...new Set([...report.traffic, ...report.fates, ...report.sites].flatMap((x) => x.nodes))];

/** Every rule, and every region kind that the report names. */
export const siteNames = (report: Report): readonly string[] => [...rules, ...report.sites].map((r) => r.name);
