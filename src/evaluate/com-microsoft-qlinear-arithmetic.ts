/** QLinearAdd and QLinearMul of the com.microsoft domain, with broadcasting. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { broadcastDims, broadcastSources } from "../core/strided.ts";
import { roundHalfEven, saturate } from "./quantization.ts";

const scalar = (t: Tensor | undefined, missing: number): number => (t ? (toNumbers(t)[0] ?? missing) : missing);

/** The exact result in units of the output's scale, from elements less their zero points. */
type Combine = (a: number, b: number, aScale: number, bScale: number, cScale: number) => number;

const arithmetic = (combine: Combine): Evaluate => ([A, aScale, aZero, B, bScale, bZero, cScale, cZero]) => {
  const a = present(A, "A"), b = present(B, "B"), dims = broadcastDims(a.dims, b.dims);
  const x = toNumbers(a), y = toNumbers(b), i = broadcastSources(a.dims, dims), j = broadcastSources(b.dims, dims);
  const [sa, sb, sc, za, zb, zc] = [scalar(aScale, 1), scalar(bScale, 1), scalar(cScale, 1), scalar(aZero, 0), scalar(bZero, 0), scalar(cZero, 0)];
  const out = Float64Array.from(i, (from, e) => {
    const units = combine((x[from] ?? 0) - za, (y[j[e] ?? 0] ?? 0) - zb, sa, sb, sc);
    return saturate(roundHalfEven(Math.fround(Math.fround(units) + zc)), a.dtype);
  });
  return [fromNumbers(a.dtype, dims, out)];
};

export const QLinearAdd: Evaluate = arithmetic((a, b, sa, sb, sc) => (sa * a + sb * b) / sc);
export const QLinearMul: Evaluate = arithmetic((a, b, sa, sb, sc) => (sa * a * sb * b) / sc);
