/** Evaluation of operators that move elements without computing. */
import { fail } from "../core/diagnostic.ts";
import { invariant } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { rowMajorStrides, sizeOf, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { castTensor } from "./cast.ts";
import { copier, input, normalAxis, pick } from "./map-elements.ts";
import { stridedIndices } from "../core/strided.ts";
import { integersOf, numberOf, numbersOf, stringOf } from "./read-attribute.ts";

export const Transpose: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0);
  const perm = numbersOf(attributes, "perm") ?? x.dims.map((_, i) => x.dims.length - 1 - i);
  const strides = rowMajorStrides(x.dims);
  const dims = perm.map((p) => x.dims[p] ?? 1);
  return [pick(x, dims, stridedIndices(dims, perm.map((p) => strides[p] ?? 0)))];
};

export const Concat: Evaluate = (inputs, attributes) => {
  const parts = inputs.filter((t): t is Tensor => t !== undefined), first = input(parts, 0);
  const axis = normalAxis(numberOf(attributes, "axis"), first.dims.length);
  const other = parts.find((t) => t.dims.length !== first.dims.length || t.dims.some((d, i) => i !== axis && d !== first.dims[i]));
  if (other) fail("OF3011", `Concat: parts of [${first.dims.join(", ")}] and [${other.dims.join(", ")}] do not fit together along axis ${axis}`);
  const total = parts.reduce((n, t) => n + (t.dims[axis] ?? 0), 0);
  const dims = first.dims.map((d, i) => (i === axis ? total : d));
  const out = zeros(first.dtype, dims), inner = sizeOf(dims.slice(axis + 1));
  let before = 0;
  for (const t of parts) {
    const copy = copier(t, out), row = (t.dims[axis] ?? 0) * inner;
    for (let i = 0; i < sizeOf(t.dims); i++) copy(i, Math.floor(i / row) * total * inner + before * inner + (i % row));
    before += t.dims[axis] ?? 0;
  }
  return [out];
};

/** Sizes of the parts of a Split: as given, or as equal as `count` parts can be, the last smaller. */
function partSizes(size: number, count: number, given: readonly number[] | undefined): readonly number[] {
  if (given) return given;
  const each = Math.ceil(size / count);
  return Array.from({ length: count }, (_, i) => Math.max(0, Math.min(each, size - i * each)));
}
export const Split: Evaluate = (inputs, attributes, context) => {
  const x = input(inputs, 0), axis = normalAxis(numberOf(attributes, "axis"), x.dims.length);
  const count = attributes.num_outputs === undefined ? context.outputCount : numberOf(attributes, "num_outputs");
  const strides = rowMajorStrides(x.dims);
  let before = 0;
  return partSizes(x.dims[axis] ?? 0, count, inputs[1] && integersOf(inputs[1])).map((size) => {
    const dims = x.dims.map((d, i) => (i === axis ? size : d));
    const part = pick(x, dims, stridedIndices(dims, strides, before * (strides[axis] ?? 1)));
    before += size;
    return part;
  });
};

export const Slice: Evaluate = (inputs) => {
  const x = input(inputs, 0), starts = integersOf(input(inputs, 1)), ends = integersOf(input(inputs, 2));
  const axes = inputs[3] ? integersOf(inputs[3]).map((a) => normalAxis(a, x.dims.length)) : starts.map((_, i) => i);
  const steps = inputs[4] ? integersOf(inputs[4]) : starts.map(() => 1);
  const strides = rowMajorStrides(x.dims), dims = [...x.dims];
  let offset = 0;
  axes.forEach((axis, i) => {
    const size = x.dims[axis] ?? 0, step = steps[i] ?? 1;
    if (step === 0) fail("OF7014", "Slice has a step of 0", { hint: "check the steps that are fed" });
    const bound = (v: number, least: number, most: number): number => Math.min(Math.max(v < 0 ? v + size : v, least), most);
    const start = step > 0 ? bound(starts[i] ?? 0, 0, size) : bound(starts[i] ?? 0, 0, size - 1);
    const end = step > 0 ? bound(ends[i] ?? 0, 0, size) : bound(ends[i] ?? 0, -1, size - 1);
    dims[axis] = Math.max(0, Math.ceil((end - start) / step));
    offset += start * (strides[axis] ?? 0);
    strides[axis] = (strides[axis] ?? 0) * step;
  });
  return [pick(x, dims, stridedIndices(dims, strides, offset))];
};

