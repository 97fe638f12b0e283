/**
 * Scaled dot-product attention as one operator: softmax(score) · v over [batch, heads, sequence, depth] (ranks 2 and 3
 * lack the leading axes), where score is scale · q·kᵀ + bias, replaced by `fill` where `choice` is `fill_where`, + mask. Its kernel is an online softmax that never holds the scores. Fewer key heads than
 * query heads are shared by consecutive query heads. A fully masked row gives what the unfused operators give.
 */
import { dimExactDiv, dimFloorDiv, formatDim, formatShape, type Dim } from "../core/dim.ts";
import { defineOp, float, int, string, type ExpandContext, type ExpansionNode, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import {
  add, axisOf, computeScalar, constant, dimExpr, div, exp, i32, local, mul, reduce, scalarType, select, sub, type Axis, type Expr,
} from "../kernel/expr.ts";
import { FlashAttention as evaluate } from "../evaluate/onnxfuse-flash-attention.ts";
import { Add, Mul } from "./arithmetic.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { MatMul } from "./matmul.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { Softmax } from "./softmax.ts";
import { Transpose } from "./transpose.ts";
import { Where } from "./where.ts";
import { operand } from "./window.ts";

interface Options { readonly scale: number; readonly scale_position: string; readonly fill: number; readonly fill_where: number }
interface Given<T> { readonly Q: T; readonly K: T; readonly V: T; readonly mask: T | undefined; readonly bias: T | undefined; readonly choice: T | undefined }
type Operands = Given<Operand>;

/** Size of axis `d` of the four, 1 where the operand lacks it. */
const sizeAt = (of: TypeInfo, d: number): Dim => of.shape[d - 4 + of.shape.length] ?? 1;

/** The elements of q, k and v, and the score of a dot product, over the four axes. */
function elements({ Q, K, V, mask, bias, choice }: Operands, { scale, scale_position, fill, fill_where }: Options) {
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
      const own = plus(scaledAt("post", dot), bias), filled = constant(fill, dot.type);
      const seen = !choice ? own : fill_where !== 0 ? select(at(choice), filled, own) : select(at(choice), own, filled);
      return scaledAt("last", plus(seen, mask));
    },
  };
}

/** Σ_t softmax(score)_t · v at one output element; `keys` and `depth` are summed over fresh axes. */
function attention(operands: Operands, options: Options, b: Expr, h: Expr, s: Expr, e: Expr): Expr {
  const of = elements(operands, options);
  const keys = sizeAt(operands.K, 2), depth = sizeAt(operands.Q, 3);
  const dot = (t: Expr): Expr => reduce("add", [depth], (...d) => mul(of.q(b, h, s, operand(d, 0)), of.k(b, h, t, operand(d, 0))));
  const score = (t: Expr): Expr => of.score(dot(t), b, h, s, t);
  const most = reduce("max", [keys], (...t) => score(operand(t, 0)));
  const total = reduce("add", [keys], (...t) => exp(sub(score(operand(t, 0)), most)));
  return reduce("add", [keys], (...t) => mul(div(exp(sub(score(operand(t, 0)), most)), total), of.v(b, h, operand(t, 0), e)));
}

/** An output element's four indices, 0 for axes that the rank lacks. */
function fourOf(indices: readonly Expr[]): readonly [Expr, Expr, Expr, Expr] {
  const padded = [...new Array<Expr>(4 - indices.length).fill(constant(0, i32)), ...indices];
  return [operand(padded, 0), operand(padded, 1), operand(padded, 2), operand(padded, 3)];
}

function differ(a: Dim, b: Dim): boolean {
  return typeof a === "number" && typeof b === "number" && a !== b;
}

function inferAttention({ Q, K, V, mask, bias, choice }: Given<TypeInfo>, context: InferContext): readonly TypeInfo[] {
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
  return [{ dtype: Q.dtype, shape: [...Q.shape.slice(0, -1), sizeAt(V, 3)] }];
}

