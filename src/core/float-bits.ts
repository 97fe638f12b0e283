/** Floats that are stored as their bits: value ↔ bits for each dtype, rounding to nearest even without saturating. */
import type { DType } from "./dtype.ts";
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from "./float16.ts";
import { floatFormats, fromFloat8e8m0, fromSmallFloat, toFloat8e8m0, toSmallFloat } from "./small-floats.ts";

/** Bits → value; undefined where the storage holds numbers. */
export function decoderOf(dtype: DType): ((bits: number) => number) | undefined {
  if (dtype === "float16") return fromFloat16;
  if (dtype === "bfloat16") return fromBfloat16;
  if (dtype === "float8e8m0") return fromFloat8e8m0;
  const format = floatFormats[dtype];
  return format && ((bits) => fromSmallFloat(bits, format));
}

/** Value → bits; undefined where the storage holds numbers. */
export function encoderOf(dtype: DType): ((value: number) => number) | undefined {
  if (dtype === "float16") return toFloat16;
  if (dtype === "bfloat16") return toBfloat16;
  if (dtype === "float8e8m0") return (value) => toFloat8e8m0(value);
  const format = floatFormats[dtype];
  return format && ((value) => toSmallFloat(value, format));
}
