/** How far two tensors are apart, by the measures of msit: cosine, relative Euclidean and largest difference. */
import { isFloat } from "../core/dtype.ts";
import { toNumbers, type Tensor } from "../core/tensor.ts";

export interface Difference {
  /** Cosine of the angle between them: 1 for equal, and for two tensors of zeros. */
  readonly cosine: number;
  /** ‖a − b‖ / ‖b‖; 0 for two tensors of zeros. */
  readonly relativeEuclidean: number;
  readonly maxAbsolute: number;
  /** `maxAbsolute` as a share of the largest magnitude of the second. */
  readonly maxScaled: number;
  /** Elements that differ in bits, for integers, bools and strings. */
  readonly unequal: number;
  /** Elements where only one is NaN, or an infinity is met by something else. */
  readonly nonFinite: number;
}

/** Differences of `a` from `b`; undefined where dtype or dims differ. */
export function differenceOf(a: Tensor, b: Tensor): Difference | undefined {
  if (a.dtype !== b.dtype || a.dims.length !== b.dims.length || a.dims.some((d, i) => d !== b.dims[i])) return undefined;
  if (a.dtype === "string") {
    const unequal = (a.data as readonly string[]).filter((s, i) => s !== b.data[i]).length;
    return { cosine: unequal ? 0 : 1, relativeEuclidean: unequal ? 1 : 0, maxAbsolute: unequal ? Infinity : 0, maxScaled: unequal ? Infinity : 0, unequal, nonFinite: 0 };
  }
  const x = toNumbers(a), y = toNumbers(b);
  let dot = 0, xx = 0, yy = 0, dd = 0, most = 0, largest = 0, unequal = 0, nonFinite = 0;
  for (let i = 0; i < y.length; i++) {
    const p = x[i] ?? 0, q = y[i] ?? 0;
    if (a.data[i] !== b.data[i] && !(Number.isNaN(p) && Number.isNaN(q))) unequal++;
    if (!Number.isFinite(p) || !Number.isFinite(q)) {
      if (!Object.is(p, q)) nonFinite++;
      continue;
    }
    dot += p * q; xx += p * p; yy += q * q; dd += (p - q) ** 2;
    most = Math.max(most, Math.abs(p - q));
    largest = Math.max(largest, Math.abs(q));
  }
  return {
    cosine: xx === 0 && yy === 0 ? 1 : xx === 0 || yy === 0 ? 0 : dot / Math.sqrt(xx * yy),
    relativeEuclidean: dd === 0 ? 0 : Math.sqrt(dd / yy),
    maxAbsolute: most, maxScaled: most === 0 ? 0 : most / largest,
    unequal: isFloat(a.dtype) ? 0 : unequal, nonFinite,
  };
}

/** Whether a difference stays within `tolerance` of the largest element; integers must be equal. */
export const isWithin = (d: Difference, tolerance: number): boolean => d.maxScaled <= tolerance && d.unequal === 0 && d.nonFinite === 0;
