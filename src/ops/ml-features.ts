/** Operators of ai.onnx.ml that prepare features. They are compiled as the standard operators that say the same. */
import { dimAdd, dimProduct, formatShape, type Dim } from "../core/dim.ts";
import { dtypes, isFloat, type DType } from "../core/dtype.ts";
import { fromNumbers, tensor, type Tensor } from "../core/tensor.ts";
import * as evaluate from "../evaluate/ai-onnx-ml-features.ts";
import { defineOp, float, int, optional, string, type InferContext, type TypeInfo } from "../graph/op.ts";
import { cast, constant, f64, gt, select } from "../kernel/expr.ts";
import { Abs, Sqrt } from "./unary-math.ts";
import { Div, Mul, Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Concat } from "./concat.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { Gather } from "./gather.ts";
import { Equal } from "./logic.ts";
import { ReduceMax, ReduceSum } from "./reduce.ts";
import { Reshape, Unsqueeze } from "./reshape.ts";
import { IsNaN } from "./logic.ts";
import { Where } from "./where.ts";

export const mlDomain = { domain: "ai.onnx.ml", fusionKind: "opaque" } as const;

/** The last axis, along which features lie. */
const featuresOf = (x: TypeInfo): Dim => x.shape[x.shape.length - 1] ?? 1;
/** Reports OF3010 unless x is a vector or, unless `anyRank`, a matrix. */
export function checkRows(x: TypeInfo, context: InferContext): void {
  checkType(context, x, "X", "numeric");
  if (x.shape.length !== 1 && x.shape.length !== 2) context.fail("OF3010", `needs a vector or a matrix, got ${formatShape(x.shape)}`);
}
/** Reports OF3012 where a list has neither one element nor one for each feature. */
function checkLength(list: readonly number[] | undefined, name: string, x: TypeInfo, context: InferContext): void {
  const features = featuresOf(x);
  if (list && list.length !== 1 && typeof features === "number" && list.length !== features) context.fail("OF3012", `attribute '${name}' needs 1 or ${features} values, got ${list.length}`);
}
/** A list of one as a scalar, a longer one along the last axis. */
const listTensor = (dtype: DType, list: readonly number[]): Tensor => fromNumbers(dtype, list.length === 1 ? [] : [list.length], list);
const toFloat = (to: Expansion, x: string | undefined, type: TypeInfo | undefined, output?: string): string | undefined =>
  type?.dtype === "float32" && output === undefined ? x : to.add(Cast, [x], { to: dtypes.float32.onnx }, output);

export const ArrayFeatureExtractor = defineOp({
  ...mlDomain, type: "ArrayFeatureExtractor", since: 1, inputs: { X: "required", Y: "required" }, attributes: {},
  evaluate: evaluate.ArrayFeatureExtractor,
  infer: ({ X, Y }, _, context) => {
    if (X.shape.length === 0) context.fail("OF3010", "needs rank 1 or more, got a scalar");
    checkType(context, Y, "Y", "integer");
    return [{ dtype: X.dtype, shape: [...(X.shape.length === 1 ? [1] : X.shape.slice(0, -1)), dimProduct(Y.shape)] }];
  },
  expand: ({ inputs, inputTypes, outputs }) => {
    const to = new Expansion(), isVector = inputTypes[0]?.shape.length === 1;
    const picked = to.add(Gather, [inputs[0], to.add(Reshape, [inputs[1], listOf(-1)])], { axis: -1 }, isVector ? undefined : outputs[0]);
    if (isVector) to.add(Unsqueeze, [picked, listOf(0)], {}, outputs[0]);
    return to.nodes;
  },
});

