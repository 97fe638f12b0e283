/** Cases of operators that move, pick or repeat elements. */
import type { DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";
import { exact, roundings, type FuzzCase, type Generator, type Tolerance } from "./fuzz-case.ts";
import { all, anyMode, broadcastable, dims, fullDims, ints, numbers, tensor, within } from "./values.ts";

const axisOf = (draw: Draw, rank: number): number => draw.int(2 * rank) - rank;
function shuffled(draw: Draw, n: number): number[] {
  const left = Array.from({ length: n }, (_, i) => i);
  return Array.from({ length: n }, () => left.splice(draw.int(left.length), 1)[0] ?? 0);
}
const any = (draw: Draw, shape: readonly number[]) => tensor(draw, draw.pick(all), shape, anyMode(draw));
/** Parameters are constants of the model, or fed. */
const maybeConstant = (draw: Draw, ...at: readonly number[]): Pick<FuzzCase, "constants"> => (draw.once(2) ? { constants: at } : {});
/** A size of 0 in an input's declaration means an unknown one, so that lists that say a rank are constants where they are empty. */
const constantWhereEmpty = (draw: Draw, list: readonly number[], at: number): Pick<FuzzCase, "constants"> => (list.length ? maybeConstant(draw, at) : { constants: [at] });
const subset = (draw: Draw, n: number): number[] => Array.from({ length: n }, (_, i) => i).filter(() => draw.once(2));

const gathered = (dtype: DType, reduction: string): Tolerance => ((dtype === "float16" || dtype === "bfloat16") && (reduction === "add" || reduction === "mul") ? roundings : exact);

export const movement: Readonly<Record<string, Generator>> = {
  Transpose: (draw) => { const shape = dims(draw); return { type: "Transpose", inputs: [any(draw, shape)], attributes: draw.once(3) ? {} : { perm: shuffled(draw, shape.length) }, outputs: 1, tolerance: exact }; },
  Reshape: (draw) => {
    const shape = dims(draw), to = regroup(draw, shape), zero = sizeOf(shape) === 0;
    const target = !zero && to.length && draw.once(2) ? to.map((d, i) => (i === to.length - 1 ? -1 : d)) : to;
    return { type: "Reshape", inputs: [any(draw, shape), ints(...target)], attributes: zero ? { allowzero: 1 } : {}, outputs: 1, tolerance: exact, ...constantWhereEmpty(draw, target, 1) };
  },
  Flatten: (draw) => { const shape = dims(draw, 0, 5); return { type: "Flatten", inputs: [any(draw, shape)], attributes: { axis: draw.int(2 * shape.length + 1) - shape.length }, outputs: 1, tolerance: exact }; },
  Squeeze: (draw) => {
    const shape = dims(draw).map((d) => (draw.once(2) ? 1 : d)), ones = shape.flatMap((d, i) => (d === 1 ? [i] : [])).filter(() => draw.once(2));
    return { type: "Squeeze", inputs: [any(draw, shape), ...(ones.length ? [ints(...ones.map((a) => (draw.once(2) ? a - shape.length : a)))] : [])], outputs: 1, tolerance: exact, ...(ones.length ? maybeConstant(draw, 1) : {}) };
  },
  Unsqueeze: (draw) => {
    const shape = dims(draw, 0, 4), rank = shape.length + 2, axes = shuffled(draw, rank).slice(0, 2).map((a) => (draw.once(2) ? a - rank : a));
    return { type: "Unsqueeze", inputs: [any(draw, shape), ints(...axes)], outputs: 1, tolerance: exact, ...maybeConstant(draw, 1) };
  },
  Concat: (draw) => {
    const shape = dims(draw, 1, 5), axis = axisOf(draw, shape.length), at = axis < 0 ? axis + shape.length : axis, dtype = draw.pick(all);
    return { type: "Concat", inputs: Array.from({ length: 1 + draw.int(3) }, () => tensor(draw, dtype, shape.map((d, i) => (i === at ? draw.int(4) : d)), anyMode(draw))), attributes: { axis }, outputs: 1, tolerance: exact };
  },
  Split: (draw) => {
    const shape = dims(draw, 1, 5), axis = axisOf(draw, shape.length), at = axis < 0 ? axis + shape.length : axis, parts = Array.from({ length: 1 + draw.int(3) }, () => draw.int(4));
    const own = shape.map((d, i) => (i === at ? parts.reduce((a, b) => a + b, 0) : d));
    return { type: "Split", inputs: [any(draw, own), ints(...parts)], attributes: { axis }, outputs: parts.length, tolerance: exact, constants: [1] };
  },
  Slice: (draw) => {
    const shape = dims(draw, 1, 5), axes = subset(draw, shape.length), far = [2147483647, -2147483648];
    const bound = (d: number): number => (draw.once(5) ? draw.pick(far) : draw.int(2 * d + 5) - d - 2);
    const own = axes.map((a) => [bound(shape[a] ?? 1), bound(shape[a] ?? 1), draw.pick([1, 1, 2, 3, -1, -2])] as const);
    return { type: "Slice", inputs: [any(draw, shape), ints(...own.map((o) => o[0])), ints(...own.map((o) => o[1])), ints(...axes.map((a) => (draw.once(2) ? a - shape.length : a))), ints(...own.map((o) => o[2]))], outputs: 1, tolerance: exact, ...maybeConstant(draw, 1, 2, 3, 4) };
  },
  Gather: (draw) => {
    const full = fullDims(draw, 1, 5), axis = axisOf(draw, full.length), shape = full.map((d, i) => (i !== (axis < 0 ? axis + full.length : axis) && draw.once(24) ? 0 : d)), size = shape.at(axis) ?? 1;
    return { type: "Gather", inputs: [any(draw, shape), within(draw, draw.pick(["int64", "int32"] as const), dims(draw, 0, 2), -size, size)], attributes: { axis }, outputs: 1, tolerance: exact, ...maybeConstant(draw, 1) };
  },
  GatherElements: (draw) => {
    const shape = fullDims(draw, 1, 4), axis = axisOf(draw, shape.length), at = axis < 0 ? axis + shape.length : axis, size = shape[at] ?? 1;
    const own = shape.map((d, i) => (i === at ? 1 + draw.int(4) : 1 + draw.int(d)));
    return { type: "GatherElements", inputs: [any(draw, shape), within(draw, "int64", own, -size, size)], attributes: { axis }, outputs: 1, tolerance: exact };
  },
  GatherND: (draw) => {
    const shape = fullDims(draw, 1, 4), batch = draw.int(Math.min(2, shape.length)), depth = 1 + draw.int(shape.length - batch), own = [...shape.slice(0, batch), 1 + draw.int(3), depth];
    const size = Math.min(...shape.slice(batch, batch + depth));
    return { type: "GatherND", inputs: [any(draw, shape), within(draw, "int64", own, -size, size)], attributes: { batch_dims: batch }, outputs: 1, tolerance: exact };
  },
  ScatterElements: (draw) => {
    const shape = fullDims(draw, 1, 4), axis = axisOf(draw, shape.length), at = axis < 0 ? axis + shape.length : axis, dtype = draw.pick(numbers), reduction = draw.pick(["none", "add", "mul", "max", "min"]);
    const own = shape.map((d, i) => (i === at ? 1 : 1 + draw.int(d))), mode = reduction === "none" ? anyMode(draw) : "tame";
    return { type: "ScatterElements", inputs: [tensor(draw, dtype, shape, mode), within(draw, "int64", own, -(shape[at] ?? 1), shape[at] ?? 1), tensor(draw, dtype, own, mode)], attributes: { axis, reduction }, outputs: 1, tolerance: gathered(dtype, reduction) };
  },
  ScatterND: (draw) => {
    const shape = fullDims(draw, 1, 4), depth = 1 + draw.int(shape.length), dtype = draw.pick(numbers), reduction = draw.pick(["none", "add", "mul", "max", "min"]), rows = reduction === "none" ? 1 : 1 + draw.int(3);
    const mode = reduction === "none" ? anyMode(draw) : "tame", size = Math.min(...shape.slice(0, depth));
    return { type: "ScatterND", inputs: [tensor(draw, dtype, shape, mode), within(draw, "int64", [rows, depth], -size, size), tensor(draw, dtype, [rows, ...shape.slice(depth)], mode)], attributes: { reduction }, outputs: 1, tolerance: gathered(dtype, reduction) };
  },
  Expand: (draw) => { const shape = dims(draw), part = broadcastable(draw, shape); return { type: "Expand", inputs: [any(draw, part), ints(...(draw.once(2) ? shape : shape.map((d) => (draw.once(3) && part.length === shape.length ? 1 : d))))], outputs: 1, tolerance: exact, ...constantWhereEmpty(draw, shape, 1) }; },
  Tile: (draw) => { const shape = dims(draw, 1, 4); return { type: "Tile", inputs: [any(draw, shape), ints(...shape.map(() => draw.pick([1, 2, 0, 3])))], outputs: 1, tolerance: exact, ...maybeConstant(draw, 1) }; },
  Pad: (draw) => {
    const shape = fullDims(draw, 1, 4), mode = draw.pick(["constant", "constant", "reflect", "edge", "wrap"]), dtype = draw.pick(numbers);
    const amount = (d: number): number => (mode === "constant" ? draw.int(5) - Math.min(1, d - 1) : draw.int(Math.max(1, d)));
    const pads = [...shape.map(amount), ...shape.map(amount)];
    return { type: "Pad", inputs: [tensor(draw, dtype, shape, anyMode(draw)), ints(...pads), ...(mode === "constant" && draw.once(2) ? [tensor(draw, dtype, [], anyMode(draw))] : [])], attributes: { mode }, outputs: 1, tolerance: exact, ...maybeConstant(draw, 1) };
  },
  DepthToSpace: (draw) => { const b = draw.pick([2, 1, 3]), shape = [1 + draw.int(2), b * b * (1 + draw.int(2)), 1 + draw.int(3), 1 + draw.int(3)]; return { type: "DepthToSpace", inputs: [any(draw, shape)], attributes: { blocksize: b, mode: draw.pick(["DCR", "CRD"]) }, outputs: 1, tolerance: exact }; },
  SpaceToDepth: (draw) => { const b = draw.pick([2, 1, 3]), shape = [1 + draw.int(2), 1 + draw.int(3), b * (1 + draw.int(3)), b * (1 + draw.int(2))]; return { type: "SpaceToDepth", inputs: [any(draw, shape)], attributes: { blocksize: b }, outputs: 1, tolerance: exact }; },
  ReverseSequence: (draw) => { const shape = [1 + draw.int(4), 1 + draw.int(4), ...dims(draw, 0, 2)], time = draw.int(2); return { type: "ReverseSequence", inputs: [any(draw, shape), within(draw, "int64", [shape[1 - time] ?? 1], 1, (shape[time] ?? 1) + 1)], attributes: { time_axis: time, batch_axis: 1 - time }, outputs: 1, tolerance: exact }; },
  Trilu: (draw) => { const shape = dims(draw, 2, 4); return { type: "Trilu", inputs: [any(draw, shape), ...(draw.once(2) ? [fromNumbers("int64", [], [draw.int(9) - 4])] : [])], attributes: { upper: draw.int(2) }, outputs: 1, tolerance: exact }; },
  EyeLike: (draw) => ({ type: "EyeLike", inputs: [tensor(draw, "float32", dims(draw, 2, 2), "tame")], attributes: { k: draw.int(7) - 3, ...(draw.once(2) ? { dtype: draw.pick([1, 7, 11]) } : {}) }, outputs: 1, tolerance: exact }),
  OneHot: (draw) => { const shape = dims(draw, 0, 3), depth = 1 + draw.int(5), dtype = draw.pick(["float32", "int64", "int32"] as const); return { type: "OneHot", inputs: [within(draw, draw.pick(["int64", "int32", "float32"] as const), shape, -depth, depth + 2), fromNumbers("int64", [], [depth]), tensor(draw, dtype, [2], "tame")], attributes: { axis: draw.int(2 * shape.length + 2) - shape.length - 1 }, outputs: 1, tolerance: exact, ...maybeConstant(draw, 1) }; },
  ConstantOfShape: (draw) => { const shape = dims(draw); return { type: "ConstantOfShape", inputs: [ints(...shape)], attributes: draw.once(2) ? { value: tensor(draw, draw.pick(numbers), [1], anyMode(draw)) } : {}, outputs: 1, tolerance: exact, ...constantWhereEmpty(draw, shape, 0) }; },
  Range: (draw) => { const dtype = draw.pick(["int64", "int32", "float32", "float64", "int16"] as const), step = draw.pick([1, 2, 3, -1, -2]), n = draw.int(9), from = draw.int(9) - 4; return { type: "Range", inputs: [from, from + step * n + draw.int(2), step].map((v) => fromNumbers(dtype, [], [v])), outputs: 1, tolerance: exact, ...maybeConstant(draw, 0, 1, 2) }; },
  Shape: (draw) => ({ type: "Shape", inputs: [any(draw, dims(draw))], attributes: { start: draw.int(9) - 4, ...(draw.once(2) ? { end: draw.int(9) - 4 } : {}) }, outputs: 1, tolerance: exact }),
  Size: (draw) => ({ type: "Size", inputs: [any(draw, dims(draw))], outputs: 1, tolerance: exact }),
  NonZero: (draw) => ({ type: "NonZero", inputs: [any(draw, dims(draw, 1, 5))], outputs: 1, tolerance: exact }),
  Compress: (draw) => { const shape = dims(draw, 1, 4), flat = draw.once(2), axis = axisOf(draw, shape.length); return { type: "Compress", inputs: [any(draw, shape), tensor(draw, "bool", [flat ? Math.min(sizeOf(shape), 1 + draw.int(9)) : Math.min(shape.at(axis) ?? 1, 1 + draw.int(9))], "tame")], attributes: flat ? {} : { axis }, outputs: 1, tolerance: exact }; },
  Unique: (draw) => { const shape = fullDims(draw, 1, 3), flat = draw.once(2); return { type: "Unique", inputs: [tensor(draw, draw.pick(["float32", "int64", "int8", "float64"] as const), shape, draw.pick(["tame"] as const))], attributes: { sorted: draw.int(2), ...(flat ? {} : { axis: axisOf(draw, shape.length) }) }, outputs: 4, tolerance: exact }; },
  CumSum: (draw) => { const shape = dims(draw, 1, 4); return { type: "CumSum", inputs: [tensor(draw, draw.pick(["float32", "float64", "int32", "int64"] as const), shape, "tame"), fromNumbers("int64", [], [axisOf(draw, shape.length)])], attributes: { exclusive: draw.int(2), reverse: draw.int(2) }, outputs: 1, tolerance: exact, ...maybeConstant(draw, 1) }; },
  TopK: (draw) => { const shape = fullDims(draw, 1, 4), axis = axisOf(draw, shape.length); return { type: "TopK", inputs: [tensor(draw, draw.pick(["float32", "float64", "int64", "int32"] as const), shape, draw.pick(["tame", "extreme"] as const)), ints(draw.int((shape.at(axis) ?? 1) + 1))], attributes: { axis, largest: draw.int(2) }, outputs: 2, tolerance: exact, ...maybeConstant(draw, 1) }; },
  QuantizeLinear: (draw) => { const shape = dims(draw, 1, 4), to = draw.pick(["uint8", "int8", "int16", "uint16"] as const), axis = axisOf(draw, shape.length), each = draw.once(2) ? [shape.at(axis) ?? 1] : []; return { type: "QuantizeLinear", inputs: [tensor(draw, "float32", shape, "tame"), fromNumbers("float32", each, Array.from({ length: sizeOf(each) }, () => draw.pick([0.25, 0.5, 1, 2]))), within(draw, to, each, 0, 20)], attributes: { axis }, outputs: 1, tolerance: exact }; },
  DequantizeLinear: (draw) => { const shape = dims(draw, 1, 4), from = draw.pick(["uint8", "int8", "int16", "uint16", "int32"] as const), axis = axisOf(draw, shape.length), each = draw.once(2) ? [shape.at(axis) ?? 1] : []; return { type: "DequantizeLinear", inputs: [tensor(draw, from, shape, from === "int32" ? "tame" : anyMode(draw)), fromNumbers("float32", each, Array.from({ length: sizeOf(each) }, () => draw.pick([0.25, 0.1, 1, 2]))), ...(from === "int32" ? [] : [within(draw, from, each, 0, 20)])], attributes: { axis }, outputs: 1, tolerance: exact }; },
  DynamicQuantizeLinear: (draw) => ({ type: "DynamicQuantizeLinear", inputs: [tensor(draw, "float32", fullDims(draw, 0, 4), "tame")], outputs: 3, tolerance: exact }),
};

/** Another shape with as many elements. */
function regroup(draw: Draw, shape: readonly number[]): number[] {
  const out: number[] = [];
  for (const d of shape) {
    if (out.length && draw.once(3)) out[out.length - 1] = (out[out.length - 1] ?? 1) * d;
    else if (d > 3 && d % 2 === 0 && draw.once(2)) out.push(2, d / 2);
    else out.push(d);
    if (draw.once(5)) out.push(1);
  }
  return out;
}
