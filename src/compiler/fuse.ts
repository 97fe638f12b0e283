/**
 * Rules, then partition, under the switches. A kind of region that is switched off forbids, at the sites where it would
 * arise, both that region and the rules it builds on: the fusion is tried, the original nodes of such regions are noted,
 * and it is done again on a fresh graph with those nodes left alone. No other site is touched.
 */
import type { Graph, Node } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { partition } from "../passes/partition.ts";
import { applyRules } from "../rewrite/driver.ts";
import { refuse, type Rule } from "../rewrite/rule.ts";
import { withoutMoot, type Refusal, type Site } from "../rewrite/site.ts";
import { rules as builtInRules } from "../rules/index.ts";
import { KeptDtypes } from "./kept-dtypes.ts";
import type { SkippedRewrite } from "./options.ts";
import type { Switches } from "./switches.ts";

export interface FuseOptions {
  readonly rules: readonly Rule[];
  readonly switches: Switches;
  /** False: no rules, and every node its own region. */
  readonly fusion: boolean;
  /** Rules that approximate and yet may fire. */
  readonly mayApproximate: (rule: Rule) => boolean;
  readonly fuel?: number;
  readonly skip: readonly SkippedRewrite[];
  /** Nodes whose results keep their element type, as `KeptDtypes` takes them. */
  readonly keepDtype: readonly string[];
  readonly typeOf: (node: string) => string | undefined;
  /** Why nodes may not share a kernel, beside what partition itself says. */
  readonly apart?: (nodes: readonly Node[]) => Refusal | undefined;
}

export interface Fused<G> {
  readonly graph: G;
  readonly regions: readonly Region[];
  /** Of rules, then of regions, without refusals that no longer matter. */
  readonly sites: readonly Site[];
}

/** Fuses a graph that `read` makes anew for every try; `settle` cleans up after the rules. */
export function fuse<G extends { readonly graph: Graph }>(read: () => G, settle: (g: G) => void, options: FuseOptions): Fused<G> {
  const forbidden = new Map<string, string>();
  const kept = new KeptDtypes(options.keepDtype, options.typeOf);
  for (;;) {
    const g = read();
    const ruleSites = options.fusion ? rewrite(g.graph, forbidden, kept, options) : [];
    settle(g);
    const { regions, sites } = partition(g.graph, {
      fusion: options.fusion, opTypesOf: options.typeOf,
      isEnabled: (_, nodes) => kept.region(nodes) ?? alone(nodes, options.switches) ?? options.apart?.(nodes) ?? !nodes.some((n) => n.origins.some((o) => forbidden.has(o))),
    });
    const before = forbidden.size;
    for (const s of sites) if (s.outcome === "fired" && !options.switches.kind(s.name, s.at, s.nodes)) for (const n of s.nodes) forbidden.set(n, s.name);
    if (forbidden.size === before) return { graph: g, regions, sites: distinct(withoutMoot([...ruleSites, ...sites]), options.typeOf) };
  }
}

/** Why nodes may not share a kernel: a switch leaves one of them alone. */
function alone(nodes: readonly Node[], switches: Switches): Refusal | undefined {
  const by = nodes.length > 1 ? switches.forbids(nodes.flatMap((n) => n.origins)) : undefined;
  return by === undefined ? undefined : refuse("switched-off", `${by} leaves a node of these alone`, `switch ${by} on`);
}

/**
 * One record a candidate: nodes that are replaced on the way may have left several that say the same, and so do variants
 * of a model, whose nodes have a number behind the file's name for them.
 */
function distinct(sites: readonly Site[], typeOf: (node: string) => string | undefined): readonly Site[] {
  const inFile = (at: string): string => nameInFile(at, typeOf);
  const out = new Map<string, Site>();
  for (const s of sites) {
    const key = JSON.stringify([s.kind, s.name, inFile(s.at), s.nodes, s.outcome, s.code]);
    const times = out.has(key) ? (out.get(key)?.times ?? 1) + 1 : 1;
    out.set(key, { ...s, at: inFile(s.at), ...(times > 1 ? { times } : {}) });
  }
  return [...out.values()];
}

function nameInFile(node: string, typeOf: (node: string) => string | undefined): string {
  const name = node.replace(/__\d+$/, "");
  return typeOf(node) === undefined && typeOf(name) !== undefined ? name : node;
}

const builtIn: ReadonlySet<Rule> = new Set(builtInRules);

function rewrite(graph: Graph, forbidden: ReadonlyMap<string, string>, kept: KeptDtypes, options: FuseOptions): readonly Site[] {
  return applyRules(graph, options.rules, {
    allowApproximate: options.mayApproximate,
    ...(options.fuel === undefined ? {} : { fuel: options.fuel }),
    isEnabled: (rule, site) => {
      const kind = site.origins.map((o) => forbidden.get(o)).find((k) => k !== undefined);
      if (kind !== undefined) return refuse("switched-off", `regions of kind ${kind} are switched off`, `switch ${kind} on`);
      const skipped = options.skip.find((s) => s.rule === rule.name && s.at === nameInFile(site.root.name, options.typeOf));
      if (skipped) return refuse("verification-failed", skipped.reason ?? "it changed the results on generated inputs", builtIn.has(rule) ? "report the model" : "correct the rule; onnxfuse rule check may show where it is wrong");
      return kept.rule(rule, site) ?? options.switches.rule(rule, site.root.name, site.origins);
    },
  }).sites;
}
