/**
 * BatchNormalization. Inference form: an affine function of each channel. In training mode, or with the extra outputs of
 * older opsets, it normalises by the batch's own moments, on the host.
 */
import type { Dim } from "../core/dim.ts";
import { defineOp, float, int, type Spelling, type TypeInfo } from "../graph/op.ts";
import { add, cast, constant, div, mul, sqrt, sub, type Expr } from "../kernel/expr.ts";
import { BatchNormalization as evaluate } from "../evaluate/normalization.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkType } from "./element-wise.ts";
import { operand } from "./window.ts";

/** Whether a node normalises by the moments of its batch. */
export const normalizesByBatch = (attributes: { readonly training_mode: number }, outputCount: number): boolean => attributes.training_mode !== 0 || outputCount > 1;

export const BatchNormalization = defineOp({
  type: "BatchNormalization",
  domain: "",
  since: 15,
  inputs: { X: "required", scale: "required", B: "required", mean: "required", variance: "required" }, oneType: [["scale", "B"]],
  /** `spatial` 0 (before opset 9): parameters for every element of the batch. */
  attributes: { epsilon: float(1e-5), momentum: float(0.9), training_mode: int(0), spatial: int(1) },
  fusionKind: "broadcast",
  infer({ X, scale, B, mean, variance }, { spatial }, context) {
    checkType(context, X, "X", "float");
    const features: readonly Dim[] = spatial ? [X.shape[1] ?? 1] : X.shape.slice(1);
    for (const [name, parameter] of Object.entries({ scale, B, mean, variance })) agreeSizes(context, name, parameter, features);
    const statistics = (of: TypeInfo): TypeInfo => ({ dtype: of.dtype, shape: features });
    return [{ dtype: X.dtype, shape: X.shape }, statistics(mean), statistics(variance), statistics(mean), statistics(variance)];
  },
  evaluate,
  lowerable: (_inputs, attributes, { outputs }) => !normalizesByBatch(attributes, outputs.length),
  lower({ X, scale, B, mean, variance }, { epsilon, spatial }) {
    const features = (indices: readonly Expr[]): readonly Expr[] => (spatial ? [indices.length > 1 ? operand(indices, 1) : constant(0, { scalar: "i32", lanes: 1 })] : indices.slice(1));
    return [(...indices) => {
      const at = features(indices), x = X.at(...indices), { scalar } = x.type;
      const factor = div(cast(scale.at(...at), scalar), sqrt(add(cast(variance.at(...at), scalar), constant(epsilon, x.type))));
      return add(mul(sub(x, cast(mean.at(...at), scalar)), factor), cast(B.at(...at), scalar));
    }];
  },
  write(node: Spelling, opset: number): Spelling | undefined {
    const { training_mode, spatial, ...attributes } = node.attributes;
    if (opset < 9) return training_mode ? undefined : { ...node, attributes: { ...attributes, ...(opset >= 7 ? { spatial } : {}) } };
    if (!spatial) return undefined;
    if (opset < 14) return training_mode ? undefined : { ...node, attributes };
    return { ...node, attributes: { ...attributes, training_mode } };
  },
});
