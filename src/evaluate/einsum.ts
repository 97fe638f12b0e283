/** Evaluation of Einsum by summing over every assignment of its labels, in float64 or exact integers. */
import { invariant } from "../core/assert.ts";
import { isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, rowMajorStrides, sizeOf, toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import { wrapped } from "./map-elements.ts";
import { stridedIndices } from "../core/strided.ts";
import { stringOf } from "./read-attribute.ts";

/** Labels of each operand and of the result; the axes of an ellipsis are labelled `…0`, `…1`, from the right. */
export interface EinsumLabels { readonly operands: readonly (readonly string[])[]; readonly result: readonly string[] }

/** Reads an equation for operands of these ranks; undefined where it does not fit them. */
export function einsumLabels(equation: string, ranks: readonly number[]): EinsumLabels | undefined {
  const [left = "", right] = equation.replace(/\s/g, "").split("->");
  const terms = left.split(",");
  if (terms.length !== ranks.length || !/^([A-Za-z.,]*)$/.test(left + (right ?? ""))) return undefined;
  let widest = 0;
  const operands = terms.map((term, i): string[] | undefined => {
    const dots = term.indexOf("..."), rank = ranks[i] ?? 0;
    if (dots < 0) return term.length === rank ? [...term] : undefined;
    const before = [...term.slice(0, dots)], after = [...term.slice(dots + 3)], count = rank - before.length - after.length;
    widest = Math.max(widest, count);
    return count < 0 ? undefined : [...before, ...Array.from({ length: count }, (_, k) => `…${count - 1 - k}`), ...after];
  });
  const known = operands.filter((o) => o !== undefined);
  if (known.length !== operands.length) return undefined;
  const ellipsis = Array.from({ length: widest }, (_, k) => `…${widest - 1 - k}`);
  if (right !== undefined) {
    const dots = right.indexOf("...");
    return { operands: known, result: dots < 0 ? [...right] : [...right.slice(0, dots), ...ellipsis, ...right.slice(dots + 3)] };
  }
  const all = known.flat().filter((l) => !l.startsWith("…"));
  const single = [...new Set(all)].filter((l) => all.indexOf(l) === all.lastIndexOf(l)).sort();
  return { operands: known, result: [...ellipsis, ...single] };
}

export const Einsum: Evaluate = (inputs, attributes) => {
  const tensors = inputs.filter((t): t is Tensor => t !== undefined), first = tensors[0];
  const labels = einsumLabels(stringOf(attributes, "equation"), tensors.map((t) => t.dims.length));
  invariant(labels && first, "the equation fits its operands");
  const size = new Map<string, number>();
  labels.operands.forEach((own, i) => own.forEach((l, d) => size.set(l, Math.max(size.get(l) ?? 1, tensors[i]?.dims[d] ?? 1))));
  for (const [i, own] of labels.operands.entries()) own.forEach((l, d) => { if (tensors[i]?.dims[d] === 0) size.set(l, 0); });
  const summed = [...size.keys()].filter((l) => !labels.result.includes(l));
  const order = [...labels.result, ...summed], space = order.map((l) => size.get(l) ?? 1);
  const walks = tensors.map((t, i) => {
    const strides = rowMajorStrides(t.dims);
    return stridedIndices(space, order.map((l) => (labels.operands[i] ?? []).reduce((s, own, d) => s + (own === l && t.dims[d] !== 1 ? strides[d] ?? 0 : 0), 0)));
  });
  const dims = labels.result.map((l) => size.get(l) ?? 1), inner = sizeOf(summed.map((l) => size.get(l) ?? 1)), count = sizeOf(dims);
  if (isFloat(first.dtype)) {
    const values = tensors.map(toNumbers);
    return [fromNumbers(first.dtype, dims, Float64Array.from({ length: count }, (_, o) => {
      let sum = 0;
      for (let k = o * inner; k < (o + 1) * inner; k++) sum += values.reduce((p, v, i) => p * (v[walks[i]?.[k] ?? 0] ?? 0), 1);
      return sum;
    }))];
  }
  const values = tensors.map(toBigInts);
  return [wrapped(first.dtype, dims, Array.from({ length: count }, (_, o) => {
    let sum = 0n;
    for (let k = o * inner; k < (o + 1) * inner; k++) sum += values.reduce((p, v, i) => p * (v[walks[i]?.[k] ?? 0] ?? 0n), 1n);
    return sum;
  }))];
};
