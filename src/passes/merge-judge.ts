/**
 * Why two groups of loops over elements stay apart. A merge must not cost more operations than it saves
 * (graph/element-loops.ts), so that nothing is computed per pass or per broadcast element that was computed once; it
 * must not close a cycle, and what it stores must fit one nest of loops. Refusals say `none` for a remedy where the
 * two kernels are the better program, and else only what has been checked to make them one.
 */
import { dimEqual, dimProduct, formatShape, type Dim } from "../core/dim.ts";
import { elementWork, estimate, type ElementWork } from "../graph/element-loops.ts";
import type { Node, Value } from "../graph/graph.ts";
import { concatenationOf } from "../graph/view.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { storesOf, type Group, type Groups } from "./groups.ts";
import type { PartitionContext } from "./partition-context.ts";

/** Two groups that might become one. */
export interface Candidate {
  readonly from: Group;
  /** Views between the two, computed on the way. */
  readonly views: readonly Group[];
  readonly to: Group;
  /** Bytes that stay out of memory. */
  readonly bytes: number;
}

/** Operations that one kernel call is worth. */
const callCost = 400;
const storeLimit = 4;
/** How much larger than a value the same one with a border is, at most. */
const border = 1.25;
/** Operations an element from which on a movement is no mere copy. */
const interpolated = 24;

export class MergeJudge {
  readonly #groups: Groups;
  readonly #context: PartitionContext;
  readonly #work = new Map<number, ElementWork>();

  constructor(groups: Groups, context: PartitionContext) {
    this.#groups = groups;
    this.#context = context;
  }

  /** Undefined where the two may become one. */
  whyApart(c: Candidate): Refusal | undefined {
    const parts = [c.from, ...c.views, c.to];
    const full = this.#groups.whyFull(parts.flatMap((g) => [...g.nodes]));
    if (full) return full;
    const between = this.#groups.pathBetween([c.from], [c.to, ...c.views]) ?? this.#groups.pathBetween([c.to], [c.from]);
    if (between) return refuse("residual-cycle", `${this.#name(between)} is computed from one of them, and the other reads it`, "none: it has to wait");
    const concatenation = [...c.from.nodes].find((n) => concatenationOf(n) && !this.#copies(n, c.from));
    if (concatenation) return refuse("concatenation-between", `the parts of ${nameOf(concatenation)} are placed where they belong by who computes them`, "none: the concatenation itself costs nothing");
    const nodes = this.#groups.ordered(parts.flatMap((g) => [...g.nodes]));
    const stores = storesOf(nodes);
    if (stores.length > storeLimit) return refuse("interior-value-used", `${stores.length} values would have to be stored (${stores.map((v) => `'${v.name}'`).join(", ")}), and a kernel stores ${storeLimit} at most`, this.#withoutStores(c, nodes, stores));
    if (!shareLoops(stores)) return refuse("loops-differ", `${stores.map(described).join(" and ")} would be stored by one kernel, and have no loops in common`, this.#withoutStores(c, nodes, stores));
    return this.#costs(c, nodes, stores) ?? this.#context.switchedOff(nodes, undefined);
  }

  /** Whether a concatenation copies every part, since none is computed for it alone by another kernel: its reader may as well choose among them. */
  #copies(node: Node, own: Group): boolean {
    return node.inputs.every((part) => {
      const maker = this.#groups.producer(part);
      return !part || !maker || maker === own || maker.role === "view" || part.resultOf.length > 0 || part.uses.length > 1;
    });
  }

  #costs(c: Candidate, nodes: readonly Node[], stores: readonly Value[]): Refusal | undefined {
    const repeated = this.#repeated(c);
    if (repeated) return refuse("work-repeated", `${described(repeated.value)} would be computed again for the ${repeated.by} elements that read it`, "none: it is cheaper computed once");
    const from = this.#workOf(c.from), to = this.#workOf(c.to), merged = elementWork(nodes, stores);
    const apart = from.cost + to.cost + callCost;
    if (merged.cost > apart) return refuse("work-repeated", `about ${Math.round(merged.cost)} operations in one kernel, ${Math.round(apart)} in two, the call included`, "none: two kernels are cheaper");
    if (merged.nested && !from.nested && !to.nested) return refuse("reductions-nest", "one reduction would run inside the other", "none: two kernels are cheaper");
    return undefined;
  }
  #workOf(group: Group): ElementWork {
    let work = this.#work.get(group.version);
    if (!work) this.#work.set(group.version, (work = elementWork(this.#groups.ordered(group.nodes), storesOf(group.nodes))));
    return work;
  }

  /** Work on a small value that a larger result would repeat, however the loops are ordered. */
  #repeated(c: Candidate): { readonly value: Value; readonly by: number } | undefined {
    const by = Math.max(0, ...storesOf(c.to.nodes).map(elementsOf));
    if ([...c.to.nodes, ...c.from.nodes].some((n) => n.op.fusionKind === "reduction")) return undefined;
    const value = storesOf(c.from.nodes).find((v) => by > elementsOf(v) * this.#borderOf(c.from, elementsOf(v)));
    return value && !this.#context.isCheap(this.#groups.ordered(c.from.nodes)) ? { value, by } : undefined;
  }

  /** The remedy where values that only the other group should read are read elsewhere: true only if it then were one kernel. */
  #withoutStores(c: Candidate, nodes: readonly Node[], stores: readonly Value[]): string {
    const interior = stores.filter((v) => v.uses.some((u) => c.to.nodes.has(u.node) || c.views.some((g) => g.nodes.has(u.node))) && v.producer && c.from.nodes.has(v.producer.node));
    const left = stores.filter((v) => !interior.includes(v));
    const helps = interior.length > 0 && left.length > 0 && left.length <= storeLimit && shareLoops(left) && !this.#costs(c, nodes, left) && !this.#context.switchedOff(nodes, undefined);
    return helps ? `use ${interior.map((v) => `'${v.name}'`).join(" and ")} nowhere else` : "none: what they store does not fit one kernel";
  }

  /** How much more elements than `elements` may read what a group moves: where it interpolates, the work for a border is less than storing the rest; where it copies, its rows are better copied whole. */
  #borderOf(from: Group, elements: number): number {
    return [...from.nodes].every((n) => n.op.fusionKind === "injective") && this.#workOf(from).cost > interpolated * elements ? border : 1;
  }

  #name(group: Group): string {
    const [first] = this.#groups.ordered(group.nodes);
    return first ? nameOf(first) : "another kernel";
  }
}

const nameOf = (node: Node): string => `${node.op.type} '${node.name}'`;
const described = (v: Value): string => `'${v.name}' ${formatShape(v.type.shape)}`;
const elementsOf = (v: Value): number => estimate(dimProduct(v.type.shape));

/** Values of which each is where the next one's loops begin: of equal sizes, or of size 1 from some axis on. */
function shareLoops(values: readonly Value[]): boolean {
  const shapes = values.map((v) => v.type.shape);
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
