/** Reductions over axes. The newest form takes the axes as an input; older ones as an attribute. */
import { checkType } from "./element-wise.ts";
import { dimMax, dimMin, dimProduct, dimAdd, type Dim, formatShape } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers } from "../core/tensor.ts";
import { defineOp, int, type AttributeSpec, type InferContext, type Operand, type OpDef, type Spelling, type TypeInfo } from "../graph/op.ts";
import { add, cast, constant, div, exp, max, mul, neg, select, sub, unary, type Expr, type ReduceOp } from "../kernel/expr.ts";
import * as evaluate from "../evaluate/reduce.ts";
import { axisWithin, countOf, overAxes } from "./axis-reduction.ts";
import { numbersKnown } from "./element-values.ts";
import { operand } from "./window.ts";

interface Options { readonly keepdims: number; readonly noop_with_empty_axes: number }
const attributes = { keepdims: int(1), noop_with_empty_axes: int(0) } as const satisfies Record<string, AttributeSpec>;

/** The axes reduced, counted from the front; undefined where only running can tell. */
export function reducedAxes(rank: number, axes: TypeInfo | undefined, { noop_with_empty_axes }: { readonly noop_with_empty_axes: number }): readonly number[] | undefined {
  const all = Array.from({ length: rank }, (_, d) => d);
  if (!axes || axes.shape[0] === 0) return noop_with_empty_axes ? [] : all;
  const known = numbersKnown(axes);
  if (!known) return undefined;
  if (known.length === 0) return noop_with_empty_axes ? [] : all;
  return known.map((a) => (a < 0 ? a + rank : a)).sort((a, b) => a - b);
}

function inferReduction(X: TypeInfo, A: TypeInfo | undefined, options: Options, elements: Elements | undefined, context: InferContext): readonly TypeInfo[] {
  const rank = X.shape.length;
  if (X.dtype !== "bool") checkType(context, X, "data", "numeric");
  if (A && A.shape.length > 1) context.fail("OF3010", `axes needs rank 1, got ${formatShape(A.shape)}`);
  for (const axis of (A && numbersKnown(A)) ?? []) axisWithin(axis, rank, context);
  const axes = reducedAxes(rank, A, options);
  if (axes && new Set(axes).size !== axes.length) context.fail("OF3012", `axes [${axes.join(", ")}] repeat one`);
  if (!axes) return [{ dtype: X.dtype, shape: unknownAxesShape(X, A, options, context) }];
  const shape = options.keepdims ? X.shape.map((d, i): Dim => (axes.includes(i) ? 1 : d)) : X.shape.filter((_, i) => !axes.includes(i));
  const whole = X.elements && axes.length === rank && X.elements.length > 0 ? elements?.(X.elements) : undefined;
  return [{ dtype: X.dtype, shape, ...(whole === undefined ? {} : { elements: [whole] }) }];
}

/** What is known of the shape while the axes are not: each size is the input's or 1. */
function unknownAxesShape(X: TypeInfo, A: TypeInfo | undefined, { keepdims }: Options, context: InferContext): readonly Dim[] {
  const count = A?.shape[0];
  if (!keepdims && typeof count !== "number") context.fail("OF3014", "the number of axes must be known where keepdims is 0");
  const rank = keepdims ? X.shape.length : X.shape.length - (typeof count === "number" ? count : 0);
  return Array.from({ length: rank }, (_, d) => context.fresh(`reduced_${d}`));
}

/** The reduction of known elements of an integer tensor. */
type Elements = (elements: readonly Dim[]) => Dim | undefined;

interface Reduction {
  readonly op: ReduceOp;
  /** What is folded, from an element. */
  readonly term?: (x: Expr) => Expr;
  /** What becomes of the folded value; `count` is the number of elements. */
  readonly finish?: (total: Expr, count: () => Expr) => Expr;
  readonly elements?: Elements;
  /** The whole reduction, where it is more than a fold. */
  readonly whole?: (shape: readonly Dim[], axes: readonly number[], indices: readonly Expr[], read: (i: readonly Expr[]) => Expr) => Expr;
  /** The result needs float arithmetic: integers go through float64. */
  readonly float?: boolean;
  readonly evaluate: Evaluate;
  readonly since: number;
}

const define = (type: string, r: Reduction): OpDef => defineOp({
  type, domain: "", since: r.since, inputs: { data: "required", axes: "optional" }, integers: ["axes"], attributes, fusionKind: "reduction",
  infer: ({ data, axes }, options, context) => inferReduction(data, axes, options, r.elements, context),
  evaluate: r.evaluate,
  lowerable: ({ data, axes }, options) => reducedAxes(data.shape.length, axes, options) !== undefined,
  lower({ data, axes: given }, options) {
    const axes = reducedAxes(data.shape.length, given, options) ?? [];
    return [(...indices) => reduceAt(data, axes, fullIndices(data.shape.length, axes, indices, options.keepdims !== 0), r)];
  },
  read: (node, opset) => readAxes(node, opset, r.since),
  write: (node, opset) => writeAxes(node, opset, r.since),
});

