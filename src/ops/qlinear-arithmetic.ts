/**
 * QLinearAdd and QLinearMul (com.microsoft): element-wise on quantised operands, with broadcasting. Rounding comes after the
 * zero point is added, as onnxruntime does it.
 */
import { broadcastShapes, formatShape } from "../core/dim.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { defineOp, type Operand, type OpDef } from "../graph/op.ts";
import { add, cast, constant, div, i32, mul, sub, type Expr } from "../kernel/expr.ts";
import { QLinearAdd as evaluateAdd, QLinearMul as evaluateMul } from "../evaluate/com-microsoft-qlinear-arithmetic.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { checkQuantized, isSingle, quantized, single, zeroPointAt } from "./quantization.ts";
import { agreeBroadcast, checkType } from "./element-wise.ts";

/** One operand: its element less its zero point as float32, and its scale in units of the result's. */
interface Quantized { readonly element: Expr; readonly scale: Expr }

function read(of: Operand, scale: Operand, zero: Operand | undefined, indices: readonly Expr[]): Quantized {
  return { element: cast(sub(of.at(...indices), zeroPointAt(zero, undefined)), "f32"), scale: single(scale) };
}

const define = (type: string, evaluate: Evaluate, combine: (a: Quantized, b: Quantized, unit: Expr) => Expr): OpDef => defineOp({
  type,
  domain: "com.microsoft",
  since: 1,
  inputs: {
    A: "required", A_scale: "required", A_zero_point: "optional", B: "required", B_scale: "required", B_zero_point: "optional",
    C_scale: "required", C_zero_point: "optional",
  },
  attributes: {},
  fusionKind: "broadcast",
  oneType: [["A", "B", "A_zero_point", "B_zero_point", "C_zero_point"], ["A_scale", "B_scale", "C_scale"]],
  infer({ A, B, ...parameters }, _, context) {
    checkType(context, parameters.A_scale, "A_scale", "float");
    for (const [name, t] of Object.entries(parameters)) if (t && !isSingle(t)) context.fail("OF3011", `${name} must have one element, got ${formatShape(t.shape)}`);
    const shape = broadcastShapes(A.shape, B.shape) ?? context.fail("OF3011", `${formatShape(A.shape)} and ${formatShape(B.shape)} do not broadcast`);
    agreeBroadcast(context, [A.shape, B.shape]);
    return [{ dtype: checkQuantized(A.dtype, context), shape }];
  },
  evaluate,
  lower: ({ A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point }, _, { outputs }) => {
    const shape = outputs[0]?.shape ?? [];
    return [(...indices) => {
      const a = read(A, A_scale, A_zero_point, broadcastIndices(A.shape, shape, indices));
      const b = read(B, B_scale, B_zero_point, broadcastIndices(B.shape, shape, indices));
      const exact = add(combine(a, b, single(C_scale)), cast(zeroPointAt(C_zero_point, undefined), "f32"));
      return quantized(exact, constant(0, i32), A.dtype);
    }];
  },
});

export const QLinearAdd: OpDef = define("QLinearAdd", evaluateAdd, (a, b, unit) => add(mul(a.element, div(a.scale, unit)), mul(b.element, div(b.scale, unit))));
export const QLinearMul: OpDef = define("QLinearMul", evaluateMul, (a, b, unit) => mul(mul(a.element, b.element), div(mul(a.scale, b.scale), unit)));
