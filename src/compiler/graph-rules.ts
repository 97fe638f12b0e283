/**
 * Custom rules in GE's graph form as rules of the rewrite engine. What a built-in rule proves by its example, a custom
 * one must show at each site: original and replacement are evaluated there on random inputs and have to agree.
 */
import { invariant, present } from "../core/assert.ts";
import { formatContainer } from "../core/container.ts";
import { asTensor } from "../core/datum.ts";
import { DiagnosticError, fail, nearestName } from "../core/diagnostic.ts";
import { isFloat } from "../core/dtype.ts";
import type { EvaluateAttribute } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { Graph, type Node, type Value } from "../graph/graph.ts";
import { evaluationOf, type Attributes, type OpDef } from "../graph/op.ts";
import { Add, Max, Min, Mul, operators } from "../ops/index.ts";
import type { OpTerm, Term } from "../rewrite/pattern.ts";
import { reassociates, refuse, type Rule, type Verdict } from "../rewrite/rule.ts";
import type { GraphRule, RuleGraph } from "./custom-rules.ts";

const commutative: readonly OpDef[] = [Add, Mul, Max, Min];
/** How far original and replacement may differ, as a share of the largest element. */
const tolerance = 1e-4;

/** Fails with OF4022 for operators that do not exist and OF4023 for rules whose graphs make no single pattern. */
export function graphRuleOf(rule: GraphRule): Rule {
  const wrong = (message: string, hint: string): never => fail("OF4023", `rule '${rule.name}': ${message}`, { hint });
  const [output, ...more] = rule.outputs;
  if (output === undefined || more.length) return wrong("a rule replaces one value", "give exactly one OuterOutput");
  const origin = new Picture(rule, rule.origin), fusion = new Picture(rule, rule.fusion);
  const match = origin.term(origin.sourceOf(output).node);
  if (match.kind !== "op") return wrong("its output is an input", "let a node of OriginGraph produce it");
  const replacement = (bindings: Bindings, attributesFor: (node: string) => Attributes): Plan => fusion.plan(output, rule.inputs, bindings, attributesFor);
  const carried = (bindings: Bindings) => (name: string): Attributes => {
    const out: Record<string, Attributes[string]> = {};
    for (const a of rule.attributes) if (a.to.node === name) out[a.to.attribute] = nodeIn(bindings, a.from.node).attributes[a.from.attribute];
    return out;
  };
  return {
    name: rule.name, doc: "A custom rule.", stage: "recognise", match, numerics: reassociates(tolerance),
    where: [(bindings, root) => agrees(root, replacement(bindings as Bindings, carried(bindings as Bindings)), rule.inputs, bindings as Bindings)],
    rewrite(bindings, edit) {
      const b = bindings as Bindings;
      return replacement(b, carried(b)).insert((op, inputs, attributes) => edit.insert(op, inputs, attributes));
    },
    example: () => new Graph(rule.name),
    refuses: {},
  };
}

type Bindings = Readonly<Record<string, Value | Node | undefined>>;
const isNode = (x: Value | Node | undefined): x is Node => x !== undefined && "op" in x;
function nodeIn(bindings: Bindings, name: string): Node {
  const found = bindings[name];
  invariant(isNode(found), `${name} is bound to a node`);
  return found;
}
function valueIn(bindings: Bindings, name: string): Value | undefined {
  const found = bindings[name];
  return isNode(found) ? undefined : found;
}

/** What a replacement does, as calls in order: inserted into a graph, or evaluated. */
interface Plan {
  insert(call: (op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes) => Value): Value;
  evaluate(inputs: ReadonlyMap<string, Tensor>): Tensor;
}

/** A rule's graph with its operators looked up. */
class Picture {
  readonly #rule: GraphRule;
  readonly #graph: RuleGraph;
  readonly #terms = new Map<string, Term>();

  constructor(rule: GraphRule, graph: RuleGraph) {
    this.#rule = rule;
    this.#graph = graph;
    for (const n of graph.nodes) this.#ops(n.name);
  }

  /** Where the value at a port comes from. */
  sourceOf(node: string, slot = 0): { readonly node: string; readonly slot: number } {
    return present(this.#graph.edges.find((e) => e.to.node === node && e.to.slot === slot), `edge to ${node}`).from;
  }
  #inputs(node: string): (string | undefined)[] {
    const edges = this.#graph.edges.filter((e) => e.to.node === node);
    const count = Math.max(0, ...edges.map((e) => e.to.slot + 1));
    return Array.from({ length: count }, (_, slot) => edges.find((e) => e.to.slot === slot)?.from.node);
  }
  #ops(node: string): readonly OpDef[] {
    const { types } = present(this.#graph.nodes.find((n) => n.name === node), `node ${node}`);
    return types.map((type) => operators.find((o) => o.type === type) ?? this.#unknown(type));
  }
  #unknown(type: string): never {
    const near = nearestName(type, operators.map((o) => o.type));
    return fail("OF4022", `rule '${this.#rule.name}': there is no operator '${type}'`, { hint: near === undefined ? "the form with pattern and output_op names a kernel after nothing but its chain" : `did you mean '${near}'?` });
  }

