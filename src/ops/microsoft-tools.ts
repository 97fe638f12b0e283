/** Operators of com.microsoft found in published models that are neither fusions nor older names: matrices, boxes, texts, spectra. */
import { dimAdd, dimFloorDiv, dimMul, dimSub, formatShape, type Dim } from "../core/dim.ts";
import { CropAndResize as evaluateCrop } from "../evaluate/com-microsoft-crop.ts";
import * as matrices from "../evaluate/com-microsoft-linear-algebra.ts";
import * as spectra from "../evaluate/com-microsoft-spectra.ts";
import * as texts from "../evaluate/com-microsoft-text.ts";
import { Unique as evaluateUnique } from "../evaluate/com-microsoft-unique.ts";
import { defineOp, float, int, string, type InferContext, type TypeInfo } from "../graph/op.ts";
import { mul, reduce, sqrt, sub } from "../kernel/expr.ts";
import { checkSameType, checkType } from "./element-wise.ts";
import { elementsOf } from "./element-values.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { DFT } from "./fourier.ts";
import { origin } from "./index-map.ts";
import { Squeeze, Unsqueeze } from "./reshape.ts";
import { Unique } from "./order.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;
const rankOf = (x: TypeInfo, rank: number, context: InferContext): void => { if (x.shape.length !== rank) context.fail("OF3010", `needs rank ${rank}, got ${formatShape(x.shape)}`); };

/** Inverses of stacked square matrices. */
export const Inverse = defineOp({
  ...common, type: "Inverse", inputs: { X: "required" }, attributes: {}, evaluate: matrices.Inverse,
  infer: ({ X }, _, context) => {
    checkType(context, X, "X", "float");
    const [rows, columns] = X.shape.slice(-2);
    if (X.shape.length < 2 || (typeof rows === "number" && typeof columns === "number" && rows !== columns)) context.fail("OF3010", `needs square matrices, got ${formatShape(X.shape)}`);
    if (rows !== undefined && columns !== undefined) context.agree?.(rows, columns, "equal");
    return [{ dtype: X.dtype, shape: X.shape }];
  },
});

/** Distances of every row of A from every row of B. */
export const CDist = defineOp({
  ...common, type: "CDist", inputs: { A: "required", B: "required" }, attributes: { metric: string("sqeuclidean") }, fusionKind: "reduction", evaluate: matrices.CDist,
  infer: ({ A, B }, { metric }, context) => {
    checkType(context, A, "A", "float");
    checkSameType(context, [A, B]);
    rankOf(A, 2, context);
    rankOf(B, 2, context);
    if (metric !== "euclidean" && metric !== "sqeuclidean") context.fail("OF3012", `unknown metric '${metric}'`, "it is 'euclidean' or 'sqeuclidean'");
    const [rows = 1, width = 1] = A.shape, [columns = 1, other = 1] = B.shape;
    if (typeof width === "number" && typeof other === "number" && width !== other) context.fail("OF3011", `rows differ in size: ${formatShape(A.shape)} and ${formatShape(B.shape)}`);
    context.agree?.(width, other, "equal");
    return [{ dtype: A.dtype, shape: [rows, columns] }];
  },
  lower: ({ A, B }, { metric }) => [(i = origin, j = origin) => {
    const sum = reduce("add", [A.shape[1] ?? 1], (k = origin) => {
      const d = sub(A.at(i, k), B.at(j, k));
      return mul(d, d);
    });
    return metric === "euclidean" ? sqrt(sum) : sum;
  }],
});

/** Boxes [y1, x1, y2, x2] of images, in shares of their sizes, resized to crop_size. */
export const CropAndResize = defineOp({
  ...common, type: "CropAndResize", inputs: { X: "required", rois: "required", batch_indices: "required", crop_size: "required" },
  attributes: { mode: string("bilinear"), extrapolation_value: float(0) }, evaluate: evaluateCrop,
  infer: ({ X, rois, batch_indices, crop_size }, { mode }, context) => {
    rankOf(X, 4, context);
    rankOf(rois, 2, context);
    if (mode !== "bilinear" && mode !== "nearest") context.fail("OF3012", `unknown mode '${mode}'`, "it is 'bilinear' or 'nearest'");
    const [rows = context.fresh("rows"), columns = context.fresh("columns")] = elementsOf(crop_size) ?? [];
    return [{ dtype: X.dtype, shape: [batch_indices.shape[0] ?? 1, X.shape[1] ?? 1, rows, columns] }];
  },
});

