/**
 * Graphs on which a custom rule in JSON can be tried: shapes, element types, attributes and alternatives are drawn at
 * random (seeded) from what the rule's conditions allow, and kept where the operators accept them and the pattern matches.
 * Shapes are drawn around one base shape, so that broadcasts, products and convolutions come up often.
 */
import { present } from "../core/assert.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { isFloat, type DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";
import { chainNodes, type ChainRule, type GraphRule, type RuleGraph } from "../compiler/custom-rules/custom-rule.ts";
import { patternOf, siteOf, type Bindings } from "../compiler/custom-rules/graph-rules.ts";
import { passes, type AttributeTest, type NumberTest, type ValueCondition } from "../compiler/custom-rules/rule-conditions.ts";
import { checkConditions } from "../compiler/custom-rules/rule-guards.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { AttributeSpec, Attributes, OpDef } from "../graph/op.ts";
import { matchAt } from "../rewrite/match.ts";
import { operators } from "../ops/index.ts";

/** Attempts to draw a graph, draws of what one operator reads, and graphs that are enough. */
const attempts = 1_500, draws = 24, enough = 24;

/** What a node of a picture reads: a value of the graph, or an outer input of which nothing is said yet. */
type Operand = Value | { readonly outer: string };

/** Up to 24 graphs, those of floats first, smaller ones before larger. */
export function drawGraphs(rule: GraphRule): readonly Graph[] {
  const { picture, source, match } = patternOf(rule);
  const found = new Map<string, Graph>();
  for (let seed = 1; seed <= attempts && found.size < enough; seed++) {
    const draw = new Draw(rule, seed), builder = new GraphBuilder(), inputs = new Map<string, Value>();
    try {
      const result = picture.walk<Operand>(source, {
        outer: (name) => inputs.get(name) ?? { outer: name },
        constant: (value) => builder.scalar(Number(value), draw.dtype),
        call: (_, operands, node, count) => drawCall(draw, builder, inputs, operands, draw.choice(picture.opsOf(node)), node, count),
      });
      if ("outer" in result) continue;
      const graph = builder.build(result);
      const root = result.producer?.node, matched = root && matchAt(match, root);
      if (matched?.kind !== "match" || checkConditions(rule.where, siteOf(matched.bindings as Bindings)) !== true) continue;
      const key = [...inputs].map(([name, v]) => `${name}:${v.type.dtype}[${v.type.shape.map(String).join()}]${v.constant ? "c" : ""}`).join() + graph.nodes.map((n) => `${n.op.type}${JSON.stringify(n.attributes)}`).join();
      if (!found.has(key)) found.set(key, graph);
    } catch (e) {
      if (!(e instanceof DiagnosticError)) throw e;
    }
  }
  const size = (g: Graph): number => g.inputs.reduce((n, v) => n + sizeOf(v.type.shape.map(Number)), g.outputs.every((v) => isFloat(v.type.dtype)) && g.inputs.length > 0 ? 0 : 1e6);
  return [...found.values()].sort((a, b) => size(a) - size(b));
}

/**
 * A node, and the outer inputs that it is the first to read: drawn again and again until the operator accepts them, so
 * that a normalisation finds its four vectors. Fails as the operator does where it never accepts.
 */
function drawCall(draw: Draw, builder: GraphBuilder, inputs: Map<string, Value>, operands: readonly (Operand | undefined)[], op: OpDef, node: string, count: number): readonly Value[] {
  for (let left = draws; ; left--) {
    const drawn = draw.operands(operands), attributes = draw.attributes(op, node), trial = new GraphBuilder();
    const operandsIn = (to: GraphBuilder, known: (v: Value) => Value, made: Map<string, Value>): (Value | undefined)[] => operands.map((x) => {
      if (!x || !("outer" in x)) return x && known(x);
      const value = made.get(x.outer) ?? valueOf(to, x.outer, present(drawn.get(x.outer), "drawn input"));
      made.set(x.outer, value);
      return value;
    });
    try {
      trial.addAll(op, operandsIn(trial, (v) => (v.constant ? trial.constant(v.constant) : trial.graph.addInput(v.name, v.type)), new Map()), attributes, count, node);
    } catch (e) {
      if (!(e instanceof DiagnosticError) || left === 1 || drawn.size === 0) throw e;
      continue;
    }
    return builder.addAll(op, operandsIn(builder, (v) => v, inputs), attributes, count, node);
  }
}

/** What an outer input may be. */
interface Drawn { readonly dtype: DType; readonly shape: readonly number[]; readonly constant?: Tensor }
const valueOf = (builder: GraphBuilder, name: string, { dtype, shape, constant }: Drawn): Value => (constant ? builder.constant(constant, name) : builder.input(name, shape, dtype));

