/** CumSum and CumProd: running totals along an axis, in one pass of a kernel where the axis is known. */
import type { Evaluate } from "../core/evaluate.ts";
import * as evaluate from "../evaluate/order.ts";
import { defineOp, int, type OpDef, type TypeInfo } from "../graph/op.ts";
import { axisOf, computeScalar, dimExpr, lift, load, local, scalarType, sub, type Axis, type Expr } from "../kernel/expr.ts";
import { block, letLocal, loop, type Stmt } from "../kernel/stmt.ts";
import { elementsOf } from "./element-values.ts";
import { checkType, narrow } from "./element-wise.ts";
import { axisIn, frontAxis, origin } from "./index-map.ts";

/** The axis counted from the front, where it is known. */
function knownAxis(axis: TypeInfo, rank: number): number | undefined {
  const at = elementsOf(axis)?.[0];
  return typeof at === "number" && rank > 0 ? frontAxis(at, rank) : undefined;
}

const cumulative = (type: string, since: number, op: "add" | "mul", of: Evaluate): OpDef => defineOp({
  type, domain: "", since, evaluate: of,
  inputs: { x: "required", axis: "required" }, integers: ["axis"],
  attributes: { exclusive: int(0), reverse: int(0) },
  fusionKind: "opaque",
  infer: ({ x, axis }, _, context) => {
    checkType(context, x, "x", "numeric");
    const at = elementsOf(axis)?.[0];
    if (typeof at === "number") axisIn(context, at, x.shape.length);
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  lowerable: ({ x, axis }) => knownAxis(axis, x.shape.length) !== undefined,
  whole: ({ x, axis }, { exclusive, reverse }, [out]) => {
    const from = x.buffer(), at = knownAxis(axis, x.shape.length) ?? 0, size = x.shape[at] ?? 1;
    const scalar = scalarType(computeScalar(x.dtype)), total = local("total", scalar);
    const axes = x.shape.map((extent, d): Axis => ({ name: d === at ? "k" : `i${d}`, extent }));
    const step = axes[at] ?? { name: "k", extent: size };
    const place = reverse ? sub(sub(dimExpr(size), 1), axisOf(step)) : axisOf(step);
    const indices = axes.map((a, d) => (d === at ? place : axisOf(a))), value = load(from, indices);
    const store = (v: Expr): Stmt[] => (out ? [{ kind: "store", buffer: out, indices, value: narrow(v, x.dtype) }] : []);
    const fold: Stmt = { kind: "accumulate", name: "total", op, value };
    const body = exclusive ? block(letLocal("own", value), ...store(total), { ...fold, value: local("own", scalar) }) : block(fold, ...store(total));
    const line = block(letLocal("total", lift(op === "add" ? 0 : 1, scalar)), loop(step, origin, dimExpr(size), 1, body));
    return { kind: "loops", scratch: [], body: axes.filter((_, d) => d !== at).reduceRight<Stmt>((inner, a) => loop(a, origin, dimExpr(a.extent), 1, inner), line) };
  },
});

export const CumSum: OpDef = cumulative("CumSum", 11, "add", evaluate.CumSum);
export const CumProd: OpDef = cumulative("CumProd", 26, "mul", evaluate.CumProd);
