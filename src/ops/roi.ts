/** RoiAlign (a kernel where the number of samples is given) and MaxRoiPool: what regions of an image hold, at one size. */
import { formatShape } from "../core/dim.ts";
import * as evaluate from "../evaluate/roi.ts";
import { defineOp, float, int, required, string } from "../graph/op.ts";
import { add, and, cast, constant, dimExpr, div, f32, ge, le, lt, max, min, mul, reduce, select, sub, unary, type Expr } from "../kernel/expr.ts";
import { checkType } from "./element-wise.ts";
import { indexFrom, minusDim, origin } from "./index-map.ts";
import { sizeAs } from "./sample-element.ts";

/** Index, its neighbour, the neighbour's weight, and whether the sample is within the image. */
function neighbours(v: Expr, size: Parameters<typeof dimExpr>[0]): { readonly low: Expr; readonly high: Expr; readonly weight: Expr; readonly inside: Expr } {
  const last = minusDim(dimExpr(size), 1), x = max(v, 0), floor = min(cast(unary("floor", x), "i32"), last);
  const weight = select(lt(floor, last), sub(x, cast(floor, v.type.scalar)), constant(0, v.type));
  return { low: floor, high: min(add(floor, 1), last), weight, inside: and(ge(v, -1), le(v, sizeAs(size, v.type))) };
}

export const RoiAlign = defineOp({
  type: "RoiAlign", domain: "", since: 16, evaluate: evaluate.RoiAlign,
  inputs: { X: "required", rois: "required", batch_indices: "required" },
  attributes: { coordinate_transformation_mode: string("half_pixel"), mode: string("avg"), output_height: int(1), output_width: int(1), sampling_ratio: int(0), spatial_scale: float(1) },
  fusionKind: "reduction",
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
  lowerable: (_inputs, { sampling_ratio }) => sampling_ratio > 0,
  lower: ({ X, rois, batch_indices }, { coordinate_transformation_mode, mode, output_height, output_width, sampling_ratio, spatial_scale }) => [(r = origin, c = origin, i = origin, j = origin) => {
    const half = coordinate_transformation_mode === "half_pixel", [, , height = 1, width = 1] = X.shape;
    const corner = (k: number): Expr => sub(mul(cast(rois.at(r, constant(k, { scalar: "i32", lanes: 1 })), "f32"), spatial_scale), half ? 0.5 : 0);
    const axis = (from: number, count: number, place: Expr, step: Expr): Expr => {
      const start = corner(from), span = sub(corner(from + 2), start), bin = div(half ? span : max(span, 1), count);
      return add(add(start, mul(cast(place, "f32"), bin)), div(mul(add(cast(step, "f32"), 0.5), bin), sampling_ratio));
    };
    const batch = indexFrom(batch_indices.at(r), X.shape[0] ?? 1, false), average = mode === "avg";
    const samples = reduce(average ? "add" : "max", [sampling_ratio, sampling_ratio], (a = origin, b = origin) => {
      const v = neighbours(axis(1, output_height, i, a), height), h = neighbours(axis(0, output_width, j, b), width);
      const part = (y: Expr, x: Expr, wy: Expr, wx: Expr): Expr => { const value = X.at(batch, c, y, x); return mul(value, cast(mul(wy, wx), value.type.scalar)); };
      const [vLow, hLow] = [sub(constant(1, f32), v.weight), sub(constant(1, f32), h.weight)];
      const parts = [part(v.low, h.low, vLow, hLow), part(v.low, h.high, vLow, h.weight), part(v.high, h.low, v.weight, hLow), part(v.high, h.high, v.weight, h.weight)];
      const value = parts.reduce(average ? add : max);
      return select(and(v.inside, h.inside), value, constant(0, value.type));
    });
    return average ? div(samples, sampling_ratio * sampling_ratio) : samples;
  }],
  read: (node, opset) => (opset >= 16 ? node : { ...node, attributes: { ...node.attributes, coordinate_transformation_mode: "output_half_pixel" } }),
  write: (node, opset) => {
    if (opset >= 16) return node;
    const { coordinate_transformation_mode, ...attributes } = node.attributes;
    return coordinate_transformation_mode === "output_half_pixel" ? { ...node, attributes } : undefined;
  },
});

export const MaxRoiPool = defineOp({
  type: "MaxRoiPool", domain: "", since: 1, evaluate: evaluate.MaxRoiPool,
  inputs: { X: "required", rois: "required" },
  attributes: { pooled_shape: required("ints"), spatial_scale: float(1) },
  fusionKind: "opaque",
  infer: ({ X, rois }, { pooled_shape }, context) => {
    checkType(context, X, "X", "float");
    if (X.shape.length !== 4 || rois.shape.length !== 2 || (typeof rois.shape[1] === "number" && rois.shape[1] !== 5)) context.fail("OF3010", `needs images [N, C, H, W] and regions [count, 5], got ${formatShape(X.shape)} and ${formatShape(rois.shape)}`);
    if (pooled_shape.length !== 2 || pooled_shape.some((d) => d < 1)) context.fail("OF3012", `pooled_shape needs 2 values of at least 1, got [${pooled_shape.join(", ")}]`);
    return [{ dtype: X.dtype, shape: [rois.shape[0] ?? 1, X.shape[1] ?? 1, ...pooled_shape] }];
  },
});
