/**
 * RotaryEmbedding: pairs of elements of each head are turned by the angle of the token's position. Heads that are apart
 * are an element function; merged heads are taken apart first, and com.microsoft's form is brought to the standard one.
 */
import { dimEqual, dimFloorDiv, dimMul, formatDim, formatShape, type Dim } from "../core/dim.ts";
import { MicrosoftRotaryEmbedding as evaluateMicrosoft, RotaryEmbedding as evaluate } from "../evaluate/rotary-embedding.ts";
import { defineOp, float, int, type ExpandContext, type ExpansionNode, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { add, dimExpr, div, eq, lt, mul, rem, select, sub, type Expr } from "../kernel/expr.ts";
import { Add, Mul, Sub } from "./arithmetic.ts";
import { Concat } from "./concat.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf } from "./expansion.ts";
import { Expand } from "./fill.ts";
import { Gather } from "./gather.ts";
import { headsApart, headSizes, headsMerged, indicesAlong, sizeAlong } from "./heads.ts";
import { indexFrom, origin } from "./index-map.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { Slice } from "./slice.ts";

interface Given<T> { readonly X: T; readonly cos_cache: T; readonly sin_cache: T; readonly position_ids: T | undefined }
interface Options { readonly interleaved: number; readonly num_heads: number; readonly rotary_embedding_dim: number }

/** Reports angles that are not one for each pair of the turned elements. */
function checkTurned(turned: Dim, depth: Dim, caches: readonly TypeInfo[], context: InferContext): void {
  if (typeof turned !== "number") return;
  if (turned < 0 || turned % 2 !== 0 || (typeof depth === "number" && turned > depth)) context.fail("OF3012", `${turned} of ${formatDim(depth)} elements of a head cannot be turned in pairs`);
  for (const { shape } of caches) {
    const width = shape[shape.length - 1];
    if (typeof width === "number" && width * 2 !== turned) context.fail("OF3011", `a cache of ${formatShape(shape)} does not hold ${turned / 2} angles a position`);
  }
}

/** One element of [batch, heads, sequence, depth], whose first `turned` are turned. */
function turn({ X, cos_cache, sin_cache, position_ids }: Given<Operand>, turned: Dim, interleaved: boolean) {
  const half = dimExpr(dimFloorDiv(turned, 2));
  return (b: Expr = origin, h: Expr = origin, s: Expr = origin, d: Expr = origin): Expr => {
    const x = (i: Expr): Expr => X.at(b, h, s, i);
    const times = (cache: Operand, i: Expr, e: Expr): Expr => mul(e, position_ids ? cache.at(indexFrom(position_ids.at(b, s), cache.shape[0] ?? 1), i) : cache.at(b, s, i));
    const first = (i: Expr, one: Expr, two: Expr): Expr => sub(times(cos_cache, i, one), times(sin_cache, i, two));
    const second = (i: Expr, one: Expr, two: Expr): Expr => add(times(sin_cache, i, one), times(cos_cache, i, two));
    const rest = (rotated: Expr): Expr => (dimEqual(turned, X.shape[3] ?? 0) ? rotated : select(lt(d, dimExpr(turned)), rotated, x(d)));
    if (!interleaved) return select(lt(d, half), first(d, x(d), x(add(d, half))), rest(second(sub(d, half), x(sub(d, half)), x(d))));
    const pair = div(d, 2), one = x(mul(pair, 2)), two = x(add(mul(pair, 2), 1));
    return rest(select(eq(rem(d, 2), 0), first(pair, one, two), second(pair, one, two)));
  };
}

/** The rotation by slices and products; undefined where the count of turned elements is not known. */
function spelledOut({ inputs: [X, cosines, sines, positions], inputTypes, outputs }: ExpandContext, { interleaved, rotary_embedding_dim }: Options): readonly ExpansionNode[] | undefined {
  const depth = inputTypes[0]?.shape[3], turned = rotary_embedding_dim || depth;
  if (typeof turned !== "number") return undefined;
  const to = new Expansion(), last = listOf(3);
  const part = (x: string | undefined, from: number, end: number, step = 1): string => to.add(Slice, [x, listOf(from), listOf(end), last, listOf(step)]);
  const whole = turned === depth, rotating = whole ? X : part(X, 0, turned);
  const [one, two] = interleaved ? [part(rotating, 0, turned, 2), part(rotating, 1, turned, 2)] : [part(rotating, 0, turned / 2), part(rotating, turned / 2, turned)];
  const angles = (cache: string | undefined): string => to.add(Unsqueeze, [positions === undefined ? cache : to.add(Gather, [cache, positions], { axis: 0 }), listOf(1)]);
  const cos = angles(cosines), sin = angles(sines), times = (x: string, y: string): string => to.add(Mul, [x, y]);
  const first = to.add(Sub, [times(one, cos), times(two, sin)]), second = to.add(Add, [times(one, sin), times(two, cos)]);
  const result = whole ? outputs[0] : undefined;
  const rotated = interleaved
    ? to.add(Reshape, [to.add(Concat, [to.add(Unsqueeze, [first, listOf(4)]), to.add(Unsqueeze, [second, listOf(4)])], { axis: 4 }), listOf(0, 0, 0, turned)], {}, result)
    : to.add(Concat, [first, second], { axis: 3 }, result);
  if (!whole) to.add(Concat, [rotated, part(X, turned, 2 ** 31 - 1)], { axis: 3 }, outputs[0]);
  return to.nodes;
}

export const RotaryEmbedding = defineOp({
  type: "RotaryEmbedding", domain: "", since: 23, evaluate,
  inputs: { X: "required", cos_cache: "required", sin_cache: "required", position_ids: "optional" }, integers: ["position_ids"], oneType: [["X", "cos_cache", "sin_cache"]],
  attributes: { interleaved: int(0), num_heads: int(0), rotary_embedding_dim: int(0) },
  fusionKind: "injective",
  infer({ X, cos_cache, sin_cache, position_ids }, { num_heads, rotary_embedding_dim }, context) {
    checkType(context, X, "X", "float");
    const [batch, , sequence, depth] = headSizes(X, num_heads, context, "num_heads"), rank = position_ids ? 2 : 3;
    if (position_ids && position_ids.shape.length !== 2) context.fail("OF3010", `position_ids needs rank 2, got ${formatShape(position_ids.shape)}`);
    for (const cache of [cos_cache, sin_cache]) if (cache.shape.length !== rank) context.fail("OF3010", `the caches need rank ${rank}, got ${formatShape(cache.shape)}`);
    checkTurned(rotary_embedding_dim || depth, depth, [cos_cache, sin_cache], context);
    const turned = rotary_embedding_dim || depth, angles = dimFloorDiv(turned, 2);
    context.agree?.(turned, dimMul(2, angles), "equal");
    agreeSizes(context, "position_ids", position_ids, [batch, sequence]);
    for (const [name, cache] of Object.entries({ cos_cache, sin_cache })) agreeSizes(context, name, cache, position_ids ? [cos_cache.shape[0] ?? 1, angles] : [batch, sequence, angles]);
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  lowerable: ({ X }) => X.shape.length === 4,
  lower: (operands, { interleaved, rotary_embedding_dim }) => [turn(operands, rotary_embedding_dim || (operands.X.shape[3] ?? 0), interleaved !== 0)],
  expand: (context, options) => {
    if (context.inputTypes[0]?.shape.length === 4) return spelledOut(context, options);
    const to = new Expansion(), [X, ...rest] = context.inputs;
    headsMerged(to, to.add(RotaryEmbedding, [headsApart(to, X, options.num_heads), ...rest], { ...options, num_heads: 0 }), context.outputs[0]);
    return to.nodes;
  },
});

/** Positions of every token, [batch, sequence], from one for each or from that of the first. */
function everyPosition(to: Expansion, { inputs: [X, positions], inputTypes: [x, given] }: ExpandContext): string | undefined {
  if (given?.shape.length === 2) return positions;
  const axis = (x?.shape.length ?? 3) - 2;
  const row = to.add(Add, [indicesAlong(to, X, axis), positions]);
  return to.add(Expand, [row, to.add(Concat, [sizeAlong(to, X, 0), sizeAlong(to, X, axis)], { axis: 0 })]);
}

/** com.microsoft's form: other order of inputs, one position for a whole row of tokens, heads told by the caches' width. */
export const MicrosoftRotaryEmbedding = defineOp({
  type: "RotaryEmbedding", domain: "com.microsoft", since: 1, evaluate: evaluateMicrosoft,
  inputs: { input: "required", position_ids: "required", cos_cache: "required", sin_cache: "required" },
  attributes: { interleaved: int(0), is_packed_batching: int(0), num_heads: int(0), rotary_embedding_dim: int(0), scale: float(1) },
  fusionKind: "opaque",
  infer({ input, position_ids, cos_cache, sin_cache }, options, context) {
    checkType(context, input, "input", "float");
    if (position_ids.shape.length !== 1 && position_ids.shape.length !== 2) context.fail("OF3010", `position_ids needs rank 1 or 2, got ${formatShape(position_ids.shape)}`);
    const { num_heads, rotary_embedding_dim } = microsoftOptions(input, cos_cache, options);
    if (num_heads === undefined) context.fail("OF3003", "merged heads need num_heads", "give num_heads, or a cache of known width");
    const [, , , depth] = headSizes(input, num_heads, context, "num_heads");
    checkTurned(rotary_embedding_dim || depth, depth, [cos_cache, sin_cache], context);
    return [{ dtype: input.dtype, shape: input.shape }];
  },
  expand: (context, options) => {
    const [input, , cache] = context.inputTypes, [X, , cos, sin] = context.inputs;
    if (!input || !cache) return undefined;
    const to = new Expansion(), { num_heads = 0, rotary_embedding_dim } = microsoftOptions(input, cache, options);
    to.add(RotaryEmbedding, [X, cos, sin, everyPosition(to, context)], { interleaved: options.interleaved, num_heads, rotary_embedding_dim }, context.outputs[0]);
    return to.nodes;
  },
});

/** The standard attributes for com.microsoft's; without heads where nothing tells how many. */
function microsoftOptions(input: TypeInfo, cache: TypeInfo, { num_heads, rotary_embedding_dim }: Options): { readonly num_heads: number | undefined; readonly rotary_embedding_dim: number } {
  if (input.shape.length !== 3 || num_heads > 0) return { num_heads, rotary_embedding_dim };
  const hidden = input.shape[2], width = cache.shape[1];
  return { num_heads: typeof hidden === "number" && typeof width === "number" ? hidden / (2 * width) : undefined, rotary_embedding_dim };
}
