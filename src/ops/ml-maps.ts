/** Operators of ai.onnx.ml that make maps, and tensors of maps. They run on the host. */
import { formatContainer, type Container } from "../core/container.ts";
import { formatShape, isSymbolic } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { containerType } from "../graph/container-type.ts";
import { defineOp, int, optional, string, type InferContext, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/ai-onnx-ml-maps.ts";
import { mlDomain } from "./ml-features.ts";

/** Exactly one of the two lists of keys. */
function keysOf(name: string, strings: readonly string[] | undefined, integers: readonly number[] | undefined, context: InferContext): { readonly key: DType; readonly count: number } {
  const texts = strings?.length ?? 0, numbers = integers?.length ?? 0;
  if ((texts > 0) === (numbers > 0)) context.fail("OF3012", `needs strings or integers as ${name}, and not both`);
  return texts ? { key: "string", count: texts } : { key: "int64", count: numbers };
}
function mapIn({ container, dtype }: TypeInfo, context: InferContext): Extract<Container, { kind: "map" }> {
  return container?.kind === "map" ? container : context.fail("OF3018", `needs a map, got ${container ? `a ${formatContainer(container)}` : `a ${dtype} tensor`}`);
}

export const ZipMap = defineOp({
  ...mlDomain, type: "ZipMap", since: 1, inputs: { X: "required" }, attributes: { classlabels_int64s: optional("ints"), classlabels_strings: optional("strings") },
  infer({ X }, { classlabels_int64s, classlabels_strings }, context) {
    const { key, count } = keysOf("labels", classlabels_strings, classlabels_int64s, context), width = X.shape[X.shape.length - 1];
    if (X.dtype !== "float32") context.fail("OF3013", `input 'X' is ${X.dtype}, must be float32`);
    if (width === undefined || X.shape.length > 2) return context.fail("OF3010", `needs [C] or [N, C], got ${formatShape(X.shape)}`);
    if (!isSymbolic(width) && width !== count) context.fail("OF3011", `${count} labels do not fit ${formatShape(X.shape)}`);
    return [containerType({ kind: "sequence", item: { dtype: "float32", container: { kind: "map", key, item: { dtype: "float32", shape: [] } } }, length: X.shape.length > 1 ? X.shape[0] ?? 1 : 1 })];
  },
  evaluateData: evaluate.ZipMap,
});

export const DictVectorizer = defineOp({
  ...mlDomain, type: "DictVectorizer", since: 1, containers: true, inputs: { X: "required" }, attributes: { int64_vocabulary: optional("ints"), string_vocabulary: optional("strings") },
  infer({ X }, { int64_vocabulary, string_vocabulary }, context) {
    const map = mapIn(X, context), { key, count } = keysOf("vocabulary", string_vocabulary, int64_vocabulary, context);
    if (map.key !== key) context.fail("OF3013", `the map's keys are ${map.key}, the vocabulary is ${key}`);
    return [{ dtype: map.item.dtype, shape: [1, count] }];
  },
  evaluateData: evaluate.DictVectorizer,
});

const casts: Readonly<Record<string, DType>> = { TO_FLOAT: "float32", TO_INT64: "int64", TO_STRING: "string" };
const forms: readonly string[] = ["DENSE", "SPARSE"];

export const CastMap = defineOp({
  ...mlDomain, type: "CastMap", since: 1, containers: true, inputs: { X: "required" }, attributes: { cast_to: string("TO_FLOAT"), map_form: string("DENSE"), max_map: int(1) },
  infer({ X }, { cast_to, map_form, max_map }, context) {
    const { key } = mapIn(X, context), dtype = Object.hasOwn(casts, cast_to) ? casts[cast_to] : undefined;
    if (key !== "int64") context.fail("OF3013", `the map's keys are ${key}, must be int64`);
    if (!forms.includes(map_form)) context.fail("OF3012", `unknown map_form '${map_form}'`, `it is one of ${forms.join(", ")}`);
    if (map_form === "SPARSE" && max_map < 1) context.fail("OF3012", `max_map is ${max_map}`);
    return [{ dtype: dtype ?? context.fail("OF3012", `unknown cast_to '${cast_to}'`, `it is one of ${Object.keys(casts).join(", ")}`), shape: [1, map_form === "SPARSE" ? max_map : context.fresh("entries")] }];
  },
  evaluateData: evaluate.CastMap,
});
