/** Evaluation of com.microsoft's Rfft and Irfft: transforms along the last axis of real signals, by the standard's DFT. */
import type { Evaluate } from "../core/evaluate.ts";
import { tensor, type Tensor } from "../core/tensor.ts";
import { DFT } from "./fourier.ts";
import { input } from "./map-elements.ts";

const lastButOne = tensor("int64", [], BigInt64Array.of(-2n));
const reshaped = (t: Tensor, dims: readonly number[]): Tensor => ({ ...t, dims });

/** Half of the spectrum, as pairs of real and imaginary parts. */
export const Rfft: Evaluate = (inputs, _, context) => {
  const x = input(inputs, 0);
  return DFT([reshaped(x, [...x.dims, 1]), undefined, lastButOne], { inverse: 0, onesided: 1 }, context);
};
/** The signal of even length that has this half of a spectrum. */
export const Irfft: Evaluate = (inputs, _, context) => DFT([input(inputs, 0), undefined, lastButOne], { inverse: 1, onesided: 1 }, context).map((t) => reshaped(t, t.dims.slice(0, -1)));
