/**
 * softmax(q·kᵀ · scale + mask) · v is one operator, whose kernel never holds the scores (FlashAttention: Dao et al. 2022).
 * The scale may stand on the query, the keys, or the scores, before or behind the mask, as factor or divisor; a scale
 * stays before the product where it stands before, since moving a large one could overflow. A mask may be added, once or
 * twice, or choose scores that give way to a number; choosing stays choosing, which differs from adding where a score is
 * infinite or a whole row is masked. A constant mask that hides the keys behind each query is left out: the kernel
 * compares positions. Scores may be limited from below, and rows without a softmax weigh nothing where the graph says so.
 * Key heads repeated for several query heads are read in place.
 */
import { dimEqual, dimMul, formatShape, shapeEqual, type Dim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Cast, Clip, Div, Dropout, Equal, Expand, FlashAttention, IsNaN, MatMul, Max, Mul, Not, ReduceMax, ReduceMin, Relu, Reshape, Softmax, Tanh, Transpose, Unsqueeze, Where } from "../ops/index.ts";
import { causalOffset } from "../ops/causal-mask.ts";
import { softmaxAxes } from "../ops/softmax.ts";
import { anyOf, commuted, constant, numberIn, op, scalar, uniform, value, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse, type Editor, type Verdict } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { chosenWeights, emptyRowsOf, rowsFit, type RowWeights } from "./row-weights.ts";

type Scalar = ConstantValue | undefined;
interface Match extends RowWeights {
  readonly q: Value; readonly v: Value; readonly dot: Node; readonly softmax: Node;
  readonly qFactor: Scalar; readonly qDivisor: Scalar; readonly kFactor: Scalar; readonly kDivisor: Scalar;
  readonly factor: Scalar; readonly divisor: Scalar; readonly lastFactor: Scalar; readonly lastDivisor: Scalar;
  readonly cap: Scalar; readonly capFactor: Scalar; readonly capDivisor: Scalar;
  readonly bias: Value | undefined; readonly mask: Value | undefined;
  readonly choice: Value | undefined; readonly fill: Scalar; readonly otherwise: Scalar; readonly least: Scalar;
  /** The keys transposed, or else as they are before `swap`. */
  readonly kT: Value | undefined; readonly k: Value | undefined; readonly swap: Node | undefined;
}

/** `inner` times or divided by a number. */
const scaledBy = (inner: Pattern, factor: string, divisor: string): Pattern => anyOf(commuted(Mul, [inner, scalar(factor)]), op(Div, [inner, scalar(divisor)]));
const scaled = (inner: Pattern, factor: string, divisor: string): Pattern => anyOf(scaledBy(inner, factor, divisor), inner);
const plus = (inner: Pattern, name: string): Pattern => anyOf(commuted(Add, [inner, value(name)]), inner);
const keys = anyOf(op(Transpose, [scaledBy(value("k"), "kFactor", "kDivisor")], { as: "swap" }), scaled(value("kT"), "kFactor", "kDivisor"));
const dot = op(MatMul, [scaled(value("q"), "qFactor", "qDivisor"), keys], { as: "dot" });
const measured = scaled(dot, "factor", "divisor");
const capped = commuted(Mul, [op(Tanh, [scaled(measured, "capFactor", "capDivisor")]), scalar("cap")]);
const biased = plus(anyOf(measured, capped), "bias");
const chosen = anyOf(op(Where, [value("choice"), constant("fill", uniform), biased]), op(Where, [value("choice"), biased, constant("otherwise", uniform)]), biased);
const masked = plus(chosen, "mask");
const whole = anyOf(masked, scaledBy(masked, "lastFactor", "lastDivisor"));
const scores = anyOf(whole, op(Clip, [whole, scalar("least")]));
const probabilities = chosenWeights(op(Softmax, [scores], { as: "softmax" }));

