/**
 * Where the windows of convolutions and pools lie, by ONNX's formulas. Every geometry is brought to three spatial axes
 * by leading axes of size 1.
 */
import { invariant } from "../core/assert.ts";
import type { EvaluateAttributes } from "../core/evaluate.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";

/** Three spatial axes each; `rank` is how many of them, the last ones, the operator has. */
export interface Geometry {
  readonly rank: number;
  readonly input: readonly number[];
  readonly kernel: readonly number[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly padsBegin: readonly number[];
  readonly padsEnd: readonly number[];
  readonly output: readonly number[];
}

const padded = (values: readonly number[], fill: number): number[] => [...new Array<number>(3 - values.length).fill(fill), ...values];
/** Element `i`, which is there. */
export const at = <T>(values: readonly T[], i: number): T => {
  const v = values[i];
  invariant(v !== undefined, "index within the list");
  return v;
};

/** Windows over `input` (spatial sizes) of a convolution or pool. */
export function windows(input: readonly number[], kernel: readonly number[], attributes: EvaluateAttributes): Geometry {
  const rank = input.length;
  invariant(rank <= 3, "at most three spatial axes");
  const strides = numbersOf(attributes, "strides") ?? new Array<number>(rank).fill(1);
  const dilations = numbersOf(attributes, "dilations") ?? new Array<number>(rank).fill(1);
  const pads = numbersOf(attributes, "pads") ?? new Array<number>(2 * rank).fill(0);
  const autoPad = stringOf(attributes, "auto_pad", "NOTSET");
  const ceil = numberOf(attributes, "ceil_mode", 0) !== 0;
  const begin: number[] = [], end: number[] = [], output: number[] = [];
  for (let d = 0; d < rank; d++) {
    const size = at(input, d), stride = at(strides, d), reach = (at(kernel, d) - 1) * at(dilations, d) + 1;
    if (autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER") {
      const out = Math.ceil(size / stride);
      const total = Math.max(0, (out - 1) * stride + reach - size);
      const small = Math.floor(total / 2);
      begin.push(autoPad === "SAME_UPPER" ? small : total - small);
      end.push(autoPad === "SAME_UPPER" ? total - small : small);
      output.push(out);
      continue;
    }
    const [before, after] = autoPad === "VALID" ? [0, 0] : [at(pads, d), at(pads, d + rank)];
    begin.push(before);
    end.push(after);
    const room = size + before + after - reach;
    let out = (ceil ? Math.ceil(room / stride) : Math.floor(room / stride)) + 1;
    if (ceil && (out - 1) * stride >= size + before) out -= 1;
    output.push(Math.max(0, out));
  }
  return {
    rank, input: padded(input, 1), kernel: padded(kernel, 1), strides: padded(strides, 1), dilations: padded(dilations, 1),
    padsBegin: padded(begin, 0), padsEnd: padded(end, 0), output: padded(output, 1),
  };
}

/** The geometry of a transposed convolution: `output` is the larger side. */
export function transposedWindows(input: readonly number[], kernel: readonly number[], attributes: EvaluateAttributes): Geometry {
  const rank = input.length;
  invariant(rank <= 3, "at most three spatial axes");
  const strides = numbersOf(attributes, "strides") ?? new Array<number>(rank).fill(1);
  const dilations = numbersOf(attributes, "dilations") ?? new Array<number>(rank).fill(1);
  const pads = numbersOf(attributes, "pads") ?? new Array<number>(2 * rank).fill(0);
  const extra = numbersOf(attributes, "output_padding") ?? new Array<number>(rank).fill(0);
  const shape = numbersOf(attributes, "output_shape")?.slice(-rank);
  const autoPad = stringOf(attributes, "auto_pad", "NOTSET");
  const begin: number[] = [], end: number[] = [], output: number[] = [];
  for (let d = 0; d < rank; d++) {
    const size = at(input, d), stride = at(strides, d), reach = (at(kernel, d) - 1) * at(dilations, d) + 1;
    const full = (size - 1) * stride + at(extra, d) + reach;
    const same = autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER";
    if (shape || same) {
      const out = shape ? at(shape, d) : size * stride;
      const total = Math.max(0, full - out);
      const small = Math.floor(total / 2);
      begin.push(autoPad === "SAME_UPPER" ? small : total - small);
      end.push(autoPad === "SAME_UPPER" ? total - small : small);
      output.push(out);
      continue;
    }
    const [before, after] = autoPad === "VALID" ? [0, 0] : [at(pads, d), at(pads, d + rank)];
    begin.push(before);
    end.push(after);
    output.push(full - before - after);
  }
  return {
    rank, input: padded(input, 1), kernel: padded(kernel, 1), strides: padded(strides, 1), dilations: padded(dilations, 1),
    padsBegin: padded(begin, 0), padsEnd: padded(end, 0), output: padded(output, 1),
  };
}