/** Where padded position p of an axis of n elements reads; −1 for the constant. */
function padSource(mode: string, p: number, n: number): number {
  if (p >= 0 && p < n) return p;
  switch (mode) {
    case "constant": return -1;
    case "edge": return p < 0 ? 0 : n - 1;
    case "wrap": return ((p % n) + n) % n;
    case "reflect": {
      if (n === 1) return 0;
      const period = 2 * (n - 1), q = ((p % period) + period) % period;
      return q < n ? q : period - q;
    }
    default: return invariant(false, `pad mode ${mode}`) as never;
  }
}
export const Pad: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), given = integersOf(input(inputs, 1)), [, , value] = inputs;
  const axes = inputs[3] ? integersOf(inputs[3]).map((a) => normalAxis(a, x.dims.length)) : x.dims.map((_, i) => i);
  const mode = stringOf(attributes, "mode", "constant");
  const before = x.dims.map(() => 0), dims = [...x.dims];
  axes.forEach((axis, i) => {
    before[axis] = given[i] ?? 0;
    dims[axis] = Math.max(0, (x.dims[axis] ?? 0) + (given[i] ?? 0) + (given[i + axes.length] ?? 0));
  });
  const out = zeros(x.dtype, dims), copy = copier(x, out), fill = value ? copier(castTensor(value, x.dtype), out) : undefined;
  const strides = rowMajorStrides(x.dims), outStrides = rowMajorStrides(dims);
  for (let i = 0; i < sizeOf(dims); i++) {
    let source = 0;
    for (let d = 0; d < dims.length && source >= 0; d++) {
      const p = padSource(mode, (Math.floor(i / (outStrides[d] ?? 1)) % (dims[d] ?? 1)) - (before[d] ?? 0), x.dims[d] ?? 0);
      source = p < 0 ? -1 : source + p * (strides[d] ?? 0);
    }
    if (source >= 0) copy(source, i);
    else fill?.(0, i);
  }
  return [out];
};

/** A rank-4 tensor read at the coordinates that `source` gives for each of the result's. */
function rearrange(x: Tensor, dims: readonly [number, number, number, number], source: (c: number, h: number, w: number) => readonly [number, number, number]): Tensor {
  const [batch, channels, height, width] = dims, [, c0 = 1, h0 = 1, w0 = 1] = x.dims;
  const sources = Array.from({ length: batch * channels * height * width }, (_, i) => {
    const w = i % width, h = Math.floor(i / width) % height, c = Math.floor(i / (width * height)) % channels, n = Math.floor(i / (width * height * channels));
    const [sc, sh, sw] = source(c, h, w);
    return ((n * c0 + sc) * h0 + sh) * w0 + sw;
  });
  return pick(x, dims, sources);
}
export const DepthToSpace: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), b = numberOf(attributes, "blocksize"), [n = 1, c = 1, h = 1, w = 1] = x.dims;
  const depth = c / (b * b), columnFirst = stringOf(attributes, "mode", "DCR") === "CRD";
  return [rearrange(x, [n, depth, h * b, w * b], (k, i, j) => {
    const cell = (i % b) * b + (j % b);
    return [columnFirst ? k * b * b + cell : cell * depth + k, Math.floor(i / b), Math.floor(j / b)];
  })];
};
export const SpaceToDepth: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), b = numberOf(attributes, "blocksize"), [n = 1, c = 1, h = 1, w = 1] = x.dims;
  return [rearrange(x, [n, c * b * b, h / b, w / b], (k, i, j) => {
    const cell = Math.floor(k / c);
    return [k % c, i * b + Math.floor(cell / b), j * b + (cell % b)];
  })];
};

export const ReverseSequence: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), lengths = toNumbers(input(inputs, 1));
  const batchAxis = numberOf(attributes, "batch_axis"), timeAxis = numberOf(attributes, "time_axis");
  const strides = rowMajorStrides(x.dims), batchStride = strides[batchAxis] ?? 1, timeStride = strides[timeAxis] ?? 1;
  return [pick(x, x.dims, stridedIndices([sizeOf(x.dims)], [1]).map((i) => {
    const t = Math.floor(i / timeStride) % (x.dims[timeAxis] ?? 1), b = Math.floor(i / batchStride) % (x.dims[batchAxis] ?? 1);
    const length = lengths[b] ?? 0;
    return t < length ? i + (length - 1 - 2 * t) * timeStride : i;
  }))];
};
