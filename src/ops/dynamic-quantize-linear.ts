/** Quantises a float tensor to uint8 by its own range, and gives scale and zero point. */
import { defineOp, type Operand } from "../graph/op.ts";
import { and, binary, bitcast, cast, constant, div, eq, f32, gt, i32, max, min, neg, select, sub, unary, type Expr, computeScalar } from "../kernel/expr.ts";
import { DynamicQuantizeLinear as evaluate } from "../evaluate/quantize.ts";
import { axesFrom, overAxes } from "./axis-reduction.ts";
import { quantized } from "./quantization.ts";

/** The bits of an infinity, a sign aside; those of NaN are larger. */
const infinityBits = 0x7f800000;

/**
 * Scale and zero point of a tensor; the range holds 0, and a tensor of zeros has scale 1. Signs of zeros do not reach the
 * result, and NaN is looked for beside the range, so that folds are cheap.
 */
function parameters(x: Operand): { scale: Expr; zeroPoint: Expr } {
  const zero = constant(0, f32), axes = axesFrom(0, x.shape.length), at = x.shape.map(() => constant(0, i32));
  const fold = (op: "pmax" | "max", value: (x: Expr) => Expr): Expr => overAxes(op, x.shape, axes, at, (i) => value(x.at(...i)));
  const magnitude = fold("max", (e) => and(bitcast(e, i32), constant(0x7fffffff, i32))), orNaN = (e: Expr): Expr => select(gt(magnitude, infinityBits), NaN, e);
  const least = orNaN(min(neg(fold("pmax", neg)), zero)), most = orNaN(max(fold("pmax", (e) => e), zero));
  const scale = select(eq(least, most), constant(1, f32), div(sub(most, least), constant(255, f32)));
  const exact = sub(zero, div(least, scale));
  const clamped = binary("pmin", constant(255, f32), binary("pmax", zero, exact));
  return { scale, zeroPoint: cast(unary("nearest", clamped), "i32") };
}

export const DynamicQuantizeLinear = defineOp({
  type: "DynamicQuantizeLinear",
  domain: "",
  since: 11,
  inputs: { x: "required" },
  attributes: {},
  fusionKind: "reduction",
  infer: ({ x }, _, context) => {
    if (computeScalar(x.dtype) !== "f32") context.fail("OF3013", `input 'x' is ${x.dtype}, must be float32`, "insert a Cast");
    return [{ dtype: "uint8", shape: x.shape }, { dtype: "float32", shape: [] }, { dtype: "uint8", shape: [] }];
  },
  evaluate,
  lower: ({ x }) => [
    (...indices) => {
      const { scale, zeroPoint } = parameters(x);
      return quantized(div(x.at(...indices), scale), zeroPoint, "uint8");
    },
    () => parameters(x).scale,
    () => parameters(x).zeroPoint,
  ],
});
