/**
 * The matcher: from a root node backwards over producers, with backtracking over commuted operands and alternatives.
 * A match is a closed group: no value inside it is used outside, returned by a graph or captured by a subgraph (but
 * for terms that say `shared`), and nothing with side effects or random results stands between its nodes.
 * When it fails, the attempt that came furthest is the near miss, with what was wrong in it.
 */
import { isUnranked } from "../core/container.ts";
import { sameTensor, sizeOf, toNumbers } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { rootsOf, type ConstantValue, type OpTerm, type Term } from "./pattern.ts";
import { refuse } from "./rule.ts";
import type { Refusal } from "./site.ts";

export interface Match {
  readonly kind: "match";
  readonly bindings: Readonly<Record<string, Value | Node | undefined>>;
  /** Matched nodes in data-flow order, the root last. */
  readonly nodes: readonly Node[];
}
/** The root and at least one more node matched, and then something failed. */
export interface NearMiss {
  readonly kind: "near-miss";
  readonly refusal: Refusal;
  readonly nodes: readonly Node[];
  /** Where everything matched, and only the group is not closed. */
  readonly bindings?: Match["bindings"];
}

/**
 * Matches `pattern` with `root` as its last operator, by the first alternative that fits. Otherwise the attempt that
 * matched most nodes; undefined when none is even a near miss.
 */
export function matchAt(pattern: Term, root: Node): Match | NearMiss | undefined {
  const [rootValue] = root.outputs;
  let nearest: NearMiss | undefined;
  for (const term of rootsOf(pattern)) {
    if (!rootValue || !term.ops.includes(root.op)) continue;
    const found = new Attempt(term, root).run(rootValue);
    if (found?.kind === "match") return found;
    if (found && found.nodes.length > (nearest?.nodes.length ?? 0)) nearest = found;
  }
  return nearest;
}

/** How many nodes with effects may be looked through to see what would have matched without them. */
const lookThrough = 4;

class Attempt {
  readonly #pattern: OpTerm;
  readonly #root: Node;
  readonly #bound = new Map<string, Value | Node>();
  readonly #nodeOf = new Map<OpTerm, Node>();
  readonly #shared = new Set<Node>();
  /** Matched nodes, in order of matching, each once. */
  readonly #nodes: Node[] = [];
  #furthest: { readonly refusal: Refusal; readonly nodes: readonly Node[]; readonly bindings?: Match["bindings"] } | undefined;

  constructor(pattern: OpTerm, root: Node) {
    this.#pattern = pattern;
    this.#root = root;
  }

