/**
 * Cast and CastLike. Float to integer truncates toward zero and saturates at the type's range (ONNX leaves it open; for
 * integers of fewer than 8 bits it wraps, as in the standard's tests), NaN gives 0; integer to integer wraps; to bool is
 * `≠ 0`; to floats of 16 and fewer bits rounds at once, also inside a kernel. Strings are cast on the host.
 */
import { dimRange } from "../core/dim.ts";
import { bitsOf, dtypeFromOnnx, dtypes, integerRange, isFloat, isInteger, isStorageOnly, type DType } from "../core/dtype.ts";
import { floatFormats, largestOf } from "../core/small-floats.ts";
import { Cast as evaluateCast, CastLike as evaluateCastLike } from "../evaluate/cast.ts";
import { defineOp, optional, required, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { add, and, binary, bitcast, cast, computeScalar, i32, lift, lt, select, sub, unary, type Expr } from "../kernel/expr.ts";
import { decodeStored, encodeStored } from "../kernel/storage-types.ts";
import { elementsOf, equalDim, largestWhole, notDim, typeWith } from "./element-values.ts";
import { narrow } from "./element-wise.ts";

export const Cast = defineOp({
  type: "Cast", domain: "", since: 6, evaluate: evaluateCast,
  inputs: { input: "required" },
  attributes: { to: required("int"), saturate: optional("int"), round_mode: optional("string") },
  fusionKind: "elementwise",
  infer: ({ input }, { to }, context) => [castType(input, dtypeFromOnnx(to) ?? unsupported(context, to))],
  lowerable: ({ input }, { to, round_mode }) => canLower(input.dtype, dtypeFromOnnx(to), round_mode),
  lower: ({ input }, { to, saturate }) => [castElements(input, dtypeFromOnnx(to) ?? input.dtype, saturate !== 0)],
});
const unsupported = (context: InferContext, to: number): never => context.fail("OF3013", `element type ${to} is not supported`);

export const CastLike = defineOp({
  type: "CastLike", domain: "", since: 15, evaluate: evaluateCastLike,
  inputs: { input: "required", target_type: "required" },
  attributes: { saturate: optional("int"), round_mode: optional("string") },
  fusionKind: "elementwise",
  infer: ({ input, target_type }) => [castType(input, target_type.dtype)],
  lowerable: ({ input, target_type }, { round_mode }) => canLower(input.dtype, target_type.dtype, round_mode),
  lower: ({ input, target_type }, { saturate }) => [castElements(input, target_type.dtype, saturate !== 0)],
});

/** float64 to narrower types would round twice on its way through float32. */
const canLower = (from: DType, to: DType | undefined, rounding: string | undefined): boolean =>
  from !== "string" && to !== undefined && to !== "string" && !(from === "float64" && isFloat(to) && dtypes[to].size < 4)
  && !(to === "float8e8m0" && rounding !== undefined && rounding !== "up");

function castType(input: TypeInfo, to: DType): TypeInfo {
  const elements = elementsOf(input);
  if (to === "bool") return typeWith(to, input.shape, elements?.map((e) => (input.dtype === "bool" ? e : notDim(equalDim(e, 0)))));
  const [least, most] = rangeOf(to);
  const fits = elements?.every((e) => (typeof e === "number" ? e >= least && e <= most : most >= 2 ** 24 && (least < 0 || dimRange(e).lower >= 0)));
  return typeWith(to, input.shape, fits ? elements : undefined);
}
/** Values that stay themselves; sizes are taken to fit 24 bits. */
function rangeOf(dtype: DType): readonly [number, number] {
  return isInteger(dtype) ? integerRange(dtype) : [-largestWhole(dtype), largestWhole(dtype)];
}

const castElements = (x: Operand, to: DType, saturate: boolean) => (...indices: readonly Expr[]): Expr => castElement(x.at(...indices), x.dtype, to, saturate);

/** One element, from the scalar that `from` is computed in to that of `to`; `saturate` limits floats of 8 bits to their finite values. */
export function castElement(x: Expr, from: DType, to: DType, saturate = true): Expr {
  if (from === to) return x;
  if (to === "bool") return binary("ne", x, 0);
  if (to === "float16") return from === "bool" ? cast(x, "f32") : roundToHalf(cast(x, "f32"));
  if (to === "bfloat16") return from === "bool" ? cast(x, "f32") : roundToBrain(cast(x, "f32"));
  if (isFloat(to) && isStorageOnly(to)) return roundStored(cast(x, "f32"), to, saturate);
  if (isFloat(from) && byteSizeBelow4(to)) {
    const [low, high] = rangeOf(to);
    const whole = cast(x, "i32");
    return binary("min", binary("max", whole, low), high);
  }
  return narrow(cast(x, computeScalar(to)), to);
}
const byteSizeBelow4 = (dtype: DType): boolean => isInteger(dtype) && dtypes[dtype].size < 4 && bitsOf(dtype) >= 8;

/** The value that a float of 8 or fewer bits stores. */
function roundStored(x: Expr, to: DType, saturate: boolean): Expr {
  const format = floatFormats[to];
  const most = format ? largestOf(format) : 2 ** 127;
  const limited = format ? binary("min", binary("max", x, -most), most) : select(lt(unary("abs", x), Infinity), binary("min", unary("abs", x), most), x);
  return decodeStored(encodeStored(saturate ? limited : x, to), to);
}

/** The nearest float16 value, ties to even: normal ones by rounding the bits, small ones by adding and subtracting 1/2, whose last bit is worth 2⁻²⁴. */
function roundToHalf(x: Expr): Expr {
  const magnitude = unary("abs", x), bits = bitcast(magnitude, i32), sign = and(bitcast(x, i32), lift(-(2 ** 31)));
  const rounded = and(add(bits, add(and(binary("shr", bits, 13), 1), 0xfff)), ~0x1fff);
  const normal = select(binary("ge", magnitude, 65520), 0x7f800000, rounded);
  const small = bitcast(sub(add(magnitude, 0.5), 0.5), i32);
  const result = select(lt(magnitude, 2 ** -14), small, normal);
  return select(unary("isnan", x), x, bitcast(binary("or", result, sign), x.type));
}
/** The nearest bfloat16 value, ties to even. */
function roundToBrain(x: Expr): Expr {
  const bits = bitcast(x, i32);
  const rounded = and(add(bits, add(and(binary("shr", bits, 16), 1), 0x7fff)), ~0xffff);
  return select(unary("isnan", x), x, bitcast(rounded, x.type));
}