export const MurmurHash3 = defineOp({
  ...common, type: "MurmurHash3", inputs: { X: "required" }, attributes: { positive: int(1), seed: int(0) }, evaluate: texts.MurmurHash3,
  infer: ({ X }, { positive }, context) => {
    if (!["int32", "uint32", "int64", "uint64", "float32", "float64", "string"].includes(X.dtype)) context.fail("OF3013", `input 'X' is ${X.dtype}, must be of 32 or 64 bits, or string`);
    return [{ dtype: positive ? "uint32" : "int32", shape: X.shape }];
  },
});

export const NGramRepeatBlock = defineOp({
  ...common, type: "NGramRepeatBlock", inputs: { input_ids: "required", scores: "required" }, attributes: { ngram_size: int(1) }, evaluate: texts.NGramRepeatBlock,
  infer: ({ input_ids, scores }, { ngram_size }, context) => {
    rankOf(input_ids, 2, context);
    rankOf(scores, 2, context);
    checkType(context, input_ids, "input_ids", "integer");
    if (ngram_size < 1) context.fail("OF3012", `ngram_size must be at least 1, got ${ngram_size}`);
    return [{ dtype: scores.dtype, shape: scores.shape }];
  },
});

export const DynamicTimeWarping = defineOp({
  ...common, type: "DynamicTimeWarping", inputs: { input: "required" }, attributes: {}, evaluate: texts.DynamicTimeWarping,
  infer: ({ input }, _, context) => {
    if (input.shape.length !== 2 && !(input.shape.length === 3 && input.shape[0] === 1)) context.fail("OF3010", `needs one matrix, got ${formatShape(input.shape)}`);
    return [{ dtype: "int32", shape: [2, context.fresh("path")] }];
  },
});

/** Distinct elements in order of appearance. */
export const MicrosoftUnique = defineOp({
  ...common, type: "Unique", inputs: { x: "required" }, attributes: {}, evaluate: evaluateUnique,
  infer: ({ x }, _, context) => {
    rankOf(x, 1, context);
    const count = context.fresh("unique");
    return [{ dtype: x.dtype, shape: [count] }, { dtype: "int64", shape: [x.shape[0] ?? 1] }, { dtype: "int64", shape: [count] }];
  },
  expand: ({ inputs, outputs: [values = "values", inverse = "inverse", counts = "counts"] }) =>
    [{ op: Unique, inputs, outputs: [values, "first", inverse, counts], attributes: { sorted: 0 } }],
});

const transform = { normalized: int(0), onesided: int(1), signal_ndim: int(1) } as const;
function checkTransform({ normalized, onesided, signal_ndim }: { readonly normalized: number; readonly onesided: number; readonly signal_ndim: number }, context: InferContext): void {
  if (normalized !== 0 || onesided !== 1 || signal_ndim !== 1) context.fail("OF3012", "only one-sided transforms of one axis, not normalised, are defined");
}
export const Rfft = defineOp({
  ...common, type: "Rfft", inputs: { X: "required" }, attributes: transform, evaluate: spectra.Rfft,
  infer: ({ X }, options, context) => {
    checkType(context, X, "X", "float");
    checkTransform(options, context);
    if (X.shape.length === 0) context.fail("OF3010", "needs rank 1 or more, got a scalar");
    return [{ dtype: X.dtype, shape: [...X.shape.slice(0, -1), dimAdd(dimFloorDiv(X.shape[X.shape.length - 1] ?? 1, 2), 1), 2] }];
  },
  expand: ({ inputs, outputs }) => {
    const to = new Expansion();
    to.add(DFT, [to.add(Unsqueeze, [inputs[0], listOf(-1)]), undefined, scalarOf("int64", -2)], { onesided: 1 }, outputs[0]);
    return to.nodes;
  },
});
export const Irfft = defineOp({
  ...common, type: "Irfft", inputs: { X: "required" }, attributes: transform, evaluate: spectra.Irfft,
  infer: ({ X }, options, context) => {
    checkType(context, X, "X", "float");
    checkTransform(options, context);
    if (X.shape.length < 2 || X.shape[X.shape.length - 1] !== 2) context.fail("OF3010", `needs pairs on the last axis, got ${formatShape(X.shape)}`);
    const bins: Dim = X.shape[X.shape.length - 2] ?? 1;
    return [{ dtype: X.dtype, shape: [...X.shape.slice(0, -2), dimMul(2, dimSub(bins, 1))] }];
  },
  expand: ({ inputs, outputs }) => {
    const to = new Expansion();
    to.add(Squeeze, [to.add(DFT, [inputs[0], undefined, scalarOf("int64", -2)], { inverse: 1, onesided: 1 }), listOf(-1)], {}, outputs[0]);
    return to.nodes;
  },
});
