/** What the report page shows, as the JSON inside it. Nodes, steps and blocks are named by their index in their list. */
import type { Fate } from "../compiler/accounts/report.ts";
import type { Site } from "../rewrite/site.ts";

export interface PageNode {
  readonly name: string;
  /** Operator type, or region kind. */
  readonly type: string;
  /** Results with their types, for people. */
  readonly outputs: readonly string[];
  /** Step that computes it; absent where none does. */
  readonly step?: number;
  /** Repetition of a block that it is in: which block of the list. */
  readonly block?: number;
}
/** A stretch of nodes that repeats: this is one repetition of it. */
export interface PageBlock { readonly label: string; readonly first: number; readonly last: number }

export interface PageGraph {
  /** Producers first. */
  readonly nodes: readonly PageNode[];
  readonly edges: readonly (readonly [from: number, to: number])[];
  readonly blocks: readonly PageBlock[];
}

/** Bytes a step moves, and those its nodes would move one by one. */
export interface PageTraffic { readonly before: number; readonly after: number; readonly weights: number }
export interface PageStep {
  readonly kind: string;
  readonly execution: string;
  /** Original nodes in it. */
  readonly nodes: readonly string[];
  readonly traffic?: PageTraffic;
  /** Milliseconds, and those of the kernels of its nodes one by one; where it was timed. */
  readonly time?: { readonly before: number; readonly after: number };
}
export interface PageMemoryBlock { readonly name: string; readonly bytes: number; readonly first: number; readonly last: number; readonly at: number }

export interface PageData {
  readonly model: string;
  readonly original: number;
  readonly compiled: number;
  readonly before: PageGraph;
  /** A node for each of `steps`. */
  readonly after: PageGraph;
  readonly steps: readonly PageStep[];
  readonly fates: readonly Fate[];
  readonly sites: readonly Site[];
  /** Sizes of symbols that figures are given for. */
  readonly sizes: Readonly<Record<string, number>>;
  readonly memory: { readonly weights: number; readonly arena: number; readonly lowerBound: number; readonly blocks: readonly PageMemoryBlock[] };
}
