/**
 * DFT and STFT as the runtime runs them: an iterative radix-2 transform (Cooley and Tukey) in float64 where the length is
 * a power of two, else the sums themselves. What a node asks for is decided where the naive evaluation decides it.
 */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { dftProblem, stftProblem } from "./fourier-problem.ts";
import { DFT as naiveDft, STFT as naiveStft } from "./fourier.ts";

const isPowerOfTwo = (n: number): boolean => n >= 1 && (n & (n - 1)) === 0;

/** Transforms of one length, in place on `real` and `imaginary`. */
class Transform {
  readonly length: number;
  readonly real: Float64Array;
  readonly imaginary: Float64Array;
  readonly #cos: Float64Array;
  readonly #sin: Float64Array;
  readonly #places: Int32Array;

  constructor(length: number, inverse: boolean) {
    this.length = length;
    this.real = new Float64Array(length);
    this.imaginary = new Float64Array(length);
    const sign = inverse ? 1 : -1, half = length / 2;
    this.#cos = Float64Array.from({ length: half }, (_, k) => Math.cos((2 * Math.PI * k) / length));
    this.#sin = Float64Array.from({ length: half }, (_, k) => sign * Math.sin((2 * Math.PI * k) / length));
    this.#places = new Int32Array(length);
    for (let i = 1, bits = Math.log2(length); i < length; i++) this.#places[i] = ((this.#places[i >> 1] ?? 0) >> 1) | ((i & 1) << (bits - 1));
  }

  run(): void {
    const { length, real, imaginary } = this;
    for (let i = 0; i < length; i++) {
      const j = this.#places[i] ?? 0;
      if (j <= i) continue;
      [real[i], real[j]] = [real[j] ?? 0, real[i] ?? 0];
      [imaginary[i], imaginary[j]] = [imaginary[j] ?? 0, imaginary[i] ?? 0];
    }
    for (let half = 1; half < length; half *= 2) {
      const stride = length / (2 * half);
      for (let start = 0; start < length; start += 2 * half) for (let k = 0; k < half; k++) {
        const a = start + k, b = a + half, c = this.#cos[k * stride] ?? 1, s = this.#sin[k * stride] ?? 0;
        const x = real[b] ?? 0, y = imaginary[b] ?? 0, re = x * c - y * s, im = x * s + y * c;
        real[b] = (real[a] ?? 0) - re;
        imaginary[b] = (imaginary[a] ?? 0) - im;
        real[a] = (real[a] ?? 0) + re;
        imaginary[a] = (imaginary[a] ?? 0) + im;
      }
    }
  }
}

export const DFT: Evaluate = (inputs, attributes, context) => {
  const { x, length, dims, inner, lines, size, outSize, parts, inverse, realResult } = dftProblem(inputs, attributes);
  if (!isPowerOfTwo(length)) return naiveDft(inputs, attributes, context);
  const values = toNumbers(x), t = new Transform(length, inverse), out = new Float64Array(sizeOf(dims)), outParts = realResult ? 1 : 2, by = inverse ? length : 1;
  for (let line = 0; line < lines; line++) {
    const from = Math.floor(line / inner) * size * inner + (line % inner), to = Math.floor(line / inner) * outSize * inner + (line % inner);
    t.real.fill(0);
    t.imaginary.fill(0);
    for (let k = 0; k < Math.min(realResult ? Math.floor(length / 2) + 1 : length, size); k++) {
      const p = (from + k * inner) * parts, edge = realResult && (k === 0 || 2 * k === length);
      t.real[k] = values[p] ?? 0;
      t.imaginary[k] = parts === 2 && !edge ? values[p + 1] ?? 0 : 0;
      if (!realResult || edge) continue;
      t.real[length - k] = t.real[k] ?? 0;
      t.imaginary[length - k] = -(t.imaginary[k] ?? 0);
    }
    t.run();
    for (let k = 0; k < outSize; k++) {
      const p = (to + k * inner) * outParts;
      out[p] = (t.real[k] ?? 0) / by;
      if (!realResult) out[p + 1] = (t.imaginary[k] ?? 0) / by;
    }
  }
  return [fromNumbers(x.dtype, dims, out)];
};

export const STFT: Evaluate = (inputs, attributes, context) => {
  const { x, batch, length, parts, step, frame, frames, bins, window } = stftProblem(inputs, attributes);
  if (!isPowerOfTwo(frame)) return naiveStft(inputs, attributes, context);
  const values = toNumbers(x), t = new Transform(frame, false), out = new Float64Array(batch * frames * bins * 2);
  for (let b = 0; b < batch; b++) for (let f = 0; f < frames; f++) {
    for (let i = 0; i < frame; i++) {
      const p = (b * length + f * step + i) * parts, w = window[i] ?? 1;
      t.real[i] = (values[p] ?? 0) * w;
      t.imaginary[i] = parts === 2 ? (values[p + 1] ?? 0) * w : 0;
    }
    t.run();
    for (let k = 0; k < bins; k++) {
      const to = ((b * frames + f) * bins + k) * 2;
      out[to] = t.real[k] ?? 0;
      out[to + 1] = t.imaginary[k] ?? 0;
    }
  }
  return [fromNumbers(x.dtype, [batch, frames, bins, 2], out)];
};