/** A chain as a graph: each operator reads the one before as its first input; further required inputs are constants. */
export function chainAsGraph(rule: ChainRule): GraphRule {
  const names = chainNodes(rule.pattern);
  const inputs = ["input"], edges: RuleGraph["edges"][number][] = [], where = [...rule.where];
  rule.pattern.forEach((type, i) => {
    const node = names[i] ?? type;
    edges.push({ from: { node: names[i - 1] ?? "input", slot: 0 }, to: { node, slot: 0 } });
    const schema = Object.values(operators.find((o) => o.type === type && o.domain === "")?.inputs ?? {});
    schema.forEach((kind, slot) => {
      if (slot === 0 || kind !== "required") return;
      const name = `${node} input ${slot}`;
      inputs.push(name);
      edges.push({ from: { node: name, slot: 0 }, to: { node, slot } });
      where.push({ kind: "value", value: { node: name, slot: 0 }, dims: [], constant: true });
    });
  });
  const last = names.at(-1) ?? "", { bn_mode: mode, dtype } = rule.conditions;
  edges.push({ from: { node: last, slot: 0 }, to: { node: "output", slot: 0 } });
  for (const node of names) if (node.startsWith("BatchNormalization")) where.push({ kind: "attribute", node, attribute: "training_mode", test: { equals: mode === "training" ? 1 : 0 } });
  if (dtype !== undefined) where.push({ kind: "value", value: { node: last, slot: 0 }, dims: [], dtypes: [dtype as DType] });
  return {
    kind: "graph", name: rule.name, inputs, outputs: ["output"], where, attributes: [], becomes: { kind: "kernel", outputOp: rule.outputOp },
    origin: { nodes: rule.pattern.map((type, i) => ({ name: names[i] ?? type, types: [type] })), constants: [], edges },
  };
}

/** The choices of one attempt. */
class Draw {
  readonly #rule: GraphRule;
  #state: number;
  readonly #base: readonly number[];
  readonly dtype: DType;
  /** Variances and divisors are positive where a model is of any use. */
  readonly #positive: boolean;

