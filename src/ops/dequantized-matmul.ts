/**
 * A · W where W is a matrix of 8-bit integers (or fewer bits, in 8), less a zero point and times a scale that hold for a
 * block of the contracted axis and one column. Its kernel widens W in registers, so that W is read as it is stored.
 */
import { dimCeilDiv, dimEqual, formatShape, type Dim } from "../core/dim.ts";
import { DequantizedMatMul as evaluate } from "../evaluate/onnxfuse-dequantized-matmul.ts";
import { defineOp, int, required, type AnchorOperand, type Operand, type TypeInfo } from "../graph/op.ts";
import { cast, div, mul, sub, type Expr } from "../kernel/expr.ts";
import { DequantizeLinear } from "./quantize-linear.ts";
import { Expansion } from "./expansion.ts";
import { MatMul } from "./matmul.ts";
import { anchorMatrixProduct, inferMatrixProduct, matrixProduct, matrixProductSum, type MatrixProduct } from "./matrix-product.ts";
import { Transpose } from "./transpose.ts";

interface Options { readonly block_size: number; readonly transB: number }
interface Weights<T> { readonly W: T; readonly scales: T; readonly zeros: T | undefined }

/** The matrix as a right operand: [K, N]. */
const asRight = (W: TypeInfo, { transB }: Options): TypeInfo => ({ dtype: W.dtype, shape: transB ? [...W.shape].reverse() : W.shape });

function productOf(A: Operand, { W, scales, zeros }: Weights<Operand>, options: Options): MatrixProduct {
  const place = (k: Expr, column: Expr): readonly Expr[] => (options.transB ? [column, k] : [k, column]);
  const right: Operand = {
    ...asRight(W, options),
    at(...[k, column]) {
      if (!k || !column) return W.at();
      const own = place(div(k, options.block_size), column), q = cast(W.at(...place(k, column)), "i32");
      return mul(cast(zeros ? sub(q, cast(zeros.at(...own), "i32")) : q, "f32"), scales.at(...own));
    },
  };
  return matrixProduct(A, right);
}

export const DequantizedMatMul = defineOp({
  type: "DequantizedMatMul",
  domain: "onnxfuse",
  since: 1,
  inputs: { A: "required", W: "required", scales: "required", zeros: "optional" },
  attributes: { block_size: required("int"), transB: int(0) },
  fusionKind: "contraction",
  infer({ A, W, scales, zeros }, options, context) {
    if (W.shape.length !== 2) context.fail("OF3010", `needs a matrix of weights, got ${formatShape(W.shape)}`);
    const along = options.transB ? 1 : 0, shape = W.shape.map((d, i): Dim => (i === along ? dimCeilDiv(d, options.block_size) : d));
    for (const t of [scales, zeros]) if (t && (t.shape.length !== 2 || !t.shape.every((d, i) => dimEqual(d, shape[i] ?? 0))))
      context.fail("OF3011", `${formatShape(t.shape)} scales do not fit weights of ${formatShape(W.shape)} in blocks of ${options.block_size}`);
    return [{ dtype: A.dtype, shape: inferMatrixProduct(A, asRight(W, options), context) }];
  },
  evaluate,
  lowerable: ({ A }) => A.dtype === "float32",
  lower({ A, ...weights }, options) {
    const product = productOf(A, weights, options);
    return [(...indices) => matrixProductSum(product, indices)];
  },
  anchor({ A, ...weights }, options) {
    const plain = anchorMatrixProduct(productOf(A, weights, options), "f32", (accumulator) => accumulator);
    return {
      ...plain,
      structure: (stores) => {
        const structure = plain.structure(stores);
        return structure.kind === "matmul" ? { ...structure, quantized: quantizedOf(weights, options) } : structure;
      },
    };
  },
  expand({ inputs: [a, w, scales, zeros], outputs }, { block_size, transB }) {
    const to = new Expansion();
    const matrix = to.add(DequantizeLinear, [w, scales, zeros], { axis: transB ? 1 : 0, block_size });
    to.add(MatMul, [a, transB ? to.add(Transpose, [matrix], { perm: [1, 0] }) : matrix], {}, outputs[0]);
    return to.nodes;
  },
});

const quantizedOf = ({ W, scales, zeros }: Weights<AnchorOperand>, { block_size, transB }: Options) =>
  ({ weight: W.buffer(), scales: scales.buffer(), ...(zeros ? { zeros: zeros.buffer() } : {}), block: block_size, transposed: transB !== 0 });
