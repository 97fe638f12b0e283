/** What a DFT or STFT node asks for: sizes, lengths and which halves of a spectrum are meant. */
import { fail } from "../core/diagnostic.ts";
import type { EvaluateAttributes } from "../core/evaluate.ts";
import { sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf } from "./read-attribute.ts";

const scalarIn = (t: Tensor | undefined): number | undefined => (t && sizeOf(t.dims) > 0 ? Number(toNumbers(t)[0]) : undefined);

export interface DftProblem {
  readonly x: Tensor;
  /** Points of the transform. */
  readonly length: number;
  /** The result's sizes. */
  readonly dims: readonly number[];
  /** Elements (real or complex) between neighbours along the axis. */
  readonly inner: number;
  readonly lines: number;
  /** Sizes of input and result along the axis. */
  readonly size: number;
  readonly outSize: number;
  /** Numbers an element of the input has: 1 real, 2 complex. */
  readonly parts: number;
  readonly inverse: boolean;
  /** Inverse of a one-sided spectrum: the result is real. */
  readonly realResult: boolean;
}

/** Inputs are signal, length, axis. Fails with OF7014 where they contradict each other. */
export function dftProblem(inputs: readonly (Tensor | undefined)[], attributes: EvaluateAttributes): DftProblem {
  const x = input(inputs, 0), rank = x.dims.length, given = scalarIn(inputs[2]) ?? -2;
  const axis = given < 0 ? given + rank : given;
  if (!(axis >= 0 && axis < rank - 1)) fail("OF7014", `DFT has axis ${given} for a signal of rank ${rank}`, { hint: "the last axis holds real and imaginary parts" });
  const inverse = numberOf(attributes, "inverse", 0) !== 0, onesided = numberOf(attributes, "onesided", 0) !== 0;
  const size = x.dims[axis] ?? 1, length = scalarIn(inputs[1]) ?? (inverse && onesided ? 2 * (size - 1) : size);
  if (length < 1) fail("OF7014", `DFT has a length of ${length}`, { hint: "check the dft_length that is fed" });
  const realResult = inverse && onesided, outSize = onesided && !inverse ? Math.floor(length / 2) + 1 : length;
  const dims = x.dims.map((d, i) => (i === axis ? outSize : i === rank - 1 ? (realResult ? 1 : 2) : d));
  const inner = sizeOf(x.dims.slice(axis + 1, -1));
  return { x, length, dims, inner, lines: sizeOf(x.dims.slice(0, axis)) * inner, size, outSize, parts: x.dims[rank - 1] ?? 1, inverse, realResult };
}

export interface StftProblem {
  readonly x: Tensor;
  readonly batch: number;
  readonly length: number;
  readonly parts: number;
  readonly step: number;
  readonly frame: number;
  readonly frames: number;
  readonly bins: number;
  readonly window: ArrayLike<number>;
}

/** Inputs are signal, step, window, frame length. Fails with OF7014 where they contradict each other. */
export function stftProblem(inputs: readonly (Tensor | undefined)[], attributes: EvaluateAttributes): StftProblem {
  const x = input(inputs, 0), [, , window] = inputs, step = scalarIn(inputs[1]) ?? 1;
  const [batch = 1, length = 0] = x.dims, parts = x.dims[2] ?? 1;
  const frame = scalarIn(inputs[3]) ?? window?.dims[0] ?? length;
  if (step < 1 || frame < 1 || frame > length) fail("OF7014", `STFT has frames of ${frame} every ${step} for a signal of ${length}`, { hint: "check the frame_step and frame_length that are fed" });
  if (window && window.dims[0] !== frame) fail("OF7014", `STFT has a window of ${window.dims[0] ?? 1} for frames of ${frame}`, { hint: "the window is as long as a frame" });
  const onesided = numberOf(attributes, "onesided", 1) !== 0;
  return {
    x, batch, length, parts, step, frame, frames: Math.floor((length - frame) / step) + 1, bins: onesided ? Math.floor(frame / 2) + 1 : frame,
    window: window ? toNumbers(window) : new Float64Array(frame).fill(1),
  };
}
