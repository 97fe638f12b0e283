/**
 * Applies rules to a graph and its subgraphs until none fires: a worklist of nodes, rules indexed by the operator of
 * their root, and after each rewrite the consumers near it once more, so that the work grows with the graph and not
 * with its square. Every candidate site leaves one record. Fuel bounds the rewrites for bisection; a watchdog stops
 * rules that undo each other.
 */
import { invariant } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { formatShape } from "../core/dim.ts";
import type { Tensor } from "../core/tensor.ts";
import { freshSymbol } from "../graph/fresh.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { contradicts, refineType } from "../graph/refine.ts";
import { hasSideEffects, matchAt, originsOf, type Match, type NearMiss } from "./match.ts";
import { depthOf, rootsOf } from "./pattern.ts";
import { isRefusal, refuse, stages, type Editor, type InsertOptions, type Replacements, type Rule, type Stage, type Verdict } from "./rule.ts";
import type { Refusal, Site } from "./site.ts";

export interface RuleSite {
  readonly root: Node;
  /** Matched nodes in data-flow order. */
  readonly nodes: readonly Node[];
  /** Names of the original nodes they stand for. */
  readonly origins: readonly string[];
}
export interface ApplyOptions {
  /** Whether a rule may fire at a site; `true`, or why not. Default: always. */
  readonly isEnabled?: (rule: Rule, site: RuleSite) => Verdict | boolean;
  /** Whether rules that approximate may fire, or which of them. Default false. */
  readonly allowApproximate?: boolean | ((rule: Rule) => boolean);
  /** At most so many rewrites. Default: no bound. */
  readonly fuel?: number;
  /** Called after every rewrite; throws when the graph is broken. */
  readonly verify?: (graph: Graph, rule: Rule) => void;
}
export interface ApplyResult {
  /** One record for every rewrite, and one refusal for every rule and root where it came near. */
  readonly sites: readonly Site[];
  readonly rewrites: number;
  /** Nodes removed less nodes inserted, by all rewrites. */
  readonly nodesSaved: number;
}

/** Applies `rules` to a fixpoint, stage by stage. */
export function applyRules(graph: Graph, rules: readonly Rule[], options: ApplyOptions = {}): ApplyResult {
  const run = new Driver(graph, options);
  for (const stage of stages) run.stage(stage, rules.filter((r) => (r.stage ?? "fold") === stage));
  return run.result();
}

/** A rule that fires so often at one root, and saves nothing, finds its own result again. */
const mostRepeats = 12;

type RulesByRoot = ReadonlyMap<OpDef, readonly Rule[]>;

class Driver {
  readonly #graph: Graph;
  readonly #options: ApplyOptions;
  readonly #fired: Site[] = [];
  /** The latest refusal by rule and root; a root's successor has its name. */
  readonly #refused = new Map<string, Site>();
  readonly #limit: number;
  /** How often a rule has fired at one root without making the graph smaller. */
  readonly #repeats = new Map<string, number>();
  #rewrites = 0;
  #saved = 0;

  constructor(graph: Graph, options: ApplyOptions) {
    this.#graph = graph;
    this.#options = options;
    this.#limit = 1000 + 20 * allNodes(graph).length;
  }

