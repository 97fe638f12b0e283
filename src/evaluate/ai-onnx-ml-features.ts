/** Evaluation of the operators of ai.onnx.ml that prepare features. Results that are floats by definition are rounded once to float32. */
import { fail } from "../core/diagnostic.ts";
import { isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { input, mapNumbers, pick, wrapped } from "./map-elements.ts";
import { integersOf, numberOf, numbersOf, stringOf, stringsOf } from "./read-attribute.ts";

export const ArrayFeatureExtractor: Evaluate = (inputs) => {
  const x = input(inputs, 0), at = integersOf(input(inputs, 1)), width = x.dims[x.dims.length - 1] ?? 1;
  const outside = at.find((i) => i < 0 || i >= width);
  if (outside !== undefined) fail("OF7014", `index ${outside} lies outside an axis of ${width} elements`, { hint: "check the indices that are fed" });
  const outer = x.dims.length < 2 ? [1] : x.dims.slice(0, -1), rows = sizeOf(outer);
  return [pick(x, [...outer, at.length], Array.from({ length: rows }, (_, r) => at.map((i) => r * width + i)).flat())];
};

export const Binarizer: Evaluate = (inputs, attributes) => {
  const threshold = numberOf(attributes, "threshold");
  return [mapNumbers(input(inputs, 0), (x) => (x > threshold ? 1 : 0))];
};

/** The element of a list of one, or of one for each feature. */
const ofFeature = (list: readonly number[], i: number): number => (list.length === 1 ? list[0] : list[i % list.length]) ?? 0;

export const Scaler: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), values = toNumbers(x), offset = numbersOf(attributes, "offset") ?? [0], scale = numbersOf(attributes, "scale") ?? [1];
  return [fromNumbers("float32", x.dims, Array.from(values, (v, i) => (v - ofFeature(offset, i)) * ofFeature(scale, i)))];
};

export const Imputer: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0);
  if (isFloat(x.dtype)) {
    const by = numbersOf(attributes, "imputed_value_floats") ?? [0], replaced = numberOf(attributes, "replaced_value_float");
    const isReplaced = (v: number): boolean => (Number.isNaN(replaced) ? Number.isNaN(v) : v === replaced);
    return [fromNumbers(x.dtype, x.dims, Array.from(toNumbers(x), (v, i) => (isReplaced(v) ? ofFeature(by, i) : v)))];
  }
  const by = numbersOf(attributes, "imputed_value_int64s") ?? [0], replaced = BigInt(numberOf(attributes, "replaced_value_int64"));
  return [wrapped(x.dtype, x.dims, toBigInts(x).map((v, i) => (v === replaced ? BigInt(ofFeature(by, i)) : v)))];
};

export const FeatureVectorizer: Evaluate = (inputs, attributes) => {
  const tensors = inputs.filter((t): t is Tensor => t !== undefined);
  const own = tensors.map((t) => (t.dims.length < 2 ? sizeOf(t.dims) : sizeOf(t.dims.slice(1))));
  const given = numbersOf(attributes, "inputdimensions") ?? [], widths = own.map((w, i) => given[i] ?? w);
  const first = input(inputs, 0), rows = first.dims.length < 2 ? 1 : first.dims[0] ?? 0;
  const values = tensors.map(toNumbers);
  const row = (r: number): number[] => tensors.flatMap((_, t) => Array.from({ length: widths[t] ?? 0 }, (_, c) => (c < (own[t] ?? 0) ? values[t]?.[r * (own[t] ?? 0) + c] ?? 0 : 0)));
  return [fromNumbers("float32", [rows, widths.reduce((a, b) => a + b, 0)], Array.from({ length: rows }, (_, r) => row(r)).flat())];
};

export const OneHotEncoder: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), strings = stringsOf(attributes, "cats_strings") ?? [], integers = numbersOf(attributes, "cats_int64s") ?? [];
  const categories: readonly (string | number)[] = x.dtype === "string" ? strings : integers;
  const values: readonly (string | number)[] = x.dtype === "string" ? [...(x.data as readonly string[])] : Array.from(toNumbers(x), Math.trunc);
  if (!numberOf(attributes, "zeros")) {
    const unknown = values.find((v) => !categories.includes(v));
    if (unknown !== undefined) fail("OF7018", `OneHotEncoder: '${unknown}' is none of its categories`, { hint: "feed a known category, or set its attribute zeros to 1" });
  }
  return [fromNumbers("float32", [...x.dims, categories.length], values.flatMap((v) => categories.map((c) => (c === v ? 1 : 0))))];
};

export const Normalizer: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), width = x.dims[x.dims.length - 1] ?? 1, values = toNumbers(x), norm = stringOf(attributes, "norm");
  const lines = Array.from({ length: width ? values.length / width : 0 }, (_, r) => Array.from({ length: width }, (_, c) => values[r * width + c] ?? 0));
  return [fromNumbers("float32", x.dims, lines.flatMap((line) => {
    const by = norm === "MAX" ? Math.max(...line) : norm === "L1" ? line.reduce((s, v) => s + Math.abs(v), 0) : Math.sqrt(line.reduce((s, v) => s + v * v, 0));
    return line.map((v) => (by === 0 ? v : v / by));
  }))];
};
