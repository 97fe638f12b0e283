/** Evaluation of operators that read and write at indices held in tensors. Negative indices count from the end. */
import { fail } from "../core/diagnostic.ts";
import { invariant } from "../core/assert.ts";
import { isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { numericData, rowMajorStrides, setNumber, sizeOf, stringsOf, toBigInts, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { copier, input, normalAxis, pick, wrapped } from "./map-elements.ts";
import { numberOf, stringOf } from "./read-attribute.ts";

/** The index counted from the front, within [0, size). */
function inBounds(index: number, size: number): number {
  const i = index < 0 ? index + size : index;
  if (!(i >= 0 && i < size)) fail("OF7014", `index ${index} lies outside an axis of ${size} elements`, { hint: "check the indices that are fed" });
  return i;
}

export const Gather: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), indices = input(inputs, 1), at = toNumbers(indices);
  const axis = normalAxis(numberOf(attributes, "axis", 0), data.dims.length), size = data.dims[axis] ?? 1;
  const dims = [...data.dims.slice(0, axis), ...indices.dims, ...data.dims.slice(axis + 1)];
  const inner = sizeOf(data.dims.slice(axis + 1)), count = at.length;
  return [pick(data, dims, Int32Array.from({ length: sizeOf(dims) }, (_, i) => {
    const k = Math.floor(i / inner) % count, outer = Math.floor(i / (inner * count));
    return (outer * size + inBounds(at[k] ?? 0, size)) * inner + (i % inner);
  }))];
};

/** For each element of a tensor of `dims`: its own position in a tensor with `strides`, but with index `axis` replaced. */
function along(dims: readonly number[], strides: readonly number[], axis: number, at: (i: number) => number): number[] {
  const own = rowMajorStrides(dims);
  return Array.from({ length: sizeOf(dims) }, (_, i) =>
    dims.reduce((p, size, d) => p + (d === axis ? at(i) : Math.floor(i / (own[d] ?? 1)) % size) * (strides[d] ?? 0), 0));
}
export const GatherElements: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), indices = input(inputs, 1), at = toNumbers(indices);
  const axis = normalAxis(numberOf(attributes, "axis", 0), data.dims.length);
  return [pick(data, indices.dims, along(indices.dims, rowMajorStrides(data.dims), axis, (i) => inBounds(at[i] ?? 0, data.dims[axis] ?? 1)))];
};

/** Start offsets of the slices that rows of `indices` name, past `batch` leading axes. */
function sliceStarts(dims: readonly number[], indices: Tensor, batch: number): { starts: number[]; length: number } {
  const depth = indices.dims[indices.dims.length - 1] ?? 1, at = toNumbers(indices), strides = rowMajorStrides(dims);
  const rows = sizeOf(indices.dims.slice(0, -1)), perBatch = rows / sizeOf(dims.slice(0, batch));
  const block = sizeOf(dims.slice(batch));
  const starts = Array.from({ length: rows }, (_, r) => {
    let start = Math.floor(r / perBatch) * block;
    for (let k = 0; k < depth; k++) start += inBounds(at[r * depth + k] ?? 0, dims[batch + k] ?? 1) * (strides[batch + k] ?? 0);
    return start;
  });
  return { starts, length: sizeOf(dims.slice(batch + depth)) };
}
export const GatherND: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), indices = input(inputs, 1), batch = numberOf(attributes, "batch_dims", 0);
  const { starts, length } = sliceStarts(data.dims, indices, batch);
  const depth = indices.dims[indices.dims.length - 1] ?? 1;
  return [pick(data, [...indices.dims.slice(0, -1), ...data.dims.slice(batch + depth)], starts.flatMap((s) => Array.from({ length }, (_, i) => s + i)))];
};

