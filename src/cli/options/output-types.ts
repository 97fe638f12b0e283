/** `--output_type=FP16`, or `node:0:FP16;y:UINT8`: element types that outputs are cast to. */
import { fail } from "../../core/diagnostic.ts";
import type { DType } from "../../core/dtype.ts";

const types: Readonly<Record<string, DType>> = {
  FP32: "float32", FP16: "float16", BF16: "bfloat16", DOUBLE: "float64", INT8: "int8", UINT8: "uint8", INT16: "int16", UINT16: "uint16",
  INT32: "int32", UINT32: "uint32", INT64: "int64", UINT64: "uint64", BOOL: "bool",
};

/** One type for all outputs, or one by output. Fails with OF1015. */
export function parseOutputTypes(text: string): DType | Readonly<Record<string, DType>> {
  const typeOf = (name: string): DType => (Object.hasOwn(types, name) ? types[name] : undefined) ?? fail("OF1015", `'${name}' is not a type of outputs`, { place: { field: "output_type" }, hint: `use one of ${Object.keys(types).join(", ")}` });
  if (!text.includes(":")) return typeOf(text);
  return Object.fromEntries(text.split(";").filter((p) => p !== "").map((part) => {
    const colon = part.lastIndexOf(":");
    return [part.slice(0, colon), typeOf(part.slice(colon + 1))];
  }));
}
