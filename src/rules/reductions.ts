/** Two reductions after each other as one over the axes of both: which axes these are, and how the one takes their place. */
import { isFloat } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import type { OpDef } from "../graph/op.ts";
import { Squeeze } from "../ops/index.ts";
import { reducedAxes } from "../ops/reduce.ts";
import { anything, op, optionalInput, value, type Pattern } from "../rewrite/pattern.ts";
import { refuse, type Editor, type Verdict } from "../rewrite/rule.ts";

export interface Reductions { readonly x: Value; readonly inner: Node; readonly outer: Node }

/** `outer` of `inner`, both with axes of their own. */
export const reductionOf = (outer: OpDef, inner: OpDef): Pattern<Reductions> =>
  op(outer, [op(inner, [value("x"), optionalInput(anything())], { as: "inner" }), optionalInput(anything())], { as: "outer" }) as Pattern<Reductions>;

/** The axes that a node reduces; undefined where only running tells. */
const axesOf = (node: Node): readonly number[] | undefined =>
  reducedAxes(node.inputs[0]?.type.shape.length ?? 0, node.inputs[1] && typeWithConstant(node.inputs[1]), { noop_with_empty_axes: Number(node.attributes["noop_with_empty_axes"]) });

export function knownAxes({ inner, outer }: Reductions): Verdict {
  const unknown = [inner, outer].find((n) => !axesOf(n));
  return unknown === undefined || refuse("axes", `'${unknown.name}' reduces axes that are computed`, "make its axes constant");
}
export const ofFloats = ({ x }: Reductions): Verdict => isFloat(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: integers are rounded, or wrap, in between");

/** `merged` over the axes of both, of the shape that the second has. */
export function reduceOnce({ x, inner, outer }: Reductions, merged: OpDef, edit: Editor): Value {
  const rank = x.type.shape.length, first = axesOf(inner) ?? [], left = Array.from({ length: rank }, (_, d) => d).filter((d) => !first.includes(d));
  const keeps = (node: Node): boolean => node.attributes["keepdims"] !== 0;
  const second = (axesOf(outer) ?? []).map((a) => (keeps(inner) ? a : left[a] ?? 0)), axes = [...new Set([...first, ...second])].sort((a, b) => a - b);
  const list = (values: readonly number[], hint: string): Value => edit.constant(fromNumbers("int64", [values.length], values), hint);
  const all = { keepdims: keeps(inner) || keeps(outer) ? 1 : 0, noop_with_empty_axes: 1 };
  const result = edit.insert(merged, [x, list(axes, `${outer.name}_axes`)], all);
  const gone = keeps(inner) === keeps(outer) ? [] : keeps(outer) ? first : second;
  return gone.length === 0 ? result : edit.insert(Squeeze, [result, list(gone, `${outer.name}_left_out`)]);
}

export interface ReductionExample {
  readonly inner: OpDef;
  readonly outer?: OpDef;
  readonly axes?: readonly [readonly number[], readonly number[]];
  readonly keep?: readonly [number, number];
  readonly more?: (b: GraphBuilder, first: Value) => readonly Value[];
  readonly dtype?: "float32" | "int32";
  readonly computed?: boolean;
}
/** Graphs with two reductions, for examples. */
export const reductions = ({ inner, outer = inner, axes: [first, second] = [[1], [2]], keep: [k, l] = [1, 1], more = () => [], dtype = "float32", computed = false }: ReductionExample) => (): Graph => {
  const b = new GraphBuilder(), x = b.input("x", ["n", 3, 4], dtype);
  const once = b.add(inner, [x, computed ? b.input("axes", [1], "int64") : b.int64(...first)], { keepdims: k });
  return b.build(b.add(outer, [once, b.int64(...second)], { keepdims: l }), ...more(b, once));
};
