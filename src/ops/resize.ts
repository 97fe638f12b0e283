/**
 * Resize: nearest, linear and cubic, in every coordinate mode. Older spellings (Upsample, Resize before opset 11) read as
 * it: they are asymmetric, and their nearest mode, here `simple`, truncates when growing and rounds up when shrinking.
 */
import { fromNumbers } from "../core/tensor.ts";
import { dimMul, dimFloorDiv, formatShape, isStatic, type Dim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { resizedAxes, Resize as evaluate } from "../evaluate/resize.ts";
import { defineOp, float, int, optional, string, type InferContext, type TypeInfo } from "../graph/op.ts";
import { checkType } from "./element-wise.ts";
import { elementsOf, numbersKnown } from "./element-values.ts";
import { resizedElement, type ResizeAxis } from "./resize-element.ts";
import { numbersIn, numbersOfInput, without } from "./spelling.ts";

interface ResizeInputs { readonly X: TypeInfo; readonly roi: TypeInfo | undefined; readonly scales: TypeInfo | undefined; readonly sizes: TypeInfo | undefined }
interface ResizeOptions { readonly axes?: readonly number[] | undefined; readonly keep_aspect_ratio_policy?: string | undefined }

const hasElements = (t: TypeInfo | undefined): t is TypeInfo => t !== undefined && !(t.shape.length === 1 && t.shape[0] === 0);

/** Size, result and scale of each axis; undefined where a scale or size is not known. */
export function resizeAxes({ X, roi, scales, sizes }: ResizeInputs, options: ResizeOptions): readonly ResizeAxis[] | undefined {
  const axes = (options.axes ?? X.shape.map((_, i) => i)).map((a) => (a < 0 ? a + X.shape.length : a));
  const box = hasElements(roi) ? numbersKnown(roi) : undefined;
  if (hasElements(roi) && !box) return undefined;
  const scale = hasElements(scales) ? numbersKnown(scales) : undefined, size = hasElements(scales) ? undefined : sizes && elementsOf(sizes);
  if (!scale && !size) return undefined;
  if (isStatic(X.shape) && (!size || isStatic(size))) {
    return resizedAxes(X.shape, box, scale, size && isStatic(size) ? size : undefined, { axes, ...(options.keep_aspect_ratio_policy === undefined ? {} : { keep_aspect_ratio_policy: options.keep_aspect_ratio_policy }) });
  }
  if ((options.keep_aspect_ratio_policy ?? "stretch") !== "stretch") return undefined;
  const out = X.shape.map((own, axis): ResizeAxis | undefined => {
    const i = axes.indexOf(axis), roiOf: readonly [number, number] = [box?.[i] ?? 0, box?.[i + axes.length] ?? 1];
    if (i < 0) return { size: own, result: own, scale: 1, roi: [0, 1], scaled: false };
    if (size) { const result = size[i] ?? own; return { size: own, result, scale: typeof own === "number" && typeof result === "number" ? Math.fround(result / own) : undefined, roi: roiOf, scaled: false }; }
    const by = Math.fround(scale?.[i] ?? 1), result = scaled(own, by);
    return result === undefined ? undefined : { size: own, result, scale: by, roi: roiOf, scaled: true };
  });
  const known = out.filter((a) => a !== undefined);
  return known.length === out.length ? known : undefined;
}

/** ⌊size · scale⌋ for scales whose fraction has a power of two below; undefined for others of symbolic sizes. */
function scaled(size: Dim, scale: number): Dim | undefined {
  if (typeof size === "number") return Math.floor(Math.fround(scale * size));
  for (let below = 1; below <= 1024; below *= 2) if (Number.isInteger(scale * below)) return dimFloorDiv(dimMul(size, scale * below), below);
  const inverse = Math.round(1 / scale);
  return Math.fround(1 / inverse) === scale ? dimFloorDiv(size, inverse) : undefined;
}

const choices = {
  mode: ["nearest", "linear", "cubic"],
  nearest_mode: ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"],
  coordinate_transformation_mode: ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"],
} as const;
function checkChoice(context: InferContext, name: keyof typeof choices, value: string): void {
  if (!choices[name].some((c) => c === value)) context.fail("OF3012", `unknown ${name} '${value}'`, `it is one of ${choices[name].join(", ")}`);
}

export const Resize = defineOp({
  type: "Resize", domain: "", since: 11, evaluate,
  inputs: { X: "required", roi: "optional", scales: "optional", sizes: "optional" }, integers: ["sizes"],
  attributes: {
    mode: string("nearest"), coordinate_transformation_mode: string("half_pixel"), nearest_mode: string("round_prefer_floor"),
    cubic_coeff_a: float(-0.75), exclude_outside: int(0), extrapolation_value: float(0),
    antialias: optional("int"), axes: optional("ints"), keep_aspect_ratio_policy: optional("string"),
  },
  fusionKind: "injective",
  infer: ({ X, roi, scales, sizes }, attributes, context) => {
    checkType(context, X, "X", attributes.mode === "nearest" ? "any" : "numeric");
    for (const name of ["mode", "nearest_mode", "coordinate_transformation_mode"] as const) checkChoice(context, name, attributes[name]);
    if (!hasElements(scales) && !sizes) context.fail("OF3001", "needs 'scales' or 'sizes'");
    const count = attributes.axes?.length ?? X.shape.length, list = hasElements(scales) ? scales : sizes;
    if (list && typeof list.shape[0] === "number" && list.shape[0] !== count) context.fail("OF3011", `${hasElements(scales) ? "scales" : "sizes"} needs ${count} elements for ${formatShape(X.shape)}, got ${list.shape[0]}`);
    const axes = resizeAxes({ X, roi, scales, sizes }, attributes);
    return [{ dtype: X.dtype, shape: axes ? axes.map((a) => a.result) : X.shape.map((d, i): Dim => (attributes.axes && !attributes.axes.some((a) => (a < 0 ? a + X.shape.length : a) === i) ? d : context.fresh(`d${i}`))) }];
  },
  lowerable: ({ X, roi, scales, sizes }, attributes) => resizeAxes({ X, roi, scales, sizes }, attributes) !== undefined && !attributes.antialias && (attributes.mode === "nearest" || isFloat(X.dtype))
    && X.dtype !== "string" && !(X.dtype === "bool" && attributes.coordinate_transformation_mode === "tf_crop_and_resize"),
  lower: ({ X, roi, scales, sizes }, attributes) => {
    const axes = resizeAxes({ X, roi, scales, sizes }, attributes) ?? [];
    return [(...indices) => resizedElement(X, axes, attributes, indices)];
  },
  read: (node, opset) => {
    if (opset >= 11) return node;
    const [x, scales] = node.inputs;
    return { ...node, inputs: [x, undefined, scales], attributes: { ...node.attributes, coordinate_transformation_mode: "asymmetric", nearest_mode: "simple" } };
  },
  write: (node, opset) => {
    const { mode, nearest_mode, coordinate_transformation_mode } = node.attributes;
    if (opset >= 11) {
      const { inputs } = node, [x, roi = none, scales = none, ...rest] = inputs, own = opset >= 13 ? node : { ...node, inputs: [x, roi, scales, ...rest] };
      return nearest_mode === "simple" ? (grows(inputs[2]) ? { ...own, attributes: { ...own.attributes, nearest_mode: "floor" } } : undefined) : own;
    }
    const [x, , scales, sizes] = node.inputs;
    if (coordinate_transformation_mode !== "asymmetric" || mode === "cubic" || sizes || (mode === "nearest" && nearest_mode !== "simple" && !(nearest_mode === "floor" && grows(scales)))) return undefined;
    return { ...node, inputs: [x, scales], attributes: { mode: mode ?? "nearest" } };
  },
  /** Before opset 10 Resize was Upsample. */
  expand: ({ inputs, inputTypes, outputs }, { mode, nearest_mode, coordinate_transformation_mode }) => {
    const [x, , scales, sizes] = inputs, by = inputTypes[2] && numbersKnown(inputTypes[2]);
    if (scales === undefined || sizes !== undefined || coordinate_transformation_mode !== "asymmetric" || mode === "cubic" || !by?.every((s) => s >= 1)) return undefined;
    if (mode === "nearest" && nearest_mode !== "simple" && nearest_mode !== "floor") return undefined;
    return [{ op: Upsample, inputs: [x, scales], outputs, attributes: { mode } }];
  },
});
/** What stands for an input that is left out, before opset 13. */
const none = { literal: fromNumbers("float32", [0], []) };
const grows = (scales: Parameters<typeof numbersOfInput>[0]): boolean => numbersOfInput(scales)?.every((s) => s >= 1) ?? false;

/** What Resize was before opset 10; reads as Resize. */
export const Upsample = defineOp({
  type: "Upsample", domain: "", since: 9,
  inputs: { X: "required", scales: "required" },
  attributes: { mode: string("nearest") },
  fusionKind: "injective",
  evaluate: ([x, scales], attributes, context) => evaluate([x, undefined, scales], { ...attributes, coordinate_transformation_mode: "asymmetric", nearest_mode: "simple" }, context),
  infer: ({ X, scales }, _, context) => {
    checkType(context, X, "X", "numeric");
    checkType(context, scales, "scales", "float");
    const axes = resizeAxes({ X, roi: undefined, scales, sizes: undefined }, {});
    return [{ dtype: X.dtype, shape: axes ? axes.map((a) => a.result) : X.shape.map((_, i) => context.fresh(`d${i}`)) }];
  },
  read: (node, opset) => {
    const scales = numbersIn(node.attributes.scales);
    const list = scales && { literal: { dtype: "float32" as const, dims: [scales.length], data: Float32Array.from(scales) } };
    return {
      ...node, type: "Resize", inputs: [node.inputs[0], undefined, opset >= 9 ? node.inputs[1] : list],
      attributes: { ...without(node.attributes, "scales"), mode: node.attributes.mode === "bilinear" ? "linear" : node.attributes.mode ?? "nearest", coordinate_transformation_mode: "asymmetric", nearest_mode: "simple" },
    };
  },
  write: (node, opset) => {
    if (opset >= 9) return node;
    const scales = numbersOfInput(node.inputs[1]);
    return scales && { ...node, inputs: [node.inputs[0]], attributes: { ...node.attributes, scales } };
  },
});
