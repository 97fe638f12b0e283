/**
 * What a refusal costs: the bytes that kernels hand to each other through memory because the site's nodes are not one.
 * A value that only they read is written and read; one that others read too is at least read again. Where one kernel
 * holds all nodes of the site, the refusal moves no bytes; nor where a rule's nodes share the first kernel with others,
 * which would hand over its result all the same.
 */
import { dimFromJson, dimToJson, type DimJson } from "../../core/dim-json.ts";
import { dimAdd, dimProduct, evaluateDim, type Dim } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import { assumedSize } from "../../graph/element-loops.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { Region } from "../../graph/region.ts";
import type { Site } from "../../rewrite/site.ts";
import type { Report } from "./report.ts";

/** The sites with the bytes of each refusal. */
export function withCosts(sites: readonly Site[], regions: readonly Region[]): Site[] {
  const steps = flatten(regions).filter((r) => r.execution === "kernel" || r.execution === "host");
  const regionOf = new Map<Node, Region>(steps.flatMap((r) => r.nodes.map((n): [Node, Region] => [n, r])));
  const byOrigin = new Map<string, Set<Region>>();
  for (const r of steps) for (const o of r.nodes.flatMap((n) => n.origins)) byOrigin.set(o, (byOrigin.get(o) ?? new Set<Region>()).add(r));
  return sites.map((site) => {
    if (site.outcome !== "refused") return site;
    const around = new Set(site.nodes.flatMap((n) => [...(byOrigin.get(n) ?? [])]));
    const own = new Set(site.nodes), vanishes = (r: Region): boolean => site.kind === "region" || r.nodes.every((n) => n.origins.every((o) => own.has(o)));
    return { ...site, bytes: dimToJson(handedOver(around, vanishes, regionOf)) };
  });
}

function handedOver(around: ReadonlySet<Region>, vanishes: (r: Region) => boolean, regionOf: ReadonlyMap<Node, Region>): Dim {
  let total: Dim = 0;
  for (const from of around) for (const value of vanishes(from) ? from.outputs : []) {
    const readers = readersOf(value, regionOf);
    const inside = [...readers].filter((r) => r !== from && r !== undefined && around.has(r)).length;
    if (inside === 0) continue;
    const onlyHere = value.resultOf.length === 0 && [...readers].every((r) => r !== undefined && around.has(r));
    total = dimAdd(total, dimProduct([...value.type.shape, byteSize(value.type.dtype), inside + (onlyHere ? 1 : 0)]));
  }
  return total;
}

/** The steps that read a value, through views too; undefined stands for readers that are none. */
function readersOf(value: Value, regionOf: ReadonlyMap<Node, Region>): Set<Region | undefined> {
  const out = new Set<Region | undefined>();
  for (const { node } of value.uses) {
    const region = regionOf.get(node);
    if (region || node.outputs.length !== 1) { out.add(region); continue; }
    for (const v of node.outputs) {
      if (v.resultOf.length > 0) out.add(undefined);
      for (const r of readersOf(v, regionOf)) out.add(r);
    }
  }
  return out;
}

const flatten = (regions: readonly Region[]): Region[] => regions.flatMap((r) => [r, ...(r.branches ?? []).flatMap(flatten)]);

export { assumedSize } from "../../graph/element-loops.ts";
/** Sizes of symbols; those that are not there are taken for `assumedSize`. */
export type Sizes = Readonly<Record<string, number>>;
/** A size in numbers, whatever is known of its symbols. */
export const valueOf = (d: DimJson, sizes: Sizes): number => evaluateDim(dimFromJson(d), (name) => sizes[name] ?? assumedSize);

/** A refusal that something can be done about. */
export interface Missed {
  readonly site: Site;
  /** Bytes through memory for it in one run, in numbers. */
  readonly bytes: number;
  /** Where steps were timed: the part of the time of the steps around it that these bytes have in all that those move. */
  readonly ms?: number;
}

/** A step that was timed: its original nodes, the bytes it moves, weights too, and its milliseconds. */
export interface TimedStep { readonly nodes: readonly string[]; readonly bytes: number; readonly ms: number }

/** Refusals that have a remedy, dearest first: by time where there is one, else by bytes; of equals, in the order of the report. */
export function missedOf(report: Pick<Report, "sites">, sizes: Sizes, timed?: readonly TimedStep[]): Missed[] {
  return report.sites.filter((s) => s.outcome === "refused" && !/^none\b/.test(s.remedy ?? "none"))
    .map((site) => { const bytes = valueOf(site.bytes ?? 0, sizes); return { site, bytes, ...(timed ? { ms: timeOf(site, bytes, timed) } : {}) }; })
    .sort((a, b) => (b.ms ?? 0) - (a.ms ?? 0) || b.bytes - a.bytes);
}

function timeOf(site: Site, bytes: number, timed: readonly TimedStep[]): number {
  const around = timed.filter((s) => s.nodes.some((n) => site.nodes.includes(n)));
  const sum = (of: (s: TimedStep) => number): number => around.reduce((n, s) => n + of(s), 0);
  return sum((s) => s.ms) * Math.min(1, bytes / Math.max(1, sum((s) => s.bytes)));
}
