/** Ways to come to a value of a given type: fed, or computed from others by an operator that gives just that type. */
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf } from "../src/core/tensor.ts";
import type { GraphBuilder, Known } from "./graph-builder.ts";
import { broadcastable, ints, tensor, within } from "./values.ts";

type Produce = (b: GraphBuilder, dtype: DType, dims: readonly number[], depth: number) => Known | undefined;

const leaf: Produce = (b, dtype, dims) => (b.draw.once(4) ? b.constant(tensor(b.draw, dtype, dims, b.mode)) : b.feed(tensor(b.draw, dtype, dims, b.mode)));

/** A value of this type: at times one that is there already. */
export function produce(b: GraphBuilder, dtype: DType, dims: readonly number[], depth: number): Known {
  const { draw } = b, same = b.values.filter((v) => v.tensor.dtype === dtype && v.tensor.dims.join() === dims.join());
  if (same.length && draw.once(3)) return draw.pick(same);
  const made = depth > 0 ? draw.pick(producers)(b, dtype, dims, depth - 1) : undefined;
  return made ?? leaf(b, dtype, dims, 0) ?? b.feed(tensor(draw, dtype, dims, b.mode));
}

const changed = (dims: readonly number[], axis: number, size: number): number[] => dims.map((d, i) => (i === axis ? size : d));
const axisWhere = (b: GraphBuilder, dims: readonly number[], is: (d: number) => boolean): number | undefined => {
  const able = dims.flatMap((d, i) => (is(d) ? [i] : []));
  return able.length ? b.draw.pick(able) : undefined;
};
export const shuffled = (b: GraphBuilder, n: number): number[] => {
  const left = Array.from({ length: n }, (_, i) => i);
  return Array.from({ length: n }, () => left.splice(b.draw.int(left.length), 1)[0] ?? 0);
};
export const hasArithmetic = (dtype: DType): boolean => isFloat(dtype) || dtype === "int32" || dtype === "int64";

