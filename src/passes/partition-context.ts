/** What the phases of partition share: options, names, switches, records, and what is known of a node. */
import { dimProduct, shapeEqual, type Dim } from "../core/dim.ts";
import type { Node, Value } from "../graph/graph.ts";
import { choosesAlong, concatenationOf } from "../graph/view.ts";
import { elementWork, estimate } from "../graph/element-loops.ts";
import { isRefusal, refuse, type Verdict } from "../rewrite/rule.ts";
import type { Refusal, Site } from "../rewrite/site.ts";
import type { Group, Groups } from "./groups.ts";
import type { Candidate } from "./merge-judge.ts";
import { refusedSite } from "./partition-sites.ts";
import { regionKind } from "./region-kind.ts";

export interface PartitionOptions {
  /** False: every node stands alone. */
  readonly fusion: boolean;
  /** Whether a region of this kind may be built of these nodes; `true`, or why not. */
  readonly isEnabled: (kind: string, nodes: readonly Node[]) => Verdict | boolean;
  /** The original operator type of an original node, for names. */
  readonly opTypesOf: (origin: string) => string | undefined;
}

/** Operations an element that broadcasting may repeat: a scale, a sum of biases, a dequantisation. */
const repeatable = 6.5;
/** Operations that a kernel does once: reading a scale and a zero point. */
const once = 4;

export class PartitionContext {
  readonly options: PartitionOptions;
  readonly groups: Groups;
  readonly refusals: Site[] = [];
  readonly #noted = new Set<string>();

  constructor(options: PartitionOptions, groups: Groups) {
    this.options = options;
    this.groups = groups;
  }

  kind(nodes: Iterable<Node>, anchor: Node | undefined): string { return regionKind(this.groups.ordered(nodes), anchor, this.options.opTypesOf); }

  switchedOff(nodes: Iterable<Node>, anchor: Node | undefined): Refusal | undefined {
    const kind = this.kind(nodes, anchor);
    const enabled = this.options.isEnabled(kind, this.groups.ordered(nodes));
    if (isRefusal(enabled)) return enabled;
    return enabled ? undefined : refuse("switched-off", `regions of kind ${kind} are switched off here`, `switch ${kind} on`);
  }

  /** Records that `node` did not join `group`. */
  note(group: Group, node: Node, why: Refusal): void {
    const root = group.anchor ?? this.groups.ordered(group.nodes)[0];
    const between = why.code === "side-effect-between" || why.code === "non-deterministic-between";
    const followers = between ? node.outputs.flatMap((v) => v.uses.map((u) => u.node)) : [];
    const nodes = this.groups.ordered(new Set([...group.nodes, node, ...followers.filter((n) => n.graph === this.groups.graph)]));
    if (!root) return;
    const site = refusedSite(regionKind(nodes, group.anchor, this.options.opTypesOf), root, nodes, why);
    const key = `${site.name} ${site.at} ${node.name} ${why.code}`;
    if (!this.#noted.has(key)) this.refusals.push(site);
    this.#noted.add(key);
  }

  /** Records that a contraction stays apart from the one above it, each with what it has taken along. */
  noteAnchors(above: Group, group: Group, why: Refusal): void {
    const nodes = this.groups.ordered([...above.nodes, ...group.nodes]);
    if (group.anchor) this.refusals.push(refusedSite(this.kind(nodes, group.anchor), group.anchor, nodes, why));
  }

  /** Records that a pool stays apart from the convolution above it. */
  notePool(above: Group, group: Group, why: Refusal): void {
    const nodes = this.groups.ordered([...above.nodes, ...group.nodes]);
    if (above.anchor) this.refusals.push(refusedSite(this.kind(nodes, above.anchor), above.anchor, nodes, why));
  }

  /** Records that two groups of loops over elements stay apart: at the node that reads, with the nodes on which they touch. */
  notePair({ from, views, to }: Candidate, why: Refusal): void {
    const between = views.flatMap((g) => [...g.nodes]);
    const left = valuesOf([...from.nodes, ...between]), right = valuesOf([...to.nodes, ...between]);
    const all = this.groups.ordered([...from.nodes, ...between, ...to.nodes]);
    const near = all.filter((n) => [...valuesOf([n])].some((v) => left.has(v) && right.has(v)));
    const root = near.find((n) => to.nodes.has(n)) ?? all[0];
    if (root) this.refusals.push(refusedSite(regionKind(all, undefined, this.options.opTypesOf), root, near, why));
  }

  /** Whether an epilogue over `shape` may compute the node instead of loading its result. */
  isSide(node: Node, shape: readonly Dim[]): boolean {
    const kind = node.op.fusionKind;
    const result = node.outputs[0];
    if (!result || (kind !== "elementwise" && kind !== "broadcast" && kind !== "injective") || concatenationOf(node)) return false;
    // Lanes run along channels or columns: they must not read from different places.
    const rank = result.type.shape.length;
    if (kind === "injective" && (choosesAlong(node, 1) || choosesAlong(node, rank - 1))) return false;
    return shapeEqual(result.type.shape, shape) || this.isCheap([node]);
  }
  /** True where computing the nodes' one result anew for every reader costs about as much as loading it. */
  isCheap(nodes: readonly Node[]): boolean {
    const last = nodes[nodes.length - 1]?.outputs[0];
    return last !== undefined && elementWork(nodes, [last]).cost <= repeatable * Math.max(1, estimate(dimProduct(last.type.shape))) + once;
  }
}

/** What nodes read and compute, but for constants. */
const valuesOf = (nodes: readonly Node[]): Set<Value> => new Set(nodes.flatMap((n) => [...n.inputs, ...n.outputs]).filter((v): v is Value => v !== undefined && v.constant === undefined));
