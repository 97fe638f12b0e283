/**
 * Sequences of tensors of one type and shape, each held as one tensor with the sequence along a new first axis. An empty
 * sequence whose tensors are not known yet is a tensor of dims [0].
 */
import { invariant, present } from "../core/assert.ts";
import { dtypeFromOnnx } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, tensor, zeros, type Tensor } from "../core/tensor.ts";
import { integersOf, numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** The tensors of a sequence. */
function unstack(sequence: Tensor): Tensor[] {
  const [count = 0, ...dims] = sequence.dims, size = sizeOf(dims);
  return Array.from({ length: count }, (_, i) => tensor(sequence.dtype, dims, sequence.data.slice(i * size, (i + 1) * size)));
}

/** The sequence of these tensors, which agree in type and dims. */
function stack(tensors: readonly Tensor[], empty: Tensor | undefined): Tensor {
  const [first] = tensors;
  if (!first) return empty ? zeros(empty.dtype, [0, ...empty.dims.slice(1)]) : zeros("float32", [0]);
  return joined(tensors, [tensors.length, ...first.dims], sizeOf(first.dims), 1);
}

/** Row-major interleaving: `outer` times, `inner` elements of each tensor in turn. */
function joined(tensors: readonly Tensor[], dims: readonly number[], inner: number, outer: number): Tensor {
  const out = zeros(at(tensors, 0).dtype, dims);
  const data = out.data as { [i: number]: number | bigint | string };
  let to = 0;
  for (let o = 0; o < outer; o++) for (const t of tensors) for (let i = 0; i < inner; i++) {
    const v = t.data[o * inner + i];
    invariant(v !== undefined, "tensors of a sequence have one shape");
    data[to++] = v;
  }
  return out;
}

/** A position counted from the front. */
function position(P: Tensor | undefined, count: number, missing: number): number {
  const p = P ? at(integersOf(P), 0) : missing;
  return p < 0 ? p + count : p;
}

export const SequenceConstruct: Evaluate = (inputs) => [stack(inputs.filter((t) => t !== undefined), undefined)];

export const SequenceEmpty: Evaluate = (_, attributes) => [zeros(dtypeFromOnnx(numberOf(attributes, "dtype")) ?? "float32", [0])];

export const SequenceInsert: Evaluate = ([S, T, P]) => {
  const tensors = unstack(present(S, "input_sequence"));
  tensors.splice(position(P, tensors.length, tensors.length), 0, present(T, "tensor"));
  return [stack(tensors, undefined)];
};

export const SequenceErase: Evaluate = ([S, P]) => {
  const sequence = present(S, "input_sequence"), tensors = unstack(sequence);
  tensors.splice(position(P, tensors.length, tensors.length - 1), 1);
  return [stack(tensors, sequence)];
};

export const SequenceAt: Evaluate = ([S, P]) => {
  const tensors = unstack(present(S, "input_sequence"));
  return [present(tensors[position(P, tensors.length, 0)], "a tensor at this position of the sequence")];
};

export const SequenceLength: Evaluate = ([S]) => [fromNumbers("int64", [], [at(present(S, "input_sequence").dims, 0)])];

export const ConcatFromSequence: Evaluate = ([S], attributes) => {
  const sequence = present(S, "input_sequence"), tensors = unstack(sequence), dims = sequence.dims.slice(1);
  const fresh = numberOf(attributes, "new_axis") !== 0, rank = dims.length + (fresh ? 1 : 0);
  const given = numberOf(attributes, "axis"), axis = given < 0 ? given + rank : given;
  const count = tensors.length, before = dims.slice(0, axis), own = fresh ? [count] : [count * at(dims, axis)], after = dims.slice(fresh ? axis : axis + 1);
  const out = [...before, ...own, ...after];
  if (count === 0) return [zeros(sequence.dtype, out)];
  return [joined(tensors, out, sizeOf(dims.slice(axis)), sizeOf(before))];
};
