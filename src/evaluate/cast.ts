/**
 * Evaluation of Cast. Float to integer truncates toward zero and saturates at the type's range, NaN gives 0; integer to
 * integer wraps; to bool is `≠ 0`; to a float rounds once. Strings are written as JavaScript writes numbers, NaN and
 * infinities as NaN, INF and -INF.
 */
import { invariant } from "../core/assert.ts";
import { dtypeFromOnnx, dtypes, isFloat, is64, type DType } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromBigInts, fromNumbers, numericData, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { input, wrapped } from "./map-elements.ts";
import { numberOf } from "./read-attribute.ts";

export const Cast: Evaluate = (inputs, attributes) => {
  const to = dtypeFromOnnx(numberOf(attributes, "to"));
  invariant(to !== undefined, "Cast has a supported type");
  return [castTensor(input(inputs, 0), to)];
};
export const CastLike: Evaluate = (inputs) => [castTensor(input(inputs, 0), input(inputs, 1).dtype)];

export function castTensor(t: Tensor, to: DType): Tensor {
  if (t.dtype === to) return t;
  if (t.dtype === "string") return fromStrings(t, to);
  if (to === "string") return { dtype: to, dims: t.dims, data: textsOf(t) };
  if (isFloat(to)) return is64(t.dtype) ? fromNumbers(to, t.dims, toBigInts(t).map(to === "float64" ? Number : sticky)) : fromNumbers(to, t.dims, toNumbers(t));
  if (!isFloat(t.dtype)) return wrapped(to, t.dims, toBigInts(t));
  return saturated(to, t.dims, toNumbers(t));
}

/** Floats to integers or bools. */
function saturated(to: DType, dims: readonly number[], values: ArrayLike<number>): Tensor {
  if (to === "bool") return fromNumbers(to, dims, values);
  const bits = BigInt(8 * dtypes[to].size);
  const [low, high] = dtypes[to].kind === "uint" ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n];
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

function fromStrings(t: Tensor, to: DType): Tensor {
  const texts = t.data as readonly string[];
  if (is64(to)) return wrapped(to, t.dims, texts.map((s) => (/^\s*[+-]?\d+\s*$/.test(s) ? BigInt(s) : BigInt(Math.trunc(parse(s))))));
  const values = texts.map(parse);
  return isFloat(to) ? fromNumbers(to, t.dims, values) : saturated(to, t.dims, values);
}
function parse(text: string): number {
  const s = text.trim().toLowerCase();
  const infinite = /^([+-]?)inf(inity)?$/.exec(s);
  if (infinite) return infinite[1] === "-" ? -Infinity : Infinity;
  return s === "nan" || s === "+nan" || s === "-nan" ? NaN : Number(s);
}