  /** The pattern that ends at a node, or what an outer input stands for; a node that is used twice is one term. */
  term(name: string): Term {
    const known = this.#terms.get(name);
    if (known) return known;
    const made: Term = this.#rule.inputs.includes(name) ? { kind: "value", name } : this.#opTerm(name);
    this.#terms.set(name, made);
    return made;
  }
  #opTerm(name: string): OpTerm {
    const ops = this.#ops(name);
    const inputs = this.#inputs(name).map((from): Term => (from === undefined ? { kind: "value", name: undefined } : this.term(from)));
    const commutes = inputs.length === 2 && ops.every((o) => commutative.includes(o));
    return { kind: "op", ops, inputs, commutes, as: name, output: 0, attributes: undefined, shared: false };
  }

  plan(output: string, outer: readonly string[], bindings: Bindings, attributesFor: (node: string) => Attributes): Plan {
    const walk = <T>(leaf: (name: string) => T | undefined, call: (op: OpDef, inputs: readonly (T | undefined)[], attributes: Attributes) => T): T => {
      const done = new Map<string, T>();
      const visit = (name: string): T => {
        const known = done.get(name);
        if (known !== undefined) return known;
        const [op] = this.#ops(name);
        const inputs = this.#inputs(name).map((from) => (from === undefined ? undefined : outer.includes(from) ? leaf(from) : visit(from)));
        const made = call(present(op, "operator"), inputs, attributesFor(name));
        done.set(name, made);
        return made;
      };
      return visit(this.sourceOf(output).node);
    };
    return {
      insert: (call) => walk((name) => valueIn(bindings, name), call),
      evaluate: (inputs) => walk((name) => inputs.get(name), evaluate),
    };
  }
}

function evaluate(op: OpDef, inputs: readonly (Tensor | undefined)[], attributes: Attributes): Tensor {
  const filled: Record<string, EvaluateAttribute | undefined> = {};
  for (const [key, spec] of Object.entries(op.attributes)) filled[key] = (attributes[key] ?? spec.default) as EvaluateAttribute | undefined;
  const run = present(evaluationOf(op), `evaluation of ${op.type}`);
  return asTensor(present(run(inputs, filled, { outputCount: 1 })[0], `result of ${op.type}`));
}

/** Evaluates both sides of a site on the same inputs: constants as they are, the rest random, symbolic sizes 2. */
function agrees(root: Node, plan: Plan, outer: readonly string[], bindings: Bindings): Verdict {
  const values = new Map<Value, Tensor>();
  const inputs = new Map<string, Tensor>();
  outer.forEach((name, i) => {
    const v = valueIn(bindings, name);
    if (!v) return;
    const t = v.constant ?? v.type.constant ?? randomTensor(v, i + 1);
    values.set(v, t);
    inputs.set(name, t);
  });
  const original = (v: Value): Tensor => {
    const known = values.get(v) ?? v.constant;
    if (known) return known;
    const { node } = present(v.producer, `producer of ${v.name}`);
    if (v.type.container) fail("OF3017", `'${v.name}' is not a tensor but a ${formatContainer(v.type.container)}`);
    return evaluate(node.op, node.inputs.map((x) => x && original(x)), node.attributes);
  };
  const no = (reason: string): Verdict => refuse("not-equal", reason, "correct the FusionGraph");
  try {
    const expected = original(present(root.outputs[0], "output")), actual = plan.evaluate(inputs);
    if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return no(`the replacement gives ${actual.dtype} [${actual.dims.join(", ")}], the original ${expected.dtype} [${expected.dims.join(", ")}]`);
    const difference = differenceOf(actual, expected);
    return difference <= tolerance || no(`the replacement differs by ${difference.toExponential(2)} of the largest element on random inputs`);
  } catch (e) {
    if (e instanceof DiagnosticError) return no(e.message);
    throw e;
  }
}

function randomTensor(v: Value, seed: number): Tensor {
  const { dtype, shape } = v.type;
  const dims = shape.map((d) => (typeof d === "number" ? d : 2));
  let state = seed * 7919;
  const values = Array.from({ length: sizeOf(dims) }, () => {
    state = (state * 48271) % 2147483647;
    return isFloat(dtype) ? state / 2147483647 - 0.5 : state % 3;
  });
  return fromNumbers(dtype, dims, values);
}

/** Largest difference as a share of the largest element. */
function differenceOf(a: Tensor, b: Tensor): number {
  const x = toNumbers(a), y = toNumbers(b);
  let most = 0, largest = 0;
  for (let i = 0; i < y.length; i++) {
    const d = Math.abs((x[i] ?? NaN) - (y[i] ?? NaN));
    if (Number.isNaN(d) && !(Number.isNaN(x[i]) && Number.isNaN(y[i]))) return Infinity;
    most = Math.max(most, d || 0);
    largest = Math.max(largest, Math.abs(y[i] ?? 0));
  }
  return most === 0 ? 0 : most / largest;
}
