/** Shape and Size: what inference usually knows, as elements. */
import { dimProduct } from "../core/dim.ts";
import { Shape as evaluateShape, Size as evaluateSize } from "../evaluate/shape.ts";
import { defineOp, optional } from "../graph/op.ts";
import { cast, dimExpr, eq, lift, i64, select, type Expr } from "../kernel/expr.ts";
import { typeWith } from "./element-values.ts";

/** The range [start, end) of a shape, counted from the back where negative and clamped. */
function shapeRange(rank: number, start = 0, end = rank): readonly [number, number] {
  const bound = (v: number): number => Math.min(Math.max(v < 0 ? v + rank : v, 0), rank);
  return [bound(start), bound(end)];
}

export const Shape = defineOp({
  type: "Shape", domain: "", since: 1, evaluate: evaluateShape,
  inputs: { data: "required" },
  attributes: { start: optional("int"), end: optional("int") },
  fusionKind: "injective",
  infer: ({ data }, { start, end }) => {
    const sizes = data.shape.slice(...shapeRange(data.shape.length, start, end));
    return [typeWith("int64", [sizes.length], sizes)];
  },
  lower: ({ data }, { start, end }) => [(i) => {
    const sizes = data.shape.slice(...shapeRange(data.shape.length, start, end)).map((d) => cast(dimExpr(d), "i64"));
    const last = sizes.pop() ?? lift(0, i64);
    return sizes.reduceRight<Expr>((rest, size, k) => select(eq(i ?? k, k), size, rest), last);
  }],
});

export const Size = defineOp({
  type: "Size", domain: "", since: 1, evaluate: evaluateSize,
  inputs: { data: "required" },
  attributes: {},
  fusionKind: "injective",
  infer: ({ data }) => [typeWith("int64", [], [dimProduct(data.shape)])],
  lower: ({ data }) => [() => cast(dimExpr(dimProduct(data.shape)), "i64")],
});
