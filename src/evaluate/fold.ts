/** Evaluation of operators that put pieces back into an image: CenterCropPad, Col2Im, MaxUnpool, TensorScatter. */
import { isFloat } from "../core/dtype.ts";
import { fail } from "../core/diagnostic.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, rowMajorStrides, sizeOf, toBigInts, toNumbers, zeros } from "../core/tensor.ts";
import { copier, input, normalAxis, pick, wrapped } from "./map-elements.ts";
import { integersOf, numberOf, numbersOf, stringOf } from "./read-attribute.ts";

/** The indices of flat position `i` in `dims`. */
const indicesIn = (i: number, dims: readonly number[], strides: readonly number[]): number[] => dims.map((d, axis) => Math.floor(i / (strides[axis] ?? 1)) % d);

export const CenterCropPad: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), shape = integersOf(input(inputs, 1));
  const axes = (numbersOf(attributes, "axes") ?? x.dims.map((_, i) => i)).map((a) => normalAxis(a, x.dims.length));
  const dims = x.dims.map((d, axis) => { const k = axes.indexOf(axis); return k < 0 ? d : shape[k] ?? d; });
  const strides = rowMajorStrides(x.dims), own = rowMajorStrides(dims);
  const shift = dims.map((d, axis) => { const size = x.dims[axis] ?? 0; return size > d ? Math.floor((size - d) / 2) : -Math.floor((d - size) / 2); });
  return [pick(x, dims, Array.from({ length: sizeOf(dims) }, (_, i) => {
    const from = indicesIn(i, dims, own).map((p, axis) => p + (shift[axis] ?? 0));
    return from.every((p, axis) => p >= 0 && p < (x.dims[axis] ?? 0)) ? from.reduce((sum, p, axis) => sum + p * (strides[axis] ?? 0), 0) : -1;
  }))];
};

/** Adds every column of blocks to the places of the image it was taken from. */
export const Col2Im: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), image = integersOf(input(inputs, 1)), block = integersOf(input(inputs, 2)), rank = image.length;
  const list = (name: string, length: number, missing: number): readonly number[] => numbersOf(attributes, name) ?? new Array<number>(length).fill(missing);
  const dilations = list("dilations", rank, 1), strides = list("strides", rank, 1), pads = list("pads", 2 * rank, 0);
  const [batch = 1, rows = 1, columns = 1] = x.dims, taps = sizeOf(block), channels = Math.floor(rows / taps);
  const steps = image.map((size, d) => Math.floor((size + (pads[d] ?? 0) + (pads[d + rank] ?? 0) - (dilations[d] ?? 1) * ((block[d] ?? 1) - 1) - 1) / (strides[d] ?? 1)) + 1);
  if (sizeOf(steps) !== columns || channels * taps !== rows) fail("OF7014", `Col2Im has ${rows} rows and ${columns} columns for blocks [${block.join(", ")}] of an image [${image.join(", ")}]`, { hint: "check the shapes that are fed" });
  const [blockStrides, stepStrides, imageStrides] = [rowMajorStrides(block), rowMajorStrides(steps), rowMajorStrides(image)];
  const plane = sizeOf(image), values = isFloat(x.dtype) ? toNumbers(x) : undefined, integers = values ? undefined : toBigInts(x);
  const sums = new Float64Array(batch * channels * plane), exact = new Array<bigint>(integers ? sums.length : 0).fill(0n);
  for (let row = 0; row < batch * rows; row++) for (let c = 0; c < columns; c++) {
    const tap = indicesIn(row % taps, block, blockStrides), step = indicesIn(c, steps, stepStrides);
    const place = image.map((_, d) => (step[d] ?? 0) * (strides[d] ?? 1) - (pads[d] ?? 0) + (tap[d] ?? 0) * (dilations[d] ?? 1));
    if (!place.every((p, d) => p >= 0 && p < (image[d] ?? 0))) continue;
    const to = Math.floor(row / taps) * plane + place.reduce((sum, p, d) => sum + p * (imageStrides[d] ?? 0), 0), from = row * columns + c;
    if (values) sums[to] = (sums[to] ?? 0) + (values[from] ?? 0);
    else exact[to] = (exact[to] ?? 0n) + (integers?.[from] ?? 0n);
  }
  const dims = [batch, channels, ...image];
  return [values ? fromNumbers(x.dtype, dims, sums) : wrapped(x.dtype, dims, exact)];
};

/** Places the maxima where a MaxPool found them; with an output_shape, in the corner of a larger result. */
export const MaxUnpool: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), places = integersOf(input(inputs, 1)), spatial = x.dims.slice(2);
  const kernel = numbersOf(attributes, "kernel_shape") ?? [], strides = numbersOf(attributes, "strides") ?? kernel.map(() => 1), pads = numbersOf(attributes, "pads") ?? [];
  const pooled = [...x.dims.slice(0, 2), ...spatial.map((d, i) => (d - 1) * (strides[i] ?? 1) - (pads[i] ?? 0) - (pads[i + spatial.length] ?? 0) + (kernel[i] ?? 1))];
  const dims = inputs[2] ? integersOf(inputs[2]) : pooled, own = rowMajorStrides(pooled), strided = rowMajorStrides(dims);
  const out = zeros(x.dtype, dims), copy = copier(x, out);
  places.forEach((place, i) => {
    const at = indicesIn(place, pooled, own);
    if (place < 0 || place >= sizeOf(pooled) || !at.every((p, d) => p < (dims[d] ?? 0))) return;
    copy(i, at.reduce((sum, p, d) => sum + p * (strided[d] ?? 0), 0));
  });
  return [out];
};

/** The cache with `update` written at each batch entry's index along an axis. */
export const TensorScatter: Evaluate = (inputs, attributes) => {
  const past = input(inputs, 0), update = input(inputs, 1), starts = inputs[2] && integersOf(inputs[2]);
  const axis = normalAxis(numberOf(attributes, "axis", -2), past.dims.length), size = past.dims[axis] ?? 0, count = update.dims[axis] ?? 0;
  const circular = stringOf(attributes, "mode", "linear") === "circular", inner = sizeOf(past.dims.slice(axis + 1)), outer = sizeOf(past.dims.slice(0, axis));
  const out = pick(past, past.dims, Int32Array.from({ length: sizeOf(past.dims) }, (_, i) => i)), copy = copier(update, out);
  for (let o = 0; o < outer; o++) for (let s = 0; s < count; s++) {
    const to = (starts?.[Math.floor(o / (outer / (past.dims[0] ?? 1)))] ?? 0) + s, at = circular ? ((to % size) + size) % size : to;
    if (at < 0 || at >= size) fail("OF7014", `TensorScatter writes at ${at} of ${size}`, { hint: "write_indices and the update's length must stay within the cache" });
    for (let i = 0; i < inner; i++) copy((o * count + s) * inner + i, (o * size + at) * inner + i);
  }
  return [out];
};
