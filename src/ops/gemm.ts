/** Y = alpha · A' · B' + beta · C, for matrices; C broadcasts to Y. */
import { broadcastDim, formatShape } from "../core/dim.ts";
import { defineOp, float, int, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { add, cast, computeScalar, constant, mul, scalarType, type Expr } from "../kernel/expr.ts";
import { Gemm as evaluate } from "../evaluate/matmul.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { anchorMatrixProduct, matrixProductSum, type MatrixProduct } from "./matrix-product.ts";
import { agreeBroadcast } from "./element-wise.ts";

interface Options { readonly alpha: number; readonly beta: number; readonly transA: number; readonly transB: number }

function productOf(A: Operand, B: Operand, { transA, transB }: Options): MatrixProduct {
  return {
    batch: [], vectorA: false, vectorB: false,
    m: A.shape[transA ? 1 : 0] ?? 1, k: A.shape[transA ? 0 : 1] ?? 1, n: B.shape[transB ? 0 : 1] ?? 1,
    a: (_, row, k) => (transA ? A.at(k, row) : A.at(row, k)),
    b: (_, k, column) => (transB ? B.at(column, k) : B.at(k, column)),
  };
}

/** value · by; integers through float64, truncated, as evaluation does. */
function scaled(value: Expr, by: number): Expr {
  if (by === 1) return value;
  const { scalar } = value.type;
  if (scalar === "f32" || scalar === "f64") return mul(value, constant(by, value.type));
  return cast(mul(cast(value, "f64"), constant(by, scalarType("f64"))), scalar);
}

function finish(accumulator: Expr, C: Operand | undefined, { alpha, beta }: Options, product: MatrixProduct, indices: readonly Expr[]): Expr {
  const value = scaled(accumulator, alpha);
  return C && beta !== 0 ? add(value, scaled(C.at(...broadcastIndices(C.shape, [product.m, product.n], indices)), beta)) : value;
}

/** The product's type; reports operands that do not fit. */
export function inferGemm({ A, B, C }: { readonly A: TypeInfo; readonly B: TypeInfo; readonly C: TypeInfo | undefined }, { transA, transB }: Pick<Options, "transA" | "transB">, context: InferContext): readonly TypeInfo[] {
  if (A.shape.length !== 2 || B.shape.length !== 2) context.fail("OF3010", `needs matrices, got ${formatShape(A.shape)} and ${formatShape(B.shape)}`);
  if (A.dtype !== B.dtype || (C && C.dtype !== A.dtype)) context.fail("OF3013", "operands have different types");
  const [inner, other] = [A.shape[transA ? 0 : 1], B.shape[transB ? 1 : 0]];
  if (typeof inner === "number" && typeof other === "number" && inner !== other)
    context.fail("OF3011", `inner sizes differ: ${formatShape(A.shape)}${transA ? " transposed" : ""} and ${formatShape(B.shape)}${transB ? " transposed" : ""}`);
  if (inner !== undefined && other !== undefined) context.agree?.(inner, other, "equal");
  const shape = [A.shape[transA ? 1 : 0] ?? 1, B.shape[transB ? 0 : 1] ?? 1];
  if (C) {
    agreeBroadcast(context, [C.shape, shape]);
    const fits = C.shape.length <= 2 && C.shape.every((d, i) => {
      const own = shape[i + 2 - C.shape.length] ?? 1;
      const joined = broadcastDim(d, own);
      return joined !== undefined && !(own === 1 && typeof joined === "number" && joined !== 1);
    });
    if (!fits) context.fail("OF3011", `C ${formatShape(C.shape)} does not broadcast to ${formatShape(shape)}`);
  }
  return [{ dtype: A.dtype, shape }];
}

export const Gemm = defineOp({
  type: "Gemm",
  domain: "",
  since: 11,
  inputs: { A: "required", B: "required", C: "optional" }, oneType: [["A", "B", "C"]],
  attributes: { alpha: float(1), beta: float(1), transA: int(0), transB: int(0) },
  fusionKind: "contraction",
  infer: inferGemm,
  evaluate,
  lower({ A, B, C }, attributes) {
    const product = productOf(A, B, attributes);
    return [(...indices) => finish(matrixProductSum(product, indices), C, attributes, product, indices)];
  },
  anchor({ A, B, C }, attributes) {
    const product = productOf(A, B, attributes);
    return anchorMatrixProduct(product, computeScalar(A.dtype), (accumulator, indices) => finish(accumulator, C, attributes, product, indices));
  },
  read: (node) => {
    const { broadcast: _, ...attributes } = node.attributes;
    return { ...node, attributes };
  },
  write: (node, opset) => (opset >= 11 || (opset >= 7 && node.inputs[2]) ? node : undefined),
});
