/**
 * A cache [batch, heads, tokens, depth] of a given length: what each of the batch had so far, then new tokens, then
 * zeros. How much each had only running tells, so it is neither a concatenation nor a scatter into one memory.
 */
import { dimMax, formatShape, type Dim } from "../core/dim.ts";
import { AppendToCache as evaluate } from "../evaluate/onnxfuse-append-to-cache.ts";
import { defineOp } from "../graph/op.ts";
import { and, cast, computeScalar, constant, dimExpr, ge, lt, scalarType, select, sub, type Expr } from "../kernel/expr.ts";
import { elementsOf } from "./element-values.ts";
import { origin } from "./index-map.ts";

export const AppendToCache = defineOp({
  type: "AppendToCache", domain: "onnxfuse", since: 1, evaluate,
  /** `before`: tokens that each of the batch had, [batch]. `total`: the length, unless `past` is longer. */
  inputs: { now: "required", before: "required", total: "required", past: "optional" },
  attributes: {},
  fusionKind: "injective",
  infer({ now, total, past }, _, context) {
    const [batch = 1, heads = 1, , depth = 1] = now.shape;
    for (const t of [now, past]) if (t && t.shape.length !== 4) context.fail("OF3010", `a cache needs rank 4, got ${formatShape(t.shape)}`);
    const wanted: Dim = elementsOf(total)?.[0] ?? context.fresh("total_length");
    return [{ dtype: now.dtype, shape: [batch, heads, past ? dimMax(past.shape[2] ?? 0, wanted) : wanted, depth] }];
  },
  lowerable: ({ total }) => elementsOf(total)?.[0] !== undefined,
  lower: ({ now, before, past }) => [(b = origin, h = origin, t = origin, d = origin) => {
    const start = cast(before.at(b), "i32"), fresh = sub(t, start), sequence = dimExpr(now.shape[2] ?? 1);
    const nothing: Expr = constant(0, scalarType(computeScalar(now.dtype)));
    const appended = select(and(ge(fresh, 0), lt(fresh, sequence)), now.at(b, h, fresh, d), nothing);
    return past ? select(and(lt(t, start), lt(t, dimExpr(past.shape[2] ?? 0))), past.at(b, h, t, d), appended) : appended;
  }],
});
