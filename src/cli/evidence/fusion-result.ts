/** `fusion_result.json` in GE's schema: how often each pass matched and took effect; counts are strings. */
import type { Report } from "../../compiler/accounts/report.ts";
import type { Site } from "../../rewrite/site.ts";

interface PassResult { readonly match_times: string; readonly effect_times: string; readonly repository_hit_times?: string }
export interface FusionResult {
  readonly session_and_graph_id_0_0: {
    readonly graph_fusion: Readonly<Record<string, PassResult>>;
    readonly ub_fusion: Readonly<Record<string, PassResult>>;
  };
}

/** Rules are graph fusion, regions UB fusion. */
export function fusionResult(report: Report): FusionResult {
  return { session_and_graph_id_0_0: { graph_fusion: tally(report.sites, "rule"), ub_fusion: tally(report.sites, "region") } };
}

function tally(sites: readonly Site[], kind: Site["kind"]): Record<string, PassResult> {
  const counts = new Map<string, { match: number; effect: number }>();
  for (const site of sites) {
    if (site.kind !== kind) continue;
    const c = counts.get(site.name) ?? { match: 0, effect: 0 };
    counts.set(site.name, { match: c.match + 1, effect: c.effect + (site.outcome === "fired" ? 1 : 0) });
  }
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, c]): [string, PassResult] =>
    [name, { match_times: String(c.match), effect_times: String(c.effect), ...(kind === "region" ? { repository_hit_times: "0" } : {}) }]));
}
