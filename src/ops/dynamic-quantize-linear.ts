/** Quantises a float tensor to uint8 by its own range, and gives scale and zero point. */
import { defineOp, type Operand } from "../graph/op.ts";
import { binary, cast, constant, div, eq, f32, i32, max, min, select, sub, unary, type Expr, computeScalar } from "../kernel/expr.ts";
import { DynamicQuantizeLinear as evaluate } from "../evaluate/quantize.ts";
import { axesFrom, overAxes } from "./axis-reduction.ts";
import { quantized } from "./quantization.ts";

/** Scale and zero point of a tensor; the range holds 0, and a tensor of zeros has scale 1. */
function parameters(x: Operand): { scale: Expr; zeroPoint: Expr } {
  const zero = constant(0, f32), axes = axesFrom(0, x.shape.length), at = x.shape.map(() => constant(0, i32));
  const least = min(overAxes("min", x.shape, axes, at, (i) => x.at(...i)), zero);
  const most = max(overAxes("max", x.shape, axes, at, (i) => x.at(...i)), zero);
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
