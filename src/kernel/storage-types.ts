/**
 * Dtypes that kernels store but do not compute with, as they lie in memory: conversions between the stored bits and the
 * values by integer arithmetic, the same for scalars and vectors, rounding to nearest even with NaN made canonical
 * (core/float-bits.ts gives the same bits).
 */
import { bitsOf, dtypes, type DType } from "../core/dtype.ts";
import { floatFormats, type FloatFormat } from "../core/small-floats.ts";
import { binary, bitcast, constant, select, shift, type Expr, type Type } from "./expr.ts";

/** The dtype that an element's bits are read and written as; undefined where kernels access the dtype itself. */
export function storedAs(dtype: DType): "uint16" | "uint8" | "int8" | undefined {
  if (dtype === "float16" || dtype === "bfloat16") return "uint16";
  if (bitsOf(dtype) < 8 && dtype !== "string") return dtypes[dtype].kind === "int" ? "int8" : "uint8";
  return floatFormats[dtype] || dtype === "float8e8m0" ? "uint8" : undefined;
}

/** The value of stored bits (an i32): f32 for floats, the integer itself for integers. */
export function decodeStored(bits: Expr, dtype: DType): Expr {
  const format = floatFormats[dtype];
  if (format) return decodeSmallFloat(bits, format);
  switch (dtype) {
    case "float16": return decodeFloat16(bits);
    case "bfloat16": return decodeBfloat16(bits);
    case "float8e8m0": return decodePower(bits);
    default: return bits;
  }
}

/** The bits to store for a value; integers are wrapped to their width. */
export function encodeStored(value: Expr, dtype: DType): Expr {
  const format = floatFormats[dtype];
  if (format) return encodeSmallFloat(value, format);
  switch (dtype) {
    case "float16": return encodeFloat16(value);
    case "bfloat16": return encodeBfloat16(value);
    case "float8e8m0": return encodePower(value);
    default: return wrapInteger(value, dtype);
  }
}

/** An i32 wrapped to an integer dtype of fewer bits. */
export function wrapInteger(x: Expr, dtype: DType): Expr {
  const bits = bitsOf(dtype);
  return dtypes[dtype].kind === "int" ? shift("shr", shift("shl", x, 32 - bits), 32 - bits) : op("and", x, 2 ** bits - 1);
}

const shaped = (scalar: "f32" | "i32", like: Type): Type => ({ scalar, lanes: like.lanes });
const op = (name: "and" | "or" | "shl" | "shr" | "add" | "sub", a: Expr, b: number): Expr => (name === "shl" || name === "shr" ? shift(name, a, b) : binary(name, a, constant(b, a.type)));

/** float32 from the 16 bits of a float16 held in an i32. */
function decodeFloat16(bits: Expr): Expr {
  const float = shaped("f32", bits.type), word = shaped("i32", bits.type);
  const magnitude = op("and", bits, 0x7fff);
  const shifted = op("shl", magnitude, 13);
  const finite = bitcast(binary("mul", bitcast(shifted, float), constant(2 ** 112, float)), word);
  const special = op("or", shifted, 0x7f800000);
  const unsigned = select(binary("ge", magnitude, constant(0x7c00, word)), special, finite);
  return bitcast(binary("or", unsigned, op("shl", op("and", bits, 0x8000), 16)), float);
}

/** The 16 bits of a float16, in an i32. */
function encodeFloat16(value: Expr): Expr {
  const float = value.type, word = shaped("i32", float);
  const bits = bitcast(value, word);
  const magnitude = op("and", bits, 0x7fffffff);
  const at = (threshold: number): Expr => binary("ge", magnitude, constant(threshold, word));
  const odd = op("and", op("shr", magnitude, 13), 1);
  const normal = op("shr", binary("add", op("add", magnitude, 0xfff - 0x38000000), odd), 13);
  // Adding 0.5 leaves units of 2⁻²⁴, float16's smallest: the addition rounds.
  const subnormal = op("sub", bitcast(binary("add", bitcast(magnitude, float), constant(0.5, float)), word), 0x3f000000);
  const rounded = select(at(0x477ff000), constant(0x7c00, word), select(at(0x38800000), normal, subnormal));
  const signed = binary("or", rounded, op("and", op("shr", bits, 16), 0x8000));
  return select(binary("gt", magnitude, constant(0x7f800000, word)), constant(0x7e00, word), signed);
}

