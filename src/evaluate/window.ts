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
  const ceil = numberOf(attributes, "ceil_mode", 0) !== 0;
  return geometry(input, kernel, attributes, (axis) => {
    const { size, stride, reach } = axis;
    if (axis.same) {
      const output = Math.ceil(size / stride);
      return { output, ...shared(axis, Math.max(0, (output - 1) * stride + reach - size)) };
    }
    const { before, after } = axis, room = size + before + after - reach;
    const fitting = (ceil ? Math.ceil(room / stride) : Math.floor(room / stride)) + 1;
    return { before, after, output: Math.max(0, ceil && (fitting - 1) * stride >= size + before ? fitting - 1 : fitting) };
  });
}

/** The geometry of a transposed convolution: `output` is the larger side. */
export function transposedWindows(input: readonly number[], kernel: readonly number[], attributes: EvaluateAttributes): Geometry {
  const rank = input.length;
  const extra = numbersOf(attributes, "output_padding") ?? new Array<number>(rank).fill(0);
  const shape = numbersOf(attributes, "output_shape")?.slice(-rank);
  return geometry(input, kernel, attributes, (axis, d) => {
    const { size, stride, before, after } = axis, full = (size - 1) * stride + at(extra, d) + axis.reach;
    if (!shape && !axis.same) return { before, after, output: full - before - after };
    const output = shape ? at(shape, d) : size * stride;
    return { output, ...shared(axis, Math.max(0, full - output)) };
  });
}

/** One axis as the attributes have it: `reach` is how many elements a window spans, pads are 0 where `auto_pad` says them. */
interface SpatialAxis { readonly size: number; readonly stride: number; readonly reach: number; readonly before: number; readonly after: number; readonly same: boolean; readonly upper: boolean }
interface Placed { readonly before: number; readonly after: number; readonly output: number }

/** Padding on both sides; the larger half lies at the end for SAME_UPPER, else at the beginning. */
function shared({ upper }: SpatialAxis, total: number): Pick<Placed, "before" | "after"> {
  const small = Math.floor(total / 2);
  return upper ? { before: small, after: total - small } : { before: total - small, after: small };
}

/** All axes, each placed by `place`. */
function geometry(input: readonly number[], kernel: readonly number[], attributes: EvaluateAttributes, place: (axis: SpatialAxis, d: number) => Placed): Geometry {
  const rank = input.length;
  invariant(rank <= 3, "at most three spatial axes");
  const strides = numbersOf(attributes, "strides") ?? new Array<number>(rank).fill(1);
  const dilations = numbersOf(attributes, "dilations") ?? new Array<number>(rank).fill(1);
  const pads = numbersOf(attributes, "pads") ?? new Array<number>(2 * rank).fill(0);
  const autoPad = stringOf(attributes, "auto_pad", "NOTSET"), upper = autoPad === "SAME_UPPER", same = upper || autoPad === "SAME_LOWER";
  const placed = input.map((size, d) => {
    const [before, after] = same || autoPad === "VALID" ? [0, 0] : [at(pads, d), at(pads, d + rank)];
    return place({ size, stride: at(strides, d), reach: (at(kernel, d) - 1) * at(dilations, d) + 1, before, after, same, upper }, d);
  });
  return {
    rank, input: padded(input, 1), kernel: padded(kernel, 1), strides: padded(strides, 1), dilations: padded(dilations, 1),
    padsBegin: padded(placed.map((p) => p.before), 0), padsEnd: padded(placed.map((p) => p.after), 0), output: padded(placed.map((p) => p.output), 1),
  };
}