/** The operand's indices, 0 along reduced axes. */
function fullIndices(rank: number, axes: readonly number[], indices: readonly Expr[], keep: boolean): readonly Expr[] {
  const zero = constant(0, { scalar: "i32", lanes: 1 });
  let next = 0;
  return Array.from({ length: rank }, (_, d) => {
    if (!axes.includes(d)) return operand(indices, keep ? d : next++);
    return zero;
  });
}

function reduceAt(X: Operand, axes: readonly number[], indices: readonly Expr[], r: Reduction): Expr {
  const throughFloat = r.float && !isFloat(X.dtype);
  const read = (i: readonly Expr[]): Expr => {
    const x = X.at(...i);
    return throughFloat ? cast(x, "f64") : x.type.scalar === "bool" ? cast(x, "i32") : x;
  };
  const { scalar } = X.at(...indices).type;
  if (r.whole) return cast(r.whole(X.shape, axes, indices, read), scalar);
  const total = overAxes(r.op, X.shape, axes, indices, (i) => (r.term ?? ((x: Expr) => x))(read(i)));
  return cast(r.finish ? r.finish(total, () => countOf(X.shape, axes, total.type)) : total, scalar);
}

/** Shifted by the greatest element, so that exp does not overflow. */
function stableLogSumExp(shape: readonly Dim[], axes: readonly number[], indices: readonly Expr[], read: (i: readonly Expr[]) => Expr): Expr {
  const most = overAxes("max", shape, axes, indices, read);
  const shift = select(unary("isinf", most), constant(0, most.type), most);
  return add(shift, unary("log", overAxes("add", shape, axes, indices, (i) => exp(sub(read(i), shift)))));
}

function readAxes(node: Spelling, opset: number, since: number): Spelling {
  const { axes, ...rest } = node.attributes;
  if (opset >= since || !Array.isArray(axes)) return node;
  const list = axes as readonly number[];
  return { ...node, attributes: rest, inputs: [node.inputs[0], { literal: fromNumbers("int64", [list.length], list) }] };
}

function writeAxes(node: Spelling, opset: number, since: number): Spelling | undefined {
  if (opset >= since) return node;
  const { noop_with_empty_axes, ...rest } = node.attributes;
  const axes = node.inputs[1];
  const literal = axes && ("literal" in axes ? axes.literal : axes.constant);
  if (noop_with_empty_axes || (axes && !literal)) return undefined;
  const list = literal ? numbersKnown({ dtype: "int64", shape: literal.dims, constant: literal }) : undefined;
  return { ...node, inputs: node.inputs.slice(0, 1), attributes: { ...rest, ...(list?.length ? { axes: list } : {}) } };
}

const square = (x: Expr): Expr => mul(x, x);
const magnitude = (x: Expr): Expr => {
  const { scalar } = x.type;
  if (scalar === "f32" || scalar === "f64") return unary("abs", x);
  return scalar.startsWith("u") ? x : max(x, neg(x));
};

export const ReduceSum: OpDef = define("ReduceSum", { op: "add", since: 13, evaluate: evaluate.ReduceSum, elements: (e) => e.reduce(dimAdd, 0) });
export const ReduceMean: OpDef = define("ReduceMean", { op: "add", since: 18, evaluate: evaluate.ReduceMean, finish: (total, count) => div(total, count()) });
export const ReduceMax: OpDef = define("ReduceMax", { op: "max", since: 18, evaluate: evaluate.ReduceMax, elements: (e) => e.reduce(dimMax) });
export const ReduceMin: OpDef = define("ReduceMin", { op: "min", since: 18, evaluate: evaluate.ReduceMin, elements: (e) => e.reduce(dimMin) });
export const ReduceProd: OpDef = define("ReduceProd", { op: "mul", since: 18, evaluate: evaluate.ReduceProd, elements: dimProduct });
export const ReduceL1: OpDef = define("ReduceL1", { op: "add", since: 18, evaluate: evaluate.ReduceL1, term: magnitude });
export const ReduceL2: OpDef = define("ReduceL2", { op: "add", since: 18, evaluate: evaluate.ReduceL2, term: square, finish: (total) => unary("sqrt", total), float: true });
export const ReduceLogSum: OpDef = define("ReduceLogSum", { op: "add", since: 18, evaluate: evaluate.ReduceLogSum, finish: (total) => unary("log", total), float: true });
export const ReduceLogSumExp: OpDef = define("ReduceLogSumExp", { op: "add", since: 18, evaluate: evaluate.ReduceLogSumExp, whole: stableLogSumExp, float: true });
export const ReduceSumSquare: OpDef = define("ReduceSumSquare", { op: "add", since: 18, evaluate: evaluate.ReduceSumSquare, term: square });