/** MatMul, Softmax, MatMul. Heads that share a key head become an axis of their own. */
function expand({ inputs, inputTypes, outputs }: ExpandContext, { scale, scale_position, fill, fill_where }: Options): readonly ExpansionNode[] | undefined {
  const [Q, K, V, ...overScores] = inputTypes;
  if (!Q || !K || !V) return undefined;
  const to = new Expansion();
  const heads = sizeAt(Q, 1), keyHeads = sizeAt(K, 1), depth = sizeAt(Q, 3), width = sizeAt(V, 3);
  const grouped = keyHeads !== 1 && formatDim(heads) !== formatDim(keyHeads);
  const numbers = [heads, keyHeads, depth, width].filter((d) => typeof d === "number");
  const [h = 1, k = 1, d = 1, e = 1] = numbers;
  if (grouped && (numbers.length !== 4 || Q.shape.length !== 4 || overScores.some((t) => t && sizeAt(t, 1) !== 1))) return undefined;
  const split = (x: string | undefined, group: number, last: number): string => to.add(Reshape, [x, listOf(0, k, group, -1, last)]);
  const scaledAt = (position: string, x: string | undefined): string | undefined => (scale === 1 || scale_position !== position ? x : to.add(Mul, [x, scalarOf(Q.dtype, scale)]));
  const query = scaledAt("pre", grouped ? split(inputs[0], h / k, d) : inputs[0]);
  const rank = grouped ? 5 : K.shape.length;
  const perm = Array.from({ length: rank }, (_, i) => (i === rank - 1 ? rank - 2 : i === rank - 2 ? rank - 1 : i));
  const keys = to.add(Transpose, [grouped ? split(inputs[1], 1, d) : inputs[1]], { perm });
  const [mask, bias, choice] = overScores.map((t, i) => (t && grouped && t.shape.length === 4 ? to.add(Unsqueeze, [inputs[3 + i], listOf(1)]) : t && inputs[3 + i]));
  const plus = (x: string | undefined, of: string | undefined): string | undefined => (of === undefined ? x : to.add(Add, [x, of]));
  const own = plus(scaledAt("post", to.add(MatMul, [query, keys])), bias), filled = scalarOf(Q.dtype, fill);
  const seen = choice === undefined ? own : to.add(Where, fill_where !== 0 ? [choice, filled, own] : [choice, own, filled]);
  const weights = to.add(Softmax, [scaledAt("last", plus(seen, mask))], { axis: -1 });
  if (!grouped) to.add(MatMul, [weights, inputs[2]], {}, outputs[0]);
  else to.add(Reshape, [to.add(MatMul, [weights, split(inputs[2], 1, e)]), listOf(0, h, -1, e)], {}, outputs[0]);
  return to.nodes;
}

export const FlashAttention = defineOp({
  type: "FlashAttention",
  domain: "onnxfuse",
  since: 1,
  inputs: { Q: "required", K: "required", V: "required", mask: "optional", bias: "optional", choice: "optional" },
  /** `scale_position`: "pre" multiplies the query before the product, "post" the product, "last" the finished score. */
  attributes: { scale: float(1), scale_position: string("post"), fill: float(0), fill_where: int(1) },
  fusionKind: "contraction",
  infer: (inputs, _, context) => inferAttention(inputs, context),
  evaluate,
  expand,
  lower: (operands, options) => [(...indices) => attention(operands, options, ...fourOf(indices))],
  anchor(operands, options) {
    const { Q, K, V } = operands;
    const axis = (name: string, extent: Dim): Axis => ({ name, extent });
    const batch = axis("b", sizeAt(Q, 0)), head = axis("h", sizeAt(Q, 1)), query = axis("s", sizeAt(Q, 2)), key = axis("t", sizeAt(K, 2));
    const dim = axis("d", sizeAt(Q, 3)), valueDim = axis("e", sizeAt(V, 3));
    const [b, h, s, t, d, e] = [batch, head, query, key, dim, valueDim].map(axisOf) as [Expr, Expr, Expr, Expr, Expr, Expr];
    const type = scalarType(computeScalar(Q.dtype));
    const dot = { name: "dot", type }, accumulator = { name: "acc", type };
    const of = elements(operands, options);
    const axes = [batch, head, query, valueDim].slice(4 - Q.shape.length);
    const lead = (own: Expr, rank: number): Expr => (Q.shape.length < rank ? constant(0, i32) : own);
    const [b0, h0] = [lead(b, 4), lead(h, 3)];
    return {
      indices: axes.map(axisOf),
      axes,
      element: local(accumulator.name, type),
      accumulate: attention(operands, options, b0, h0, s, e),
      structure: (stores) => ({
        kind: "attention", batch, head, query, key, dim, valueDim,
        q: of.q(b0, h0, s, d), k: of.k(b0, h0, t, d), v: of.v(b0, h0, t, e),
        dot, score: of.score(local(dot.name, type), b0, h0, s, t), accumulator, stores,
      }),
    };
  },
});