/** float32 from the 16 bits of a bfloat16 held in an i32. */
const decodeBfloat16 = (bits: Expr): Expr => bitcast(op("shl", bits, 16), shaped("f32", bits.type));

/** The 16 bits of a bfloat16, in an i32. */
function encodeBfloat16(value: Expr): Expr {
  const word = shaped("i32", value.type);
  const bits = bitcast(value, word);
  const rounded = op("and", op("shr", binary("add", op("add", bits, 0x7fff), op("and", op("shr", bits, 16), 1)), 16), 0xffff);
  return select(binary("gt", op("and", bits, 0x7fffffff), constant(0x7f800000, word)), constant(0x7fc0, word), rounded);
}

const canonicalNaN = 0x7fc00000;

/** float32 from the bits of a float of a small format. Multiplying by a power of two moves the exponent, also of denormals. */
function decodeSmallFloat(bits: Expr, format: FloatFormat): Expr {
  const { mantissa, bias, sign, most, nan, infinity, unsigned } = format;
  const float = shaped("f32", bits.type), word = shaped("i32", bits.type), drop = 23 - mantissa;
  const is = (x: Expr, at: number): Expr => binary("eq", x, constant(at, word));
  const magnitude = op("and", bits, sign - 1);
  const shifted = op("shl", magnitude, drop);
  const finite = bitcast(binary("mul", bitcast(shifted, float), constant(2 ** (127 - bias), float)), word);
  const negative = op("shl", op("and", bits, sign), 31 - Math.log2(sign));
  if (unsigned && nan !== undefined) return bitcast(select(is(bits, nan), constant(canonicalNaN, word), binary("or", finite, negative)), float);
  const special = infinity === undefined ? constant(canonicalNaN, word) : op("or", shifted, 0x7f800000);
  const value = nan === undefined ? finite : select(binary("gt", magnitude, constant(most, word)), special, finite);
  return bitcast(binary("or", value, negative), float);
}

/** The bits of a float of a small format; encodeFloat16 says how it rounds. */
function encodeSmallFloat(value: Expr, format: FloatFormat): Expr {
  const { mantissa, bias, sign, most, nan, infinity, unsigned } = format;
  const float = value.type, word = shaped("i32", float), drop = 23 - mantissa, number = (x: number): Expr => constant(x, word);
  const bits = bitcast(value, word), magnitude = op("and", bits, 0x7fffffff);
  const odd = op("and", op("shr", magnitude, drop), 1);
  const normal = op("shr", binary("add", op("add", magnitude, 2 ** (drop - 1) - 1 - (127 - bias) * 2 ** 23), odd), drop);
  const unit = 24 - bias - mantissa;
  const subnormal = op("sub", bitcast(binary("add", bitcast(magnitude, float), constant(2 ** unit, float)), word), (unit + 127) * 2 ** 23);
  const rounded = select(binary("ge", magnitude, number((128 - bias) * 2 ** 23)), normal, subnormal);
  const negative = op("and", op("shr", bits, 31 - Math.log2(sign)), sign);
  const isOver = binary("gt", rounded, number(most)), isNaN = binary("gt", magnitude, number(0x7f800000));
  if (unsigned) {
    const signed = select(binary("eq", rounded, number(0)), number(0), binary("or", rounded, negative));
    return select(isOver, number(nan ?? most), signed);
  }
  return select(isNaN, number(nan ?? sign), binary("or", select(isOver, number(infinity ?? nan ?? most), rounded), negative));
}

/** float32 from a float8e8m0: a power of two, the smallest of which is denormal. */
function decodePower(bits: Expr): Expr {
  const word = shaped("i32", bits.type), is = (at: number): Expr => binary("eq", bits, constant(at, word));
  const power = select(is(0), constant(0x400000, word), op("shl", bits, 23));
  return bitcast(select(is(255), constant(canonicalNaN, word), power), shaped("f32", bits.type));
}

/** The bits of the magnitude's float8e8m0, rounded up; NaN where it is beyond the largest. */
function encodePower(value: Expr): Expr {
  const word = shaped("i32", value.type), magnitude = op("and", bitcast(value, word), 0x7fffffff);
  const up = op("shr", op("add", magnitude, 0x7fffff), 23);
  const isNaN = binary("ge", magnitude, constant(0x7f800000, word));
  return select(isNaN, constant(255, word), select(binary("le", magnitude, constant(0x400000, word)), constant(0, word), up));
}
