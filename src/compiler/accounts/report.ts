/** What a compilation did: node counts that sum exactly, the record of every candidate site, traffic, memory. */
import type { DimJson } from "../../core/dim-json.ts";
import type { Diagnostic } from "../../core/diagnostic.ts";
import type { KernelWork } from "./kernel-work.ts";
import type { NarrowedWeight } from "../../schedule/contractions/narrow-weights.ts";
import type { SwitchEffect } from "../switches.ts";
import type { Site } from "../../rewrite/site.ts";

export interface Report {
  readonly model: string;
  /** `original` counts every node after function inlining; `compiled` the steps of the program in all branches. */
  readonly nodes: { readonly original: number; readonly compiled: number };
  readonly counts: Counts;
  /** One record per candidate site of rules and regions. */
  readonly sites: readonly Site[];
  /** What became of original nodes that no kernel computes; for those of kernels, `traffic` says where they are. */
  readonly fates: readonly Fate[];
  /** Rules that approximate and fired, since that was allowed. */
  readonly approximations: readonly { readonly rule: string; readonly times: number }[];
  /** What each fusion switch decided. */
  readonly switches: readonly SwitchEffect[];
  readonly traffic: readonly RegionTraffic[];
  /** Tile sizes of attention kernels, by the original nodes they compute. */
  readonly attention: readonly { readonly nodes: readonly string[]; readonly queries: number; readonly keys: number }[];
  readonly memory: { readonly weights: number; readonly arena?: number; readonly lowerBound?: number };

  /** Bytes of code, and of what changes in it for relaxed SIMD. */
  readonly code: { readonly simd: number; readonly relaxation: number; readonly threads: number };
  /** Weights that were asked to be in fewer bits, where some were. */
  readonly narrowed?: readonly NarrowedWeight[];
  /** What each kernel has to compute and move. */
  readonly kernels: readonly KernelWork[];
  /** Operators without kernels, run by the host. */
  readonly hostOperators: readonly { readonly op: string; readonly nodes: readonly string[] }[];
  readonly warnings: readonly Diagnostic[];
}

/** Σ details.nodesSaved + eliminated + folded − added = original − compiled. */
export interface Counts {
  /** By what was fused, most frequent first. */
  readonly details: readonly Detail[];
  /** Nodes that compute nothing, or what another computes: identities, views, dead code, common subexpressions. */
  readonly eliminated: number;
  /** Nodes whose results are known at compile time. */
  readonly folded: number;
  /** Steps that no original node asked for: copies and layout conversions; and nodes of further variants of the model. */
  readonly added: number;
}
export interface Detail { readonly label: string; readonly times: number; readonly nodesSaved: number }

/** What became of original nodes that no kernel computes. */
export interface Fate {
  /** `view`, `host` and `control` are in the program without a kernel; `unread` was left out when the model was read; others are gone. */
  readonly kind: "view" | "host" | "control" | "folded" | "eliminated" | "merged" | "inlined" | "rewritten" | "constant" | "unread";
  readonly region?: string;
  /** In one sentence. */
  readonly why: string;
  /** Original nodes that share it. */
  readonly nodes: readonly string[];
}

/** Bytes that a region moves through memory; numbers, or expressions over symbolic sizes. */
export interface RegionTraffic {
  readonly region: string;
  /** Original ONNX nodes. */
  readonly nodes: readonly string[];
  readonly before: Moved;
  readonly after: Moved;
  /** Bytes of constants read, the same or fewer after folding; not part of `before` and `after`. */
  readonly weights: DimJson;
}
export interface Moved { readonly read: DimJson; readonly written: DimJson }
