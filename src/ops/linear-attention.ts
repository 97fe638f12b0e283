/**
 * LinearAttention, of the standard and of com.microsoft: each key head keeps a state [key depth, value depth] that decays,
 * takes in each token's key and value, and is read by queries. One kernel of loops whose innermost ones run along
 * values; the state stays in working memory from token to token.
 */
import { invariant } from "../core/assert.ts";
import { dimExactDiv, formatDim, formatShape, type Dim } from "../core/dim.ts";
import { LinearAttention as evaluate } from "../evaluate/linear-attention.ts";
import { defineOp, float, int, required, string, type AnchorOperand, type InferContext, type TypeInfo } from "../graph/op.ts";
import { add, axisOf, cast, computeScalar, constant, dimExpr, div, exp, load, local, mul, scalarType, sub, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { block, letLocal, loop, type Stmt } from "../kernel/stmt.ts";
import type { WholeLoops } from "../kernel/structure.ts";
import { checkType } from "./element-wise.ts";
import { origin } from "./index-map.ts";

interface Options { readonly q_num_heads: number; readonly kv_num_heads: number; readonly update_rule: string; readonly scale: number; readonly state_window?: number }
interface Given<T> { readonly query: T; readonly key: T; readonly value: T; readonly past_state: T | undefined; readonly decay: T | undefined; readonly beta: T | undefined }

interface Sizes { readonly batch: Dim; readonly tokens: Dim; readonly heads: number; readonly keyHeads: number; readonly states: number; readonly results: number; readonly depth: number; readonly width: number }

const rules = ["linear", "gated", "delta", "gated_delta"];

/** The sizes, or what is wrong with them. */
function sizesOf({ query, key, value }: Pick<Given<TypeInfo>, "query" | "key" | "value">, { q_num_heads: heads, kv_num_heads: states }: Options): Sizes | string {
  const said = `query ${formatShape(query.shape)}, key ${formatShape(key.shape)} and value ${formatShape(value.shape)}`;
  if ([query, key, value].some((t) => t.shape.length !== 3)) return `${said} need rank 3`;
  const [batch = 1, tokens = 1, hidden = 1] = query.shape, depth = dimExactDiv(hidden, heads), width = dimExactDiv(value.shape[2] ?? 1, states);
  if (typeof depth !== "number" || typeof width !== "number") return `${said} do not divide into ${heads} query and ${states} key heads of known size`;
  const keyHeads = dimExactDiv(key.shape[2] ?? 1, depth);
  if (typeof keyHeads !== "number" || states % keyHeads !== 0) return `keys of ${formatDim(key.shape[2] ?? 1)} elements do not serve ${states} heads of ${depth}`;
  return { batch, tokens, heads, keyHeads, states, results: Math.max(heads, states), depth, width };
}

function infer(given: Given<TypeInfo>, options: Options, context: InferContext): readonly TypeInfo[] {
  const { query, key, value, past_state, decay, beta } = given, { q_num_heads: heads, kv_num_heads: states, update_rule: rule } = options;
  checkType(context, query, "query", "float");
  if (!rules.includes(rule)) context.fail("OF3012", `unknown update_rule '${rule}'`, `it is one of ${rules.join(", ")}`);
  if (heads < 1 || states < 1 || (heads % states !== 0 && states % heads !== 0)) context.fail("OF3012", `${heads} query heads and ${states} key heads do not share evenly`);
  if (options.state_window) context.fail("OF3012", "state_window is not supported", "keep one state");
  if (rule.startsWith("gated") && !decay) context.fail("OF3001", `update_rule '${rule}' needs its input 'decay'`);
  if (rule.endsWith("delta") && !beta) context.fail("OF3001", `update_rule '${rule}' needs its input 'beta'`);
  const sizes = sizesOf(given, options);
  if (typeof sizes === "string") return context.fail("OF3011", sizes);
  const { batch, tokens, depth, width } = sizes, perToken = (size: Dim | undefined): readonly Dim[] => [batch, tokens, size ?? 1];
  const check = (name: string, t: TypeInfo | undefined, ...shapes: readonly (readonly Dim[])[]): void => {
    if (t && !shapes.some((shape) => mayBe(t.shape, shape))) context.fail("OF3011", `${name} must be ${shapes.map(formatShape).join(" or ")}, got ${formatShape(t.shape)}`);
  };
  check("key", key, perToken(key.shape[2]));
  check("value", value, perToken(value.shape[2]));
  check("decay", decay, perToken(states), perToken(states * depth));
  check("beta", beta, perToken(states), perToken(1));
  check("past_state", past_state, [batch, states, depth, width]);
  return [
    { dtype: query.dtype, shape: [batch, tokens, sizes.results * width] },
    { dtype: past_state?.dtype ?? query.dtype, shape: [batch, states, depth, width] },
  ];
}

/** Whether a shape may be this one, by the sizes that are numbers. */
const mayBe = (own: readonly Dim[], shape: readonly Dim[]): boolean =>
  own.length === shape.length && own.every((d, i) => d === shape[i] || typeof d !== "number" || typeof shape[i] !== "number");

/** Writes the loops of one node. */
class Recurrence {
  readonly #given: Given<AnchorOperand>;
  readonly #sizes: Sizes;
  readonly #options: Options;
  readonly #state: Buffer;
  readonly #change: Buffer;
  readonly #type;
  #names = 0;

  constructor(given: Given<AnchorOperand>, options: Options, sizes: Sizes) {
    const dtype = given.query.dtype === "float64" ? "float64" : "float32";
    this.#given = given;
    this.#sizes = sizes;
    this.#options = options;
    this.#state = { name: "state", dtype, shape: [sizes.depth, sizes.width] };
    this.#change = { name: "change", dtype, shape: [sizes.width] };
    this.#type = scalarType(computeScalar(dtype));
  }

  loops(y: Buffer | undefined, present: Buffer | undefined): WholeLoops {
    const { batch, tokens, states } = this.#sizes, { past_state: past } = this.#given;
    const body = this.#over("b", batch, (b) => this.#over("h", states, (h) => block(
      this.#overState((i, j) => this.#store(this.#state, [i, j], past ? this.#read(past, b, h, i, j) : constant(0, this.#type))),
      this.#over("t", tokens, (t) => block(...this.#decay(b, h, t), this.#update(b, h, t), ...(y ? [this.#results(y, b, h, t)] : []))),
      ...(present ? [this.#overState((i, j) => this.#store(present, [b, h, i, j], load(this.#state, [i, j])))] : []),
    )));
    return { kind: "loops", body, scratch: [this.#state, this.#change] };
  }

  #over(name: string, extent: Dim, body: (i: Expr) => Stmt): Stmt {
    const axis: Axis = { name: `${name}${this.#names++}`, extent };
    return loop(axis, origin, dimExpr(extent), 1, body(axisOf(axis)));
  }
  #overState(body: (i: Expr, j: Expr) => Stmt): Stmt {
    return this.#over("i", this.#sizes.depth, (i) => this.#over("j", this.#sizes.width, (j) => body(i, j)));
  }
  #store(buffer: Buffer, indices: readonly Expr[], value: Expr): Stmt { return { kind: "store", buffer, indices, value }; }
  #read(of: AnchorOperand, ...indices: readonly Expr[]): Expr { return cast(of.at(...indices), this.#type.scalar); }
  #key(b: Expr, h: Expr, t: Expr, i: Expr): Expr {
    const { states, keyHeads, depth } = this.#sizes;
    return this.#read(this.#given.key, b, t, add(mul(shared(h, states / keyHeads), depth), i));
  }

  /** state[i, ·] decays by a factor of its head, or of its row. */
  #decay(b: Expr, h: Expr, t: Expr): readonly Stmt[] {
    const { decay } = this.#given, { states, depth } = this.#sizes;
    if (!decay || !this.#options.update_rule.startsWith("gated")) return [];
    const perHead = decay.shape[2] === states;
    return [this.#over("i", depth, (i) => {
      const name = `gate${this.#names++}`, gate = local(name, this.#type);
      return block(letLocal(name, exp(this.#read(decay, b, t, perHead ? h : add(mul(h, depth), i)))), this.#over("j", this.#sizes.width, (j) => this.#store(this.#state, [i, j], mul(load(this.#state, [i, j]), gate))));
    })];
  }

  /** What a token writes, beside the state first: the value, or what it is off from what the state holds for the key. */
  #update(b: Expr, h: Expr, t: Expr): Stmt {
    const { beta, value } = this.#given, { width } = this.#sizes, corrects = this.#options.update_rule.endsWith("delta");
    const change = this.#over("j", width, (j) => {
      const own = this.#read(value, b, t, add(mul(h, width), j));
      if (!corrects || !beta) return this.#store(this.#change, [j], own);
      const { statements, sum } = this.#sum((i) => mul(load(this.#state, [i, j]), this.#key(b, h, t, i)));
      return block(...statements, this.#store(this.#change, [j], mul(this.#read(beta, b, t, beta.shape[2] === 1 ? origin : h), sub(own, sum))));
    });
    return block(change, this.#overState((i, j) => this.#store(this.#state, [i, j], add(load(this.#state, [i, j]), mul(this.#key(b, h, t, i), load(this.#change, [j]))))));
  }

  /** The results that read this head's state. */
  #results(y: Buffer, b: Expr, h: Expr, t: Expr): Stmt {
    const { results, states, heads, depth, width } = this.#sizes, each = results / states, scale = this.#options.scale || 1 / Math.sqrt(depth);
    return this.#over("r", each, (r) => this.#over("j", width, (j) => {
      const result = each === 1 ? h : add(mul(h, each), r), from = shared(result, results / heads);
      const { statements, sum } = this.#sum((i) => mul(load(this.#state, [i, j]), this.#read(this.#given.query, b, t, add(mul(from, depth), i))));
      return block(...statements, this.#store(y, [b, t, add(mul(result, width), j)], mul(sum, constant(scale, this.#type))));
    }));
  }

  /** Σ over the rows of the state. */
  #sum(term: (i: Expr) => Expr): { readonly statements: readonly Stmt[]; readonly sum: Expr } {
    const name = `sum${this.#names++}`;
    return { statements: [letLocal(name, constant(0, this.#type)), this.#over("i", this.#sizes.depth, (i) => ({ kind: "accumulate", name, op: "add", value: term(i) }))], sum: local(name, this.#type) };
  }
}

/** The head that `by` heads share. */
const shared = (head: Expr, by: number): Expr => (by === 1 ? head : div(head, by));

function whole(given: Given<AnchorOperand>, options: Options, [y, present]: readonly (Buffer | undefined)[]): WholeLoops {
  const sizes = sizesOf(given, options);
  invariant(typeof sizes !== "string", `inference has seen that sizes fit: ${String(sizes)}`);
  return new Recurrence(given, options, sizes).loops(y, present);
}

const common = {
  type: "LinearAttention", evaluate, fusionKind: "opaque",
  inputs: { query: "required", key: "required", value: "required", past_state: "optional", decay: "optional", beta: "optional" }, oneType: [["query", "key", "value", "decay", "beta"]],
} as const;
const attributes = { q_num_heads: required("int"), kv_num_heads: required("int"), update_rule: string("gated_delta"), scale: float(0), chunk_size: int(64) } as const;

export const LinearAttention = defineOp({ ...common, domain: "", since: 27, attributes, infer, whole });
export const MicrosoftLinearAttention = defineOp({ ...common, domain: "com.microsoft", since: 1, attributes: { ...attributes, state_window: int(0) }, infer, whole });
