import { describe, expect, it } from "vitest";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { DFT as naive, STFT as naiveStft } from "./fourier.ts";
import { DFT as fast, STFT as fastStft } from "./host-fourier.ts";

const signal = (dims: readonly number[], dtype: "float32" | "float64" = "float64"): Tensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => Math.sin(i * 1.7) + ((i * 5) % 3)));
const scalar = (v: number): Tensor => fromNumbers("int64", [], [v]);
const context = { outputCount: 1 };
function worst(a: Tensor | undefined, b: Tensor | undefined): number {
  if (!a || !b || a.dims.join() !== b.dims.join() || a.dtype !== b.dtype) return Infinity;
  const x = toNumbers(a), y = toNumbers(b);
  return Array.from(x).reduce((most, v, i) => Math.max(most, Math.abs(v - (y[i] ?? NaN))), 0);
}

describe("fast transforms give what the sums give", () => {
  it("DFT of every kind and length, padded and cut", () => {
    for (const length of [1, 2, 3, 4, 6, 8, 12, 16, 64]) for (const [parts, inverse, onesided] of [[1, 0, 0], [2, 0, 0], [1, 0, 1], [2, 1, 0], [2, 1, 1], [1, 1, 1]] as const)
      for (const size of [length, length + 3, Math.max(1, length - 1)]) {
        const inputs = [signal([2, size, 3, parts]), scalar(length), scalar(1)];
        expect(worst(fast(inputs, { inverse, onesided }, context)[0], naive(inputs, { inverse, onesided }, context)[0]), `${length} of ${size}, ${parts} ${inverse} ${onesided}`).toBeLessThan(1e-11);
      }
  });
  it("the inverse undoes, one-sided too", () => {
    for (const length of [8, 12]) {
      const x = signal([3, length, 1]), half = fast([x, undefined, scalar(1)], { inverse: 0, onesided: 1 }, context)[0];
      expect(worst(fast([half, scalar(length), scalar(1)], { inverse: 1, onesided: 1 }, context)[0], x)).toBeLessThan(1e-12);
    }
  });
  it("STFT, with and without window", () => {
    for (const frame of [4, 6, 16]) for (const parts of [1, 2]) for (const window of [undefined, signal([frame])]) {
      const inputs = [signal([2, 40, parts]), scalar(3), window, scalar(frame)], attributes = { onesided: parts === 1 ? 1 : 0 };
      expect(worst(fastStft(inputs, attributes, context)[0], naiveStft(inputs, attributes, context)[0])).toBeLessThan(1e-11);
    }
  });
  it("a wrong spectrum is seen, wrong lengths are refused", () => {
    const inputs = [signal([1, 8, 1]), undefined, scalar(1)], other = [signal([1, 8, 1]), scalar(7), scalar(1)];
    expect(worst(fast(inputs, {}, context)[0], naive(other, {}, context)[0])).toBe(Infinity);
    expect(() => fast([signal([1, 8, 1]), scalar(0), scalar(1)], {}, context)).toThrow(/OF7014/);
    expect(() => fastStft([signal([1, 8, 1]), scalar(1), undefined, scalar(9)], {}, context)).toThrow(/OF7014/);
  });
});