/** `data` with updates[i] joined into element targets[i], in order. */
function scatter(data: Tensor, updates: Tensor, targets: ArrayLike<number>, reduction: string): Tensor {
  const out = zeros(data.dtype, data.dims), copy = copier(data, out);
  for (let i = 0; i < sizeOf(data.dims); i++) copy(i, i);
  if (reduction === "none") {
    const put = copier(updates, out);
    for (let i = 0; i < targets.length; i++) put(i, targets[i] ?? 0);
    return out;
  }
  if (isFloat(data.dtype)) {
    const store = numericData(out), values = Float64Array.from(toNumbers(data)), by = toNumbers(updates);
    for (let i = 0; i < targets.length; i++) { const t = targets[i] ?? 0; values[t] = combineNumbers(reduction, values[t] ?? 0, by[i] ?? 0); }
    values.forEach((v, i) => setNumber(store, data.dtype, i, v));
    return out;
  }
  const values = toBigInts(data), by = toBigInts(updates);
  for (let i = 0; i < targets.length; i++) { const t = targets[i] ?? 0; values[t] = combineIntegers(reduction, values[t] ?? 0n, by[i] ?? 0n); }
  return wrapped(data.dtype, data.dims, values);
}
function combineNumbers(reduction: string, a: number, b: number): number {
  switch (reduction) {
    case "add": return a + b;
    case "mul": return a * b;
    case "max": return Math.max(a, b);
    case "min": return Math.min(a, b);
    default: return invariant(false, `reduction ${reduction}`) as never;
  }
}
function combineIntegers(reduction: string, a: bigint, b: bigint): bigint {
  switch (reduction) {
    case "add": return a + b;
    case "mul": return a * b;
    case "max": return a > b ? a : b;
    case "min": return a < b ? a : b;
    default: return invariant(false, `reduction ${reduction}`) as never;
  }
}
export const ScatterND: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), { starts, length } = sliceStarts(data.dims, input(inputs, 1), 0);
  return [scatter(data, input(inputs, 2), starts.flatMap((s) => Array.from({ length }, (_, i) => s + i)), stringOf(attributes, "reduction", "none"))];
};
export const ScatterElements: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), indices = input(inputs, 1), at = toNumbers(indices);
  const axis = normalAxis(numberOf(attributes, "axis", 0), data.dims.length);
  const targets = along(indices.dims, rowMajorStrides(data.dims), axis, (i) => inBounds(at[i] ?? 0, data.dims[axis] ?? 1));
  return [scatter(data, input(inputs, 2), targets, stringOf(attributes, "reduction", "none"))];
};
/** As it was called before opset 11. */
export const Scatter: Evaluate = ScatterElements;

/** Slices of `axis` (of the flattened input, without one) where the condition holds. */
export const Compress: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), condition = toNumbers(input(inputs, 1));
  const flat = attributes.axis === undefined;
  const dims = flat ? [sizeOf(data.dims)] : data.dims, axis = flat ? 0 : normalAxis(numberOf(attributes, "axis"), dims.length);
  const size = dims[axis] ?? 0, inner = sizeOf(dims.slice(axis + 1));
  const kept = Array.from({ length: size }, (_, i) => i).filter((i) => condition[i]);
  const out = dims.map((d, i) => (i === axis ? kept.length : d));
  return [pick(data, out, Array.from({ length: sizeOf(out) }, (_, i) => {
    const k = kept[Math.floor(i / inner) % kept.length] ?? 0;
    return (Math.floor(i / (inner * kept.length)) * size + k) * inner + (i % inner);
  }))];
};

/** Indices of elements that are not 0, or not empty where they are strings, one row an axis, in row-major order. */
export const NonZero: Evaluate = (inputs) => {
  const x = input(inputs, 0), values: ArrayLike<number> = x.dtype === "string" ? stringsOf(x).map((text) => text.length) : toNumbers(x), strides = rowMajorStrides(x.dims);
  const found = Array.from({ length: values.length }, (_, i) => i).filter((i) => values[i] !== 0);
  const rows = x.dims.flatMap((size, d) => found.map((i) => BigInt(Math.floor(i / (strides[d] ?? 1)) % size)));
  return [wrapped("int64", [x.dims.length, found.length], rows)];
};

