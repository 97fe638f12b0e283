/** QLinearAdd and QLinearMul (com.microsoft): element-wise on quantised operands, with broadcasting. */
import { broadcastShapes, formatShape } from "../core/dim.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { defineOp, type Operand, type OpDef } from "../graph/op.ts";
import { add, cast, div, mul, sub, type Expr } from "../kernel/expr.ts";
import { QLinearAdd as evaluateAdd, QLinearMul as evaluateMul } from "../evaluate/com-microsoft-qlinear-arithmetic.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { checkQuantized, quantized, single, zeroPointAt } from "./quantization.ts";

/** The real value of an element. */
function dequantized(of: Operand, scale: Operand, zero: Operand | undefined, indices: readonly Expr[]): Expr {
  return mul(single(scale), cast(sub(of.at(...indices), zeroPointAt(zero, undefined)), "f32"));
}

const define = (type: string, evaluate: Evaluate, combine: (a: Expr, b: Expr) => Expr): OpDef => defineOp({
  type,
  domain: "com.microsoft",
  since: 1,
  inputs: {
    A: "required", A_scale: "required", A_zero_point: "optional", B: "required", B_scale: "required", B_zero_point: "optional",
    C_scale: "required", C_zero_point: "optional",
  },
  attributes: {},
  fusionKind: "broadcast",
  infer({ A, B }, _, context) {
    if (A.dtype !== B.dtype) context.fail("OF3013", `operands have different types, ${A.dtype} and ${B.dtype}`);
    const shape = broadcastShapes(A.shape, B.shape) ?? context.fail("OF3011", `${formatShape(A.shape)} and ${formatShape(B.shape)} do not broadcast`);
    return [{ dtype: checkQuantized(A.dtype, context), shape }];
  },
  evaluate,
  lower: ({ A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point }, _, { outputs }) => {
    const shape = outputs[0]?.shape ?? [];
    return [(...indices) => {
      const a = dequantized(A, A_scale, A_zero_point, broadcastIndices(A.shape, shape, indices));
      const b = dequantized(B, B_scale, B_zero_point, broadcastIndices(B.shape, shape, indices));
      return quantized(div(combine(a, b), single(C_scale)), zeroPointAt(C_zero_point, undefined), A.dtype);
    }];
  },
});

export const QLinearAdd: OpDef = define("QLinearAdd", evaluateAdd, add);
export const QLinearMul: OpDef = define("QLinearMul", evaluateMul, mul);