  run(rootValue: Value): Match | NearMiss | undefined {
    if (this.#term(this.#pattern, rootValue, () => this.#closed()))
      return { kind: "match", bindings: Object.fromEntries(this.#bound), nodes: inDataFlowOrder(this.#root, this.#nodes) };
    const furthest = this.#furthest;
    if (!furthest || furthest.nodes.length < 2) return undefined;
    const { refusal, bindings } = furthest;
    return { kind: "near-miss", refusal, nodes: inDataFlowOrder(this.#root, furthest.nodes), ...(bindings ? { bindings } : {}) };
  }

  /** Matches `term` against a value and then everything that `rest` stands for; undoes its bindings when that fails. */
  #term(term: Term, value: Value | undefined, rest: () => boolean): boolean {
    switch (term.kind) {
      case "absent": return value === undefined ? rest() : this.#fail("input-present", `'${value.name}' is given`, `leave out '${value.name}'`);
      case "optional": return value === undefined ? rest() : this.#term(term.term, value, rest);
      case "any": return term.terms.some((t) => this.#term(t, value, rest));
      case "value": return value === undefined ? this.#missing() : this.#bindValue(term.name, value, rest);
      case "constant": return value === undefined ? this.#missing() : this.#constant(term, value, rest);
      case "op": return value === undefined ? this.#missing() : this.#op(term, value, rest);
    }
  }

  #constant(term: Term & { readonly kind: "constant" }, value: Value, rest: () => boolean): boolean {
    if (value.default)
      return this.#fail("overridable-initializer", `'${value.name}' is an initializer that is also a graph input, so a caller may replace it`,
        "freeze the initializers (--freeze_initializers), or remove it from the graph's inputs");
    if (!isConstant(value)) {
      if (term.quiet && value.producer) return false;
      const from = value.producer ? `computed by ${value.producer.node.op.type} '${value.producer.node.name}'` : "a graph input";
      return this.#fail("not-constant", `'${value.name}' is ${from}, not a constant`, value.producer ? "none: it is computed when the model runs" : `make '${value.name}' an initializer`);
    }
    if (term.predicate && !term.predicate.holds(value))
      return this.#fail(term.predicate.code ?? "constant-differs", `'${value.name}' is ${describe(value)}, wanted ${term.predicate.wants}`, `make '${value.name}' ${term.predicate.wants}`);
    return this.#bindValue(term.name, value, rest);
  }

  #bindValue(name: string | undefined, value: Value, rest: () => boolean): boolean {
    if (name === undefined) return rest();
    const before = this.#bound.get(name);
    if (before) return sameValue(before, value) ? rest()
      : this.#fail("different-operand", `'${value.name}' stands where '${before.name}' is wanted`, "none: with two operands it is another function");
    this.#bound.set(name, value);
    if (rest()) return true;
    this.#bound.delete(name);
    return false;
  }

  #op(term: OpTerm, value: Value, rest: () => boolean): boolean {
    const producer = value.producer;
    if (!producer || !term.ops.includes(producer.node.op) || producer.node.graph !== this.#root.graph) return this.#otherOperator(term, value);
    const { node, index } = producer;
    const open = [...node.inputs, ...node.outputs].find((v) => isUnranked(v?.type));
    if (open) return this.#fail("rank-unknown", `the rank of '${open.name}' is known only when the model runs`, "give the shapes of the model's inputs");
    if (index !== term.output) return this.#fail("other-output", `'${value.name}' is output ${index} of ${node.op.type} '${node.name}', wanted ${term.output}`, "use that output");
    const before = this.#nodeOf.get(term) ?? (term.as === undefined ? undefined : this.#bound.get(term.as));
    if (before) return before === node ? rest() : this.#fail("different-operand", `'${node.name}' stands where '${before.name}' is wanted`, "none: with two operands it is another function");
    const known = this.#nodes.includes(node);
    if (!known) this.#nodes.push(node);
    const wasShared = this.#shared.has(node);
    if (term.shared) this.#shared.add(node);
    this.#nodeOf.set(term, node);
    if (term.as !== undefined) this.#bound.set(term.as, node);
    if (this.#operands(term, node, () => this.#attributesHold(term, node) && rest())) return true;
    if (!known) this.#nodes.splice(this.#nodes.indexOf(node), 1);
    if (!wasShared) this.#shared.delete(node);
    this.#nodeOf.delete(term);
    if (term.as !== undefined) this.#bound.delete(term.as);
    return false;
  }

  #attributesHold(term: OpTerm, node: Node): boolean {
    if (!term.attributes || term.attributes.holds(node.attributes)) return true;
    return this.#fail(term.attributes.code ?? "attribute-differs", `${node.op.type} '${node.name}' does not have ${term.attributes.wants}`, `give it ${term.attributes.wants}`);
  }

  #operands(term: OpTerm, node: Node, rest: () => boolean): boolean {
    const inOrder = (inputs: readonly (Value | undefined)[]): boolean => {
      const from = (i: number): boolean => {
        const next = term.inputs[i];
        if (next) return this.#term(next, inputs[i], () => from(i + 1));
        const extra = term.rest ? undefined : inputs.slice(i).find((v) => v !== undefined);
        return extra ? this.#fail("input-present", `${node.op.type} '${node.name}' also reads '${extra.name}'`, `leave out '${extra.name}'`) : rest();
      };
      return from(0);
    };
    if (inOrder(node.inputs)) return true;
    const [a, b, ...others] = node.inputs;
    return term.commutes && a !== b && inOrder([b, a, ...others]);
  }

  #missing(): false {
    return this.#fail("input-missing", "an input is not given", "give it");
  }

