/**
 * float16 and bfloat16 as they lie in memory: conversions to and from float32 by integer arithmetic, the same for scalars
 * and vectors, rounding to nearest even with NaN made canonical (core/float16.ts gives the same bits).
 */
import { binary, bitcast, constant, select, type Expr, type Type } from "../kernel/expr.ts";
import { shift } from "./math-f32.ts";

const shaped = (scalar: "f32" | "i32", like: Type): Type => ({ scalar, lanes: like.lanes });
const op = (name: "and" | "or" | "shl" | "shr" | "add" | "sub", a: Expr, b: number): Expr => (name === "shl" || name === "shr" ? shift(name, a, b) : binary(name, a, constant(b, a.type)));

/** float32 from the 16 bits of a float16 held in an i32. */
export function decodeFloat16(bits: Expr): Expr {
  const float = shaped("f32", bits.type), word = shaped("i32", bits.type);
  const magnitude = op("and", bits, 0x7fff);
  const shifted = op("shl", magnitude, 13);
  const finite = bitcast(binary("mul", bitcast(shifted, float), constant(2 ** 112, float)), word);
  const special = op("or", shifted, 0x7f800000);
  const unsigned = select(binary("ge", magnitude, constant(0x7c00, word)), special, finite);
  return bitcast(binary("or", unsigned, op("shl", op("and", bits, 0x8000), 16)), float);
}

/** The 16 bits of a float16, in an i32. */
export function encodeFloat16(value: Expr): Expr {
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
export const decodeBfloat16 = (bits: Expr): Expr => bitcast(op("shl", bits, 16), shaped("f32", bits.type));

/** The 16 bits of a bfloat16, in an i32. */
export function encodeBfloat16(value: Expr): Expr {
  const word = shaped("i32", value.type);
  const bits = bitcast(value, word);
  const rounded = op("and", op("shr", binary("add", op("add", bits, 0x7fff), op("and", op("shr", bits, 16), 1)), 16), 0xffff);
  return select(binary("gt", op("and", bits, 0x7fffffff), constant(0x7f800000, word)), constant(0x7fc0, word), rounded);
}
