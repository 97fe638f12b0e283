/**
 * A graph of a custom rule with its operators looked up: as the pattern that the matcher looks for, and as calls in
 * order, which insert a replacement, evaluate it, or build an example.
 */
import { present } from "../../core/assert.ts";
import { fail, nearestName } from "../../core/diagnostic.ts";
import type { OpDef } from "../../graph/op.ts";
import { Add, Max, Min, Mul, operators } from "../../ops/index.ts";
import { equalTo, type OpTerm, type Term } from "../../rewrite/pattern.ts";
import type { Port, RuleGraph } from "./custom-rule.ts";

const commutative: readonly OpDef[] = [Add, Mul, Max, Min];

/** What a walk does with the parts of a picture. */
export interface PictureCalls<T> {
  /** What an outer input stands for; undefined where it is not given. */
  outer(name: string): T | undefined;
  constant(value: number | readonly number[], name: string): T;
  /** A node; the results of as many outputs as are used. */
  call(op: OpDef, inputs: readonly (T | undefined)[], node: string, outputCount: number): readonly T[];
}

export class Picture {
  readonly #rule: string;
  readonly #outer: readonly string[];
  readonly #graph: RuleGraph;
  readonly #terms = new Map<string, OpTerm>();

  /** Fails with OF4022 for operators that do not exist. */
  constructor(rule: string, outer: readonly string[], graph: RuleGraph) {
    this.#rule = rule;
    this.#outer = outer;
    this.#graph = graph;
    for (const n of graph.nodes) this.opsOf(n.name);
  }

  /** Where the value at a port comes from. */
  sourceOf(node: string, slot = 0): Port {
    return present(this.#graph.edges.find((e) => e.to.node === node && e.to.slot === slot), `edge to ${node}`).from;
  }
  isOuter(name: string): boolean { return this.#outer.includes(name); }

  /** The operators that a node may be. */
  opsOf(node: string): readonly OpDef[] {
    const { types } = present(this.#graph.nodes.find((n) => n.name === node), `node ${node}`);
    return types.map((type) => operatorOf(type) ?? this.#unknown(type));
  }
  #unknown(type: string): never {
    const near = nearestName(type, operators.map((o) => o.type));
    return fail("OF4022", `rule '${this.#rule}': there is no operator '${type}'`, { hint: near === undefined ? "name ONNX operators; an operator of your own is the OutputOp of a rule without FusionGraph" : `did you mean '${near}'?` });
  }

  /** The pattern that ends in a node's output; a node that is used twice is one term. */
  term({ node, slot }: Port): OpTerm {
    const key = `${node}:${slot}`;
    const known = this.#terms.get(key);
    if (known) return known;
    const ops = this.opsOf(node);
    const inputs = this.#inputs(node).map((from): Term => (from === undefined ? { kind: "absent" } : this.#operand(from)));
    const commutes = inputs.length === 2 && ops.every((o) => commutative.includes(o));
    const made: OpTerm = { kind: "op", ops, inputs, commutes, as: node, output: slot, attributes: undefined, shared: false };
    this.#terms.set(key, made);
    return made;
  }
  #operand(from: Port): Term {
    if (this.isOuter(from.node)) return { kind: "value", name: from.node };
    const constant = this.#constant(from.node);
    return constant ? { kind: "constant", name: undefined, predicate: equalTo(Number(constant.value)), quiet: false } : this.term(from);
  }

  /** Carries out the nodes that `from` needs, producers first; its value. */
  walk<T>(from: Port, calls: PictureCalls<T>): T {
    const done = new Map<string, readonly T[]>();
    const constants = new Map<string, T>();
    const value = (at: Port): T | undefined => {
      if (this.isOuter(at.node)) return calls.outer(at.node);
      const constant = this.#constant(at.node);
      if (!constant) return visit(at.node)[at.slot];
      const made = constants.get(at.node) ?? calls.constant(constant.value, at.node);
      constants.set(at.node, made);
      return made;
    };
    const visit = (node: string): readonly T[] => {
      const known = done.get(node);
      if (known) return known;
      const inputs = this.#inputs(node).map((at) => at && value(at));
      const outputCount = 1 + Math.max(0, ...this.#graph.edges.filter((e) => e.from.node === node).map((e) => e.from.slot));
      const made = calls.call(present(this.opsOf(node)[0], "operator"), inputs, node, outputCount);
      done.set(node, made);
      return made;
    };
    return value(from) ?? fail("OF4023", `rule '${this.#rule}': nothing gives '${from.node}:${from.slot}'`, { hint: "let an edge start at what the original binds" });
  }

  #constant(name: string): RuleGraph["constants"][number] | undefined { return this.#graph.constants.find((c) => c.name === name); }
  #inputs(node: string): (Port | undefined)[] {
    const edges = this.#graph.edges.filter((e) => e.to.node === node);
    const count = Math.max(0, ...edges.map((e) => e.to.slot + 1));
    return Array.from({ length: count }, (_, slot) => edges.find((e) => e.to.slot === slot)?.from);
  }
}

/** An operator by its type, the standard domain before others; `domain::Type` names one of another domain. */
function operatorOf(name: string): OpDef | undefined {
  const [, domain, type] = /^(.+)::(.+)$/.exec(name) ?? [];
  if (type !== undefined) return operators.find((o) => o.domain === domain && o.type === type);
  return operators.find((o) => o.type === name && o.domain === "") ?? operators.find((o) => o.type === name);
}
