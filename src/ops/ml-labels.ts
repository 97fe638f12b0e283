/** Operators of ai.onnx.ml that exchange labels: strings, integers and floats for one another. They run on the host. */
import type { DType } from "../core/dtype.ts";
import type { Tensor } from "../core/tensor.ts";
import * as evaluate from "../evaluate/ai-onnx-ml-labels.ts";
import { defineOp, float, int, optional, string, type InferContext, type Spelling } from "../graph/op.ts";
import { mlDomain } from "./ml-features.ts";

interface Side { readonly dtype: DType; readonly count: number }
/** One side of a mapping; exactly one of its forms must be there. */
function sideOf(name: string, tensor: Tensor | undefined, strings: readonly string[] | undefined, integers: readonly number[] | undefined, floats: readonly number[] | undefined, context: InferContext): Side {
  const forms: Side[] = [];
  if (tensor) forms.push({ dtype: tensor.dtype, count: tensor.data.length });
  if (strings?.length) forms.push({ dtype: "string", count: strings.length });
  if (integers?.length) forms.push({ dtype: "int64", count: integers.length });
  if (floats?.length) forms.push({ dtype: "float32", count: floats.length });
  const [only, more] = forms;
  if (!only || more) return context.fail("OF3012", `needs exactly one attribute '${name}_*', got ${forms.length}`);
  return only;
}

export const LabelEncoder = defineOp({
  ...mlDomain, type: "LabelEncoder", since: 4, inputs: { X: "required" },
  attributes: {
    keys_tensor: optional("tensor"), keys_strings: optional("strings"), keys_int64s: optional("ints"), keys_floats: optional("floats"),
    values_tensor: optional("tensor"), values_strings: optional("strings"), values_int64s: optional("ints"), values_floats: optional("floats"),
    default_tensor: optional("tensor"), default_string: string("_Unused"), default_int64: int(-1), default_float: float(-0),
  },
  evaluate: evaluate.LabelEncoder,
  infer: ({ X }, a, context) => {
    const keys = sideOf("keys", a.keys_tensor, a.keys_strings, a.keys_int64s, a.keys_floats, context);
    const values = sideOf("values", a.values_tensor, a.values_strings, a.values_int64s, a.values_floats, context);
    if (keys.count !== values.count) context.fail("OF3012", `has ${keys.count} keys and ${values.count} values`);
    if (keys.dtype !== X.dtype) context.fail("OF3013", `input 'X' is ${X.dtype}, its keys are ${keys.dtype}`);
    return [{ dtype: values.dtype, shape: X.shape }];
  },
  /** Version 1 numbers its classes. */
  read: (node, opset) => {
    if (opset >= 2) return node;
    const { classes_strings: classes, ...rest } = node.attributes, names = Array.isArray(classes) ? classes.map(String) : [];
    return { ...node, type: "CategoryMapper", attributes: { ...rest, cats_strings: names, cats_int64s: names.map((_, i) => i) } };
  },
  write: (node, opset): Spelling | undefined =>
    opset >= 4 || (opset >= 2 && !["keys_tensor", "values_tensor", "default_tensor"].some((name) => node.attributes[name] !== undefined)) ? node : undefined,
});

/** Strings to integers, or integers to strings. */
export const CategoryMapper = defineOp({
  ...mlDomain, type: "CategoryMapper", since: 1, inputs: { X: "required" },
  attributes: { cats_int64s: optional("ints"), cats_strings: optional("strings"), default_int64: int(-1), default_string: string("_Unused") },
  evaluate: evaluate.CategoryMapper,
  infer: ({ X }, { cats_int64s = [], cats_strings = [] }, context) => {
    if (X.dtype !== "string" && X.dtype !== "int64") context.fail("OF3013", `input 'X' is ${X.dtype}, must be string or int64`);
    if (cats_int64s.length !== cats_strings.length) context.fail("OF3012", `has ${cats_int64s.length} integers and ${cats_strings.length} strings`);
    return [{ dtype: X.dtype === "string" ? "int64" : "string", shape: X.shape }];
  },
});
