/** Shapes and elements that break things: empty and single axes, primes; NaN, infinities, both zeros, denormals, extreme integers. */
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromBigInts, fromNumbers, sizeOf, type Tensor } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";

/** tame: short fractions, whose sums are exact. special: small integers, NaN and infinities. extreme: denormals and the largest as well. */
export type Mode = "tame" | "special" | "extreme";
export const anyMode = (draw: Draw): Mode => draw.pick(["tame", "special", "extreme"]);
export const steadyMode = (draw: Draw): Mode => draw.pick(["tame", "tame", "special"]);

export const floats: readonly DType[] = ["float32", "float64", "float16"];
export const integers: readonly DType[] = ["int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"];
export const numbers: readonly DType[] = [...floats, "float32", "float32", ...integers];
export const all: readonly DType[] = [...numbers, "bool"];

/** Up to 6 axes, of at most 256 elements together. */
export function dims(draw: Draw, least = 0, most = 6): number[] {
  const rank = least + draw.int(most - least + 1), out: number[] = [];
  for (let left = 256, i = 0; i < rank; i++) {
    const size = draw.once(24) ? 0 : Math.min(draw.pick([2, 1, 3, 4, 5, 7, 8, 17]), Math.max(1, left));
    out.push(size);
    left = Math.floor(left / Math.max(1, size));
  }
  return out;
}
/** Sizes that are not 0. */
export const fullDims = (draw: Draw, least = 0, most = 6): number[] => dims(draw, least, most).map((d) => Math.max(1, d));

/** A shape that broadcasts to `to`. */
export const broadcastable = (draw: Draw, to: readonly number[]): number[] => to.slice(draw.int(to.length + 1)).map((d) => (draw.once(3) ? 1 : d));

const specialFloats = [NaN, Infinity, -Infinity, -0, 0, 1, -1];
const extremes: Readonly<Record<string, readonly number[]>> = {
  float32: [3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45, -1.1754942e-38, 1.17549435e-38, 16777216, 0.1, -2.5, 88.8, -104],
  float64: [Number.MAX_VALUE, -Number.MAX_VALUE, Number.MIN_VALUE, -2.2250738585072e-308, 1e-300, 2 ** 53, 0.1, -2.5, 709.9, -746],
  float16: [65504, -65504, 5.960464477539063e-8, 6.1035e-5, 2048, 0.1, -2.5, 11.1],
};

function element(draw: Draw, dtype: DType, mode: Mode): number | bigint {
  if (dtype === "bool") return draw.int(2);
  if (!isFloat(dtype)) return integer(draw, dtype, mode);
  if (mode !== "tame" && draw.once(4)) return draw.pick(specialFloats);
  if (mode === "extreme" && draw.once(2)) return draw.pick(extremes[dtype] ?? [1]);
  return mode === "special" ? draw.int(9) - 4 : (draw.int(65) - 32) / 4;
}
function integer(draw: Draw, dtype: DType, mode: Mode): bigint {
  const { size, kind } = dtypes[dtype], bits = BigInt(8 * size), signed = kind === "int";
  const least = signed ? -(1n << (bits - 1n)) : 0n, most = signed ? (1n << (bits - 1n)) - 1n : (1n << bits) - 1n;
  if (mode === "extreme" && draw.once(2)) return draw.pick([least, most, least + 1n, most - 1n, 0n]);
  return BigInt(draw.int(9)) - (signed ? 4n : 0n);
}

export function tensor(draw: Draw, dtype: DType, shape: readonly number[], mode: Mode): Tensor {
  const values = Array.from({ length: sizeOf(shape) }, () => element(draw, dtype, mode));
  return isFloat(dtype) || dtype === "bool" ? fromNumbers(dtype, shape, values.map(Number)) : fromBigInts(dtype, shape, values.map((v) => BigInt(v)));
}
/** Whole numbers from `least` to below `below`. */
export const within = (draw: Draw, dtype: DType, shape: readonly number[], least: number, below: number): Tensor =>
  fromNumbers(dtype, shape, Array.from({ length: sizeOf(shape) }, () => least + draw.int(Math.max(1, below - least))));
export const ints = (...values: readonly number[]): Tensor => fromNumbers("int64", [values.length], values);