export const Binarizer = defineOp({
  ...mlDomain, type: "Binarizer", since: 1, inputs: { X: "required" }, attributes: { threshold: float(0) }, fusionKind: "elementwise",
  evaluate: evaluate.Binarizer,
  infer: ({ X }, _, context) => {
    checkType(context, X, "X", "numeric");
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  lower: ({ X }, { threshold }) => [(...indices) => select(gt(cast(X.at(...indices), "f64"), constant(threshold, f64)), constant(isWide(X.dtype) ? 1n : 1, X.at(...indices).type), constant(isWide(X.dtype) ? 0n : 0, X.at(...indices).type))],
});
const isWide = (dtype: DType): boolean => dtype === "int64" || dtype === "uint64";

export const Scaler = defineOp({
  ...mlDomain, type: "Scaler", since: 1, inputs: { X: "required" }, attributes: { offset: optional("floats"), scale: optional("floats") },
  evaluate: evaluate.Scaler,
  infer: ({ X }, { offset, scale }, context) => {
    checkType(context, X, "X", "numeric");
    checkLength(offset, "offset", X, context);
    checkLength(scale, "scale", X, context);
    return [{ dtype: "float32", shape: X.shape }];
  },
  expand: ({ inputs, inputTypes, outputs }, { offset = [0], scale = [1] }) => {
    const to = new Expansion();
    to.add(Mul, [to.add(Sub, [toFloat(to, inputs[0], inputTypes[0]), listTensor("float32", offset)]), listTensor("float32", scale)], {}, outputs[0]);
    return to.nodes;
  },
});

export const Imputer = defineOp({
  ...mlDomain, type: "Imputer", since: 1, inputs: { X: "required" },
  attributes: { imputed_value_floats: optional("floats"), imputed_value_int64s: optional("ints"), replaced_value_float: float(0), replaced_value_int64: int(0) },
  evaluate: evaluate.Imputer,
  infer: ({ X }, { imputed_value_floats, imputed_value_int64s }, context) => {
    checkType(context, X, "X", "numeric");
    const name = isFloat(X.dtype) ? "imputed_value_floats" : "imputed_value_int64s", list = isFloat(X.dtype) ? imputed_value_floats : imputed_value_int64s;
    if (!list?.length) context.fail("OF3003", `needs its attribute '${name}'`);
    checkLength(list, name, X, context);
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  expand: ({ inputs, inputTypes, outputs }, attributes) => {
    const to = new Expansion(), dtype = inputTypes[0]?.dtype ?? "float32";
    const replaced = isFloat(dtype) ? attributes.replaced_value_float : attributes.replaced_value_int64, by = (isFloat(dtype) ? attributes.imputed_value_floats : attributes.imputed_value_int64s) ?? [0];
    const found = Number.isNaN(replaced) ? to.add(IsNaN, [inputs[0]]) : to.add(Equal, [inputs[0], scalarOf(dtype, replaced)]);
    to.add(Where, [found, listTensor(dtype, by), inputs[0]], {}, outputs[0]);
    return to.nodes;
  },
});

export const FeatureVectorizer = defineOp({
  ...mlDomain, type: "FeatureVectorizer", since: 1, inputs: { X: "variadic" }, attributes: { inputdimensions: optional("ints") },
  evaluate: evaluate.FeatureVectorizer,
  infer: ({ X }, { inputdimensions }, context) => {
    const [first] = X;
    if (!first) return context.fail("OF3001", "needs at least one input");
    for (const x of X) checkRows(x, context);
    const width = X.reduce<Dim>((sum, x, i) => dimAdd(sum, inputdimensions?.[i] ?? featuresOf(x)), 0);
    return [{ dtype: "float32", shape: [first.shape.length === 1 ? 1 : first.shape[0] ?? 1, width] }];
  },
  expand: ({ inputs, inputTypes, outputs }, { inputdimensions }) => {
    if (inputdimensions && inputTypes.some((t, i) => !t || featuresOf(t) !== inputdimensions[i])) return undefined;
    const to = new Expansion();
    const rows = inputs.map((x, i) => {
      const own = toFloat(to, x, inputTypes[i]);
      return inputTypes[i]?.shape.length === 1 ? to.add(Unsqueeze, [own, listOf(0)]) : own;
    });
    to.add(Concat, rows, { axis: 1 }, outputs[0]);
    return to.nodes;
  },
});

export const OneHotEncoder = defineOp({
  ...mlDomain, type: "OneHotEncoder", since: 1, inputs: { X: "required" },
  attributes: { cats_int64s: optional("ints"), cats_strings: optional("strings"), zeros: int(1) },
  evaluate: evaluate.OneHotEncoder,
  infer: ({ X }, { cats_int64s, cats_strings }, context) => {
    const categories = X.dtype === "string" ? cats_strings : cats_int64s;
    if (!categories) return context.fail("OF3003", `needs its attribute '${X.dtype === "string" ? "cats_strings" : "cats_int64s"}'`);
    return [{ dtype: "float32", shape: [...X.shape, categories.length] }];
  },
  expand: ({ inputs, inputTypes, outputs }, { cats_int64s = [], cats_strings = [], zeros }) => {
    if (!zeros) return undefined;
    const to = new Expansion(), isString = inputTypes[0]?.dtype === "string", rank = inputTypes[0]?.shape.length ?? 0;
    const x = isString || inputTypes[0]?.dtype === "int64" ? inputs[0] : to.add(Cast, [inputs[0]], { to: dtypes.int64.onnx });
    const categories = isString ? tensor("string", [cats_strings.length], cats_strings) : fromNumbers("int64", [cats_int64s.length], cats_int64s);
    to.add(Cast, [to.add(Equal, [to.add(Unsqueeze, [x, listOf(rank)]), categories])], { to: dtypes.float32.onnx }, outputs[0]);
    return to.nodes;
  },
});

export const Normalizer = defineOp({
  ...mlDomain, type: "Normalizer", since: 1, inputs: { X: "required" }, attributes: { norm: string("MAX") },
  evaluate: evaluate.Normalizer,
  infer: ({ X }, { norm }, context) => {
    checkRows(X, context);
    if (!["MAX", "L1", "L2"].includes(norm)) context.fail("OF3012", `unknown norm '${norm}'`, "it is 'MAX', 'L1' or 'L2'");
    return [{ dtype: "float32", shape: X.shape }];
  },
  expand: ({ inputs, inputTypes, outputs }, { norm }) => {
    const to = new Expansion(), x = toFloat(to, inputs[0], inputTypes[0]), last = listOf(-1);
    const by = norm === "MAX" ? to.add(ReduceMax, [x, last]) : norm === "L1" ? to.add(ReduceSum, [to.add(Abs, [x]), last]) : to.add(Sqrt, [to.add(ReduceSum, [to.add(Mul, [x, x]), last])]);
    to.add(Where, [to.add(Equal, [by, scalarOf("float32", 0)]), x, to.add(Div, [x, by])], {}, outputs[0]);
    return to.nodes;
  },
});
