/** Window functions (kernels where the size is known) and MelWeightMatrix, which depends on numbers alone and is folded or runs on the host. */
import { dimAdd, dimFloorDiv, type Dim } from "../core/dim.ts";
import { dtypeFromOnnx, isFloat, type DType } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import * as evaluate from "../evaluate/signal.ts";
import { defineOp, int, type InferContext, type OpDef } from "../graph/op.ts";
import { add, cast, constant, dimExpr, div, mul, unary, computeScalar, scalarType, type Expr } from "../kernel/expr.ts";
import { elementsOf } from "./element-values.ts";
import { checkType, outputOf } from "./element-wise.ts";
import { minusDim, origin } from "./index-map.ts";

function typeOf(code: number, context: InferContext): DType {
  const dtype = dtypeFromOnnx(code);
  return dtype === undefined || dtype === "string" || dtype === "bool" ? context.fail("OF3012", `output_datatype ${code} is not a numeric type`) : dtype;
}

/** A window is a sum of cosines of multiples of the angle. */
const windowOp = (type: string, weights: readonly number[], of: Evaluate): OpDef => defineOp({
  type, domain: "", since: 17, evaluate: of,
  inputs: { size: "required" }, integers: ["size"],
  attributes: { output_datatype: int(1), periodic: int(1) },
  fusionKind: "injective",
  infer: ({ size }, { output_datatype }, context) => {
    checkType(context, size, "size", "integer");
    return [{ dtype: typeOf(output_datatype, context), shape: [elementsOf(size)?.[0] ?? context.fresh("window")] }];
  },
  // Integers are truncated, so that the last bit of a cosine would show: they are left to float64.
  lowerable: ({ size }, _, context) => elementsOf(size) !== undefined && isFloat(outputOf(context).dtype),
  lower: ({ size }, { periodic }, context) => [(i = origin) => {
    const count: Dim = elementsOf(size)?.[0] ?? 1, scalar = computeScalar(outputOf(context).dtype), type = scalarType(scalar);
    const period = periodic ? dimExpr(count) : minusDim(dimExpr(count), 1);
    const turn = div(cast(i, scalar), cast(period, scalar));
    return weights.slice(1).reduce<Expr>((sum, w, k) => add(sum, mul(unary("cos", mul(turn, constant(2 * Math.PI * (k + 1), type))), w)), constant(weights[0] ?? 0, type));
  }],
});
export const HannWindow: OpDef = windowOp("HannWindow", [0.5, -0.5], evaluate.HannWindow);
export const HammingWindow: OpDef = windowOp("HammingWindow", [25 / 46, -21 / 46], evaluate.HammingWindow);
export const BlackmanWindow: OpDef = windowOp("BlackmanWindow", [0.42, -0.5, 0.08], evaluate.BlackmanWindow);

export const MelWeightMatrix = defineOp({
  type: "MelWeightMatrix", domain: "", since: 17, evaluate: evaluate.MelWeightMatrix,
  inputs: { num_mel_bins: "required", dft_length: "required", sample_rate: "required", lower_edge_hertz: "required", upper_edge_hertz: "required" }, integers: ["num_mel_bins", "dft_length", "sample_rate"], oneType: [["lower_edge_hertz", "upper_edge_hertz"]],
  attributes: { output_datatype: int(1) },
  fusionKind: "opaque",
  infer: ({ num_mel_bins, dft_length }, { output_datatype }, context) => {
    const length = elementsOf(dft_length)?.[0];
    const bins = length === undefined ? context.fresh("bins") : dimAdd(dimFloorDiv(length, 2), 1);
    return [{ dtype: typeOf(output_datatype, context), shape: [bins, elementsOf(num_mel_bins)?.[0] ?? context.fresh("bands")] }];
  },
});
