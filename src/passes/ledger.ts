/**
 * What passes did to the number of nodes, so that a report can account for every node of the original graph:
 * nodes before = nodes after + the sum of all entries. Entries are negative where nodes were added.
 */
import { subgraphs, type Graph } from "../graph/graph.ts";

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

export class Ledger {
  readonly #entries = new Map<string, LedgerEntry>();

  record(kind: LedgerKind, label: string, nodes: number, times = 1): void {
    const key = `${kind}:${label}`;
    const before = this.#entries.get(key);
    this.#entries.set(key, { kind, label, times: (before?.times ?? 0) + times, nodes: (before?.nodes ?? 0) + nodes });
  }
  get entries(): readonly LedgerEntry[] { return [...this.#entries.values()]; }
  get nodes(): number { return this.entries.reduce((n, e) => n + e.nodes, 0); }
}

/** Nodes in a graph, those of subgraphs included. */
export const countNodes = (graph: Graph): number =>
  graph.nodes.reduce((n, node) => n + subgraphs(node).reduce((m, g) => m + countNodes(g), 0), graph.nodeCount);