/** The value whose last two axes are the depth and the keys. */
const transposedKeys = ({ kT, swap, q }: Match): Value => kT ?? swap?.outputs[0] ?? q;
const dtypeFits = ({ q }: Match): Verdict => isFloat(q.type.dtype) || refuse("dtype", `'${q.name}' is ${q.type.dtype}`, "use floats");
function softmaxIsLast({ softmax }: Match): Verdict {
  const rank = softmax.inputs[0]?.type.shape.length ?? 0;
  const { axis, flatten } = softmax.attributes, axes = softmaxAxes({ axis: Number(axis), flatten: Number(flatten) }, rank);
  return axes.length === 1 && axes[0] === rank - 1 ? true
    : refuse("softmax-axis", `'${softmax.name}' normalises axes [${axes.join(", ")}] of rank ${rank}`, "normalise over the keys, the last axis");
}
function shapesFit(m: Match): Verdict {
  const shapes = [m.q, transposedKeys(m), m.v].map((x) => x.type.shape), [a = [], b = [], c = []] = shapes, rank = a.length;
  const said = shapes.map(formatShape).join(", ");
  if (rank < 2 || rank > 4 || shapes.some((s) => s.length !== rank)) return refuse("rank", `query, keys and values have shapes ${said}`, "give all three the same rank, 2 to 4");
  const same = (d: number): boolean => shapes.every((s) => dimEqual(s[d] ?? 1, a[d] ?? 1));
  const shared = rank === 4 && same(0) && dimEqual(b[1] ?? 0, 1) && dimEqual(c[1] ?? 0, 1);
  const batches = Array.from({ length: rank - 2 }, (_, d) => d);
  return shared || batches.every(same) ? true : refuse("batch-differs", `the leading axes of query, keys and values differ: ${said}`, "give all three the same batch and heads");
}
function maskFits({ mask, bias, choice, dot: { outputs: [product] }, softmax }: Match): Verdict {
  const shape: readonly Dim[] = product?.type.shape ?? [], after: readonly Dim[] = softmax.inputs[0]?.type.shape ?? [];
  return shapeEqual(shape, after) ? true : refuse("shape-grows", `the mask ${[mask, bias, choice].flatMap((v) => (v ? [`'${v.name}' ${formatShape(v.type.shape)}`] : [])).join(", ")} enlarges the scores ${formatShape(shape)}`, "give the mask a shape that broadcasts to the scores");
}

/** c·tanh(s·f) is the score s·f·c capped at c, which must be positive. */
function capFits({ cap }: Match): Verdict {
  const c = cap ? numberIn(cap) : 1;
  return (Number.isFinite(c) && c > 0) || refuse("soft-cap", `the score is capped at ${c}`, "cap it at a finite number above 0");
}
function capScale({ cap, capFactor, capDivisor }: Match): number {
  if (!cap) return 1;
  const c = numberIn(cap), by = capDivisor ? numberIn(capDivisor) : capFactor ? 1 / numberIn(capFactor) : 1;
  return Math.abs(by - c) <= 1e-6 * c ? 1 : c / by;
}

interface Scale { readonly scale: number; readonly scale_position: "pre" | "post" | "last" }
/** One scale for those written: behind the mask where it stands there, before the product where one does, else after it. */
function scaleOf(m: Match): Scale | Refusal {
  const of = (factor: Scalar, divisor: Scalar): number => (factor ? numberIn(factor) : divisor ? 1 / numberIn(divisor) : 1);
  const query = of(m.qFactor, m.qDivisor), key = of(m.kFactor, m.kDivisor), after = of(m.factor, m.divisor) * capScale(m), last = of(m.lastFactor, m.lastDivisor);
  const all = [query, key, after, last];
  if (all.some((s) => !Number.isFinite(s) || s === 0)) return refuse("scale", `the scale is ${all.join(" · ")}`, "use a finite scale other than 0");
  if (last !== 1) {
    return query * key * after === 1 ? { scale: last, scale_position: "last" }
      : refuse("scale-range", `a scale of ${last} behind the mask cannot be joined with ${query * key * after} before it`, "scale once");
  }
  if (query === 1 && key === 1) return { scale: after, scale_position: "post" };
  if (key === 1 && after === 1) return { scale: query, scale_position: "pre" };
  if (all.some((s) => Math.abs(s) > 1)) return refuse("scale-range", `scales of ${query} on the query, ${key} on the keys and ${after} on the scores cannot be joined without a chance of overflow`, "use one scale, or scales of at most 1");
  return { scale: query * key * after, scale_position: "pre" };
}

