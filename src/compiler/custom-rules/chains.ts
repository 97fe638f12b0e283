/**
 * Custom rules whose result is one kernel, chains and graphs: found in the graph as it was read, by data flow, and
 * carried out by partition. A site that ended up as one kernel gives it its name; one that did not is refused with the reason.
 */
import type { Graph, Node } from "../../graph/graph.ts";
import type { Region } from "../../graph/region.ts";
import { allNodes } from "../../rewrite/driver.ts";
import type { Refusal, Site } from "../../rewrite/site.ts";
import { chainNodes, type ChainRule, type GraphRule } from "./custom-rule.ts";
import { patternOf, siteOf, type Bindings } from "./graph-rules.ts";
import { checkConditions } from "./rule-guards.ts";
import { inDataFlowOrder, matchAt } from "../../rewrite/match.ts";

/** A place where a rule's operators stand. */
export interface ChainSite {
  readonly rule: { readonly name: string; readonly outputOp: string };
  readonly at: string;
  /** Original nodes, first to last. */
  readonly nodes: readonly string[];
  readonly refusal?: Refusal;
}

/** All places of all chains in a graph that nothing has changed yet. */
export function findChains(graph: Graph, rules: readonly ChainRule[]): ChainSite[] {
  const nodes = allNodes(graph);
  return rules.flatMap((rule) => nodes.flatMap((first) => follow(first, rule) ?? []));
}

/** All places of the graph rules that end in one kernel, in a graph that nothing has changed yet. Fails as `patternOf` does. */
export function findKernels(graph: Graph, rules: readonly GraphRule[]): ChainSite[] {
  const nodes = allNodes(graph);
  return rules.flatMap((rule) => {
    const { becomes, name } = rule, { match } = patternOf(rule);
    if (becomes.kind !== "kernel") return [];
    return nodes.flatMap((root): ChainSite[] => {
      const found = matchAt(match, root);
      if (!found) return [];
      const base = { rule: { name, outputOp: becomes.outputOp }, at: root.name, nodes: originNames(inDataFlowOrder(root, found.nodes)) };
      if (found.kind === "near-miss") return [{ ...base, refusal: found.refusal }];
      const verdict = checkConditions(rule.where, siteOf(found.bindings as Bindings));
      return [verdict === true ? base : { ...base, refusal: verdict }];
    });
  });
}
const originNames = (nodes: readonly Node[]): string[] => [...new Set(nodes.flatMap((n) => n.origins))];

function follow(first: Node, rule: ChainRule): ChainSite | undefined {
  const [head, ...rest] = rule.pattern;
  if (first.op.type !== head) return undefined;
  const chain = [first];
  let refusal: Refusal | undefined;
  for (const type of rest) {
    const [out] = chain[chain.length - 1]?.outputs ?? [];
    const next = out?.uses.find((u) => u.node.op.type === type && u.node.graph === first.graph)?.node;
    if (!out || !next) return undefined;
    const others = out.uses.filter((u) => u.node !== next);
    if (out.resultOf.length) refusal ??= { code: "interior-value-is-output", reason: `'${out.name}' is a graph output`, remedy: `remove '${out.name}' from the graph's outputs` };
    else if (others.length) refusal ??= { code: "interior-value-used", reason: `'${out.name}' is also read by ${others.map((u) => u.node.name).join(", ")}`, remedy: "compute what the others read separately" };
    chain.push(next);
  }
  refusal ??= conditionFails(rule, chain);
  const last = chain[chain.length - 1] ?? first;
  return { rule, at: last.name, nodes: chain.flatMap((n) => n.origins), ...(refusal ? { refusal } : {}) };
}

function conditionFails(rule: ChainRule, chain: readonly Node[]): Refusal | undefined {
  const { bn_mode: mode, dtype } = rule.conditions;
  const norm = chain.find((n) => n.op.type === "BatchNormalization");
  if (mode !== undefined) {
    if (!norm) return { code: "condition-failed", reason: `bn_mode is '${mode}', but the chain has no BatchNormalization`, remedy: "remove the condition" };
    const actual = norm.attributes["training_mode"] === 1 ? "training" : "inference";
    if (actual !== mode) return { code: "condition-failed", reason: `bn_mode is '${mode}', and ${norm.name} is in ${actual} mode`, remedy: mode === "inference" ? "export the model after model.eval()" : "set bn_mode to inference" };
  }
  const result = chain[chain.length - 1]?.outputs[0]?.type.dtype;
  if (dtype !== undefined && dtype !== result) return { code: "condition-failed", reason: `dtype is '${dtype}', and the result is ${result ?? "unknown"}`, remedy: `set dtype to ${result ?? "its type"}` };
  const names = chainNodes(rule.pattern);
  const node = (name: string): Node | undefined => chain[names.indexOf(name)];
  const verdict = checkConditions(rule.where, { node, value: (port) => (port.node === "input" ? chain[0]?.inputs[0] : node(port.node)?.outputs[port.slot]) });
  return verdict === true ? undefined : verdict;
}

export interface NamedRegions { readonly regions: readonly Region[]; readonly sites: readonly Site[] }

/** Names the kernels that are chains, and records every chain. */
export function nameChains(found: readonly ChainSite[], regions: readonly Region[], sites: readonly Site[]): NamedRegions {
  const renamed = new Map<Region, string>();
  const records = found.map((site): Site => {
    const base = { kind: "rule" as const, name: site.rule.name, at: site.at, nodes: site.nodes };
    if (site.refusal) return { ...base, outcome: "refused", ...site.refusal };
    const region = regions.find((r) => r.execution === "kernel" && contains(originsOf(r), site.nodes));
    if (!region) return { ...base, outcome: "refused", ...whyApart(site, sites) };
    if (originsOf(region).size === site.nodes.length) renamed.set(region, site.rule.outputOp);
    return { ...base, outcome: "fired", nodesSaved: 0 };
  });
  return {
    regions: regions.map((r) => { const kind = renamed.get(r); return kind === undefined ? r : { ...r, kind }; }),
    sites: [...sites.map((s) => { const name = [...renamed].find(([r]) => s.kind === "region" && s.outcome === "fired" && contains(originsOf(r), s.nodes))?.[1]; return name === undefined ? s : { ...s, name }; }), ...records],
  };
}

const originsOf = (region: Region): ReadonlySet<string> => new Set(region.nodes.flatMap((n) => n.origins));
const contains = (set: ReadonlySet<string>, names: readonly string[]): boolean => names.every((n) => set.has(n));

function whyApart(site: ChainSite, sites: readonly Site[]): Refusal {
  const cause = sites.find((s) => s.outcome === "refused" && s.nodes.some((n) => site.nodes.includes(n)));
  if (cause) return { code: cause.code ?? "not-one-kernel", reason: cause.reason ?? "its operators cannot share a kernel", remedy: cause.remedy ?? "see onnxfuse explain" };
  return { code: "not-one-kernel", reason: "its operators do not share a kernel", remedy: "shorten the pattern to operators that do" };
}
