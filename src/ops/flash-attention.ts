/**
 * Scaled dot-product attention as one operator: softmax(score) · v over [batch, heads, sequence, depth] (ranks 2 and 3
 * lack the leading axes), where score is scale · q·kᵀ, capped by `softcap`, + bias, replaced by `fill` where `choice` is
 * `fill_where`, + mask, and at least `least`; and -∞ where a query does not see a key. Query s stands at position s + offset: `causal` hides
 * the keys behind it, `window` those that lie so many or more before it, `limit` those from an index on. `sink` is a
 * score of each head that takes its part of the softmax and has no value. Its kernel is an online softmax that never
 * holds the scores and passes over blocks of keys that no query of a block sees. Fewer key heads than query heads are
 * shared by consecutive query heads. A fully masked row gives what the unfused operators give: NaN, unless `empty_rows`
 * says that rows of weights are 0 where all scores are -∞ ("hidden"), or wherever softmax gives NaN ("undefined").
 */
import { dimExactDiv, dimFloorDiv, formatShape, type Dim } from "../core/dim.ts";
import { dtypes } from "../core/dtype.ts";
import { defineOp, float, int, string, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import {
  add, and, axisOf, binary, cast, computeScalar, constant, dimExpr, div, eq, exp, gt, i32, le, local, lt, max, min, mul, reduce, scalarType, select, sub, unary, type Axis, type Expr,
} from "../kernel/expr.ts";
import type { AttentionStructure, EmptyRows } from "../kernel/structure.ts";
import { FlashAttention as evaluate } from "../evaluate/onnxfuse-flash-attention.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { expandAttention, sizeAt, type AttentionOptions, type Given } from "./attention-in-parts.ts";
import { operand } from "./window.ts";

type Operands = Given<Operand>;

/** Which keys a query sees: whether it sees one, and bounds of those it sees; undefined where nothing is hidden or bounded. */
interface Sight {
  readonly sees: ((b: Expr, s: Expr, t: Expr) => Expr) | undefined;
  readonly from: ((b: Expr, s: Expr) => Expr) | undefined;
  readonly to: ((b: Expr, s: Expr) => Expr) | undefined;
}

function sightOf({ offset, limit }: Operands, { causal, window }: AttentionOptions): Sight {
  const perBatch = (of: Operand, b: Expr): Expr => cast(of.at(...of.shape.map((d) => (d === 1 ? constant(0, i32) : b))), "i32");
  const position = (b: Expr, s: Expr): Expr => (offset ? add(s, perBatch(offset, b)) : s);
  const tests: ((b: Expr, s: Expr, t: Expr) => Expr)[] = [];
  if (causal) tests.push((b, s, t) => le(t, position(b, s)));
  if (window > 0) tests.push((b, s, t) => gt(t, sub(position(b, s), window)));
  if (limit) tests.push((b, _, t) => lt(t, perBatch(limit, b)));
  const ends: ((b: Expr, s: Expr) => Expr)[] = [...(causal ? [(b: Expr, s: Expr): Expr => add(position(b, s), 1)] : []), ...(limit ? [(b: Expr): Expr => perBatch(limit, b)] : [])];
  return {
    sees: tests.length === 0 ? undefined : (b, s, t) => tests.map((test) => test(b, s, t)).reduce(and),
    from: window > 0 ? (b, s) => max(sub(position(b, s), window - 1), 0) : undefined,
    to: ends.length === 0 ? undefined : (b, s) => ends.map((end) => end(b, s)).reduce(min),
  };
}

/** The elements of q, k and v, and the score of a dot product, over the four axes. */
function elements(operands: Operands, options: AttentionOptions) {
  const { Q, K, V, mask, bias, choice, sink } = operands, { scale, scale_position, fill, fill_where, softcap, least } = options, sight = sightOf(operands, options);
  const group = dimFloorDiv(sizeAt(Q, 1), sizeAt(K, 1));
  const keyHead = (h: Expr): Expr => (group === 1 ? h : div(h, dimExpr(group)));
  const last = (of: Operand, ...four: readonly Expr[]): Expr => of.at(...four.slice(4 - of.shape.length));
  const scores: readonly Dim[] = [sizeAt(Q, 0), sizeAt(Q, 1), sizeAt(Q, 2), sizeAt(K, 2)];
  const scaledAt = (position: string, e: Expr): Expr => (scale_position === position && scale !== 1 ? mul(e, constant(scale, e.type)) : e);
  return {
    q: (b: Expr, h: Expr, s: Expr, d: Expr): Expr => scaledAt("pre", last(Q, b, h, s, d)),
    k: (b: Expr, h: Expr, t: Expr, d: Expr): Expr => last(K, b, keyHead(h), t, d),
    v: (b: Expr, h: Expr, t: Expr, e: Expr): Expr => last(V, b, keyHead(h), t, e),
    score: (dot: Expr, b: Expr, h: Expr, s: Expr, t: Expr): Expr => {
      const at = (of: Operand): Expr => of.at(...broadcastIndices(of.shape, scores, [b, h, s, t]));
      const plus = (e: Expr, of: Operand | undefined): Expr => (of ? add(e, at(of)) : e);
      const scaled = scaledAt("post", dot), cap = constant(softcap, dot.type), filled = constant(fill, dot.type);
      const own = plus(softcap > 0 ? mul(unary("tanh", div(scaled, cap)), cap) : scaled, bias);
      const chosen = !choice ? own : fill_where !== 0 ? select(at(choice), filled, own) : select(at(choice), own, filled);
      const whole = scaledAt("last", plus(chosen, mask)), score = least === -Infinity ? whole : binary("pmax", whole, constant(least, dot.type));
      return sight.sees ? select(sight.sees(b, s, t), score, constant(-Infinity, dot.type)) : score;
    },
    sink: sink && ((h: Expr): Expr => sink.at(h)),
    sight,
  };
}

/** Σ_t softmax(score)_t · v at one output element; `keys` and `depth` are summed over fresh axes. */
function attention(operands: Operands, options: AttentionOptions, b: Expr, h: Expr, s: Expr, e: Expr): Expr {
  const of = elements(operands, options);
  const keys = sizeAt(operands.K, 2), depth = sizeAt(operands.Q, 3);
  const dot = (t: Expr): Expr => reduce("add", [depth], (...d) => mul(of.q(b, h, s, operand(d, 0)), of.k(b, h, t, operand(d, 0))));
  const score = (t: Expr): Expr => of.score(dot(t), b, h, s, t);
  const highest = reduce("max", [keys], (...t) => score(operand(t, 0))), sink = of.sink?.(h);
  const most = sink ? max(highest, sink) : highest;
  const sum = reduce("add", [keys], (...t) => exp(sub(score(operand(t, 0)), most)));
  const total = sink ? add(sum, exp(sub(sink, most))) : sum;
  const weight = (p: Expr): Expr => (emptyRowsOf(options) === "undefined" ? select(eq(p, p), p, 0) : emptyRowsOf(options) === "hidden" ? select(eq(most, constant(-Infinity, most.type)), 0, p) : p);
  return reduce("add", [keys], (...t) => mul(weight(div(exp(sub(score(operand(t, 0)), most)), total)), of.v(b, h, operand(t, 0), e)));
}

const emptyRowsOf = ({ empty_rows }: AttentionOptions): EmptyRows | undefined => (empty_rows === "hidden" || empty_rows === "undefined" ? empty_rows : undefined);

/** An output element's four indices, 0 for axes that the rank lacks. */
function fourOf(indices: readonly Expr[]): readonly [Expr, Expr, Expr, Expr] {
  const padded = [...new Array<Expr>(4 - indices.length).fill(constant(0, i32)), ...indices];
  return [operand(padded, 0), operand(padded, 1), operand(padded, 2), operand(padded, 3)];
}

function differ(a: Dim, b: Dim): boolean {
  return typeof a === "number" && typeof b === "number" && a !== b;
}

function inferAttention({ Q, K, V, mask, bias, choice, offset, limit, sink }: Given<TypeInfo>, context: InferContext): readonly TypeInfo[] {
  const rank = Q.shape.length;
  if (rank < 2 || rank > 4 || K.shape.length !== rank || V.shape.length !== rank)
    context.fail("OF3010", `query, key and value need one rank from 2 to 4, got ${[Q, K, V].map((t) => formatShape(t.shape)).join(", ")}`);
  const shared = dimExactDiv(sizeAt(Q, 1), sizeAt(K, 1)) !== undefined;
  if (!shared || differ(sizeAt(Q, 3), sizeAt(K, 3)) || differ(sizeAt(K, 2), sizeAt(V, 2)) || differ(sizeAt(K, 1), sizeAt(V, 1)) || differ(sizeAt(Q, 0), sizeAt(K, 0)))
    context.fail("OF3011", `sizes of query ${formatShape(Q.shape)}, key ${formatShape(K.shape)} and value ${formatShape(V.shape)} do not fit`);
  const scores = [sizeAt(Q, 0), sizeAt(Q, 1), sizeAt(Q, 2), sizeAt(K, 2)];
  for (const { shape } of [mask, bias, choice].filter((t) => t !== undefined)) {
    const fits = shape.length <= 4 && shape.every((d, i) => d === 1 || !differ(d, operand(scores, i + 4 - shape.length)));
    if (!fits) context.fail("OF3011", `the mask ${formatShape(shape)} does not broadcast to ${formatShape(scores)}`);
  }
  for (const { shape, dtype } of [offset, limit].filter((t) => t !== undefined)) {
    if (dtypes[dtype].kind !== "int") context.fail("OF3013", `positions are ${dtype}, must be signed integers`);
    if (shape.length > 1 || shape.some((d) => d !== 1 && differ(d, sizeAt(Q, 0)))) context.fail("OF3011", `positions ${formatShape(shape)} are not one for each of the batch`);
  }
  if (sink && (sink.shape.length !== 1 || differ(sink.shape[0] ?? 1, sizeAt(Q, 1)))) context.fail("OF3011", `the sink ${formatShape(sink.shape)} is not one for each head`);
  return [{ dtype: Q.dtype, shape: [...Q.shape.slice(0, -1), sizeAt(V, 3)] }];
}

export const FlashAttention = defineOp({
  type: "FlashAttention",
  domain: "onnxfuse",
  since: 1,
  inputs: { Q: "required", K: "required", V: "required", mask: "optional", bias: "optional", choice: "optional", offset: "optional", limit: "optional", sink: "optional" },
  /** `scale_position`: "pre" multiplies the query before the product, "post" the product, "last" the finished score. */
  attributes: { scale: float(1), scale_position: string("post"), fill: float(0), fill_where: int(1), softcap: float(0), causal: int(0), window: int(0), least: float(-Infinity), empty_rows: string("nan") },
  fusionKind: "contraction",
  infer: (inputs, _, context) => inferAttention(inputs, context),
  evaluate,
  expand: expandAttention,
  lower: (operands, options) => [(...indices) => attention(operands, options, ...fourOf(indices))],
  anchor(operands, options) {
    const { Q, K, V } = operands;
    const axis = (name: string, extent: Dim): Axis => ({ name, extent });
    const batch = axis("b", sizeAt(Q, 0)), head = axis("h", sizeAt(Q, 1)), query = axis("s", sizeAt(Q, 2)), key = axis("t", sizeAt(K, 2));
    const dim = axis("d", sizeAt(Q, 3)), valueDim = axis("e", sizeAt(V, 3));
    const [b, h, s, t, d, e] = [batch, head, query, key, dim, valueDim].map(axisOf) as [Expr, Expr, Expr, Expr, Expr, Expr];
    const type = scalarType(computeScalar(Q.dtype));
    const dot = { name: "dot", type }, accumulator = { name: "acc", type };
    const of = elements(operands, options), { from, to } = of.sight, empty = emptyRowsOf(options);
    const axes = [batch, head, query, valueDim].slice(4 - Q.shape.length);
    const lead = (own: Expr, rank: number): Expr => (Q.shape.length < rank ? constant(0, i32) : own);
    const [b0, h0] = [lead(b, 4), lead(h, 3)];
    return {
      indices: axes.map(axisOf),
      axes,
      element: local(accumulator.name, type),
      accumulate: attention(operands, options, b0, h0, s, e),
      structure: (stores): AttentionStructure => ({
        kind: "attention", batch, head, query, key, dim, valueDim,
        q: of.q(b0, h0, s, d), k: of.k(b0, h0, t, d), v: of.v(b0, h0, t, e),
        dot, score: of.score(local(dot.name, type), b0, h0, s, t), accumulator, stores,
        ...(from ? { keysFrom: from(b0, s) } : {}), ...(to ? { keysTo: to(b0, s) } : {}), ...(of.sink ? { sink: of.sink(h0) } : {}),
        ...(empty ? { emptyRows: empty } : {}),
      }),
    };
  },
});
