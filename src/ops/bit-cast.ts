/** BitCast: the same bits as another type of equal width. Types that kernels compute in as they are stored become one instruction; others run on the host. */
import { bitsOf, dtypeFromOnnx, isInteger, type DType } from "../core/dtype.ts";
import { BitCast as evaluate } from "../evaluate/bit-cast.ts";
import { defineOp, required } from "../graph/op.ts";
import { bitcast, cast, computeScalar, scalarType, type Expr } from "../kernel/expr.ts";
import { narrow } from "./element-wise.ts";

/** Computed in as many bits as it is stored in. */
const isWide = (dtype: DType): boolean => dtype !== "string" && bitsOf(dtype) >= 32;

function reinterpreted(x: Expr, from: DType, to: DType): Expr {
  if (isInteger(from) && isInteger(to)) return narrow(cast(x, computeScalar(to)), to);
  return x.type.scalar === computeScalar(to) ? x : bitcast(x, scalarType(computeScalar(to)));
}

export const BitCast = defineOp({
  type: "BitCast", domain: "", since: 26, evaluate,
  inputs: { input: "required" },
  attributes: { to: required("int") },
  fusionKind: "elementwise",
  infer: ({ input }, { to }, context) => {
    const dtype = dtypeFromOnnx(to) ?? context.fail("OF3013", `element type ${to} is not supported`);
    if (input.dtype === "string" || dtype === "string" || bitsOf(input.dtype) !== bitsOf(dtype)) context.fail("OF3013", `the bits of ${input.dtype} are not those of a ${dtype}`, "both types must have the same width");
    return [{ dtype, shape: input.shape }];
  },
  lowerable: ({ input }, { to }) => {
    const dtype = dtypeFromOnnx(to) ?? input.dtype;
    return (isInteger(input.dtype) && isInteger(dtype)) || (isWide(input.dtype) && isWide(dtype));
  },
  lower: ({ input }, { to }) => [(...indices) => reinterpreted(input.at(...indices), input.dtype, dtypeFromOnnx(to) ?? input.dtype)],
});