/** The keys with their last two axes the other way round: without a transposition where that undoes one. */
function keysOf(m: Match, edit: Editor): Value {
  const kT = transposedKeys(m), last = kT.type.shape.length - 1;
  const swap = kT.type.shape.map((_, i) => (i === last ? last - 1 : i === last - 1 ? last : i));
  const before = m.swap ?? kT.producer?.node;
  const source = m.k ?? (before?.op === Transpose ? before.inputs[0] : undefined);
  const given = before?.attributes["perm"];
  if (!source) return edit.insert(Transpose, [kT], { perm: swap });
  const perm = swap.map((axis) => (Array.isArray(given) ? Number(given[axis]) : last - axis));
  return perm.every((axis, i) => axis === i) ? source : edit.insert(Transpose, [source], { perm });
}

/** What [batch, heads, sequence, depth] was before every head was repeated: Reshape(Expand(Reshape(x))), by its shapes. */
function unrepeated(value: Value): Value | undefined {
  const flat = value.producer?.node, spread = flat?.op === Reshape ? flat.inputs[0]?.producer?.node : undefined;
  const apart = spread?.op === Expand ? spread.inputs[0]?.producer?.node : undefined;
  const x = apart && (apart.op === Reshape || apart.op === Unsqueeze) ? apart.inputs[0] : undefined;
  const [b, h, t, d] = x?.type.shape ?? [], all = spread?.outputs[0]?.type.shape ?? [], repeats = all[2];
  if (!x || b === undefined || h === undefined || t === undefined || d === undefined || repeats === undefined) return undefined;
  const fits = x.type.shape.length === 4 && shapeEqual(apart?.outputs[0]?.type.shape ?? [], [b, h, 1, t, d])
    && shapeEqual(all, [b, h, repeats, t, d]) && shapeEqual(value.type.shape, [b, dimMul(h, repeats), t, d]);
  return fits ? x : undefined;
}

interface Spelling {
  readonly rank?: 2 | 3 | 4;
  readonly batch?: number;
  readonly query?: (b: GraphBuilder, q: Value) => Value;
  readonly keys?: (b: GraphBuilder, k: Value) => Value;
  readonly scores?: (b: GraphBuilder, s: Value) => Value;
  readonly axis?: number;
  readonly probabilities?: (b: GraphBuilder, p: Value) => Value;
  readonly more?: (b: GraphBuilder, y: Value) => readonly Value[];
  readonly values?: readonly number[];
}
const build = (s: Spelling) => () => {
  const b = new GraphBuilder(), batch = s.batch ?? 2;
  const shape = (...dims: readonly [number, number, number, number]): readonly number[] => dims.slice(4 - (s.rank ?? 4));
  const q = b.input("q", shape(batch, 2, 3, 4)), k = b.input("k", shape(batch, 2, 5, 4)), v = b.input("v", s.values ?? shape(batch, 2, 5, 6));
  const swap = [0, 1, 3, 2].slice(4 - (s.rank ?? 4)).map((a) => a - (4 - (s.rank ?? 4)));
  const keys = s.keys ? s.keys(b, k) : b.add(Transpose, [k], { perm: swap });
  const product = b.add(MatMul, [s.query ? s.query(b, q) : q, keys]);
  const p = b.add(Softmax, [s.scores ? s.scores(b, product) : product], { axis: s.axis ?? -1 });
  const y = b.add(MatMul, [s.probabilities ? s.probabilities(b, p) : p, v]);
  return b.build(y, ...(s.more?.(b, p) ?? []));
};

