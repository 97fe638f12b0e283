/** Operators of ai.onnx.ml that make maps, and tensors of maps. */
import { invariant, present } from "../core/assert.ts";
import { asTensor, isMap, type Datum, type DatumMap } from "../core/datum.ts";
import { fail } from "../core/diagnostic.ts";
import { is64, type DType } from "../core/dtype.ts";
import type { EvaluateAttributes, EvaluateData } from "../core/evaluate.ts";
import { fromBigInts, fromNumbers, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import { numberOf, numbersOf, stringOf, stringsOf } from "./read-attribute.ts";
import { at } from "./window.ts";

const hint = { hint: "check the values that are fed" };

function keysOf(attributes: EvaluateAttributes, strings: string, integers: string): readonly (string | bigint)[] {
  const texts = stringsOf(attributes, strings);
  return texts?.length ? texts : (numbersOf(attributes, integers) ?? []).map(BigInt);
}
function mapIn(inputs: readonly (Datum | undefined)[]): DatumMap {
  const map = inputs[0] ?? null;
  invariant(isMap(map), "the input is a map");
  return map;
}
function row(dtype: DType, values: readonly (string | number | bigint)[]): Tensor {
  const dims = [1, values.length];
  if (dtype === "string") return tensor(dtype, dims, values.map(String));
  return is64(dtype) ? fromBigInts(dtype, dims, values.map(BigInt)) : fromNumbers(dtype, dims, values.map(Number));
}

export const ZipMap: EvaluateData = (inputs, attributes) => {
  const X = asTensor(inputs[0] ?? null, "X"), keys = keysOf(attributes, "classlabels_strings", "classlabels_int64s"), values = toNumbers(X);
  const width = at(X.dims, X.dims.length - 1), rows = X.dims.length > 1 ? at(X.dims, 0) : 1;
  if (width !== keys.length) fail("OF7014", `ZipMap has ${keys.length} labels for ${width} columns`, hint);
  return [Array.from({ length: rows }, (_, r) => new Map(keys.map((key, c) => [key, values[r * width + c] ?? 0])))];
};

/** Entries that are not there are 0, or empty texts. */
export const DictVectorizer: EvaluateData = (inputs, attributes, { outputDTypes }) => {
  const map = mapIn(inputs), dtype = present(outputDTypes?.[0], "the type of the result");
  return [row(dtype, keysOf(attributes, "string_vocabulary", "int64_vocabulary").map((key) => map.get(key) ?? (dtype === "string" ? "" : 0)))];
};

/** One entry as another type: numbers as texts have six decimals. */
function cast(value: string | number | bigint, to: string): string | number | bigint {
  if (to === "TO_STRING") return typeof value === "number" ? value.toFixed(6) : String(value);
  const number = typeof value === "string" ? (value.trim() === "" ? NaN : Number(value)) : Number(value);
  if (Number.isNaN(number) && typeof value === "string" && !/^[+-]?nan$/i.test(value.trim())) fail("OF7014", `'${value}' is no number`, hint);
  if (to === "TO_FLOAT") return number;
  return Number.isFinite(number) ? BigInt(Math.trunc(number)) : fail("OF7014", `${number} is no integer`, hint);
}
const targets: Readonly<Record<string, DType>> = { TO_FLOAT: "float32", TO_INT64: "int64", TO_STRING: "string" };

export const CastMap: EvaluateData = (inputs, attributes) => {
  const to = stringOf(attributes, "cast_to"), sparse = stringOf(attributes, "map_form") === "SPARSE", map = mapIn(inputs);
  const entries = [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  if (sparse && entries.some(([key]) => typeof key === "bigint" && key < 0n)) fail("OF7014", "a sparse map has a negative key", hint);
  const absent = to === "TO_STRING" ? "0.f" : 0;
  const values = sparse
    ? Array.from({ length: numberOf(attributes, "max_map") }, (_, i) => { const v = map.get(BigInt(i)); return v === undefined ? absent : cast(v, to); })
    : entries.map(([, v]) => cast(v, to));
  return [row(targets[to] ?? "float32", values)];
};
