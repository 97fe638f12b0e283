/**
 * Matrix products of integers that onnxruntime's quantiser writes (com.microsoft). Each is compiled as MatMulInteger with
 * its sums scaled in float32, all in one kernel; a left operand that is quantised on the way gets one pass before.
 */
import { checkType } from "./element-wise.ts";
import { defineOp, float, int, type InferContext, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/com-microsoft-integer-products.ts";
import { Add, Mul } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { DynamicQuantizeLinear } from "./dynamic-quantize-linear.ts";
import { Expansion, scalarOf } from "./expansion.ts";
import { MatMulInteger } from "./integer-matmul.ts";
import { inferMatrixProduct } from "./matrix-product.ts";
import { checkQuantized } from "./quantization.ts";
import { QuantizeLinear } from "./quantize-linear.ts";
import { Transpose } from "./transpose.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;
type Name = string | undefined;

/** Σ (a − zero)(b − zero) as float32, times both scales, plus bias. */
export function scaledProduct(to: Expansion, [a, aScale, aZero]: readonly Name[], [b, bScale, bZero]: readonly Name[], bias: Name, output: Name): string {
  const sums = to.add(Cast, [to.add(MatMulInteger, [a, b, aZero, bZero])], { to: 1 });
  const product = to.add(Mul, [sums, to.add(Mul, [aScale, bScale])], {}, bias === undefined ? output : undefined);
  return bias === undefined ? product : to.add(Add, [product, bias], {}, output);
}

export const MatMulIntegerToFloat = defineOp({
  ...common, type: "MatMulIntegerToFloat", attributes: {}, evaluate: evaluate.MatMulIntegerToFloat,
  inputs: { A: "required", B: "required", a_scale: "required", b_scale: "required", a_zero_point: "optional", b_zero_point: "optional", bias: "optional" },
  oneType: [["A", "a_zero_point"], ["B", "b_zero_point"], ["a_scale", "b_scale", "bias"]],
  infer: ({ A, B, a_scale }, _, context) => {
    for (const [name, t] of Object.entries({ A, B })) checkType(context, t, name, "integer");
    checkFloat32(a_scale, "a_scale", context);
    return [{ dtype: "float32", shape: inferMatrixProduct(A, B, context) }];
  },
  expand({ inputs: [a, b, aScale, bScale, aZero, bZero, bias], outputs }) {
    const to = new Expansion();
    scaledProduct(to, [a, aScale, aZero], [b, bScale, bZero], bias, outputs[0]);
    return to.nodes;
  },
});

export const DynamicQuantizeMatMul = defineOp({
  ...common, type: "DynamicQuantizeMatMul", attributes: {}, evaluate: evaluate.DynamicQuantizeMatMul,
  inputs: { A: "required", B: "required", b_scale: "required", b_zero_point: "optional", bias: "optional" },
  oneType: [["B", "b_zero_point"], ["A", "b_scale", "bias"]],
  infer: ({ A, B }, _, context) => {
    checkFloat32(A, "A", context);
    checkType(context, B, "B", "integer");
    return [{ dtype: "float32", shape: inferMatrixProduct(A, B, context) }];
  },
  expand({ inputs: [a, b, bScale, bZero, bias], outputs }) {
    const to = new Expansion(), names = ["quantised", "scale", "zero"];
    to.nodes.push({ op: DynamicQuantizeLinear, inputs: [a], outputs: names });
    scaledProduct(to, names, [b, bScale, bZero], bias, outputs[0]);
    return to.nodes;
  },
});

/** C is int32, in units of alpha and both scales. Without a scale of its own the result is float32. */
export const QGemm = defineOp({
  ...common, type: "QGemm", evaluate: evaluate.QGemm,
  inputs: {
    A: "required", a_scale: "required", a_zero_point: "required", B: "required", b_scale: "required", b_zero_point: "required",
    C: "optional", y_scale: "optional", y_zero_point: "optional",
  }, oneType: [["A", "a_zero_point"], ["B", "b_zero_point"], ["a_scale", "b_scale", "y_scale"]],
  attributes: { alpha: float(1), transA: int(0), transB: int(0) },
  infer({ A, B, y_scale, y_zero_point }, { transA, transB }, context) {
    if (A.shape.length !== 2 || B.shape.length !== 2) context.fail("OF3010", "needs matrices");
    for (const [name, t] of Object.entries({ A, B })) checkType(context, t, name, "integer");
    if (!y_scale !== !y_zero_point) context.fail("OF3001", "y_scale and y_zero_point come together");
    const shape = inferMatrixProduct(turned(A, transA), turned(B, transB), context);
    return [{ dtype: resultType(y_zero_point, context), shape }];
  },
  expand({ inputs: [a, aScale, aZero, b, bScale, bZero, c, yScale, yZero], outputs }, { alpha, transA, transB }) {
    const to = new Expansion(), given = (x: Name, flag: number): Name => (flag ? to.add(Transpose, [x], { perm: [1, 0] }) : x);
    const sums = to.add(MatMulInteger, [given(a, transA), given(b, transB), aZero, bZero]);
    const total = to.add(Cast, [c === undefined ? sums : to.add(Add, [sums, c])], { to: 1 }), scale = to.add(Mul, [aScale, bScale]);
    const unit = alpha === 1 ? scale : to.add(Mul, [scale, scalarOf("float32", alpha)]);
    const y = to.add(Mul, [total, unit], {}, yScale === undefined ? outputs[0] : undefined);
    if (yScale !== undefined) to.add(QuantizeLinear, [y, yScale, yZero], {}, outputs[0]);
    return to.nodes;
  },
});
const turned = (t: TypeInfo, flag: number): TypeInfo => (flag ? { dtype: t.dtype, shape: [...t.shape].reverse() } : t);
function checkFloat32(t: TypeInfo, name: string, context: InferContext): void {
  if (t.dtype !== "float32") context.fail("OF3013", `input '${name}' is ${t.dtype}, must be float32`, "insert a Cast");
}
const resultType = (zero: TypeInfo | undefined, context: InferContext): TypeInfo["dtype"] => (zero ? checkQuantized(zero.dtype, context) : "float32");