/** Weights of 0 in rows of the scores for which `rows` is true. */
const withoutHiddenRows = (rows: (b: GraphBuilder, s: Value) => Value) => (b: GraphBuilder, p: Value): Value => {
  const scores = p.producer?.node.inputs[0];
  return scores ? b.add(Where, [rows(b, scores), 0, p]) : p;
};

export const recogniseAttention = defineRule({
  name: "recognise-attention",
  gePass: "FlashAttentionFusionPass",
  doc: "Scaled dot-product attention, MatMul, Softmax, MatMul, with its scale on query, keys or scores, a soft cap, masks that are added or choose, rows that are masked everywhere made safe, keys transposed in any way and repeated for several heads, becomes FlashAttention.",
  stage: "recognise",
  match: op(MatMul, [probabilities, value("v")]) as Pattern<Match>,
  hallmarks: [Softmax],
  where: [dtypeFits, softmaxIsLast, shapesFit, maskFits, capFits, (m, root) => rowsFit(m, m.softmax, root.inputs[0])],
  numerics: reassociates(3e-5),
  rewrite(m, edit) {
    const scale = scaleOf(m);
    if (isRefusal(scale)) return scale;
    const keys = keysOf(m, edit), oneKeys = unrepeated(keys), oneValues = unrepeated(m.v);
    const [k, v] = oneKeys && oneValues && dimEqual(oneKeys.type.shape[1] ?? 0, oneValues.type.shape[1] ?? 0) ? [oneKeys, oneValues] : [keys, m.v];
    const filled = m.fill ?? m.otherwise, offset = scale.scale_position === "last" || m.least ? undefined : causalOffset(m.mask?.constant, m.bias !== undefined || m.choice !== undefined);
    const hidden = offset === undefined ? [m.mask, m.bias, m.choice] : [undefined, m.bias, m.choice, offset === 0 ? undefined : edit.constant(fromNumbers("int64", [1], [offset]), "offset")];
    return edit.insert(FlashAttention, [m.q, k, v, ...hidden], { ...scale, ...(m.cap ? { softcap: numberIn(m.cap) } : {}), ...(filled ? { fill: numberIn(filled), fill_where: m.fill ? 1 : 0 } : {}), ...(offset === undefined ? {} : { causal: 1 }), ...(m.least ? { least: numberIn(m.least) } : {}), ...emptyRowsOf(m) });
  },
  example: build({ scores: (b, s) => b.add(Div, [s, 2]) }),
  examples: [
    build({}),
    build({ scores: (b, s) => b.add(Add, [b.random([2, 1, 1, 5]), b.add(Mul, [1e-8, s])]) }),
    build({ query: (b, q) => b.add(Mul, [q, 0.3]), scores: (b, s) => b.add(Add, [s, b.input("mask", [3, 5])]) }),
    build({ query: (b, q) => b.add(Mul, [q, 0.7]), keys: (b, k) => b.add(Mul, [b.add(Transpose, [k], { perm: [0, 1, 3, 2] }), 0.7]) }),
    build({ query: (b, q) => b.add(Div, [q, 1.9]), scores: (b, s) => b.add(Div, [s, 1.1]) }),
    build({ rank: 3 }),
    build({ scores: (b, s) => b.add(Add, [b.add(Mul, [b.add(Tanh, [b.add(Div, [b.add(Mul, [s, 0.3]), 3])]), 3]), b.random([3, 5])]) }),
    build({ query: (b, q) => b.add(Mul, [q, 0.3]), scores: (b, s) => b.add(Mul, [2, b.add(Tanh, [b.add(Mul, [s, 0.5])])]) }),
    build({ scores: (b, s) => b.add(Mul, [b.add(Tanh, [b.add(Mul, [s, 0.1])]), 4]) }),
    build({ rank: 2, scores: (b, s) => b.add(Add, [s, b.random([5])]) }),
    build({ keys: (b) => b.input("kT", [2, 2, 4, 5]) }),
    build({ keys: (b) => b.add(Transpose, [b.input("k0", [2, 5, 2, 4])], { perm: [0, 2, 3, 1] }) }),
    build({ keys: (b, k) => b.add(Transpose, [b.add(Mul, [k, 0.6])], { perm: [0, 1, 3, 2] }) }),
    build({ scores: (b, s) => b.add(Mul, [b.add(Add, [s, b.random([3, 5])]), 1e-8]) }),
    build({ scores: (b, s) => b.add(Add, [b.add(Div, [s, 2]), b.numbers(Array.from({ length: 15 }, (_, i) => (i % 5 > Math.floor(i / 5) + 2 ? -Infinity : 0)), [3, 5])]) }),
    build({ scores: (b, s) => b.add(Add, [b.random([2, 1, 1, 5]), b.add(Add, [b.add(Div, [s, 1e8]), b.random([3, 5])])]) }),
    build({ scores: (b, s) => b.add(Where, [b.input("choice", [3, 1], "bool"), -Infinity, s]), probabilities: (b, p) => b.add(Where, [b.add(IsNaN, [p]), 0, p]) }),
    build({ scores: (b, s) => b.add(Where, [b.input("choice", [3, 5], "bool"), s, -Infinity]), probabilities: (b, p) => b.add(Where, [b.add(Not, [b.add(IsNaN, [p])]), p, b.add(Expand, [0, b.int64(3, 5)])]) }),
    build({ scores: (b, s) => b.add(Where, [b.input("choice", [3, 5], "bool"), s, -Infinity]), probabilities: withoutHiddenRows((b, s) => b.add(Cast, [b.add(ReduceMin, [b.add(Cast, [b.add(Equal, [s, -Infinity])], { to: 7 }), b.int64(-1)])], { to: 9 })) }),
    build({ scores: (b, s) => b.add(Add, [s, b.input("mask", [3, 1])]), probabilities: withoutHiddenRows((b, s) => b.add(Equal, [-Infinity, b.add(ReduceMax, [s, b.int64(3)])])) }),
    build({ scores: (b, s) => b.add(Max, [b.add(Add, [s, b.input("mask", [3, 5])]), -3.4028234663852886e38]) }),
    build({ scores: (b, s) => b.add(Where, [b.input("choice", [2, 1, 3, 5], "bool"), -1e9, b.add(Mul, [s, 0.5])]) }),
    build({ scores: (b, s) => b.add(Add, [b.add(Where, [b.input("choice", [1, 5], "bool"), b.add(Add, [b.add(Mul, [s, 1e-8]), b.random([3, 1])]), -Infinity]), b.random([5])]) }),
  ],
  refuses: {
    axes: build({ probabilities: withoutHiddenRows((b, s) => b.add(Equal, [b.add(ReduceMax, [s, b.int64(2)]), -Infinity])) }),
    keepdims: build({ rank: 2, keys: (b) => b.input("kT", [4, 3]), values: [3, 6], probabilities: withoutHiddenRows((b, s) => b.add(Equal, [b.add(ReduceMax, [s, b.int64(1)], { keepdims: 0 }), -Infinity])) }),
    "different-operand": build({ probabilities: (b, p) => b.add(Where, [b.add(Equal, [b.add(ReduceMax, [p, b.int64(3)]), -Infinity]), 0, p]) }),
    "soft-cap": build({ scores: (b, s) => b.add(Mul, [b.add(Tanh, [s]), -2]) }),
    "softmax-axis": build({ axis: 2 }),
    "graph-output": build({ more: (_, p) => [p] }),
    "interior-value-used": build({ more: (b, p) => [b.add(Relu, [p])] }),
    "batch-differs": build({ values: [1, 1, 5, 6] }),
    "shape-grows": build({ batch: 1, scores: (b, s) => b.add(Add, [s, b.random([2, 1, 1, 5])]) }),
    "scale-range": build({ query: (b, q) => b.add(Mul, [q, 3]), scores: (b, s) => b.add(Div, [s, 3]) }),
    scale: build({ scores: (b, s) => b.add(Mul, [s, 0]) }),
    "non-deterministic-between": build({ probabilities: (b, p) => b.add(Dropout, [p, 0.5, b.numbers([1], [], "bool")]) }),
  },
});
