/**
 * Gathers what the report page shows, from the stages of one compilation and its report: the graph as it was read, the
 * regions in its place, what they move, and the memory plan.
 */
import { dimFromJson, type DimJson } from "../core/dim-json.ts";
import { evaluateDim, formatDim, type Dim } from "../core/dim.ts";
import { assumedSize } from "../compiler/accounts/missed.ts";
import type { Report } from "../compiler/accounts/report.ts";
import type { StageObserver } from "../compiler/stages.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import type { PageData, PageGraph, PageMemoryBlock, PageNode, PageStep } from "./page-data.ts";
import { repeatsOf } from "./repeats.ts";

type Sizes = Readonly<Record<string, number>>;

export interface Gatherer {
  /** To be told of the stages of the compilation. */
  readonly onStage: StageObserver;
  /** Complete when the compilation is. Sizes that are not given are taken for `assumedSize`. */
  readonly data: (report: Report, sizes: Sizes) => PageData;
}

export function gatherer(): Gatherer {
  let read: readonly Drawn[] = [], regions: readonly Region[] = [];
  let after: PageGraph = { nodes: [], edges: [], blocks: [] };
  let blocks: (sizes: Sizes) => PageMemoryBlock[] = () => [];
  return {
    onStage: (stage) => {
      if (stage.name === "read") read = drawn(stage.graph);
      if (stage.name === "partitioned") { regions = flatten(stage.regions).filter((r) => r.execution !== "view" && r.execution !== "check"); after = graphOfRegions(regions); }
      if (stage.name === "planned") {
        const { arena, addresses } = stage.plan;
        blocks = (sizes) => arena.flatMap(({ storage, storages, first, last }) => {
          const address = addresses.get(storage);
          return address?.kind === "fixed" ? [{ name: storages.map((s) => s.name).join(" = "), bytes: numberOf(storage.bytes, sizes), first, last, at: address.address }] : [];
        });
      }
    },
    data: (report, sizes) => {
      const steps = regions.map((r) => stepOf(r, report, sizes));
      return {
        model: report.model, original: report.nodes.original, compiled: report.nodes.compiled,
        before: graphOfNodes(read, steps), after, steps, fates: report.fates, sites: report.sites, sizes,
        memory: { weights: report.memory.weights, arena: report.memory.arena ?? 0, lowerBound: report.memory.lowerBound ?? 0, blocks: blocks(sizes) },
      };
    },
  };
}

const numberOf = (d: Dim, sizes: Sizes): number => evaluateDim(d, (name) => sizes[name] ?? assumedSize);
const flatten = (regions: readonly Region[]): Region[] => regions.flatMap((r) => [r, ...(r.branches ?? []).flatMap(flatten)]);
const typeText = ({ name, type }: Value): string => `${name}: ${type.dtype} [${type.shape.map(formatDim).join(", ")}]`;

/** A node as it was when it was read: graphs change afterwards. */
interface Drawn { readonly name: string; readonly type: string; readonly outputs: readonly string[]; readonly origins: readonly string[]; readonly from: readonly number[] }

function drawn(graph: Graph): Drawn[] {
  const nodes = nested(graph), index = new Map(nodes.map((n, i): [Node, number] => [n, i]));
  const producersOf = (values: readonly (Value | undefined)[]): number[] => values.flatMap((v) => (v?.producer ? index.get(v.producer.node) ?? [] : []));
  return nodes.map((n) => ({ name: n.name, type: n.op.type, outputs: n.outputs.map(typeText), origins: n.origins, from: producersOf([...n.inputs, ...subgraphs(n).flatMap((g) => g.outputs)]) }));
}
/** Nodes of subgraphs before the node that holds them. */
const nested = (graph: Graph): Node[] => graph.nodes.flatMap((n) => [...subgraphs(n).flatMap(nested), n]);

function graphOfNodes(nodes: readonly Drawn[], steps: readonly PageStep[]): PageGraph {
  const stepOf = new Map(steps.flatMap((s, i) => s.nodes.map((n): [string, number] => [n, i])));
  const list = nodes.map((n): PageNode => {
    const step = n.origins.map((o) => stepOf.get(o)).find((s) => s !== undefined);
    return { name: n.name, type: n.type, outputs: n.outputs, ...(step === undefined ? {} : { step }) };
  });
  return withBlocks(list, distinct(nodes.flatMap((n, to) => n.from.map((from): [number, number] => [from, to]))));
}

function graphOfRegions(regions: readonly Region[]): PageGraph {
  const owner = new Map(regions.flatMap((r, i) => r.nodes.map((n): [Node, number] => [n, i])));
  const edges = regions.flatMap((r, to) => [...r.inputs, ...(r.execution === "control" ? r.nodes.flatMap(subgraphs).flatMap((g) => g.outputs) : [])].flatMap((v) => sources(v, owner)).map((from): [number, number] => [from, to]));
  return withBlocks(regions.map((r, step): PageNode => ({ name: r.nodes.at(-1)?.name ?? r.kind, type: r.kind, outputs: r.outputs.map(typeText), step })), distinct(edges));
}

/** Steps that a value comes from, through views. */
function sources(value: Value, owner: ReadonlyMap<Node, number>): number[] {
  const node = value.producer?.node;
  if (!node) return [];
  const step = owner.get(node);
  return step === undefined ? node.inputs.flatMap((v) => (v ? sources(v, owner) : [])) : [step];
}

function distinct(edges: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  return [...new Map(edges.filter(([a, b]) => a !== b).map((e) => [e.join(), e])).values()];
}

function withBlocks(nodes: readonly PageNode[], edges: PageGraph["edges"]): PageGraph {
  const blocks = repeatsOf(nodes.map((n) => n.type));
  const blockOf = new Map(blocks.flatMap((b, i) => Array.from({ length: b.last - b.first + 1 }, (_, k): [number, number] => [b.first + k, i])));
  return { nodes: nodes.map((n, i) => { const block = blockOf.get(i); return block === undefined ? n : { ...n, block }; }), edges, blocks };
}

function stepOf(region: Region, report: Report, sizes: Sizes): PageStep {
  const nodes = [...new Set(region.nodes.flatMap((n) => n.origins))];
  const traffic = region.execution === "kernel" ? report.traffic.find((t) => t.nodes.length === nodes.length && t.nodes.every((n, i) => n === nodes[i])) : undefined;
  const bytes = (d: DimJson): number => numberOf(dimFromJson(d), sizes);
  return {
    kind: region.kind, execution: region.execution, nodes,
    ...(traffic ? { traffic: { before: bytes(traffic.before.read) + bytes(traffic.before.written), after: bytes(traffic.after.read) + bytes(traffic.after.written), weights: bytes(traffic.weights) } } : {}),
  };
}
