/**
 * Loops over elements and rows grow into each other: a producer is computed where its consumer reads it, siblings over
 * the same elements share their loops. What must stay apart is said by merge-judge.ts. The merges that keep most bytes
 * out of memory come first.
 */
import { dimProduct, shapeEqual, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import { estimate } from "../graph/element-loops.ts";
import type { Node, Value } from "../graph/graph.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { storesOf, type Group, type Groups } from "./groups.ts";
import { MergeJudge, type Candidate } from "./merge-judge.ts";
import type { PartitionContext } from "./partition-context.ts";

/** Merges producers into consumers and siblings with each other, and records what stays apart, and why. */
export function mergeElements(groups: Groups, context: PartitionContext): void {
  const merger = new Merger(groups, context);
  do { while (merger.round((g) => merger.producersOf(g))); } while (merger.round((g) => merger.siblingsOf(g)));
  merger.record();
}

class Merger {
  readonly #groups: Groups;
  readonly #context: PartitionContext;
  readonly #judge: MergeJudge;
  /** Why what was tried stays apart, by the versions of its groups. */
  readonly #refused = new Map<string, Refusal>();

  constructor(groups: Groups, context: PartitionContext) {
    this.#groups = groups;
    this.#context = context;
    this.#judge = new MergeJudge(groups, context);
  }

  /** Does the best merges until one changes what others would be; true while there was any. */
  round(candidatesOf: (to: Group) => Candidate[]): boolean {
    const candidates = this.#groups.inOrder().filter((g) => g.role === "free").flatMap(candidatesOf).sort((a, b) => b.bytes - a.bytes);
    const changed = new Set<Group>();
    let any = false;
    for (const c of candidates) {
      const parts = [c.from, ...c.views, c.to];
      if (parts.some((g) => changed.has(g))) { any = true; continue; }
      const key = keyOf(c);
      if (this.#refused.has(key)) continue;
      const refusal = this.#judge.whyApart(c);
      if (refusal) { this.#refused.set(key, refusal); continue; }
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

  /**
   * One record for each pair that stays apart: a producer and its reader, or readers of one value where the second is
   * the next in order after the first (every pair of many readers would be a square of records).
   */
  record(): void {
    const seen = new Set<string>();
    for (const to of this.#groups.inOrder().filter((g) => g.role === "free")) {
      const siblings = this.siblingsOf(to).filter((c) => this.#groups.endOf(c.from) > this.#groups.endOf(to));
      const [next] = siblings.sort((a, b) => this.#groups.endOf(a.from) - this.#groups.endOf(b.from));
      for (const c of [...this.producersOf(to), ...(next ? [next] : [])]) {
        const pair = [c.from.version, c.to.version].sort((a, b) => a - b).join(" ");
        const refusal = this.#refused.get(keyOf(c));
        if (seen.has(pair) || !refusal) continue;
        seen.add(pair);
        this.#context.notePair(c, refusal);
      }
      for (const { candidate, refusal } of this.#behindSharedViews(to)) {
        const pair = [candidate.from.version, to.version].sort((a, b) => a - b).join(" ");
        if (!seen.has(pair)) this.#context.notePair(candidate, refusal);
        seen.add(pair);
      }
    }
  }

  /** Producers that `to` reads through views which others read too: what they compute is stored for those anyway. */
  #behindSharedViews(to: Group): { readonly candidate: Candidate; readonly refusal: Refusal }[] {
    const out = new Map<Group, { readonly candidate: Candidate; readonly refusal: Refusal }>();
    for (const input of [...to.nodes].flatMap((n) => n.inputs)) {
      const views: Group[] = [];
      let value = input, shared: Value | undefined, from = this.#groups.producer(value);
      while (value && from?.role === "view") {
        if (!isOnlyReadBy(value, views[0] ?? to, this.#groups)) shared ??= value;
        views.unshift(from);
        const [only] = from.nodes;
        value = only?.inputs[0];
        from = this.#groups.producer(value);
      }
      if (!shared || !from || from === to || from.role !== "free" || out.has(from)) continue;
      const refusal = refuse("interior-value-used", `'${shared.name}', through which '${value?.name}' is read, is read elsewhere too`, "none: it is stored for its other readers anyway");
      out.set(from, { candidate: { from, views, to, bytes: 0 }, refusal });
    }
    return [...out.values()];
  }
}

const keyOf = (c: Candidate): string => [c.from, ...c.views, c.to].map((g) => g.version).join(" ");
const bytesOf = (value: Value): number => estimate(dimProduct(value.type.shape)) * byteSize(value.type.dtype);
const usedIn = (group: Group, user: Node | undefined): boolean => user !== undefined && group.nodes.has(user);
function isOnlyReadBy(value: Value, group: Group, groups: Groups): boolean {
  return value.resultOf.length === 0 && value.uses.every((u) => usedIn(group, groups.user(u.node))) && (value.producer?.node.outputs.length ?? 0) === 1;
}
/** Nodes whose kernels loop over elements or rows and may share them with others. */
export const isFree = (node: Node): boolean => node.op.fusionKind !== "contraction" && !node.op.whole && node.op.sideEffects !== true && node.op.deterministic !== false;