  constructor(rule: GraphRule, seed: number) {
    this.#rule = rule;
    this.#state = seed * 2654435761 % 2147483647 || 1;
    for (let i = 0; i < 3; i++) this.#random();
    this.dtype = this.choice(["float32", "float32", "float32", ...this.#rule.where.flatMap((c) => (c.kind === "value" ? (c.dtypes ?? []) : []))] as const);
    this.#positive = this.#random() < 0.5;
    this.#base = Array.from({ length: this.choice([1, 2, 2, 3, 3, 4, 4]) }, () => this.choice([1, 2, 3, 4, 5, 8]));
  }

  choice<T>(list: readonly T[]): T { return list[Math.floor(this.#random() * list.length)] as T; }
  /** Lehmer's generator. */
  #random(): number { return (this.#state = (this.#state * 48271) % 2147483647) / 2147483647; }

  /** Outer inputs among a node's operands, around the shape of the first operand. Half of the time all but that have one shape. */
  operands(operands: readonly (Operand | undefined)[]): ReadonlyMap<string, Drawn> {
    const out = new Map<string, Drawn>();
    const alike = this.#random() < 0.5, oneType = this.#random() < 0.5;
    let first: DType | undefined, base = this.#base, rest: readonly number[] | undefined;
    operands.forEach((x, slot) => {
      if (!x) return;
      if (!("outer" in x)) {
        const { shape, dtype } = x.type;
        if (oneType) first ??= dtype;
        if (slot === 0 && shape.every((d) => typeof d === "number")) base = shape;
        return;
      }
      const drawn = out.get(x.outer) ?? this.#input(x.outer, base, slot > 0 && alike ? rest : undefined, first);
      if (oneType) first ??= drawn.dtype;
      out.set(x.outer, drawn);
      if (slot === 0) base = drawn.shape;
      else rest ??= drawn.shape;
    });
    return out;
  }
  #input(name: string, base: readonly number[], like: readonly number[] | undefined, first: DType | undefined): Drawn {
    const conditions = this.#conditions(name);
    const types = conditions.flatMap((c) => (c.dtypes ? [c.dtypes] : []));
    const other = this.#random() < 0.3 ? this.choice(["int64", "int64", "int64", "bool", "uint8", "int8"] as const) : first ?? this.dtype;
    const dtype = types.length ? this.choice(types.reduce((a, b) => a.filter((t) => b.includes(t)))) : other;
    const shape = this.#shape(conditions, base, dtype === "int64", like);
    const wanted = conditions.find((c) => c.constant !== undefined)?.constant;
    const constant = wanted ?? (dtype === "int64" || this.#random() < 0.4);
    return { dtype, shape, ...(constant ? { constant: this.#tensor(dtype, shape) } : {}) };
  }

  #conditions(name: string): readonly ValueCondition[] { return this.#rule.where.filter((c): c is ValueCondition => c.kind === "value" && c.value.node === name); }

  #shape(conditions: readonly ValueCondition[], base: readonly number[], small: boolean, like: readonly number[] | undefined): readonly number[] {
    const last = base.at(-1) ?? 1, channels = base[1] ?? base[0] ?? 1, k = this.choice([1, 2, 3]);
    const shapes: readonly (readonly number[])[] = like ? [like] : small ? [[1], [2], []] : [
      base, base, [last], [], [1], base.map((d) => (this.#random() < 0.3 ? 1 : d)), [...base.slice(0, -2), last, this.choice([1, 2, 4, 5])], [last, this.choice([1, 3, 4])],
      [channels, ...base.slice(2).map(() => 1)], [channels], [this.choice([channels, 1, 2, 4]), this.choice([channels, channels, 1, 2]), ...base.slice(2).map(() => k)],
    ];
    let shape = [...this.choice(shapes)];
    for (const { rank } of conditions) {
      if (!rank || passes(shape.length, rank)) continue;
      const ranks = [0, 1, 2, 3, 4, 5, 6].filter((r) => passes(r, rank));
      const length = ranks.length ? this.choice(ranks) : shape.length;
      shape = Array.from({ length }, (_, i) => shape.at(i - length) ?? this.choice([1, 2, 3]));
    }
    for (const { axis, test } of conditions.flatMap((c) => c.dims)) {
      const at = axis < 0 ? shape.length + axis : axis;
      if (at in shape) shape[at] = this.#size(test, shape[at] ?? 1);
    }
    return shape;
  }
  #size(test: NumberTest, otherwise: number): number {
    if (passes(otherwise, test)) return otherwise;
    const { min = 1, multipleOf = 1 } = test;
    const sizes = [...(test.equals === undefined ? [] : [test.equals]), ...(test.in ?? []), multipleOf, 2 * multipleOf, 3 * multipleOf, min, min + 1, Math.ceil(min / multipleOf) * multipleOf].filter((d) => d >= 0 && passes(d, test));
    return sizes.length ? this.choice(sizes) : otherwise;
  }

  #tensor(dtype: DType, shape: readonly number[]): Tensor {
    const values = Array.from({ length: sizeOf(shape) }, () => (isFloat(dtype) ? Math.fround(this.#positive ? 2 * this.#random() : 4 * this.#random() - 2) : dtype === "int64" ? this.choice([0, 1, -1, 2]) : this.choice([0, 1])));
    return fromNumbers(dtype, shape, values);
  }

  /** A node's attributes: what the conditions want; others mostly as they are by default. */
  attributes(op: OpDef, node: string): Attributes {
    const out: Record<string, Attributes[string]> = {};
    for (const [name, spec] of Object.entries(op.attributes)) {
      const tested = this.#rule.where.flatMap((c) => (c.kind === "attribute" && c.node === node && c.attribute === name ? [c.test] : []));
      const value = tested.length ? this.#tested(tested, spec) : this.#untested(spec);
      if (value !== undefined) out[name] = value;
    }
    return out;
  }
  #tested(all: readonly AttributeTest[], spec: AttributeSpec): Attributes[string] {
    const exact = all.flatMap((t) => (t.equals === undefined ? (t.in ?? []) : [t.equals]));
    if (exact.length) return this.choice(exact) as Attributes[string];
    const min = Math.max(...all.map((t) => t.min ?? -Infinity)), max = Math.min(...all.map((t) => t.max ?? Infinity));
    const low = min === -Infinity ? (max === Infinity ? 0 : max - 2) : min, high = max === Infinity ? low + 2 : max;
    const number = this.choice([low, high, low + this.#random() * (high - low)]);
    return spec.type === "int" ? Math.round(number) : number;
  }
  #untested({ type, default: standard }: AttributeSpec): Attributes[string] {
    if (standard !== undefined && this.#random() < 0.75) return undefined;
    switch (type) {
      case "int": return this.choice([0, 1, -1, 2]);
      case "float": return typeof standard === "number" ? this.choice([standard, standard / 2, standard + 0.25]) : this.choice([undefined, 0.5]);
      case "ints": return this.choice([undefined, undefined, [1], [2, 2], [1, 1], [1, 1, 1, 1], this.#base.map((_, i) => i).reverse()]);
      default: return undefined;
    }
  }
}