  /** The value does not come from an operator of the term: perhaps one does, behind a node with effects. */
  #otherOperator(term: OpTerm, value: Value): false {
    const wanted = term.ops.map((o) => o.type).join(" or ");
    const between: Node[] = [];
    const beyond = behind(hasEffects, term, value, between, lookThrough);
    const blocker = between[0];
    if (beyond && blocker) {
      const effect = hasSideEffects(blocker);
      return this.#fail(effect ? "side-effect-between" : "non-deterministic-between",
        `${blocker.op.type} '${blocker.name}' stands between ${beyond.op.type} '${beyond.name}' and its consumer, and ${effect ? "has side effects" : "gives other results on every run"}`,
        `move '${blocker.name}' before or behind the group`, [...between, beyond]);
    }
    const grid: Node[] = [], rounded = behind(quantizes, term, value, grid, lookThrough);
    if (rounded)
      return this.#fail("quantized-between", `${grid.map((n) => `${n.op.type} '${n.name}'`).join(" and ")} stand between ${rounded.op.type} '${rounded.name}' and its consumer`,
        "none: the consumer reads rounded numbers, as the model says", [...grid, rounded]);
    const producer = value.producer?.node;
    if (producer && term.ops.includes(producer.op))
      return this.#fail("outside-subgraph", `${producer.op.type} '${producer.name}' stands outside the subgraph that uses it`, "move both into the same graph");
    return this.#fail("other-operator", `'${value.name}' comes from ${producer ? `${producer.op.type} '${producer.name}'` : value.constant ? "a constant" : "a graph input"}, wanted ${wanted}`,
      `none: ${wanted} would have to stand there`);
  }

  /** The whole pattern matched: is the group closed? */
  #closed(): boolean {
    const inside = new Set(this.#nodes);
    for (const node of this.#nodes) {
      if (this.#shared.has(node)) continue;
      for (const [index, v] of node.outputs.entries()) {
        if (node === this.#root && index === 0) continue;
        const refusal = usedOutside(v, node, inside);
        if (refusal) return this.#notClosed(refusal);
      }
    }
    return true;
  }

  #fail(code: string, reason: string, remedy: string, more: readonly Node[] = []): false {
    if (!this.#furthest?.bindings && this.#nodes.length + more.length > (this.#furthest?.nodes.length ?? 0))
      this.#furthest = { refusal: refuse(code, reason, remedy), nodes: [...this.#nodes, ...more] };
    return false;
  }
  #notClosed(refusal: Refusal): false {
    if (!this.#furthest?.bindings) this.#furthest = { refusal, nodes: [...this.#nodes], bindings: Object.fromEntries(this.#bound) };
    return false;
  }
}

/** Why a value of `node` cannot be swallowed by a group of nodes; undefined when only the group uses it. */
export function usedOutside(v: Value, node: Node, inside: ReadonlySet<Node>): Refusal | undefined {
  const what = `'${v.name}', the output of ${node.op.type} '${node.name}'`;
  const capture = v.uses.find((u) => u.node.graph !== node.graph)?.node.name ?? v.resultOf.find((g) => g !== node.graph)?.name;
  if (capture !== undefined)
    return refuse("captured-by-subgraph", `${what} is captured by a subgraph (by '${capture}')`, "compute it inside the subgraph instead");
  if (v.resultOf.length) return refuse("graph-output", `${what}, is a graph output`, `remove '${v.name}' from the graph's outputs`);
  const others = v.uses.filter((u) => !inside.has(u.node)).map((u) => `${u.node.op.type} '${u.node.name}'`);
  if (others.length === 0) return undefined;
  return refuse("interior-value-used", `${what}, is also used by ${[...new Set(others)].join(", ")} (${v.uses.length} uses)`, "remove the other use, where it is not needed");
}

/** Whether a node changes state besides its outputs. */
export const hasSideEffects = (node: Node): boolean => node.op.sideEffects === true;
/** Whether a node gives the same outputs on every run. */
export const isDeterministic = (node: Node): boolean => node.op.deterministic !== false;

const hasEffects = (node: Node): boolean => hasSideEffects(node) || !isDeterministic(node);
const quantizes = (node: Node): boolean => node.op.quantizes === true;

/** The node that `term` wants, looking through nodes of a kind; those are pushed to `between`. */
function behind(kind: (node: Node) => boolean, term: OpTerm, value: Value, between: Node[], steps: number): Node | undefined {
  const node = value.producer?.node;
  if (!node || steps === 0) return undefined;
  if (between.length && term.ops.includes(node.op)) return node;
  if (!kind(node)) return undefined;
  between.push(node);
  for (const input of node.inputs) {
    const found = input && behind(kind, term, input, between, steps - 1);
    if (found) return found;
  }
  between.pop();
  return undefined;
}

export const isConstant = (v: Value): v is ConstantValue => v.constant !== undefined && v.default === undefined;

const sameValue = (a: Value | Node, b: Value): boolean =>
  a === b || ("constant" in a && isSmallConstant(a) && isSmallConstant(b) && sameTensor(a.constant, b.constant));
const isSmallConstant = (v: Value): v is ConstantValue => isConstant(v) && sizeOf(v.constant.dims) <= 64;

function describe(c: ConstantValue): string {
  const { dtype, dims } = c.constant;
  return sizeOf(dims) === 1 && dtype !== "string" ? String(toNumbers(c.constant)[0]) : `${dtype}[${dims.join(", ")}]`;
}

/** The nodes, producers first. */
export function inDataFlowOrder(root: Node, nodes: readonly Node[]): Node[] {
  const left = new Set(nodes);
  const out: Node[] = [];
  const visit = (node: Node): void => {
    if (!left.delete(node)) return;
    for (const input of node.inputs) if (input?.producer) visit(input.producer.node);
    out.push(node);
  };
  visit(root);
  for (const node of [...left]) visit(node);
  return out;
}

/** Names of the original nodes that these stand for, each once, in the order of the nodes. */
export const originsOf = (nodes: readonly Node[]): string[] => [...new Set(nodes.flatMap((n) => n.origins))];
