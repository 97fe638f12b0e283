/**
 * What passes did to the number of nodes, so that a report can account for every node of the original graph:
 * nodes before = nodes after + the sum of all entries. Entries are negative where nodes were added. Beside the numbers
 * it keeps a trace: why each original node that is gone went.
 */
import { subgraphs, type Graph, type Node } from "../graph/graph.ts";

export type LedgerKind = "folded" | "eliminated" | "merged" | "canonicalised" | "inlined" | "fused";
export interface LedgerEntry {
  readonly kind: LedgerKind;
  /** The operator type or rule concerned. */
  readonly label: string;
  /** How often. */
  readonly times: number;
  /** Nodes fewer in the graph. */
  readonly nodes: number;
}

/** Why a node went. */
export interface Departure { readonly kind: LedgerKind; readonly why: string }

export class Ledger {
  readonly #entries = new Map<string, LedgerEntry>();
  readonly #departures = new Map<string, Departure>();

  record(kind: LedgerKind, label: string, nodes: number, times = 1): void {
    const key = `${kind}:${label}`;
    const before = this.#entries.get(key);
    this.#entries.set(key, { kind, label, times: (before?.times ?? 0) + times, nodes: (before?.nodes ?? 0) + nodes });
  }
  /** Notes why nodes of the graph went. What stands for several original nodes went for all; the first reason counts. */
  trace(kind: LedgerKind, nodes: readonly Pick<Node, "origins">[], why: string): void {
    for (const { origins } of nodes) for (const o of origins) if (!this.#departures.has(o)) this.#departures.set(o, { kind, why });
  }
  /** By original node. A node may live on in others that stand for it too. */
  get departures(): ReadonlyMap<string, Departure> { return this.#departures; }
  get entries(): readonly LedgerEntry[] { return [...this.#entries.values()]; }
  get nodes(): number { return this.entries.reduce((n, e) => n + e.nodes, 0); }
}

/** Nodes in a graph, those of subgraphs included. */
export const countNodes = (graph: Graph): number =>
  graph.nodes.reduce((n, node) => n + subgraphs(node).reduce((m, g) => m + countNodes(g), 0), graph.nodeCount);

/** A node with those of its subgraphs. */
export const withNested = (node: Node): Node[] => [node, ...subgraphs(node).flatMap((g) => g.nodes.flatMap(withNested))];
