/** RoiAlign, whose loops are in roi-loops.ts, and MaxRoiPool, on the host: what regions of an image hold, at one size. */
import { formatShape } from "../core/dim.ts";
import * as evaluate from "../evaluate/roi.ts";
import { defineOp, float, int, required, string } from "../graph/op.ts";
import { block } from "../kernel/stmt.ts";
import { checkType } from "./element-wise.ts";
import { roiLoops } from "./roi-loops.ts";

export const RoiAlign = defineOp({
  type: "RoiAlign", domain: "", since: 16, evaluate: evaluate.RoiAlign,
  inputs: { X: "required", rois: "required", batch_indices: "required" }, integers: ["batch_indices"], oneType: [["X", "rois"]],
  attributes: { coordinate_transformation_mode: string("half_pixel"), mode: string("avg"), output_height: int(1), output_width: int(1), sampling_ratio: int(0), spatial_scale: float(1) },
  fusionKind: "opaque",
  infer: ({ X, rois, batch_indices }, { coordinate_transformation_mode, mode, output_height, output_width, sampling_ratio }, context) => {
    checkType(context, X, "X", "float");
    checkType(context, rois, "rois", "float");
    if (X.shape.length !== 4) context.fail("OF3010", `needs images [N, C, H, W], got ${formatShape(X.shape)}`);
    if (rois.shape.length !== 2 || (typeof rois.shape[1] === "number" && rois.shape[1] !== 4) || batch_indices.shape.length !== 1) context.fail("OF3010", `needs regions [count, 4] and as many batch indices, got ${formatShape(rois.shape)} and ${formatShape(batch_indices.shape)}`);
    if (coordinate_transformation_mode !== "half_pixel" && coordinate_transformation_mode !== "output_half_pixel") context.fail("OF3012", `unknown coordinate_transformation_mode '${coordinate_transformation_mode}'`, "it is half_pixel or output_half_pixel");
    if (mode !== "avg" && mode !== "max") context.fail("OF3012", `unknown mode '${mode}'`, "it is avg or max");
    if (output_height < 1 || output_width < 1 || sampling_ratio < 0) context.fail("OF3012", "output_height and output_width must be at least 1, sampling_ratio at least 0");
    context.agree?.(rois.shape[0] ?? 1, batch_indices.shape[0] ?? 1, "equal");
    return [{ dtype: X.dtype, shape: [rois.shape[0] ?? 1, X.shape[1] ?? 1, output_height, output_width] }];
  },
  whole: ({ X, rois, batch_indices }, { coordinate_transformation_mode, mode, output_height, output_width, sampling_ratio, spatial_scale }, [out]) => (out
    ? roiLoops(X.buffer(), rois.buffer(), batch_indices.buffer(), out, { half: coordinate_transformation_mode === "half_pixel", average: mode === "avg", height: output_height, width: output_width, ratio: sampling_ratio, scale: spatial_scale })
    : { kind: "loops", body: block(), scratch: [] }),
  read: (node, opset) => (opset >= 16 ? node : { ...node, attributes: { ...node.attributes, coordinate_transformation_mode: "output_half_pixel" } }),
  write: (node, opset) => {
    if (opset >= 16) return node;
    const { coordinate_transformation_mode, ...attributes } = node.attributes;
    return coordinate_transformation_mode === "output_half_pixel" ? { ...node, attributes } : undefined;
  },
});

export const MaxRoiPool = defineOp({
  type: "MaxRoiPool", domain: "", since: 1, evaluate: evaluate.MaxRoiPool,
  inputs: { X: "required", rois: "required" }, oneType: [["X", "rois"]],
  attributes: { pooled_shape: required("ints"), spatial_scale: float(1) },
  fusionKind: "opaque",
  infer: ({ X, rois }, { pooled_shape }, context) => {
    checkType(context, X, "X", "float");
    if (X.shape.length !== 4 || rois.shape.length !== 2 || (typeof rois.shape[1] === "number" && rois.shape[1] !== 5)) context.fail("OF3010", `needs images [N, C, H, W] and regions [count, 5], got ${formatShape(X.shape)} and ${formatShape(rois.shape)}`);
    if (pooled_shape.length !== 2 || pooled_shape.some((d) => d < 1)) context.fail("OF3012", `pooled_shape needs 2 values of at least 1, got [${pooled_shape.join(", ")}]`);
    return [{ dtype: X.dtype, shape: [rois.shape[0] ?? 1, X.shape[1] ?? 1, ...pooled_shape] }];
  },
});
