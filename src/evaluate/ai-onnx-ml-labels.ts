/** Evaluation of the operators of ai.onnx.ml that exchange labels. A key given twice means its last value; NaN is one key. */
import { is64, type DType } from "../core/dtype.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromBigInts, fromNumbers, tensor, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf, stringsOf } from "./read-attribute.ts";

type Label = string | number | bigint;

function elementsOf(t: Tensor): readonly Label[] {
  if (t.dtype === "string") return [...(t.data as readonly string[])];
  return is64(t.dtype) ? toBigInts(t) : Array.from(toNumbers(t));
}
function labelTensor(dtype: DType, dims: readonly number[], values: readonly Label[]): Tensor {
  if (dtype === "string") return tensor(dtype, dims, values.map(String));
  return is64(dtype) ? fromBigInts(dtype, dims, values.map((v) => BigInt(v))) : fromNumbers(dtype, dims, values.map(Number));
}

/** One side of a mapping: the tensor form, or one of the three list forms. */
function side(attributes: EvaluateAttributes, name: "keys" | "values"): { readonly dtype: DType; readonly labels: readonly Label[] } {
  const t = attributes[`${name}_tensor`];
  if (typeof t === "object" && "dtype" in t) return { dtype: t.dtype, labels: elementsOf(t) };
  const strings = stringsOf(attributes, `${name}_strings`), integers = numbersOf(attributes, `${name}_int64s`);
  if (strings) return { dtype: "string", labels: strings };
  if (integers) return { dtype: "int64", labels: integers.map(BigInt) };
  return { dtype: "float32", labels: numbersOf(attributes, `${name}_floats`) ?? [] };
}
function missing(attributes: EvaluateAttributes, dtype: DType): Label {
  const t = attributes["default_tensor"];
  if (typeof t === "object" && "dtype" in t) return elementsOf(t)[0] ?? 0;
  if (dtype === "string") return stringOf(attributes, "default_string");
  if (dtype === "int64") return BigInt(numberOf(attributes, "default_int64"));
  return dtype === "int32" || dtype === "int16" ? -1 : numberOf(attributes, "default_float");
}

export const LabelEncoder: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), keys = side(attributes, "keys"), values = side(attributes, "values");
  const map = new Map(keys.labels.map((key, i) => [key, values.labels[i] ?? 0])), otherwise = missing(attributes, values.dtype);
  return [labelTensor(values.dtype, x.dims, elementsOf(x).map((v) => map.get(v) ?? otherwise))];
};

export const CategoryMapper: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), strings = stringsOf(attributes, "cats_strings") ?? [], integers = (numbersOf(attributes, "cats_int64s") ?? []).map(BigInt);
  if (x.dtype === "string") {
    const map = new Map(strings.map((s, i) => [s, integers[i] ?? 0n])), otherwise = BigInt(numberOf(attributes, "default_int64"));
    return [fromBigInts("int64", x.dims, (x.data as readonly string[]).map((s) => map.get(s) ?? otherwise))];
  }
  const map = new Map(integers.map((v, i) => [v, strings[i] ?? ""])), otherwise = stringOf(attributes, "default_string");
  return [tensor("string", x.dims, toBigInts(x).map((v) => map.get(v) ?? otherwise))];
};
