/**
 * Evaluation of Cast. Float to integer truncates toward zero and saturates at the type's range (at 32 bits, then wraps,
 * for integers of fewer than 8), NaN gives 0; integer to integer wraps; to bool is `≠ 0`; to a float rounds once, to floats of 8 bits saturating unless told not to. Strings are written as JavaScript writes numbers, NaN and
 * infinities as NaN, INF and -INF.
 */
import { invariant } from "../core/assert.ts";
import { dtypeFromOnnx, dtypes, isFloat, is64, bitsOf, type DType } from "../core/dtype.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { floatFormats, largestOf, toFloat8e8m0, type PowerRounding } from "../core/small-floats.ts";
import { fromBigInts, fromNumbers, numericData, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { input, wrapped } from "./map-elements.ts";
import { numberOf, stringOf } from "./read-attribute.ts";

export const Cast: Evaluate = (inputs, attributes) => {
  const to = dtypeFromOnnx(numberOf(attributes, "to"));
  invariant(to !== undefined, "Cast has a supported type");
  return [castTensor(input(inputs, 0), to, narrowing(attributes))];
};
export const CastLike: Evaluate = (inputs, attributes) => [castTensor(input(inputs, 0), input(inputs, 1).dtype, narrowing(attributes))];

/** How floats of 8 bits are made. */
interface Narrowing { readonly saturate: boolean; readonly rounding: PowerRounding }
const usual: Narrowing = { saturate: true, rounding: "up" };
function narrowing(attributes: EvaluateAttributes): Narrowing {
  const mode = stringOf(attributes, "round_mode", "up");
  return { saturate: numberOf(attributes, "saturate", 1) !== 0, rounding: mode === "down" || mode === "nearest" ? mode : "up" };
}

export function castTensor(t: Tensor, to: DType, how: Narrowing = usual): Tensor {
  if (t.dtype === to) return t;
  if (t.dtype === "string") return fromStrings(t, to, how);
  if (to === "string") return { dtype: to, dims: t.dims, data: textsOf(t) };
  if (floatFormats[to] || to === "float8e8m0") return narrowed(to, t.dims, toNumbers(t), how);
  if (isFloat(to)) return is64(t.dtype) ? fromNumbers(to, t.dims, toBigInts(t).map(to === "float64" ? Number : sticky)) : fromNumbers(to, t.dims, toNumbers(t));
  if (!isFloat(t.dtype)) return wrapped(to, t.dims, toBigInts(t));
  return saturated(to, t.dims, toNumbers(t));
}

/** Numbers as floats of 8 or fewer bits. */
function narrowed(to: DType, dims: readonly number[], values: ArrayLike<number>, { saturate, rounding }: Narrowing): Tensor {
  const format = floatFormats[to];
  if (!format) return { dtype: to, dims, data: Uint8Array.from(values, (v) => toFloat8e8m0(saturate && Number.isFinite(v) ? Math.min(Math.abs(v), 2 ** 127) : v, rounding)) };
  const most = largestOf(format);
  return fromNumbers(to, dims, saturate ? Array.from(values, (v) => Math.min(most, Math.max(-most, v))) : values);
}

/** Floats to integers or bools. */
function saturated(to: DType, dims: readonly number[], values: ArrayLike<number>): Tensor {
  if (to === "bool") return fromNumbers(to, dims, values);
  const small = bitsOf(to) < 8, bits = small ? 32n : BigInt(bitsOf(to));
  const [low, high] = dtypes[to].kind === "uint" && !small ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n];
  const integers = Array.from(values, (v) => {
    if (Number.isNaN(v)) return 0n;
    if (!Number.isFinite(v)) return v < 0 ? low : high;
    const whole = BigInt(Math.trunc(v));
    return whole < low ? low : whole > high ? high : whole;
  });
  return is64(to) ? fromBigInts(to, dims, integers) : fromNumbers(to, dims, integers.map(Number));
}

/** A float64 that rounds to narrower floats as the integer itself does: its low bits past 2^53 joined into one. */
function sticky(v: bigint): number {
  const magnitude = v < 0n ? -v : v;
  if (magnitude < 2n ** 53n) return Number(v);
  const top = (magnitude >> 24n) | (magnitude & 0xffffffn ? 1n : 0n);
  return (v < 0n ? -1 : 1) * Number(top) * 2 ** 24;
}

function textsOf(t: Tensor): string[] {
  if (t.dtype === "bool") return Array.from(toNumbers(t), (x) => (x ? "1" : "0"));
  if (is64(t.dtype)) return Array.from(numericData(t), String);
  return Array.from(toNumbers(t), (x) => (Number.isNaN(x) ? "NaN" : x === Infinity ? "INF" : x === -Infinity ? "-INF" : t.dtype === "float32" ? shortest(x) : String(x)));
}
/** The shortest decimal that reads back as the same float32. */
function shortest(x: number): string {
  for (let digits = 1; digits <= 9; digits++) {
    const text = String(Number(x.toPrecision(digits)));
    if (Math.fround(Number(text)) === x) return text;
  }
  return String(x);
}

function fromStrings(t: Tensor, to: DType, how: Narrowing): Tensor {
  const texts = t.data as readonly string[];
  if (is64(to)) return wrapped(to, t.dims, texts.map((s) => (/^\s*[+-]?\d+\s*$/.test(s) ? BigInt(s) : BigInt(Math.trunc(parse(s))))));
  const values = texts.map(parse);
  if (floatFormats[to] || to === "float8e8m0") return narrowed(to, t.dims, values, how);
  return isFloat(to) ? fromNumbers(to, t.dims, values) : saturated(to, t.dims, values);
}
function parse(text: string): number {
  const s = text.trim().toLowerCase();
  const infinite = /^([+-]?)inf(inity)?$/.exec(s);
  if (infinite) return infinite[1] === "-" ? -Infinity : Infinity;
  return s === "nan" || s === "+nan" || s === "-nan" ? NaN : Number(s);
}
