/** Evaluation of operators on shapes: those that read, set or make them. */
import { invariant } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { byteSize, checkElementCount, dtypeFromOnnx, isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromBigInts, fromNumbers, sizeOf, toBigInts, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { broadcastTo, copier, filled, input, normalAxis, pick, wrapped } from "./map-elements.ts";
import { broadcastDims, stridedIndices } from "../core/strided.ts";
import { integersOf, numberOf } from "./read-attribute.ts";

const int64 = (values: readonly number[]): Tensor => fromBigInts("int64", [values.length], values.map(BigInt));
const withDims = (t: Tensor, dims: readonly number[]): Tensor => ({ ...t, dims });

export const Shape: Evaluate = (inputs, attributes) => {
  const { dims } = input(inputs, 0);
  const bound = (v: number): number => Math.min(Math.max(v < 0 ? v + dims.length : v, 0), dims.length);
  return [int64(dims.slice(bound(numberOf(attributes, "start", 0)), bound(numberOf(attributes, "end", dims.length))))];
};
export const Size: Evaluate = (inputs) => [fromBigInts("int64", [], [BigInt(sizeOf(input(inputs, 0).dims))])];

export const Reshape: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), target = integersOf(input(inputs, 1));
  const keepZero = numberOf(attributes, "allowzero", 0) !== 0;
  const dims = target.map((d, i) => (d === 0 && !keepZero ? data.dims[i] ?? 0 : d));
  const isCopied = (i: number): boolean => target[i] === 0 && !keepZero;
  // Sizes that are copied stand on both sides: a size of 0 among them does not hide what the size left open must be.
  const known = sizeOf(dims.filter((d, i) => d !== -1 && !isCopied(i))), left = sizeOf(data.dims.filter((_, i) => !isCopied(i)));
  const total = sizeOf(data.dims);
  const shape = dims.map((d) => (d === -1 ? (known === 0 ? 0 : left / known) : d));
  if (sizeOf(shape) !== total || !shape.every(Number.isInteger)) fail("OF7014", `[${data.dims.join(", ")}] does not reshape to [${target.join(", ")}]`, { hint: "check the shape that is fed" });
  return [withDims(data, shape)];
};
export const Flatten: Evaluate = (inputs, attributes) => {
  const data = input(inputs, 0), given = numberOf(attributes, "axis");
  const axis = given < 0 ? given + data.dims.length : given;
  return [withDims(data, [sizeOf(data.dims.slice(0, axis)), sizeOf(data.dims.slice(axis))])];
};
export const Squeeze: Evaluate = (inputs) => {
  const data = input(inputs, 0);
  const axes = inputs[1] && integersOf(inputs[1]).map((a) => normalAxis(a, data.dims.length));
  return [withDims(data, data.dims.filter((d, i) => (axes ? !axes.includes(i) : d !== 1)))];
};
export const Unsqueeze: Evaluate = (inputs) => {
  const data = input(inputs, 0), given = integersOf(input(inputs, 1));
  const rank = data.dims.length + given.length, axes = given.map((a) => normalAxis(a, rank));
  let next = 0;
  return [withDims(data, Array.from({ length: rank }, (_, i) => (axes.includes(i) ? 1 : data.dims[next++] ?? 1)))];
};

export const Expand: Evaluate = (inputs) => {
  const data = input(inputs, 0);
  return [broadcastTo(data, broadcastDims(data.dims, integersOf(input(inputs, 1))))];
};
export const Tile: Evaluate = (inputs) => {
  const data = input(inputs, 0), repeats = integersOf(input(inputs, 1));
  const dims = data.dims.map((d, i) => d * (repeats[i] ?? 1));
  checkElementCount(sizeOf(dims), byteSize(data.dtype));
  let sources = [0];
  data.dims.forEach((d, i) => { sources = sources.flatMap((s) => Array.from({ length: dims[i] ?? 0 }, (_, k) => s * d + (k % d))); });
  return [pick(data, dims, sources)];
};

export const ConstantOfShape: Evaluate = (inputs, attributes) => {
  const dims = integersOf(input(inputs, 0));
  const value = attributes.value as Tensor | undefined;
  return [value ? filled(value, dims) : zeros("float32", dims)];
};

export const Range: Evaluate = (inputs) => {
  const start = input(inputs, 0), { dtype } = start;
  if (isFloat(dtype)) {
    const [from, to, by] = [0, 1, 2].map((i) => toNumbers(input(inputs, i))[0] ?? 0) as [number, number, number];
    const count = Math.max(0, Math.ceil((to - from) / by));
    checkElementCount(count, byteSize(dtype));
    return [fromNumbers(dtype, [count], Float64Array.from({ length: count }, (_, i) => from + i * by))];
  }
  const [from, to, by] = [0, 1, 2].map((i) => toBigInts(input(inputs, i))[0] ?? 0n) as [bigint, bigint, bigint];
  if (by === 0n) fail("OF7014", "Range has a step of 0", { hint: "check the values that are fed" });
  const span = to - from, count = span === 0n || span > 0n !== by > 0n ? 0 : Number((span + by - (by > 0n ? 1n : -1n)) / by);
  checkElementCount(count, byteSize(dtype));
  return [wrapped(dtype, [count], Array.from({ length: count }, (_, i) => from + BigInt(i) * by))];
};

export const EyeLike: Evaluate = (inputs, attributes) => {
  const like = input(inputs, 0), [rows = 0, columns = 0] = like.dims;
  const to = attributes.dtype;
  const dtype = typeof to === "number" ? dtypeFromOnnx(to) : like.dtype;
  invariant(dtype !== undefined && dtype !== "string", "EyeLike has a numeric type");
  const k = numberOf(attributes, "k", 0);
  return [fromNumbers(dtype, like.dims, Array.from({ length: rows * columns }, (_, i) => ((i % columns) - Math.floor(i / columns) === k ? 1 : 0)))];
};

export const Trilu: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), k = inputs[1] ? integersOf(inputs[1])[0] ?? 0 : 0;
  const upper = numberOf(attributes, "upper") !== 0;
  const rows = x.dims[x.dims.length - 2] ?? 1, columns = x.dims[x.dims.length - 1] ?? 1;
  return [pick(x, x.dims, stridedIndices([sizeOf(x.dims)], [1]).map((i) => {
    const diagonal = (i % columns) - (Math.floor(i / columns) % rows);
    return (upper ? diagonal >= k : diagonal <= k) ? i : -1;
  }))];
};

/** One where the class is, `values` being [off, on]; a class outside [-depth, depth) has no one. */
export const OneHot: Evaluate = (inputs, attributes) => {
  const indices = input(inputs, 0), depth = Math.trunc(toNumbers(input(inputs, 1))[0] ?? 0), values = input(inputs, 2);
  const rank = indices.dims.length + 1, axis = normalAxis(numberOf(attributes, "axis", -1), rank);
  const dims = [...indices.dims.slice(0, axis), depth, ...indices.dims.slice(axis)];
  const out = zeros(values.dtype, dims), copy = copier(values, out);
  const inner = sizeOf(indices.dims.slice(axis)), classes = toNumbers(indices);
  for (let i = 0; i < sizeOf(dims); i++) {
    const k = Math.floor(i / inner) % depth, at = Math.floor(i / (inner * depth)) * inner + (i % inner);
    const c = Math.trunc(classes[at] ?? 0);
    copy((c < 0 ? c + depth : c) === k ? 1 : 0, i);
  }
  return [out];
};
