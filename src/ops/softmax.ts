/**
 * Softmax, LogSoftmax and Hardmax along one axis. Before opset 13 they normalise over all axes from `axis` on; such nodes
 * carry the internal attribute `flatten`.
 */
import { defineOp, int, type AttributeSpec, type ElementFunction, type ExpandContext, type ExpansionNode, type InferContext, type Operand, type OpDef, type Spelling, type TypeInfo } from "../graph/op.ts";
import { add, constant, decay, dimExpr, div, eq, i32, mul, select, sub, unary, type Expr } from "../kernel/expr.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { Hardmax as evaluateHardmax, LogSoftmax as evaluateLogSoftmax, Softmax as evaluateSoftmax } from "../evaluate/softmax.ts";
import { checkType } from "./element-wise.ts";
import { axesFrom, axisWithin, loopAxes, overAxes } from "./axis-reduction.ts";
import { Expansion } from "./expansion.ts";
import { Flatten, Reshape } from "./reshape.ts";
import { Shape } from "./shape.ts";
import { Transpose } from "./transpose.ts";
import { operand } from "./window.ts";

interface Options { readonly axis: number; readonly flatten: number }
const attributes = { axis: int(-1), flatten: int(0) } as const satisfies Record<string, AttributeSpec>;

/** The axes a Softmax normalises over, counted from the front; a scalar has none. */
export function softmaxAxes({ axis, flatten }: Options, rank: number): readonly number[] {
  if (rank === 0) return [];
  const first = axis < 0 ? axis + rank : axis;
  return flatten ? axesFrom(first, rank) : [first];
}

function infer(X: TypeInfo, { axis, flatten }: Options, context: InferContext): readonly TypeInfo[] {
  const rank = X.shape.length;
  checkType(context, X, "input", "float");
  if (!(flatten && axis === rank) && (rank > 0 || (axis !== 0 && axis !== -1))) axisWithin(axis, rank, context);
  return [{ dtype: X.dtype, shape: X.shape }];
}

/** Opset < 13: axis 1 by default, all axes from it on. */
const read = (node: Spelling, opset: number): Spelling =>
  opset >= 13 ? node : { ...node, attributes: { ...node.attributes, axis: node.attributes["axis"] ?? 1, flatten: 1 } };

/** An older softmax over the last axis alone is the newer one; the rank is not known here, so -1 is the one such axis. */
function write(node: Spelling, opset: number): Spelling | undefined {
  const { flatten, ...rest } = node.attributes;
  const last = node.attributes["axis"] === -1;
  if (opset >= 13) return flatten && !last ? undefined : { ...node, attributes: rest };
  return flatten || (last && opset >= 11) ? { ...node, attributes: rest } : undefined;
}

/**
 * Each form in the other: over the last axis alone, for an opset before 13, which takes another axis there and back; over
 * all axes from one on, for a newer one, as rows. Types that came with opset 13 have no older form.
 */
function expand(op: OpDef, { inputs, inputTypes, outputs }: ExpandContext, { axis, flatten }: Options): readonly ExpansionNode[] | undefined {
  const shape = inputTypes[0]?.shape ?? [], rank = shape.length;
  const own = axis < 0 ? axis + rank : axis, last = rank - 1;
  if (rank === 0) return undefined;
  const to = new Expansion();
  if (flatten && own === last) { to.add(op, inputs, { axis: -1 }, outputs[0]); return to.nodes; }
  if (flatten) {
    const rows = to.add(op, [to.add(Flatten, inputs, { axis: own })], { axis: -1 });
    const sizes = shape.every((d) => typeof d === "number" && d > 0);
    to.add(Reshape, [rows, to.add(Shape, inputs)], sizes ? {} : { allowzero: 1 }, outputs[0]);
    return to.nodes;
  }
  if (inputTypes[0]?.dtype === "bfloat16") return undefined;
  if (own === last) { to.add(op, inputs, { axis: last, flatten: 1 }, outputs[0]); return to.nodes; }
  const perm = Array.from({ length: rank }, (_, d) => (d === own ? last : d === last ? own : d));
  const moved = to.add(op, [to.add(Transpose, inputs, { perm })], { axis: last, flatten: 1 });
  to.add(Transpose, [moved], { perm }, outputs[0]);
  return to.nodes;
}

function define(type: string, evaluate: Evaluate, elementOf: (X: Operand, axes: readonly number[]) => ElementFunction): OpDef {
  const op: OpDef = defineOp({
    type, domain: "", since: 13, inputs: { input: "required" }, attributes, fusionKind: "reduction",
    infer: ({ input }, options, context) => infer(input, options, context),
    evaluate,
    lower: ({ input }, options) => [elementOf(input, softmaxAxes(options, input.shape.length))],
    read, write,
    expand: (context, options) => expand(op, context, options),
  });
  return op;
}

/**
 * x less the greatest element, and the sum of its exponentials. A NaN among the elements is passed over here and met in
 * the sum. The loops are the same for every element, so that what they read is lowered once however often it is asked for.
 */
function shifted(X: Operand, axes: readonly number[]): (indices: readonly Expr[]) => { readonly x: Expr; readonly sum: Expr } {
  const first = loopAxes(X.shape, axes), second = loopAxes(X.shape, axes);
  return (indices) => {
    const greatest = overAxes("pmax", X.shape, axes, indices, (i) => X.at(...i), first);
    const less = (i: readonly Expr[]): Expr => sub(X.at(...i), greatest);
    return { x: less(indices), sum: overAxes("add", X.shape, axes, indices, (i) => decay(less(i)), second) };
  };
}

export const Softmax: OpDef = define("Softmax", evaluateSoftmax, (X, axes) => {
  const parts = shifted(X, axes);
  return (...indices) => {
    const { x, sum } = parts(indices);
    return mul(decay(x), div(1, sum));
  };
});

export const LogSoftmax: OpDef = define("LogSoftmax", evaluateLogSoftmax, (X, axes) => {
  const parts = shifted(X, axes);
  return (...indices) => {
    const { x, sum } = parts(indices);
    return sub(x, unary("log", sum));
  };
});

/** 1 at the first of the greatest elements. */
export const Hardmax: OpDef = define("Hardmax", evaluateHardmax, (X, axes) => (...indices) => {
  const most = overAxes("max", X.shape, axes, indices, (i) => X.at(...i));
  const place = (i: readonly Expr[]): Expr => axes.reduce<Expr>((sum, a) => add(mul(sum, dimExpr(operand(X.shape, a))), operand(i, a)), constant(0, i32));
  const first = overAxes("min", X.shape, axes, indices, (i) => select(eq(X.at(...i), most), place(i), constant(2 ** 31 - 1, i32)));
  return select(eq(place(indices), first), constant(1, most.type), constant(0, most.type));
});
