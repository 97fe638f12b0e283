/** Sequences: arrays of tensors of one dtype, whose sizes may differ. */
import { invariant } from "../core/assert.ts";
import { asSequence, asTensor, isTensor, type Datum } from "../core/datum.ts";
import { fail } from "../core/diagnostic.ts";
import type { EvaluateData } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, zeros, type Tensor } from "../core/tensor.ts";
import { normalAxis } from "./map-elements.ts";
import { Concat } from "./movement.ts";
import { integersOf, numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

const sequenceIn = (inputs: readonly (Datum | undefined)[]): readonly Datum[] => asSequence(inputs[0] ?? null, "the sequence");
const tensorIn = (inputs: readonly (Datum | undefined)[], i: number): Tensor => asTensor(inputs[i] ?? null, `input ${i}`);

/** A position counted from the front; `end` is the first that is none. */
function position(given: Datum | undefined, count: number, end: number, missing: number): number {
  if (given === undefined) return missing;
  const [p = NaN] = integersOf(asTensor(given, "a position")), front = p < 0 ? p + count : p;
  if (!(front >= 0 && front < end)) fail("OF7014", `position ${p} lies outside a sequence of ${count}`, { hint: "check the values that are fed" });
  return front;
}

export const SequenceConstruct: EvaluateData = (inputs) => [inputs.filter((d) => d !== undefined)];

export const SequenceEmpty: EvaluateData = () => [[]];

export const SequenceInsert: EvaluateData = (inputs) => {
  const sequence = sequenceIn(inputs), count = sequence.length;
  return [sequence.toSpliced(position(inputs[2], count, count + 1, count), 0, tensorIn(inputs, 1))];
};

export const SequenceErase: EvaluateData = (inputs) => {
  const sequence = sequenceIn(inputs), count = sequence.length;
  if (count === 0) fail("OF7014", "there is nothing to erase in an empty sequence", { hint: "check the values that are fed" });
  return [sequence.toSpliced(position(inputs[1], count, count, count - 1), 1)];
};

export const SequenceAt: EvaluateData = (inputs) => {
  const sequence = sequenceIn(inputs), found = sequence[position(inputs[1], sequence.length, sequence.length, 0)];
  invariant(found !== undefined, "a tensor at the position");
  return [found];
};

export const SequenceLength: EvaluateData = (inputs) => [fromNumbers("int64", [], [sequenceIn(inputs).length])];

export const ConcatFromSequence: EvaluateData = (inputs, attributes) => {
  const tensors = sequenceIn(inputs).filter(isTensor), [first] = tensors;
  if (!first) return fail("OF7014", "an empty sequence cannot be concatenated", { hint: "check the values that are fed" });
  const fresh = numberOf(attributes, "new_axis", 0) !== 0;
  const axis = normalAxis(numberOf(attributes, "axis"), first.dims.length + (fresh ? 1 : 0));
  for (const t of tensors) {
    const fits = t.dims.length === first.dims.length && t.dims.every((d, i) => d === first.dims[i] || (i === axis && !fresh));
    if (!fits) fail("OF7014", `tensors of [${first.dims.join(", ")}] and [${t.dims.join(", ")}] do not join along axis ${axis}`, { hint: "check the values that are fed" });
  }
  return Concat(fresh ? tensors.map((t) => ({ ...t, dims: t.dims.toSpliced(axis, 0, 1) })) : tensors, { axis }, { outputCount: 1 });
};

/** Sizes of the parts along the axis: 1 each, all of one size but a smaller last, or as listed. */
function partSizes(size: number, split: Tensor | undefined): readonly number[] {
  if (!split) return new Array<number>(size).fill(1);
  const given = integersOf(split);
  if (split.dims.length > 0) {
    if (given.some((n) => n < 0) || given.reduce((a, b) => a + b, 0) !== size) fail("OF7014", `parts [${given.join(", ")}] do not add up to ${size}`, { hint: "check the values that are fed" });
    return given;
  }
  const [each = 0] = given;
  if (!(each > 0)) fail("OF7014", `parts of size ${each} make no sense`, { hint: "check the values that are fed" });
  return Array.from({ length: Math.ceil(size / each) }, (_, i) => Math.min(each, size - i * each));
}

export const SplitToSequence: EvaluateData = (inputs, attributes) => {
  const x = tensorIn(inputs, 0), split = inputs[1] === undefined ? undefined : tensorIn(inputs, 1);
  const axis = normalAxis(numberOf(attributes, "axis", 0), x.dims.length), size = at(x.dims, axis);
  const squeeze = !split && numberOf(attributes, "keepdims", 1) === 0;
  const outer = sizeOf(x.dims.slice(0, axis)), inner = sizeOf(x.dims.slice(axis + 1));
  let before = 0;
  return [partSizes(size, split).map((part) => {
    const start = before;
    before += part;
    return { ...slab(x, outer, size * inner, start * inner, part * inner, x.dims.with(axis, part)), ...(squeeze ? { dims: x.dims.toSpliced(axis, 1) } : {}) };
  })];
};

/** `length` elements from `start` on of each of the `outer` rows. */
function slab(x: Tensor, outer: number, row: number, start: number, length: number, dims: readonly number[]): Tensor {
  const out = zeros(x.dtype, dims), to = out.data as { [i: number]: number | bigint | string };
  for (let o = 0; o < outer; o++) for (let i = 0; i < length; i++) {
    const v = x.data[o * row + start + i];
    invariant(v !== undefined, "an element of the tensor");
    to[o * length + i] = v;
  }
  return out;
}
