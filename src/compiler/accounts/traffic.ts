/**
 * Traffic accounting: the bytes that a region reads and writes, against those its original nodes would move one by one.
 * Every tensor that is read counts once a reader, every tensor that is written once; constants are counted apart.
 */
import { dimToJson, type DimJson } from "../../core/dim-json.ts";
import { dimAdd, dimProduct, type Dim } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import { subgraphs, type Graph, type Value } from "../../graph/graph.ts";
import type { Region } from "../../graph/region.ts";
import type { RegionTraffic } from "./report.ts";

interface NodeTraffic { readonly origins: readonly string[]; readonly read: Dim; readonly written: Dim }
/** What each node of a graph moves. */
export type TrafficSnapshot = readonly NodeTraffic[];

const bytesOf = (v: Value): Dim => dimProduct([...v.type.shape, byteSize(v.type.dtype)]);
const sum = (values: Iterable<Value>): Dim => [...values].reduce<Dim>((n, v) => dimAdd(n, bytesOf(v)), 0);
const isWeight = (v: Value): boolean => v.constant !== undefined || v.type.constant !== undefined;
const distinct = (values: readonly (Value | undefined)[]): Set<Value> => new Set(values.filter((v): v is Value => v !== undefined));

/** Takes down what the nodes of a graph move, before rules change it. */
export function snapshotTraffic(graph: Graph): TrafficSnapshot {
  return graph.nodes.flatMap((node) => [
    { origins: node.origins, read: sum([...distinct(node.inputs)].filter((v) => !isWeight(v))), written: sum(node.outputs) },
    ...subgraphs(node).flatMap(snapshotTraffic),
  ]);
}

/** Traffic of every region that is a kernel. */
export function regionTraffic(before: TrafficSnapshot, regions: readonly Region[]): RegionTraffic[] {
  const places = new Map<string, number[]>();
  before.forEach(({ origins }, at) => { for (const o of origins) { const known = places.get(o); if (known) known.push(at); else places.set(o, [at]); } });
  const of = (region: Region): RegionTraffic[] => {
    const inner = (region.branches ?? []).flatMap((b) => b.flatMap(of));
    if (region.execution !== "kernel") return inner;
    const origins = [...new Set(region.nodes.flatMap((n) => n.origins))];
    const parts = [...new Set(origins.flatMap((o) => places.get(o) ?? []))].sort((a, b) => a - b).flatMap((at) => before[at] ?? []);
    const total = (key: "read" | "written"): DimJson => dimToJson(parts.reduce<Dim>((n, p) => dimAdd(n, p[key]), 0));
    const inputs = [...distinct(region.inputs)];
    return [{
      region: region.kind, nodes: origins,
      before: { read: total("read"), written: total("written") },
      after: { read: dimToJson(sum(inputs.filter((v) => !isWeight(v)))), written: dimToJson(sum(region.outputs)) },
      weights: dimToJson(sum(inputs.filter(isWeight))),
    }, ...inner];
  };
  return regions.flatMap(of);
}
