/**
 * Floats of 4 and 8 bits: values ↔ bits, rounding to nearest even. The formats are those of "FP8 Formats for Deep
 * Learning" (Micikevicius et al.), of the 8-bit floats without a negative zero, and of OCP's microscaling (MX) types.
 */
import type { DType } from "./dtype.ts";

/** Sign, exponent and `mantissa` fraction bits; magnitudes count up to `most`, the largest finite one. */
export interface FloatFormat {
  readonly mantissa: number;
  readonly bias: number;
  readonly sign: number;
  readonly most: number;
  /** Magnitude of an infinity, where there is one. */
  readonly infinity?: number;
  /** Magnitude of NaN; with `unsigned`, all of its bits. */
  readonly nan?: number;
  /** There is one zero, and the bits of a negative zero are NaN. */
  readonly unsigned?: true;
}

/** float8e8m0 is not among them: it has neither sign nor fraction. */
export const floatFormats: Partial<Readonly<Record<DType, FloatFormat>>> = {
  float8e4m3fn: { mantissa: 3, bias: 7, sign: 0x80, most: 0x7e, nan: 0x7f },
  float8e4m3fnuz: { mantissa: 3, bias: 8, sign: 0x80, most: 0x7f, nan: 0x80, unsigned: true },
  float8e5m2: { mantissa: 2, bias: 15, sign: 0x80, most: 0x7b, infinity: 0x7c, nan: 0x7e },
  float8e5m2fnuz: { mantissa: 2, bias: 16, sign: 0x80, most: 0x7f, nan: 0x80, unsigned: true },
  float4e2m1: { mantissa: 1, bias: 1, sign: 0x8, most: 0x7 },
};

/** Value of a magnitude: the bits without the sign. */
const magnitudeOf = (bits: number, { mantissa, bias }: FloatFormat): number => {
  const exponent = bits >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  return exponent === 0 ? fraction * 2 ** (1 - bias - mantissa) : (fraction + 2 ** mantissa) * 2 ** (exponent - bias - mantissa);
};

/** The largest finite value. */
export const largestOf = (format: FloatFormat): number => magnitudeOf(format.most, format);

/** Bits → value, exact. */
export function fromSmallFloat(bits: number, format: FloatFormat): number {
  const { sign, nan, infinity, unsigned } = format, magnitude = bits & (sign - 1);
  if (unsigned ? bits === nan : nan !== undefined && magnitude > (infinity ?? format.most)) return NaN;
  const value = magnitude === infinity ? Infinity : magnitudeOf(magnitude, format);
  return bits & sign ? -value : value;
}

/**
 * Value → bits. What rounds beyond the largest value becomes an infinity, NaN where there is none, and the largest value
 * where there is no NaN either. NaN without an encoding becomes negative zero.
 */
export function toSmallFloat(value: number, format: FloatFormat): number {
  const { mantissa, bias, sign, most, infinity, nan, unsigned } = format;
  if (Number.isNaN(value)) return nan ?? sign;
  const negative = value < 0 || Object.is(value, -0) ? sign : 0;
  const magnitude = Math.abs(value);
  const rounded = Number.isFinite(magnitude) ? roundedBits(magnitude, mantissa, bias) : most + 1;
  if (rounded > most) return unsigned ? nan ?? most : negative | (infinity ?? nan ?? most);
  return rounded === 0 && unsigned ? 0 : negative | rounded;
}

function roundedBits(magnitude: number, mantissa: number, bias: number): number {
  const near = Math.floor(Math.log2(magnitude));
  const floor = magnitude < 2 ** near ? near - 1 : magnitude >= 2 ** (near + 1) ? near + 1 : near;
  const exponent = Math.max(magnitude === 0 ? 1 - bias : floor, 1 - bias);
  const units = magnitude * 2 ** (mantissa - exponent), whole = Math.floor(units), rest = units - whole;
  const up = rest > 0.5 || (rest === 0.5 && whole % 2 === 1) ? 1 : 0;
  return whole + up + ((exponent + bias - 1) << mantissa);
}

export type PowerRounding = "up" | "down" | "nearest";

/** float8e8m0 bits → value: a power of two, or NaN. */
export const fromFloat8e8m0 = (bits: number): number => (bits === 255 ? NaN : 2 ** (bits - 127));

/**
 * Value → float8e8m0 bits: the magnitude's power of two, the next one where `rounding` says so (`nearest` by the distance,
 * halfway up). 0 and what is smaller than all give the smallest; NaN and infinities give NaN, as does what rounds beyond
 * the largest.
 */
export function toFloat8e8m0(value: number, rounding: PowerRounding = "up"): number {
  const magnitude = Math.abs(Math.fround(value));
  if (!Number.isFinite(magnitude)) return 255;
  if (magnitude <= 2 ** -127) return 0;
  const exponent = Math.floor(Math.log2(magnitude)), floor = magnitude < 2 ** exponent ? exponent - 1 : exponent;
  const part = magnitude / 2 ** floor;
  return floor + 127 + (rounding === "up" ? Number(part > 1) : rounding === "nearest" ? Number(part >= 1.5) : 0);
}
