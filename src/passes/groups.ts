/**
 * Disjoint groups of a graph's nodes, each to become one region. Keeps the groups' dependencies acyclic: a group may
 * only grow where no path leads from it through another group back into it (convexity).
 */
import { invariant, present } from "../core/assert.ts";
import { captures, subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import { elementDepth } from "../graph/element-loops.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { storedValues } from "./region-of.ts";

/** Nodes that may share a kernel: expressions nest as deep as chains are long, and what walks them recurses. */
const largestGroup = 128;
/** Operations of elements that they may have together, for the same reason: 50 elementary functions, which are polynomials. */
const deepestGroup = 600;
/** Fewer nodes than this are never too deep. */
const shallow = 16;

export interface Group {
  /** Grows with every change, so that what was tried on a group can be remembered. */
  version: number;
  readonly nodes: Set<Node>;
  anchor: Node | undefined;
  /** Those of `nodes` that compute what the anchor convolves, strip by strip, and the anchor among them. */
  above?: { readonly nodes: ReadonlySet<Node>; readonly anchor: Node };
  /** What pools what those compute, strip by strip; the anchor among them is then the group's own. */
  pool?: Node;
  /** `free`: loops over elements or rows. `anchored`: an epilogue may follow. `alone`: takes part in nothing. */
  role: "free" | "anchored" | "view" | "alone";
}

export class Groups {
  readonly graph: Graph;
  readonly #groupOf = new Map<Node, Group>();
  readonly #position = new Map<Node, number>();
  /** Control nodes by the subgraphs they hold, at any depth. */
  readonly #owner = new Map<Graph, Node>();
  readonly #depths = new Map<Node, number>();
  #versions = 0;

  constructor(graph: Graph) {
    this.graph = graph;
    graph.nodes.forEach((node, i) => {
      this.#position.set(node, i);
      const own = (g: Graph): void => { this.#owner.set(g, node); for (const n of g.nodes) subgraphs(n).forEach(own); };
      subgraphs(node).forEach(own);
    });
  }

  add(node: Node, role: Group["role"], anchor?: Node): Group {
    const group: Group = { version: this.#versions++, nodes: new Set([node]), anchor, role };
    this.#groupOf.set(node, group);
    return group;
  }
  /** Why these would be too much for one kernel; undefined where they are not. */
  whyFull(nodes: readonly Node[]): Refusal | undefined {
    const remedy = "none: the rest of the chain gets a kernel of its own";
    if (nodes.length > largestGroup) return refuse("group-full", `${nodes.length} nodes would share a kernel, ${largestGroup} may`, remedy);
    const depth = nodes.length > shallow ? nodes.reduce((sum, n) => sum + this.#depthOf(n), 0) : 0;
    return depth > deepestGroup ? refuse("group-full", `${nodes.length} nodes of about ${Math.round(depth)} operations an element would share a kernel, which may have ${deepestGroup}`, remedy) : undefined;
  }
  #depthOf(node: Node): number {
    let depth = this.#depths.get(node);
    if (depth === undefined) this.#depths.set(node, (depth = node.op.fusionKind === "elementwise" || node.op.fusionKind === "broadcast" ? elementDepth(node) : 1));
    return depth;
  }
  of(node: Node): Group { return present(this.#groupOf.get(node), `group of ${node.name}`); }
  all(): Group[] { return [...new Set(this.#groupOf.values())]; }
  position(node: Node): number { return present(this.#position.get(node), `position of ${node.name}`); }
  /** Where the last node of a group stands. */
  endOf(group: Group): number { return Math.max(...[...group.nodes].map((n) => this.position(n))); }
  /** Nodes in topological order. */
  ordered(nodes: Iterable<Node>): Node[] { return [...nodes].sort((a, b) => this.position(a) - this.position(b)); }

  /** The node of this graph that uses a value: itself, or the one whose subgraph holds it; undefined for one that stands outside. */
  user(node: Node): Node | undefined { return node.graph === this.graph ? node : this.#owner.get(node.graph); }
  /** The group that computes a value, in this graph. */
  producer(value: Value | undefined): Group | undefined {
    const node = value?.producer?.node;
    return node && node.graph === this.graph ? this.of(node) : undefined;
  }
  /** Groups that read what `group` computes. */
  consumers(group: Group): Set<Group> {
    const out = new Set<Group>();
    for (const node of group.nodes) for (const v of node.outputs) {
      for (const use of v.uses) out.add(this.of(present(this.user(use.node), `user of ${v.name}`)));
      for (const g of v.resultOf) {
        const holder = this.#owner.get(g);
        if (holder) out.add(this.of(holder));
      }
    }
    out.delete(group);
    return out;
  }
  /** Groups that compute what `group` reads. */
  producers(group: Group): Set<Group> {
    const out = new Set<Group>();
    for (const node of group.nodes) for (const v of [...node.inputs, ...subgraphs(node).flatMap(captures)]) {
      const from = this.producer(v);
      if (from && from !== group) out.add(from);
    }
    return out;
  }

  /** The last group on a path that leads from one of `from` to one of `to` through groups outside both; undefined where there is none. */
  pathBetween(from: readonly Group[], to: readonly Group[]): Group | undefined {
    const inside = new Set([...from, ...to]);
    const seen = new Set<Group>();
    const stack = from.flatMap((g) => [...this.consumers(g)]).filter((g) => !inside.has(g));
    while (stack.length) {
      const g = stack.pop();
      if (!g || seen.has(g)) continue;
      seen.add(g);
      for (const next of this.consumers(g)) {
        if (to.includes(next)) return g;
        if (!inside.has(next)) stack.push(next);
      }
    }
    return undefined;
  }

  /** Moves everything of `from` into `into`. */
  merge(into: Group, from: Group): void {
    for (const n of from.nodes) { into.nodes.add(n); this.#groupOf.set(n, into); }
    into.anchor ??= from.anchor;
    if (from.role === "anchored") into.role = "anchored";
    into.version = this.#versions++;
  }

  /** Every group once, producers first; among ready ones, the one whose last node comes first. */
  inOrder(): Group[] {
    const waiting = new Map(this.all().map((g) => [g, this.producers(g).size]));
    const ready = new Set([...waiting].filter(([, n]) => n === 0).map(([g]) => g));
    const ends = new Map([...waiting.keys()].map((g) => [g, this.endOf(g)])), endOf = (g: Group): number => ends.get(g) ?? 0;
    const out: Group[] = [];
    while (ready.size) {
      const next = [...ready].reduce((a, b) => (endOf(b) < endOf(a) ? b : a));
      ready.delete(next);
      out.push(next);
      for (const c of this.consumers(next)) {
        const left = (waiting.get(c) ?? 0) - 1;
        waiting.set(c, left);
        if (left === 0) ready.add(c);
      }
    }
    invariant(out.length === waiting.size, "the groups have a cycle");
    return out;
  }
}

/** Values that the kernel of these nodes would store. */
export const storesOf = (nodes: Iterable<Node>): Value[] => storedValues(new Set(nodes));
