/** QLinearAdd and QLinearMul of the com.microsoft domain, with broadcasting. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { roundHalfEven, saturate } from "./quantization.ts";
import { at } from "./window.ts";

const scalar = (t: Tensor | undefined, missing: number): number => (t ? (toNumbers(t)[0] ?? missing) : missing);

/** The operation on float32 values, and its result in units of the output's scale. */
type Combine = (a: number, b: number, aScale: number, bScale: number, cScale: number) => number;

const arithmetic = (combine: Combine): Evaluate => ([A, aScale, aZero, B, bScale, bZero, cScale, cZero]) => {
  const a = present(A, "A"), b = present(B, "B"), rank = Math.max(a.dims.length, b.dims.length);
  const size = (dims: readonly number[], d: number): number => dims[d - rank + dims.length] ?? 1;
  const dims = Array.from({ length: rank }, (_, d) => (size(a.dims, d) === 1 ? size(b.dims, d) : size(a.dims, d)));
  const x = toNumbers(a), y = toNumbers(b);
  const [sa, sb, sc, za, zb, zc] = [scalar(aScale, 1), scalar(bScale, 1), scalar(cScale, 1), scalar(aZero, 0), scalar(bZero, 0), scalar(cZero, 0)];
  const out = Float64Array.from({ length: sizeOf(dims) }, (_, flat) => {
    let rest = flat, i = 0, j = 0, strideA = 1, strideB = 1;
    for (let d = rank - 1; d >= 0; d--) {
      const index = rest % at(dims, d);
      rest = Math.floor(rest / at(dims, d));
      if (size(a.dims, d) !== 1) i += index * strideA;
      if (size(b.dims, d) !== 1) j += index * strideB;
      strideA *= size(a.dims, d);
      strideB *= size(b.dims, d);
    }
    return saturate(roundHalfEven(combine((x[i] ?? 0) - za, (y[j] ?? 0) - zb, sa, sb, sc)) + zc, a.dtype);
  });
  return [fromNumbers(a.dtype, dims, out)];
};

const { fround } = Math;

export const QLinearAdd: Evaluate = arithmetic((a, b, sa, sb, sc) => fround(fround(fround(sa * a) + fround(sb * b)) / sc));
export const QLinearMul: Evaluate = arithmetic((a, b, sa, sb, sc) => fround(fround(fround(sa * a) * fround(sb * b)) / sc));
