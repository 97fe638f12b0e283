/** Pooling over whole planes: GlobalAveragePool, GlobalMaxPool, GlobalLpPool. */
import { dimProduct, type Dim } from "../core/dim.ts";
import { defineOp, int, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { checkType } from "./element-wise.ts";
import { binary, cast, constant, dimExpr, div, mul, reduce, sqrt, unary, type Expr, type ReduceOp } from "../kernel/expr.ts";
import { GlobalAveragePool as evaluateAverage, GlobalLpPool as evaluateLp, GlobalMaxPool as evaluateMax } from "../evaluate/pool.ts";
import { operand } from "./window.ts";

function inferGlobal(x: TypeInfo, context: InferContext): readonly TypeInfo[] {
  checkType(context, x, "X", "float");
  if (x.shape.length < 3) context.fail("OF3010", `needs rank 3 or more, got ${x.shape.length}`);
  return [{ dtype: x.dtype, shape: x.shape.map((d, i): Dim => (i < 2 ? d : 1)) }];
}

/** A reduction of one plane of X, of what `of` makes of its elements. */
const overPlane = (op: ReduceOp, X: Operand, indices: readonly Expr[], of: (x: Expr) => Expr): Expr =>
  reduce(op, X.shape.slice(2), (...p) => of(X.at(operand(indices, 0), operand(indices, 1), ...p)));

const identity = (x: Expr): Expr => x;

export const GlobalAveragePool = defineOp({
  type: "GlobalAveragePool",
  domain: "",
  since: 1,
  inputs: { X: "required" },
  attributes: {},
  fusionKind: "reduction",
  infer: ({ X }, _, context) => inferGlobal(X, context),
  evaluate: evaluateAverage,
  lower: ({ X }) => [(...indices) => {
    const total = overPlane("add", X, indices, identity);
    return div(total, cast(dimExpr(dimProduct(X.shape.slice(2))), total.type.scalar));
  }],
});

export const GlobalMaxPool = defineOp({
  type: "GlobalMaxPool",
  domain: "",
  since: 1,
  inputs: { X: "required" },
  attributes: {},
  fusionKind: "reduction",
  infer: ({ X }, _, context) => inferGlobal(X, context),
  evaluate: evaluateMax,
  lower: ({ X }) => [(...indices) => overPlane("max", X, indices, identity)],
});

export const GlobalLpPool = defineOp({
  type: "GlobalLpPool",
  domain: "",
  since: 2,
  inputs: { X: "required" },
  attributes: { p: int(2) },
  fusionKind: "reduction",
  infer: ({ X }, _, context) => inferGlobal(X, context),
  evaluate: evaluateLp,
  lower: ({ X }, { p }) => [(...indices) => {
    if (p === 1) return overPlane("add", X, indices, (x) => unary("abs", x));
    if (p === 2) return sqrt(overPlane("add", X, indices, (x) => mul(x, x)));
    const total = overPlane("add", X, indices, (x) => binary("pow", unary("abs", x), constant(p, x.type)));
    return binary("pow", total, constant(1 / p, total.type));
  }],
});
