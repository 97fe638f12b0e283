/**
 * FlashAttention said by other operators: MatMul, Softmax, MatMul, with masks made of comparisons of positions. Heads
 * that share a key head become an axis of their own.
 */
import { formatDim, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { Tensor } from "../core/tensor.ts";
import type { ExpandContext, ExpansionNode, TypeInfo } from "../graph/op.ts";
import { Add, Div, Mul, Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Clip } from "./clip.ts";
import { Concat } from "./concat.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { Expand } from "./fill.ts";
import { indicesAlong } from "./heads.ts";
import { And, Equal, Greater, IsNaN, Less, LessOrEqual } from "./logic.ts";
import { MatMul } from "./matmul.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { Shape } from "./shape.ts";
import { Slice } from "./slice.ts";
import { Softmax } from "./softmax.ts";
import { Transpose } from "./transpose.ts";
import { ReduceMin } from "./reduce.ts";
import { Tanh } from "./unary-math.ts";
import { Where } from "./where.ts";

export interface AttentionOptions {
  readonly scale: number; readonly scale_position: string; readonly fill: number; readonly fill_where: number;
  readonly softcap: number; readonly causal: number; readonly window: number; readonly least: number; readonly empty_rows: string;
}
/** The operator's inputs by name. */
export interface Given<T> {
  readonly Q: T; readonly K: T; readonly V: T;
  readonly mask: T | undefined; readonly bias: T | undefined; readonly choice: T | undefined;
  readonly offset: T | undefined; readonly limit: T | undefined; readonly sink: T | undefined;
}

/** Size of axis `d` of the four, 1 where the operand lacks it. */
export const sizeAt = (of: TypeInfo, d: number): Dim => of.shape[d - 4 + of.shape.length] ?? 1;

/** Undefined where heads are shared and their numbers are not known. */
export function expandAttention({ inputs, inputTypes, outputs }: ExpandContext, options: AttentionOptions): readonly ExpansionNode[] | undefined {
  const [Q, K, V, ...overScores] = inputTypes, { scale, scale_position, fill, fill_where, softcap, least } = options;
  if (!Q || !K || !V) return undefined;
  const to = new Expansion(), groups = groupsOf(Q, K, V);
  if (groups === "unknown") return undefined;
  const scaledAt = (position: string, x: string): string => (scale === 1 || scale_position !== position ? x : to.add(Mul, [x, scalarOf(Q.dtype, scale)]));
  const split = (x: string | undefined, group: number, last: number): string => to.add(Reshape, [x, listOf(0, groups?.keyHeads ?? 1, group, -1, last)]);
  const query = scaledAt("pre", groups ? split(inputs[0], groups.size, groups.depth) : inputs[0] ?? "");
  const rank = groups ? 5 : K.shape.length;
  const perm = Array.from({ length: rank }, (_, i) => (i === rank - 1 ? rank - 2 : i === rank - 2 ? rank - 1 : i));
  const keys = to.add(Transpose, [groups ? split(inputs[1], 1, groups.depth) : inputs[1]], { perm });
  const [mask, bias, choice] = overScores.slice(0, 3).map((t, i) => (t && groups ? ofGroups(to, inputs[3 + i], t, groups) : inputs[3 + i]));
  const plus = (x: string, of: string | undefined): string => (of === undefined ? x : to.add(Add, [x, of]));
  const scaled = scaledAt("post", to.add(MatMul, [query, keys])), cap = scalarOf(Q.dtype, softcap);
  const own = plus(softcap > 0 ? to.add(Mul, [to.add(Tanh, [to.add(Div, [scaled, cap])]), cap]) : scaled, bias), filled = scalarOf(Q.dtype, fill);
  const chosen = choice === undefined ? own : to.add(Where, fill_where !== 0 ? [choice, filled, own] : [choice, own, filled]);
  const whole = scaledAt("last", plus(chosen, mask)), score = least === -Infinity ? whole : to.add(Clip, [whole, scalarOf(Q.dtype, least)]), seen = visible(to, inputs, rank, options);
  const shown = seen === undefined ? score : to.add(Where, [seen, score, scalarOf(Q.dtype, -Infinity)]);
  const weights = withoutEmptyRows(to, weightsOf(to, shown, inputs[8], rank, groups), shown, Q.dtype, options.empty_rows);
  if (!groups) to.add(MatMul, [weights, inputs[2]], {}, outputs[0]);
  else to.add(Reshape, [to.add(MatMul, [weights, split(inputs[2], 1, groups.width)]), listOf(0, groups.keyHeads * groups.size, -1, groups.width)], {}, outputs[0]);
  return to.nodes;
}

interface Groups { readonly keyHeads: number; readonly size: number; readonly depth: number; readonly width: number }

/** How query heads share key heads: undefined where numpy's broadcasting says it. */
function groupsOf(Q: TypeInfo, K: TypeInfo, V: TypeInfo): Groups | "unknown" | undefined {
  const heads = sizeAt(Q, 1), keyHeads = sizeAt(K, 1), depth = sizeAt(Q, 3), width = sizeAt(V, 3);
  if (keyHeads === 1 || formatDim(heads) === formatDim(keyHeads)) return undefined;
  if (typeof heads !== "number" || typeof keyHeads !== "number" || typeof depth !== "number" || typeof width !== "number" || Q.shape.length !== 4) return "unknown";
  return { keyHeads, size: heads / keyHeads, depth, width };
}

/** What broadcasts over [batch, heads, queries, keys], over [batch, key heads, group, queries, keys]. */
function ofGroups(to: Expansion, x: string | undefined, t: TypeInfo, { keyHeads, size }: Groups): string | undefined {
  if (t.shape.length < 3) return x;
  const head = t.shape.length - 3;
  if (t.shape[head] === 1) return to.add(Unsqueeze, [x, listOf(head)]);
  const leading = head === 1 ? listOf(0, keyHeads, size) : listOf(keyHeads, size);
  return to.add(Reshape, [x, to.add(Concat, [leading, to.add(Shape, [x], { start: head + 1 })], { axis: 0 })]);
}

/** Which keys each query sees, over the scores; undefined where it sees all. */
function visible(to: Expansion, inputs: ExpandContext["inputs"], rank: number, { causal, window }: AttentionOptions): string | undefined {
  const [Q, K, , , , , offset, limit] = inputs, sequence = (of: string | undefined, merged: number): string => indicesAlong(to, of, merged);
  if (!causal && window <= 0 && limit === undefined) return undefined;
  const queryAxis = Math.min(rank, 4) - 2;
  const perBatch = (x: string): string => {
    const wide = to.add(Cast, [x], { to: 7 });
    return to.add(Reshape, [wide, listOf(-1, ...new Array<number>(rank - 1).fill(1))]);
  };
  const keys = sequence(K, queryAxis), tests: string[] = [];
  if (causal || window > 0) {
    const rows = to.add(Unsqueeze, [sequence(Q, queryAxis), listOf(1)]);
    const positions = offset === undefined ? rows : to.add(Add, [rows, perBatch(offset)]);
    if (causal) tests.push(to.add(LessOrEqual, [keys, positions]));
    if (window > 0) tests.push(to.add(Greater, [keys, to.add(Sub, [positions, scalarOf("int64", window)])]));
  }
  if (limit !== undefined) tests.push(to.add(Less, [keys, perBatch(limit)]));
  return tests.reduce((all, test) => to.add(And, [all, test]));
}

/** Weights with 0 in the rows that `empty_rows` says. */
function withoutEmptyRows(to: Expansion, weights: string, scores: string, dtype: DType, rows: string): string {
  if (rows === "undefined") return to.add(Where, [to.add(IsNaN, [weights]), scalarOf(dtype, 0), weights]);
  if (rows !== "hidden") return weights;
  const hidden = to.add(Cast, [to.add(Equal, [scores, scalarOf(dtype, -Infinity)])], { to: 6 });
  const all = to.add(Cast, [to.add(ReduceMin, [hidden, listOf(-1)])], { to: 9 });
  return to.add(Where, [all, scalarOf(dtype, 0), weights]);
}

/** The softmax of the scores; a sink is one more score, whose weight is left out. */
function weightsOf(to: Expansion, scores: string, sink: string | undefined, rank: number, groups: Groups | undefined): string {
  if (sink === undefined) return to.add(Softmax, [scores], { axis: -1 });
  const heads: Tensor = groups ? listOf(1, groups.keyHeads, groups.size, 1, 1) : listOf(1, -1, 1, 1);
  const rows = to.add(Concat, [to.add(Shape, [scores], { start: 0, end: rank - 1 }), listOf(1)], { axis: 0 });
  const column = to.add(Expand, [to.add(Reshape, [sink, heads]), rows]);
  const all = to.add(Softmax, [to.add(Concat, [scores, column], { axis: -1 })], { axis: -1 });
  return to.add(Slice, [all, listOf(0), listOf(-1), listOf(-1)]);
}
