/**
 * A · B for each of several matrices B of one shape: an output for each. Its kernel has all of their sums at hand when
 * what follows them is computed, such as silu(A · B0) · (A · B1), so that none of them goes through memory.
 */
import { present } from "../core/assert.ts";
import { formatShape, shapeEqual } from "../core/dim.ts";
import { SiblingMatMul as evaluate } from "../evaluate/onnxfuse-sibling-matmul.ts";
import { defineOp, type TypeInfo } from "../graph/op.ts";
import { computeScalar } from "../kernel/expr.ts";
import { checkType } from "./element-wise.ts";
import { Expansion } from "./expansion.ts";
import { MatMul } from "./matmul.ts";
import { anchorProducts, inferMatrixProduct, matrixProduct, matrixProductSum } from "./matrix-product.ts";

export const SiblingMatMul = defineOp({
  type: "SiblingMatMul",
  domain: "onnxfuse",
  since: 1,
  inputs: { A: "required", B: "variadic" },
  attributes: {},
  fusionKind: "contraction",
  infer({ A, B }, _, context) {
    checkType(context, A, "A", "float");
    const [first] = B;
    if (!first) return context.fail("OF3001", "needs at least one matrix");
    const other = B.find((t) => t.dtype !== A.dtype || t.shape.length !== 2 || !shapeEqual(t.shape, first.shape));
    if (other) context.fail("OF3011", `needs matrices of one shape and of ${A.dtype}, got ${other.dtype}${formatShape(other.shape)}`);
    const shape = inferMatrixProduct(A, first, context);
    return B.map((): TypeInfo => ({ dtype: A.dtype, shape }));
  },
  evaluate,
  lower: ({ A, B }) => B.map((t) => {
    const product = matrixProduct(A, t);
    return (...indices) => matrixProductSum(product, indices);
  }),
  anchor({ A, B }) {
    const [first, ...others] = B.map((t) => matrixProduct(A, t));
    return anchorProducts(present(first, "a matrix"), others, computeScalar(A.dtype));
  },
  expand({ inputs: [a, ...matrices], outputs }) {
    const to = new Expansion();
    matrices.forEach((b, i) => to.add(MatMul, [a, b], {}, outputs[i]));
    return to.nodes;
  },
});
