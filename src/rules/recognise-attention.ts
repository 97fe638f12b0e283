/**
 * softmax(q·kᵀ · scale + mask) · v is one operator, whose kernel never holds the scores (FlashAttention: Dao et al. 2022).
 * The scale may stand on the query, the keys, or the scores, as factor or divisor; a scale stays before the product
 * where it stands before, since moving a large one could overflow.
 */
import { dimEqual, formatShape, shapeEqual, type Dim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Div, Dropout, FlashAttention, MatMul, Mul, Relu, Softmax, Transpose } from "../ops/index.ts";
import { softmaxAxes } from "../ops/softmax.ts";
import { anyOf, commuted, numberIn, op, scalar, value, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse, type Editor, type Verdict } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

type Scalar = ConstantValue | undefined;
interface Match {
  readonly q: Value; readonly kT: Value; readonly v: Value; readonly mask: Value | undefined;
  readonly qFactor: Scalar; readonly qDivisor: Scalar; readonly kFactor: Scalar; readonly kDivisor: Scalar; readonly factor: Scalar; readonly divisor: Scalar;
  readonly dot: Node; readonly softmax: Node;
}

/** `inner`, perhaps times or divided by a number. */
const scaled = (inner: Pattern, factor: string, divisor: string): Pattern =>
  anyOf(commuted(Mul, [inner, scalar(factor)]), op(Div, [inner, scalar(divisor)]), inner);
const dot = op(MatMul, [scaled(value("q"), "qFactor", "qDivisor"), scaled(value("kT"), "kFactor", "kDivisor")], { as: "dot" });
const scores = scaled(dot, "factor", "divisor");
const probabilities = op(Softmax, [anyOf(commuted(Add, [scores, value("mask")]), scores)], { as: "softmax" });

const dtypeFits = ({ q }: Match): Verdict => isFloat(q.type.dtype) || refuse("dtype", `'${q.name}' is ${q.type.dtype}`, "use floats");
function softmaxIsLast({ softmax }: Match): Verdict {
  const rank = softmax.inputs[0]?.type.shape.length ?? 0;
  const { axis, flatten } = softmax.attributes, axes = softmaxAxes({ axis: Number(axis), flatten: Number(flatten) }, rank);
  return axes.length === 1 && axes[0] === rank - 1 ? true
    : refuse("softmax-axis", `'${softmax.name}' normalises axes [${axes.join(", ")}] of rank ${rank}`, "normalise over the keys, the last axis");
}
function shapesFit({ q, kT, v }: Match): Verdict {
  const shapes = [q, kT, v].map((x) => x.type.shape), [a = []] = shapes, rank = a.length;
  const said = shapes.map(formatShape).join(", ");
  if (rank < 2 || rank > 4 || shapes.some((s) => s.length !== rank)) return refuse("rank", `query, keys and values have shapes ${said}`, "give all three the same rank, 2 to 4");
  const same = (d: number): boolean => shapes.every((s) => dimEqual(s[d] ?? 1, a[d] ?? 1));
  const batches = Array.from({ length: rank - 2 }, (_, d) => d);
  return batches.every(same) ? true : refuse("batch-differs", `the leading axes of query, keys and values differ: ${said}`, "give all three the same batch and heads");
}
function maskFits({ mask, dot: { outputs: [product] }, softmax }: Match): Verdict {
  const shape: readonly Dim[] = product?.type.shape ?? [], after: readonly Dim[] = softmax.inputs[0]?.type.shape ?? [];
  return shapeEqual(shape, after) ? true : refuse("shape-grows", `the mask '${mask?.name}' ${formatShape(mask?.type.shape ?? [])} enlarges the scores ${formatShape(shape)}`, "give the mask a shape that broadcasts to the scores");
}

interface Scale { readonly scale: number; readonly scale_position: "pre" | "post" }
/** One scale for those written: before the product where one stands there, else after it. */
function scaleOf(m: Match): Scale | Refusal {
  const of = (factor: Scalar, divisor: Scalar): number => (factor ? numberIn(factor) : divisor ? 1 / numberIn(divisor) : 1);
  const query = of(m.qFactor, m.qDivisor), key = of(m.kFactor, m.kDivisor), after = of(m.factor, m.divisor);
  const all = [query, key, after];
  if (all.some((s) => !Number.isFinite(s) || s === 0)) return refuse("scale", `the scale is ${all.join(" · ")}`, "use a finite scale other than 0");
  if (query === 1 && key === 1) return { scale: after, scale_position: "post" };
  if (key === 1 && after === 1) return { scale: query, scale_position: "pre" };
  if (all.some((s) => Math.abs(s) > 1)) return refuse("scale-range", `scales of ${query} on the query, ${key} on the keys and ${after} on the scores cannot be joined without a chance of overflow`, "use one scale, or scales of at most 1");
  return { scale: query * key * after, scale_position: "pre" };
}

/** The keys with their last two axes the other way round: without a transposition where that undoes one. */
function untransposed(kT: Value, edit: Editor): Value {
  const last = kT.type.shape.length - 1;
  const swap = kT.type.shape.map((_, i) => (i === last ? last - 1 : i === last - 1 ? last : i));
  const before = kT.producer?.node;
  const [source] = before?.op === Transpose ? before.inputs : [];
  const given = before?.attributes["perm"];
  if (!source) return edit.insert(Transpose, [kT], { perm: swap });
  const perm = swap.map((axis) => (Array.isArray(given) ? Number(given[axis]) : last - axis));
  return perm.every((axis, i) => axis === i) ? source : edit.insert(Transpose, [source], { perm });
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

export const recogniseAttention = defineRule({
  name: "recognise-attention",
  gePass: "FlashAttentionFusionPass",
  doc: "Scaled dot-product attention, MatMul, Softmax, MatMul, with its scale on query, keys or scores, an additive mask, and keys transposed in any way, becomes FlashAttention.",
  stage: "recognise",
  match: op(MatMul, [probabilities, value("v")]) as Pattern<Match>,
  hallmarks: [Softmax],
  where: [dtypeFits, softmaxIsLast, shapesFit, maskFits],
  numerics: reassociates(3e-5),
  rewrite(m, edit) {
    const scale = scaleOf(m);
    if (isRefusal(scale)) return scale;
    return edit.insert(FlashAttention, [m.q, untransposed(m.kT, edit), m.v, ...(m.mask ? [m.mask] : [])], { ...scale });
  },
  example: build({ scores: (b, s) => b.add(Div, [s, 2]) }),
  examples: [
    build({}),
    build({ scores: (b, s) => b.add(Add, [b.random([2, 1, 1, 5]), b.add(Mul, [1e-8, s])]) }),
    build({ query: (b, q) => b.add(Mul, [q, 0.3]), scores: (b, s) => b.add(Add, [s, b.input("mask", [3, 5])]) }),
    build({ query: (b, q) => b.add(Mul, [q, 0.7]), keys: (b, k) => b.add(Mul, [b.add(Transpose, [k], { perm: [0, 1, 3, 2] }), 0.7]) }),
    build({ query: (b, q) => b.add(Div, [q, 1.9]), scores: (b, s) => b.add(Div, [s, 1.1]) }),
    build({ rank: 3 }),
    build({ rank: 2, scores: (b, s) => b.add(Add, [s, b.random([5])]) }),
    build({ keys: (b) => b.input("kT", [2, 2, 4, 5]) }),
    build({ keys: (b) => b.add(Transpose, [b.input("k0", [2, 5, 2, 4])], { perm: [0, 2, 3, 1] }) }),
  ],
  refuses: {
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
