/** One record per candidate site of a rule or region: the single source of logs, fusion_result.json, explain and reports. */
import type { DimJson } from "../core/dim-json.ts";

export interface Site {
  readonly kind: "rule" | "region";
  /** Rule name (kebab-case, its switch name) or region kind (`ConvBNReLU`). */
  readonly name: string;
  /** The root node's name. */
  readonly at: string;
  /** Original ONNX nodes that take part, in data-flow order. */
  readonly nodes: readonly string[];
  readonly outcome: "fired" | "refused";
  /** Stable refusal code, such as `interior-value-used`; absent when fired. */
  readonly code?: string;
  /** The failing condition in words, with its values. */
  readonly reason?: string;
  /** One sentence: what would make it fire. */
  readonly remedy?: string;
  /** How many nodes the program has fewer for it. */
  readonly nodesSaved?: number;
  /** Of a rewrite that is not exact: how far it may move a result, as a share of its largest element. */
  readonly bound?: number;
  /** How many places of the graph say the same, where it holds the model more than once. */
  readonly times?: number;
  /** Original nodes that fed only these, and went with them. */
  readonly gone?: readonly string[];
  /** Of a refusal: bytes that move through memory for it. */
  readonly bytes?: DimJson;
}

/** A guard's refusal. */
export interface Refusal {
  readonly code: string;
  readonly reason: string;
  readonly remedy: string;
}

/**
 * Leaves out refusals that no longer matter: all their nodes take part in one rewrite that fired (for regions: one
 * region), or the same rule fired on all of them but the last. A rewrite that was refused still matters where a region
 * holds its nodes: the work that it would have saved is done in the kernel.
 */
export function withoutMoot(sites: readonly Site[]): Site[] {
  const firedAt = new Map<string, { readonly kind: Site["kind"]; readonly name: string; readonly nodes: ReadonlySet<string> }[]>();
  for (const { outcome, kind, name, nodes } of sites) {
    if (outcome !== "fired") continue;
    const fired = { kind, name, nodes: new Set(nodes) };
    for (const n of fired.nodes) firedAt.set(n, [...(firedAt.get(n) ?? []), fired]);
  }
  const moot = (site: Site): boolean => (firedAt.get(site.nodes[0] ?? "") ?? []).some((fired) => {
    if (fired.kind !== site.kind) return false;
    const left = site.nodes.filter((n) => !fired.nodes.has(n)).length;
    return left === 0 || (left === 1 && fired.name === site.name && !fired.nodes.has(site.nodes.at(-1) ?? ""));
  });
  return sites.filter((site) => site.outcome === "fired" || !moot(site));
}
