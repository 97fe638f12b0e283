/** Evaluation of DFT and STFT: every frequency as a sum over the signal, in float64. */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { dftProblem, stftProblem } from "./fourier-problem.ts";

/** exp(±2πi·k/n) for k from 0 to n − 1. */
function roots(n: number, inverse: boolean): { readonly cos: Float64Array; readonly sin: Float64Array } {
  const sign = inverse ? 1 : -1, angle = (k: number): number => (2 * Math.PI * k) / n;
  return { cos: Float64Array.from({ length: n }, (_, k) => Math.cos(angle(k))), sin: Float64Array.from({ length: n }, (_, k) => sign * Math.sin(angle(k))) };
}

export const DFT: Evaluate = (inputs, attributes) => {
  const { x, length, dims, inner, size, outSize, parts, inverse, realResult, lines } = dftProblem(inputs, attributes);
  const values = toNumbers(x), { cos, sin } = roots(length, inverse), outParts = realResult ? 1 : 2;
  const out = new Float64Array(sizeOf(dims));
  for (let line = 0; line < lines; line++) {
    const from = Math.floor(line / inner) * size * inner + (line % inner), to = Math.floor(line / inner) * outSize * inner + (line % inner);
    /** The signal's element t; of a one-sided spectrum, the rest is the conjugate of what is there. */
    const at = (t: number): readonly [number, number] => {
      const mirrored = realResult && t > length / 2, k = mirrored ? length - t : t;
      if (k >= size) return [0, 0];
      const p = (from + k * inner) * parts, imaginary = parts === 2 && !(realResult && (k === 0 || 2 * k === length)) ? values[p + 1] ?? 0 : 0;
      return [values[p] ?? 0, mirrored ? -imaginary : imaginary];
    };
    for (let k = 0; k < outSize; k++) {
      let real = 0, imaginary = 0;
      for (let t = 0; t < length; t++) {
        const [a, b] = at(t), turn = (k * t) % length, c = cos[turn] ?? 1, s = sin[turn] ?? 0;
        real += a * c - b * s;
        imaginary += a * s + b * c;
      }
      const by = inverse ? length : 1, p = (to + k * inner) * outParts;
      out[p] = real / by;
      if (!realResult) out[p + 1] = imaginary / by;
    }
  }
  return [fromNumbers(x.dtype, dims, out)];
};

export const STFT: Evaluate = (inputs, attributes) => {
  const { x, batch, length, parts, step, frame, frames, bins, window } = stftProblem(inputs, attributes);
  const values = toNumbers(x), { cos, sin } = roots(frame, false);
  const out = new Float64Array(batch * frames * bins * 2);
  for (let b = 0; b < batch; b++) for (let f = 0; f < frames; f++) for (let k = 0; k < bins; k++) {
    let real = 0, imaginary = 0;
    for (let t = 0; t < frame; t++) {
      const p = (b * length + f * step + t) * parts, w = window[t] ?? 1, a = (values[p] ?? 0) * w, i = parts === 2 ? (values[p + 1] ?? 0) * w : 0;
      const turn = (k * t) % frame, c = cos[turn] ?? 1, s = sin[turn] ?? 0;
      real += a * c - i * s;
      imaginary += a * s + i * c;
    }
    const to = ((b * frames + f) * bins + k) * 2;
    out[to] = real;
    out[to + 1] = imaginary;
  }
  return [fromNumbers(x.dtype, [batch, frames, bins, 2], out)];
};