const unary: Produce = (b, dtype, dims, depth) => {
  const types = isFloat(dtype) ? ["Relu", "Abs", "Neg", "Sigmoid", "Tanh", "Identity", "Sqrt", "Exp", "Floor", "LeakyRelu"] : dtype === "bool" ? ["Not", "Identity"] : ["Identity", "Abs"];
  return b.emit(b.draw.pick(types), [produce(b, dtype, dims, depth)])[0];
};
const binary: Produce = (b, dtype, dims, depth) => {
  if (dtype !== "bool" && !hasArithmetic(dtype)) return undefined;
  const type = b.draw.pick(dtype === "bool" ? ["And", "Or", "Xor"] : isFloat(dtype) ? ["Add", "Sub", "Mul", "Div", "Max", "Min"] : ["Add", "Sub", "Mul", "Max", "Min"]);
  const full = produce(b, dtype, dims, depth), part = produce(b, dtype, broadcastable(b.draw, dims), depth);
  return b.emit(type, b.draw.once(2) ? [full, part] : [part, full])[0];
};
const transpose: Produce = (b, dtype, dims, depth) => {
  const perm = shuffled(b, dims.length), from = dims.map(() => 0);
  perm.forEach((p, i) => { from[p] = dims[i] ?? 1; });
  return dims.length ? b.emit("Transpose", [produce(b, dtype, from, depth)], { perm })[0] : undefined;
};
const reshape: Produce = (b, dtype, dims, depth) => {
  if (sizeOf(dims) === 0) return undefined;
  const at = dims.length > 1 ? b.draw.int(dims.length - 1) : -1, merged = at < 0 ? [sizeOf(dims)] : [...dims.slice(0, at), (dims[at] ?? 1) * (dims[at + 1] ?? 1), ...dims.slice(at + 2)];
  const open = dims.length ? b.draw.int(2 * dims.length) : 1;
  return b.emit("Reshape", [produce(b, dtype, merged, depth), b.constant(ints(...dims.map((d, i) => (i === open ? -1 : d))))])[0];
};
const slice: Produce = (b, dtype, dims, depth) => {
  const axis = axisWhere(b, dims, (d) => d > 0);
  if (axis === undefined) return undefined;
  const size = dims[axis] ?? 1, before = b.draw.int(3), step = b.draw.pick([1, 1, 2]), from = before + (size - 1) * step + 1 + b.draw.int(2);
  const bounds = [ints(before), ints(before + (size - 1) * step + 1), ints(axis), ints(step)].map((t) => b.constant(t));
  return b.emit("Slice", [produce(b, dtype, changed(dims, axis, from), depth), ...bounds])[0];
};
const concat: Produce = (b, dtype, dims, depth) => {
  const axis = axisWhere(b, dims, (d) => d > 1);
  if (axis === undefined) return undefined;
  const size = dims[axis] ?? 2, first = b.draw.int(size + 1);
  return b.emit("Concat", [first, size - first].map((n) => produce(b, dtype, changed(dims, axis, n), depth)), { axis })[0];
};
const where: Produce = (b, dtype, dims, depth) => b.emit("Where", [produce(b, "bool", broadcastable(b.draw, dims), 0), produce(b, dtype, dims, depth), produce(b, dtype, broadcastable(b.draw, dims), depth)])[0];
const cast: Produce = (b, dtype, dims, depth) => {
  const from: DType = isFloat(dtype) ? b.draw.pick(["float32", "float64", "float16", "int32", "int64", "uint8", "bool"] as const) : b.draw.pick(["int32", "int64", "uint8", "bool"] as const);
  return b.emit("Cast", [produce(b, from, dims, depth)], { to: dtypes[dtype].onnx })[0];
};
const reduce: Produce = (b, dtype, dims, depth) => {
  const axis = axisWhere(b, dims, (d) => d === 1);
  if (axis === undefined || !hasArithmetic(dtype)) return undefined;
  const type = b.draw.pick(["ReduceSum", "ReduceMax", "ReduceMin", ...(isFloat(dtype) ? ["ReduceMean", "ReduceL2"] : [])]);
  return b.emit(type, [produce(b, dtype, changed(dims, axis, b.draw.pick([2, 3, 5])), depth), b.constant(ints(axis))], { keepdims: 1 })[0];
};
const gather: Produce = (b, dtype, dims, depth) => {
  if (!dims.length) return undefined;
  const axis = b.draw.int(dims.length), from = b.draw.pick([1, 3, 4]), at = within(b.draw, "int64", [dims[axis] ?? 1], -from, from);
  return b.emit("Gather", [produce(b, dtype, changed(dims, axis, from), depth), b.draw.once(2) ? b.constant(at) : b.feed(at)], { axis })[0];
};
const expand: Produce = (b, dtype, dims, depth) => (dims.length ? b.emit("Expand", [produce(b, dtype, broadcastable(b.draw, dims), depth), b.constant(ints(...dims))])[0] : undefined);
const matMul: Produce = (b, dtype, dims, depth) => {
  if (!isFloat(dtype) || dims.length < 2) return undefined;
  const k = b.draw.pick([1, 3, 4, 7]), batch = dims.slice(0, -2), [m = 1, n = 1] = dims.slice(-2);
  return b.emit("MatMul", [produce(b, dtype, [...batch, m, k], depth), produce(b, dtype, [...broadcastable(b.draw, batch), k, n], depth)])[0];
};
const unsqueeze: Produce = (b, dtype, dims, depth) => {
  const axis = axisWhere(b, dims, (d) => d === 1);
  return axis === undefined ? undefined : b.emit("Unsqueeze", [produce(b, dtype, dims.toSpliced(axis, 1), depth), b.constant(ints(axis))])[0];
};
const squeeze: Produce = (b, dtype, dims, depth) => {
  const axis = b.draw.int(dims.length + 1);
  return dims.length > 5 ? undefined : b.emit("Squeeze", [produce(b, dtype, dims.toSpliced(axis, 0, 1), depth), b.constant(ints(axis))])[0];
};
const pad: Produce = (b, dtype, dims, depth) => {
  const axis = axisWhere(b, dims, (d) => d > 2);
  if (axis === undefined || dtype === "bool") return undefined;
  const pads = dims.map((_, i) => (i === axis ? 1 : 0));
  return b.emit("Pad", [produce(b, dtype, changed(dims, axis, (dims[axis] ?? 3) - 2), depth), b.constant(ints(...pads, ...pads))], { mode: b.draw.pick(["constant", "edge"]) })[0];
};
const clip: Produce = (b, dtype, dims, depth) => {
  if (!hasArithmetic(dtype)) return undefined;
  const bound = (v: number): Known => b.constant(fromNumbers(dtype, [], [v]));
  return b.emit("Clip", [produce(b, dtype, dims, depth), bound(b.draw.int(3) - 2), bound(1 + b.draw.int(5))])[0];
};

const producers: readonly Produce[] = [leaf, unary, unary, binary, binary, binary, transpose, reshape, slice, concat, where, cast, reduce, gather, expand, matMul, unsqueeze, squeeze, pad, clip];