  /**
   * Sweeps over the graph until a sweep changes nothing; nearly all work happens in the first. Recognition goes
   * from the last node back, so that the longest spelling is found first; there a node that waits keeps its turn.
   */
  stage(stage: Stage, rules: readonly Rule[]): void {
    if (rules.length === 0) return;
    const byRoot = indexByRoot(rules);
    const reach = Math.max(...rules.map((r) => depthOf(r.match)));
    for (let before = -1; before !== this.#rewrites;) {
      before = this.#rewrites;
      const nodes = allNodes(this.#graph);
      const queue = new Set(stage === "recognise" ? nodes.reverse() : nodes);
      for (const node of queue) {
        queue.delete(node);
        if (!node.graph.has(node)) continue;
        const near = [...this.#visit(node, byRoot, reach)];
        if (stage === "recognise") for (const n of near) queue.add(n);
        else for (const n of near) { queue.delete(n); queue.add(n); }
      }
    }
  }

  result(): ApplyResult {
    return { sites: [...this.#fired, ...this.#refused.values()], rewrites: this.#rewrites, nodesSaved: this.#saved };
  }

  /** Tries the rules at one root. Returns the nodes to look at again. */
  #visit(root: Node, byRoot: RulesByRoot, reach: number): Iterable<Node> {
    for (const rule of byRoot.get(root.op) ?? []) {
      const found = matchAt(rule.match, root);
      const commonplace = found?.kind === "near-miss" && (rule.commonplace?.includes(found.refusal.code) || (rule.hallmarks && !found.nodes.some((n) => rule.hallmarks?.includes(n.op))));
      if (!found || commonplace) { this.#forget(root, rule); continue; }
      if (found.kind === "near-miss") { this.#record(root, rule, found.nodes, this.#besides(rule, found, root)); continue; }
      if (this.#rewrites >= (this.#options.fuel ?? Infinity)) return [];
      const beside = rule.beside?.(found.bindings, root) ?? [];
      if (rule.beside && beside.length === 0) { this.#forget(root, rule); continue; }
      const nodes = [...new Set([...found.nodes, ...beside])];
      const site: RuleSite = { root, nodes, origins: originsOf(nodes) };
      const refusal = this.#refusal(rule, found, site);
      if (refusal) { this.#record(root, rule, nodes, refusal); continue; }
      const done = this.#rewrite(rule, found, site);
      if (isRefusal(done)) { this.#record(root, rule, nodes, done); continue; }
      return nearby(done, reach);
    }
    return [];
  }

  /** Why a near miss is one. Where others use what matched, their giving it up must be enough: a guard that refuses comes first. */
  #besides(rule: Rule, { refusal, bindings }: NearMiss, root: Node): Refusal {
    if (!bindings) return refusal;
    const guarded = this.#guards(rule, bindings, root);
    if (guarded) return guarded;
    return rule.numerics.kind === "approximates" && !this.#mayApproximate(rule) ? { ...refusal, remedy: `${refusal.remedy}, and allow the rule with --allow_approximate` } : refusal;
  }

  #guards(rule: Rule, bindings: Match["bindings"], root: Node): Refusal | undefined {
    for (const guard of rule.where ?? []) {
      const verdict = guard(bindings, root);
      if (verdict !== true) return verdict;
    }
    return undefined;
  }

  #refusal(rule: Rule, match: Match, site: RuleSite): Refusal | undefined {
    const guarded = this.#guards(rule, match.bindings, site.root);
    if (guarded) return guarded;
    if (rule.numerics.kind === "approximates" && !this.#mayApproximate(rule))
      return refuse("approximate", rule.numerics.why, "allow it with --allow_approximate");
    const enabled = this.#options.isEnabled?.(rule, site) ?? true;
    if (isRefusal(enabled)) return enabled;
    return enabled ? undefined : refuse("switched-off", `the rule ${rule.name} is switched off here`, `switch ${rule.name} on`);
  }

  #mayApproximate(rule: Rule): boolean {
    const { allowApproximate: allowed = false } = this.#options;
    return typeof allowed === "boolean" ? allowed : allowed(rule);
  }

  /** Carries out a rewrite. Returns the values around which the graph has changed, or why nothing was done. */
  #rewrite(rule: Rule, match: Match, site: RuleSite): readonly Value[] | Refusal {
    const { root } = site;
    const { graph } = root;
    const [old] = root.outputs;
    invariant(old, `${root.name} has no outputs`);
    const editor = new SiteEditor(site);
    const by = rule.rewrite(match.bindings, editor);
    if (isRefusal(by)) {
      invariant(editor.inserted.length === 0, `rule ${rule.name} refused after inserting nodes`);
      return by;
    }
    const replaced: Replacements = "name" in by ? new Map([[old, by]]) : by;
    for (const [from, to] of replaced) {
      if (!editor.made(to) && !canReturn(to, from))
        return refuse("graph-output", `'${from.name}' is a graph output and would become '${to.name}', which has a name of its own`, `remove '${from.name}' from the graph's outputs`);
    }
    for (const [from, to] of replaced) {
      if (!contradicts(from.type, to.type)) continue;
      editor.undo();
      return refuse("result-type-differs", `'${from.name}' is ${from.type.dtype}${formatShape(from.type.shape)}, and the rule makes ${to.type.dtype}${formatShape(to.type.shape)} of it`, "correct what the rule makes");
    }
    const renamed: { readonly value: Value; readonly from: Node | undefined; readonly name: string }[] = [];
    for (const [from, to] of replaced) {
      if (editor.made(to) || from.resultOf.some((g) => g.parent === undefined)) renamed.push({ value: to, from: from.producer?.node, name: from.name });
      graph.setType(to, refineType(from.type, to.type));
      graph.replaceUses(from, to);
    }
    const around = new Set<Value>(editor.inserted.flatMap((n) => n.outputs));
    const gone = new Set<string>();
    const erased = eraseDead([...site.nodes].reverse(), around, gone);
    for (const { value, from, name } of renamed) if (!from || !graph.has(from)) graph.rename(value, name);
    editor.settleNames();
    this.#count(rule, site, erased - editor.inserted.length, [...gone].filter((o) => !site.origins.includes(o)));
    this.#options.verify?.(this.#graph, rule);
    for (const to of replaced.values()) around.add(to);
    return [...around];
  }

  #count(rule: Rule, site: RuleSite, nodesSaved: number, gone: readonly string[]): void {
    this.#rewrites++;
    this.#saved += nodesSaved;
    this.#forget(site.root, rule);
    const repeats = nodesSaved > 0 ? 0 : (this.#repeats.get(siteKey(site.root, rule)) ?? 0) + 1;
    this.#repeats.set(siteKey(site.root, rule), repeats);
    this.#fired.push({ kind: "rule", name: rule.name, at: site.root.name, nodes: site.origins, outcome: "fired", nodesSaved, ...(rule.numerics.kind === "exact" ? {} : { bound: rule.numerics.bound }), ...(gone.length ? { gone } : {}) });
    if (this.#rewrites > this.#limit || repeats > mostRepeats)
      fail("OF4001", `the fusion rules do not settle: ${this.#rewrites} rewrites, the last by ${rule.name}`, { place: { node: site.root.name }, hint: `switch ${rule.name} off and report the model` });
  }

  #record(root: Node, rule: Rule, nodes: readonly Node[], refusal: Refusal): void {
    this.#refused.set(siteKey(root, rule), { kind: "rule", name: rule.name, at: root.name, nodes: originsOf(nodes), outcome: "refused", ...refusal });
  }
  /** A root that no longer is a near miss, because something around it changed. */
  #forget(root: Node, rule: Rule): void { this.#refused.delete(siteKey(root, rule)); }
}
const siteKey = (root: Node, rule: Rule): string => `${rule.name}\n${root.name}`;

class SiteEditor implements Editor {
  readonly graph: Graph;
  readonly root: Node;
  readonly origins: readonly string[];
  readonly inserted: Node[] = [];
  readonly #wanted: string[] = [];

  constructor(site: RuleSite) {
    this.graph = site.root.graph;
    this.root = site.root;
    this.origins = site.origins;
  }

  insert(op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes = {}, options: InsertOptions = {}): Value {
    const name = options.name ?? this.root.name;
    const outputs = inferNode(op, inputs, attributes, options.outputCount ?? 1, {
      place: { node: name },
      fresh: (hint) => freshSymbol(this.graph, hint),
    });
    const node = this.graph.insert({ op, inputs, attributes, outputs, name, origins: options.origins ?? this.origins }, this.root);
    this.inserted.push(node);
    this.#wanted.push(name);
    const [first] = node.outputs;
    invariant(first, `${op.type} has no outputs`);
    return first;
  }
  constant(tensor: Tensor, hint: string): Value { return this.graph.addConstant(tensor, hint); }
  /** Takes back what was inserted and is not yet used. */
  undo(): void { for (const node of this.inserted.splice(0).reverse()) this.graph.erase(node); }
  made(value: Value): boolean { return this.inserted.some((n) => n.outputs.includes(value)); }
  /** Gives the new nodes the names they asked for, which erased nodes have now left. */
  settleNames(): void { this.inserted.forEach((node, i) => this.graph.renameNode(node, this.#wanted[i] ?? node.name)); }
}

/**
 * Whether `by` may stand for `old` where graphs return `old`: it is computed in the same graph, and has no name of
 * its own to keep as an input or another output. (A subgraph does not return what it captures.)
 */
export const canReturn = (by: Value, old: Value): boolean =>
  old.resultOf.length === 0 || (by.graph === old.graph && by.resultOf.length === 0 && (by.producer !== undefined || by.constant !== undefined));

/**
 * Erases those of `nodes` (consumers first) that nothing uses, and then what fed only them. What they read is added
 * to `around`, the original nodes they stand for to `gone`. Returns how many nodes are gone.
 */
function eraseDead(nodes: readonly Node[], around: Set<Value>, gone: Set<string>): number {
  let count = 0;
  const stack = [...nodes].reverse();
  for (let node = stack.pop(); node; node = stack.pop()) {
    if (!node.graph.has(node) || hasSideEffects(node) || node.outputs.some((v) => v.uses.length || v.resultOf.length)) continue;
    const read = node.inputs.filter((v): v is Value => v !== undefined);
    const inside = subgraphs(node).flatMap(allNodes);
    count += 1 + inside.length;
    for (const n of [node, ...inside]) for (const o of n.origins) gone.add(o);
    node.graph.erase(node);
    for (const v of read) {
      around.add(v);
      if (v.producer) stack.push(v.producer.node);
    }
  }
  return count;
}

/** Producers of the values, and consumers up to `reach` steps away. */
function nearby(values: readonly Value[], reach: number): Set<Node> {
  const out = new Set<Node>();
  for (const v of values) if (v.producer) out.add(v.producer.node);
  let front: readonly Value[] = values;
  for (let step = 0; step < reach && front.length; step++) {
    const next: Value[] = [];
    for (const v of front) {
      if (v.constant) continue;
      for (const use of v.uses) if (!out.has(use.node)) { out.add(use.node); next.push(...use.node.outputs); }
    }
    front = next;
  }
  return out;
}

function indexByRoot(rules: readonly Rule[]): RulesByRoot {
  const out = new Map<OpDef, Rule[]>();
  for (const rule of rules) for (const op of new Set(rootsOf(rule.match).flatMap((t) => t.ops))) out.set(op, [...(out.get(op) ?? []), rule]);
  return out;
}

/** Every node, subgraphs' nodes included. */
export function allNodes(graph: Graph): Node[] {
  return graph.nodes.flatMap((n) => [n, ...subgraphs(n).flatMap(allNodes)]);
}
