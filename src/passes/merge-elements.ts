/**
 * Loops over elements and rows grow into each other: a producer is computed where its consumer reads it, siblings over
 * the same elements share their loops. A merge must not cost more operations than it saves (graph/element-loops.ts), so
 * that nothing is computed per pass or per broadcast element that was computed once. The merges that keep most bytes
 * out of memory come first.
 */
import { dimEqual, dimProduct, shapeEqual, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import { elementWork, estimate, type ElementWork } from "../graph/element-loops.ts";
import type { Node, Value } from "../graph/graph.ts";
import { concatenationOf } from "../graph/view.ts";
import { largestGroup, storesOf, type Group, type Groups } from "./groups.ts";
import type { PartitionContext } from "./partition-context.ts";

/** Operations that one kernel call is worth. */
const callCost = 400;
const storeLimit = 4;

interface Candidate {
  readonly from: Group;
  /** Views between the two, computed on the way. */
  readonly views: readonly Group[];
  readonly to: Group;
  readonly bytes: number;
}

/** Merges producers into consumers, then siblings. */
export function mergeElements(groups: Groups, context: PartitionContext): void {
  const merger = new Merger(groups, context);
  while (merger.round((g) => merger.producersOf(g)));
  while (merger.round((g) => merger.siblingsOf(g)));
}

class Merger {
  readonly #groups: Groups;
  readonly #context: PartitionContext;
  readonly #tried = new Set<string>();
  readonly #work = new Map<number, ElementWork>();

  constructor(groups: Groups, context: PartitionContext) {
    this.#groups = groups;
    this.#context = context;
  }

  /** Does the best merges until one changes what others would be; true while there was any. */
  round(candidatesOf: (to: Group) => Candidate[]): boolean {
    const candidates = this.#groups.inOrder().filter((g) => g.role === "free").flatMap(candidatesOf).sort((a, b) => b.bytes - a.bytes);
    const changed = new Set<Group>();
    let any = false;
    for (const c of candidates) {
      const parts = [c.from, ...c.views, c.to];
      if (parts.some((g) => changed.has(g))) { any = true; continue; }
      const key = parts.map((g) => g.version).join(" ");
      if (this.#tried.has(key)) continue;
      this.#tried.add(key);
      if (!this.#allowed(c)) continue;
      for (const part of [c.from, ...c.views]) { this.#groups.merge(c.to, part); changed.add(part); }
      changed.add(c.to);
      any = true;
    }
    return any;
  }

  /** Free groups whose results `to` reads, directly or through views that only it reads. */
  producersOf(to: Group): Candidate[] {
    const out = new Map<Group, Candidate>();
    for (const node of to.nodes) for (const input of node.inputs) {
      const views: Group[] = [];
      let value = input;
      let from = this.#groups.producer(value);
      while (value && from?.role === "view" && from !== to && isOnlyReadBy(value, views[0] ?? to, this.#groups)) {
        views.unshift(from);
        const [only] = from.nodes;
        value = only?.inputs[0];
        from = this.#groups.producer(value);
      }
      if (!value || !from || from === to || from.role !== "free") continue;
      const known = out.get(from);
      const bytes = bytesOf(value);
      if (!known || known.views.length > views.length) out.set(from, { from, views, to, bytes: bytes + (known?.bytes ?? 0) });
    }
    return [...out.values()];
  }

  /** Free groups over the same elements that read the same values. */
  siblingsOf(to: Group): Candidate[] {
    const out = new Map<Group, Candidate>();
    const shape = this.#spaceOf(to);
    if (!shape) return [];
    for (const value of new Set([...to.nodes].flatMap((n) => n.inputs))) {
      if (!value || value.constant || !shapeEqual(value.type.shape, shape)) continue;
      for (const use of value.uses) {
        const user = this.#groups.user(use.node);
        const from = user && this.#groups.of(user);
        if (!from || from === to || from.role !== "free" || out.has(from)) continue;
        const other = this.#spaceOf(from);
        if (other && shapeEqual(other, shape)) out.set(from, { from, views: [], to, bytes: bytesOf(value) });
      }
    }
    return [...out.values()];
  }
  /** The one shape that an element-wise group stores; none where it reduces. */
  #spaceOf(group: Group): readonly Dim[] | undefined {
    if ([...group.nodes].some((n) => n.op.fusionKind === "reduction" || n.op.fusionKind === "opaque" || n.op.fusionKind === "injective")) return undefined;
    const stores = storesOf(group.nodes);
    const first = stores[0]?.type.shape;
    return first && stores.every((v) => shapeEqual(v.type.shape, first)) ? first : undefined;
  }

  #allowed(c: Candidate): boolean {
    const parts = [c.from, ...c.views, c.to];
    if (parts.reduce((n, g) => n + g.nodes.size, 0) > largestGroup) return false;
    if (this.#groups.pathBetween([c.from], [c.to, ...c.views]) || this.#groups.pathBetween([c.to], [c.from])) return false;
    if ([...c.from.nodes].some((n) => concatenationOf(n))) return false;
    const nodes = this.#groups.ordered(parts.flatMap((g) => [...g.nodes]));
    const stores = storesOf(nodes);
    if (stores.length > storeLimit || !shareLoops(stores.map((v) => v.type.shape))) return false;
    if (this.#repeats(c)) return false;
    const from = this.#workOf(c.from), to = this.#workOf(c.to), merged = elementWork(nodes, stores);
    return merged.cost <= from.cost + to.cost + callCost && (!merged.nested || from.nested || to.nested) && !this.#forbidden(c, nodes);
  }
  /** Whether the merge is switched off, which is recorded. */
  #forbidden({ from, to }: Candidate, nodes: readonly Node[]): boolean {
    const why = this.#context.switchedOff(nodes, undefined);
    const [first] = this.#groups.ordered(to.nodes);
    if (why && first) this.#context.note(from, first, why);
    return why !== undefined;
  }
  #workOf(group: Group): ElementWork {
    let work = this.#work.get(group.version);
    if (!work) this.#work.set(group.version, (work = elementWork(this.#groups.ordered(group.nodes), storesOf(group.nodes))));
    return work;
  }
  /** Work on a small value that a larger result would repeat, however the loops are ordered. */
  #repeats(c: Candidate): boolean {
    const shape = largest(storesOf(c.to.nodes));
    if (!shape) return false;
    for (const v of storesOf(c.from.nodes)) {
      if (!isLarger(shape, v.type.shape) || [...c.to.nodes, ...c.from.nodes].some((n) => n.op.fusionKind === "reduction")) continue;
      if (!this.#context.isCheap(this.#groups.ordered(c.from.nodes))) return true;
    }
    return false;
  }
}

const bytesOf = (value: Value): number => estimate(dimProduct(value.type.shape)) * byteSize(value.type.dtype);
const usedIn = (group: Group, user: Node | undefined): boolean => user !== undefined && group.nodes.has(user);
function isOnlyReadBy(value: Value, group: Group, groups: Groups): boolean {
  return value.resultOf.length === 0 && value.uses.every((u) => usedIn(group, groups.user(u.node))) && (value.producer?.node.outputs.length ?? 0) === 1;
}
const largest = (values: readonly Value[]): readonly Dim[] | undefined =>
  values.map((v) => v.type.shape).reduce<readonly Dim[] | undefined>((a, b) => (a && estimate(dimProduct(a)) >= estimate(dimProduct(b)) ? a : b), undefined);
const isLarger = (a: readonly Dim[], b: readonly Dim[]): boolean => estimate(dimProduct(a)) > estimate(dimProduct(b));

/** Shapes of which each is where the next one's loops begin: equal, or 1 from some axis on. */
function shareLoops(shapes: readonly (readonly Dim[])[]): boolean {
  return shapes.every((a, i) => shapes.slice(i + 1).every((b) => {
    const rank = Math.max(a.length, b.length);
    const at = (s: readonly Dim[], d: number): Dim => s[d] ?? 1;
    for (let d = 0; d < rank; d++) {
      if (dimEqual(at(a, d), at(b, d))) continue;
      const rest = (s: readonly Dim[]): boolean => s.slice(d).every((x) => x === 1);
      return rest(a) || rest(b);
    }
    return true;
  }));
}
/** Nodes whose kernels loop over elements or rows and may share them with others. */
export const isFree = (node: Node): boolean => node.op.fusionKind !== "contraction" && !node.op.whole && node.op.sideEffects !== true && node.op.deterministic !== false;
