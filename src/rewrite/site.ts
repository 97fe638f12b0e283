/** One record per candidate site of a rule or region: the single source of logs, fusion_result.json, explain and reports. */
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
}

/** A guard's refusal. */
export interface Refusal {
  readonly code: string;
  readonly reason: string;
  readonly remedy: string;
}

/** Leaves out refusals that no longer matter: all their nodes take part in one rewrite or region that fired. */
export function withoutMoot(sites: readonly Site[]): Site[] {
  const firedAt = new Map<string, ReadonlySet<string>[]>();
  for (const site of sites) {
    if (site.outcome !== "fired") continue;
    const nodes = new Set(site.nodes);
    for (const n of nodes) firedAt.set(n, [...(firedAt.get(n) ?? []), nodes]);
  }
  const moot = (site: Site): boolean => (firedAt.get(site.nodes[0] ?? "") ?? []).some((nodes) => site.nodes.every((n) => nodes.has(n)));
  return sites.filter((site) => site.outcome === "fired" || !moot(site));
}
