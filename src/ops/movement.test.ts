import { describe, expect, it } from "vitest";
import { dtypes, type DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { distance, runOp } from "../../test/support/lowered-op.ts";
import { Concat, Split } from "./concat.ts";
import { DepthToSpace, SpaceToDepth } from "./depth-space.ts";
import { Einsum } from "./einsum.ts";
import { ConstantOfShape, Expand, EyeLike, OneHot, Range, Tile, Trilu } from "./fill.ts";
import { Gather, GatherElements, GatherND } from "./gather.ts";
import { ArgMax, ArgMin, Compress, NonZero, TopK, Unique } from "./order.ts";
import { Pad } from "./pad.ts";
import { Flatten, Reshape, Squeeze, Unsqueeze } from "./reshape.ts";
import { Resize, Upsample } from "./resize.ts";
import { ReverseSequence } from "./reverse-sequence.ts";
import { ScatterElements, ScatterND } from "./scatter.ts";
import { Shape, Size } from "./shape.ts";
import { Slice } from "./slice.ts";
import { Transpose } from "./transpose.ts";

const counted = (dims: readonly number[], dtype: DType = "float32", from = 0): Tensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => i + from));
const ints = (...values: readonly number[]): Tensor => fromNumbers("int64", [values.length], values);
const floats = (...values: readonly number[]): Tensor => fromNumbers("float32", [values.length], values);

interface Case { readonly inputs: readonly (Tensor | undefined)[]; readonly attributes?: Attributes; readonly known?: readonly number[]; readonly outputs?: number; readonly symbolic?: readonly number[]; readonly allowed?: number }
/** Lowered equals evaluated, with sizes of the first input (or those listed) as numbers and as symbols. */
function agree(op: OpDef, { inputs, attributes = {}, known = [], outputs = 1, symbolic = [0], allowed = 0 }: Case): readonly Tensor[] {
  for (const symbols of [[], symbolic]) {
    const { evaluated, lowered } = runOp({ op, inputs, attributes, known, symbolic: symbols, outputCount: outputs });
    if (!lowered) throw new Error(`${op.type} is not lowered with symbols ${symbols.join()}`);
    lowered.forEach((actual, i) => expect(distance(evaluated[i] as Tensor, actual), `${op.type} output ${i}, symbols ${symbols.join()}`).toBeLessThanOrEqual(allowed));
  }
  return runOp({ op, inputs, attributes, known, outputCount: outputs }).evaluated;
}
const hosted = (op: OpDef, { inputs, attributes = {}, known = [], outputs = 1 }: Case): readonly Tensor[] => {
  const { evaluated, lowered } = runOp({ op, inputs, attributes, known, outputCount: outputs });
  expect(lowered).toBeUndefined();
  return evaluated;
};
const numbers = (t: Tensor | undefined): number[] => Array.from(t?.data ?? [], Number);

describe("shapes", () => {
  it("Shape with a range, Size", () => {
    expect(numbers(agree(Shape, { inputs: [counted([2, 3, 5])] })[0])).toEqual([2, 3, 5]);
    expect(numbers(agree(Shape, { inputs: [counted([2, 3, 5])], attributes: { start: -2, end: 7 } })[0])).toEqual([3, 5]);
    agree(Shape, { inputs: [counted([])] });
    expect(numbers(agree(Size, { inputs: [counted([2, 3, 5])] })[0])).toEqual([30]);
  });
  it("Reshape splits, merges and copies axes", () => {
    const cases: readonly (readonly [readonly number[], readonly number[]])[] = [
      [[2, 3, 4], [6, 4]], [[2, 3, 4], [2, 12]], [[6, 4], [2, 3, 4]], [[6, 4], [4, 6]], [[6, 4], [24]], [[24], [2, 3, 4]], [[2, 3, 4], [3, 2, 4]], [[1, 6, 1], [6]],
      [[6], [1, 6, 1]], [[2, 3, 4], [0, -1]], [[2, 3, 4], [-1, 0, 2]], [[0, 3], [3, 0]], [[4, 9], [2, 18]], [[2, 3, 5, 7], [10, 21]], [[], [1, 1]], [[1], []], [[7, 1, 3], [0, 0, 3]],
    ];
    for (const [from, to] of cases) agree(Reshape, { inputs: [counted(from), ints(...to)], known: [1], attributes: to.includes(0) && from.includes(0) ? { allowzero: 1 } : {}, symbolic: from.length > 2 && to.join() === "10,21" ? [] : [0] });
  });
  it("Reshape by unknown sizes runs on the host", () => { hosted(Reshape, { inputs: [counted([6]), ints(2, 3)] }); });
  it("Reshape refuses sizes that do not fit", () => {
    expect(() => runOp({ op: Reshape, inputs: [counted([6]), ints(4, -1)], known: [1] })).toThrow(/OF3011/);
    expect(() => runOp({ op: Reshape, inputs: [counted([6]), ints(7)], known: [1] })).toThrow(/OF3011/);
    expect(() => runOp({ op: Reshape, inputs: [counted([6]), ints(-1, -1)], known: [1] })).toThrow(/OF3011/);
  });
  it("Flatten, Squeeze, Unsqueeze", () => {
    for (const axis of [0, 1, 2, 3, -1]) agree(Flatten, { inputs: [counted([2, 3, 5])], attributes: { axis } });
    agree(Squeeze, { inputs: [counted([1, 3, 1, 5]), ints(0, -2)], known: [1], symbolic: [] });
    agree(Squeeze, { inputs: [counted([1, 3, 1, 5])], symbolic: [] });
    agree(Unsqueeze, { inputs: [counted([3, 5]), ints(0, -1, 2)], known: [1] });
    expect(() => runOp({ op: Unsqueeze, inputs: [counted([3]), ints(0, 0)], known: [1] })).toThrow(/OF3012/);
    expect(() => runOp({ op: Squeeze, inputs: [counted([3]), ints(0)], known: [1] })).toThrow(/OF3011/);
  });
  it("axes move from attribute to input and back", () => {
    const old = { type: "Unsqueeze", domain: "", inputs: [{ value: "x" }], attributes: { axes: [0, 2] } };
    const read = Unsqueeze.read?.(old, 11);
    expect(read?.attributes).toEqual({});
    expect(read && Unsqueeze.write?.(read, 11)).toEqual(old);
    expect(Unsqueeze.write?.({ ...old, inputs: [{ value: "x" }, { value: "axes" }], attributes: {} }, 11)).toBeUndefined();
  });
});

describe("filling", () => {
  it("Expand, Tile", () => {
    agree(Expand, { inputs: [counted([3, 1]), ints(2, 1, 4)], known: [1], symbolic: [] });
    agree(Expand, { inputs: [counted([3, 5]), ints(1, 5)], known: [1] });
    agree(Expand, { inputs: [counted([]), ints(2, 3)], known: [1] });
    agree(Tile, { inputs: [counted([2, 3]), ints(2, 1)], known: [1] });
    agree(Tile, { inputs: [counted([2, 1, 3]), ints(1, 4, 3)], known: [1] });
    hosted(Tile, { inputs: [counted([2]), ints(2)] });
  });
  it("ConstantOfShape, EyeLike, Trilu, OneHot", () => {
    for (const dtype of ["float32", "int64", "bool", "uint8"] as const) agree(ConstantOfShape, { inputs: [ints(2, 3)], attributes: { value: counted([1], dtype, 1) }, known: [0], symbolic: [] });
    agree(ConstantOfShape, { inputs: [ints()], known: [0], symbolic: [] });
    for (const k of [0, 1, -2]) agree(EyeLike, { inputs: [counted([3, 5])], attributes: { k, dtype: dtypes.int64.onnx } });
    for (const upper of [0, 1]) for (const k of [0, 1, -1, 9]) {
      agree(Trilu, { inputs: [counted([2, 3, 4], "float32", 1), fromNumbers("int64", [], [k])], attributes: { upper }, known: [1] });
      agree(Trilu, { inputs: [counted([4, 3], "int32", 1), fromNumbers("int64", [], [k])], attributes: { upper } });
    }
    for (const axis of [0, 1, -1]) agree(OneHot, { inputs: [fromNumbers("int64", [2, 3], [0, 2, -1, 3, 7, -5]), ints(4), floats(2, 5)], attributes: { axis }, known: [1] });
  });
  it("Range counts up and down", () => {
    const scalar = (v: number, dtype: DType = "int64"): Tensor => fromNumbers(dtype, [], [v]);
    for (const [a, b, d] of [[0, 7, 1], [3, -4, -2], [5, 5, 1], [2, 9, 3]] as const) for (const dtype of ["int64", "int32", "float32"] as const)
      agree(Range, { inputs: [scalar(a, dtype), scalar(b, dtype), scalar(d, dtype)], known: [0, 1, 2], symbolic: [] });
    hosted(Range, { inputs: [scalar(0), scalar(3), scalar(1)] });
  });
});

describe("movement", () => {
  it("Transpose, Concat, Split", () => {
    agree(Transpose, { inputs: [counted([2, 3, 5])] });
    agree(Transpose, { inputs: [counted([2, 3, 5, 7])], attributes: { perm: [0, 2, 3, 1] } });
    for (const axis of [0, 1, -1]) agree(Concat, { inputs: [counted([2, 3]), counted([2, 3], "float32", 10), counted([2, 3], "float32", 20)], attributes: { axis }, symbolic: [0, 1, 2] });
    agree(Concat, { inputs: [counted([0, 3]), counted([2, 3])], attributes: { axis: 0 }, symbolic: [1] });
    agree(Concat, { inputs: [counted([2], "int64"), counted([5], "int64")], attributes: { axis: 0 }, symbolic: [0, 1] });
    agree(Split, { inputs: [counted([6, 4])], attributes: { axis: 0 }, outputs: 3, symbolic: [] });
    agree(Split, { inputs: [counted([2, 7]), ints(2, 5)], attributes: { axis: -1 }, known: [1], outputs: 2 });
    agree(Split, { inputs: [counted([7, 2])], attributes: { axis: 0, num_outputs: 3 }, outputs: 3 });
    expect(() => runOp({ op: Concat, inputs: [counted([2, 3]), counted([2, 4])], attributes: { axis: 0 } })).toThrow(/OF3011/);
  });
  it("Slice with bounds of every kind", () => {
    const x = counted([7, 5]);
    const cases: readonly (readonly number[])[] = [[1, 4, 1], [0, 7, 2], [-3, 100, 1], [-100, -2, 1], [5, 2, 1], [6, 0, -1], [100, -100, -1], [-1, -100, -3], [3, 3, 1], [0, 2 ** 31 - 1, 1], [-100, -200, -1]];
    for (const [start = 0, end = 0, step = 1] of cases) {
      agree(Slice, { inputs: [x, ints(start), ints(end), ints(0), ints(step)], known: [1, 2, 3, 4] });
      agree(Slice, { inputs: [x, ints(start, 0), ints(end, 3), undefined, ints(step, 2)], known: [1, 2, 4] });
    }
    for (const [start = 0, end = 0] of [[-(2 ** 31), 1], [2 ** 31 - 1, -(2 ** 31)], [0, -100]]) agree(Slice, { inputs: [counted([0, 5]), ints(start), ints(end), ints(0), ints(-1)], known: [1, 2, 3, 4], symbolic: [0] });
    agree(Slice, { inputs: [x, ints(-2), fromNumbers("int64", [1], [2 ** 63]), ints(-1)], known: [1, 2, 3] });
    hosted(Slice, { inputs: [x, ints(1), ints(3)] });
    expect(() => runOp({ op: Slice, inputs: [x, ints(1), ints(3), ints(0), ints(0)], known: [1, 2, 3, 4] })).toThrow(/OF3012/);
  });
  it("Pad in every mode, also cropping", () => {
    for (const mode of ["constant", "reflect", "edge", "wrap"]) for (const pads of [[1, 2, 0, 1], [0, 0, 0, 3], [-1, 2, 1, -2], [0, 0, 0, 0]])
      agree(Pad, { inputs: [counted([3, 5], "float32", 1), ints(...pads), fromNumbers("float32", [], [9])], attributes: { mode }, known: [1] });
    agree(Pad, { inputs: [counted([3, 5]), ints(2, 1), undefined, ints(-1)], known: [1, 3] });
    agree(Pad, { inputs: [counted([1, 3]), ints(2, 5, 3, 7)], attributes: { mode: "reflect" }, known: [1] });
    expect(numbers(agree(Pad, { inputs: [counted([3]), ints(2, 2)], attributes: { mode: "reflect" }, known: [1] })[0])).toEqual([2, 1, 0, 1, 2, 1, 0]);
  });
  it("DepthToSpace and SpaceToDepth", () => {
    for (const mode of ["DCR", "CRD"]) agree(DepthToSpace, { inputs: [counted([2, 8, 3, 5])], attributes: { blocksize: 2, mode } });
    agree(SpaceToDepth, { inputs: [counted([2, 3, 4, 6])], attributes: { blocksize: 2 }, symbolic: [] });
  });
  it("ReverseSequence", () => {
    agree(ReverseSequence, { inputs: [counted([4, 3]), ints(1, 4, 2)], symbolic: [0, 1] });
    agree(ReverseSequence, { inputs: [counted([3, 4, 2]), ints(1, 4, 2)], attributes: { batch_axis: 0, time_axis: 1 }, symbolic: [0, 1] });
  });
});

describe("gathering and scattering", () => {
  it("Gather with negative indices, scalars, known and unknown", () => {
    const indices = fromNumbers("int64", [2, 2], [0, -1, 2, 1]);
    for (const axis of [0, 1, -1]) for (const known of [[], [1]]) {
      agree(Gather, { inputs: [counted([3, 4, 5]), indices], attributes: { axis }, known });
      agree(Gather, { inputs: [counted([3, 4, 5]), fromNumbers("int32", [], [-2])], attributes: { axis }, known });
    }
    expect(() => runOp({ op: Gather, inputs: [counted([3]), ints(3)], known: [1] })).toThrow(/OF3012/);
  });
  it("GatherElements and GatherND", () => {
    agree(GatherElements, { inputs: [counted([3, 4]), fromNumbers("int64", [2, 4], [0, 1, 2, -1, 0, 0, 1, 2])], attributes: { axis: 0 } });
    agree(GatherElements, { inputs: [counted([3, 4]), fromNumbers("int64", [3, 1], [3, -1, 0])], attributes: { axis: 1 } });
    agree(GatherND, { inputs: [counted([2, 3, 4]), fromNumbers("int64", [2, 2], [0, 1, 1, -1])] });
    agree(GatherND, { inputs: [counted([2, 3, 4]), fromNumbers("int64", [2, 1, 1], [1, 0])], attributes: { batch_dims: 1 }, symbolic: [] });
  });
  it("ScatterND into a box is lowered, elsewhere it runs on the host", () => {
    const rows = (list: readonly (readonly number[])[], dims: readonly number[]): Tensor => fromNumbers("int64", [...dims, list[0]?.length ?? 1], list.flat());
    const box = rows([[0, 1], [0, 2], [1, 1], [1, 2]], [2, 2]);
    for (const reduction of ["none", "add", "mul", "max", "min"]) agree(ScatterND, { inputs: [counted([3, 4, 2]), box, counted([2, 2, 2], "float32", 50)], attributes: { reduction }, known: [1] });
    agree(ScatterND, { inputs: [counted([5, 2]), rows([[0], [2], [4]], [3]), counted([3, 2], "float32", 50)], known: [1] });
    agree(ScatterND, { inputs: [counted([5, 2]), rows([[-1]], [1]), counted([1, 2], "float32", 50)], known: [1], symbolic: [] });
    agree(ScatterND, { inputs: [counted([2, 3], "int8", 100), rows([[1, 0], [1, 1], [1, 2]], [3]), counted([3], "int8", 100)], attributes: { reduction: "add" }, known: [1] });
    hosted(ScatterND, { inputs: [counted([5, 2]), rows([[3], [1], [1]], [3]), counted([3, 2], "float32", 50)], known: [1] });
    hosted(ScatterND, { inputs: [counted([5, 2]), rows([[3]], [1]), counted([1, 2], "float32", 50)] });
  });
  it("ScatterElements, Compress, NonZero", () => {
    expect(numbers(hosted(ScatterElements, { inputs: [counted([3]), ints(1, -1), floats(7, 8)] })[0])).toEqual([0, 7, 8]);
    expect(numbers(hosted(ScatterElements, { inputs: [counted([3]), ints(1, 1), floats(7, 8)], attributes: { reduction: "add" } })[0])).toEqual([0, 16, 2]);
    expect(numbers(hosted(Compress, { inputs: [counted([2, 3]), fromNumbers("bool", [2], [0, 1])], attributes: { axis: 0 } })[0])).toEqual([3, 4, 5]);
    expect(numbers(hosted(Compress, { inputs: [counted([2, 3]), fromNumbers("bool", [5], [0, 1, 0, 0, 1])] })[0])).toEqual([1, 4]);
    expect(numbers(hosted(NonZero, { inputs: [fromNumbers("float32", [2, 2], [1, 0, NaN, 3])] })[0])).toEqual([0, 1, 1, 0, 0, 1]);
  });
});

describe("order", () => {
  it("ArgMax and ArgMin find the first or the last, NaN before numbers", () => {
    const x = fromNumbers("float32", [2, 5], [1, 3, 3, -2, -2, 0, NaN, 5, NaN, -0]);
    for (const op of [ArgMax, ArgMin]) for (const axis of [0, 1, -1]) for (const keepdims of [0, 1]) for (const select_last_index of [0, 1]) {
      agree(op, { inputs: [x], attributes: { axis, keepdims, select_last_index } });
      agree(op, { inputs: [counted([3, 4], "int64")], attributes: { axis, keepdims, select_last_index } });
    }
    expect(numbers(agree(ArgMax, { inputs: [x], attributes: { axis: 1, keepdims: 0 } })[0])).toEqual([1, 1]);
  });
  it("TopK, Unique", () => {
    const [values, indices] = hosted(TopK, { inputs: [floats(3, 1, NaN, 3, 2), ints(3)], known: [1], outputs: 2 });
    expect([numbers(values), numbers(indices)]).toEqual([[NaN, 3, 3], [2, 0, 3]]);
    expect(numbers(hosted(TopK, { inputs: [floats(3, 1, 3, 2), ints(2)], attributes: { largest: 0 }, known: [1], outputs: 2 })[1])).toEqual([1, 3]);
    const [y, first, inverse, counts] = hosted(Unique, { inputs: [floats(2, 1, 2, 3)], attributes: { sorted: 0 }, outputs: 4 });
    expect([numbers(y), numbers(first), numbers(inverse), numbers(counts)]).toEqual([[2, 1, 3], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]]);
  });
});

describe("Resize", () => {
  const image = fromNumbers("float32", [1, 2, 4, 5], Array.from({ length: 40 }, (_, i) => Math.sin(i)));
  const transforms = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"];
  it("nearest, in every coordinate and rounding mode", () => {
    for (const coordinate_transformation_mode of transforms) for (const nearest_mode of ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"])
      for (const scales of [[1, 1, 2, 3], [1, 1, 0.5, 0.6], [1, 1, 1.3, 1]]) agree(Resize, { inputs: [image, undefined, floats(...scales)], attributes: { coordinate_transformation_mode, nearest_mode }, known: [2], symbolic: scales.every(Number.isInteger) ? [0] : [] });
  });
  it("linear and cubic, by scales and by sizes", () => {
    for (const mode of ["linear", "cubic"]) for (const coordinate_transformation_mode of transforms) for (const exclude_outside of [0, 1]) {
      agree(Resize, { inputs: [image, undefined, floats(1, 1, 2, 0.5)], attributes: { mode, coordinate_transformation_mode, exclude_outside }, known: [2], allowed: 4e-6 });
      agree(Resize, { inputs: [image, undefined, undefined, ints(1, 2, 7, 3)], attributes: { mode, coordinate_transformation_mode, exclude_outside }, known: [3], symbolic: [], allowed: 4e-6 });
    }
  });
  it("crops with an outside value", () => {
    for (const mode of ["nearest", "linear", "cubic"]) agree(Resize, {
      inputs: [image, floats(0, 0, 0.4, -0.2, 1, 1, 1.2, 0.8), undefined, ints(1, 2, 3, 6)], known: [1, 3],
      attributes: { mode, coordinate_transformation_mode: "tf_crop_and_resize", extrapolation_value: 7 }, symbolic: [], allowed: 4e-6,
    });
  });
  it("keeps the aspect ratio and takes some axes", () => {
    for (const keep_aspect_ratio_policy of ["stretch", "not_larger", "not_smaller"]) {
      const [y] = agree(Resize, { inputs: [image, undefined, undefined, ints(7, 8)], attributes: { axes: [2, 3], keep_aspect_ratio_policy }, known: [3], symbolic: [] });
      expect(y?.dims.slice(2)).toEqual(keep_aspect_ratio_policy === "stretch" ? [7, 8] : keep_aspect_ratio_policy === "not_larger" ? [6, 8] : [7, 9]);
    }
  });
  it("reads Upsample, and Resize before opset 11", () => {
    const old = { type: "Upsample", domain: "", inputs: [{ value: "x" }], attributes: { mode: "nearest", scales: [1, 1, 2, 2] } };
    const read = Upsample.read?.(old, 7);
    expect(read).toMatchObject({ type: "Resize", attributes: { mode: "nearest", coordinate_transformation_mode: "asymmetric", nearest_mode: "simple" } });
    const ten = { type: "Resize", domain: "", inputs: [{ value: "x" }, { value: "s" }], attributes: { mode: "linear" } };
    const newest = Resize.read?.(ten, 10);
    expect(newest && Resize.write?.(newest, 10)).toEqual(ten);
  });
});

describe("Einsum", () => {
  it("sums, transposes, batches, takes diagonals and ellipses", () => {
    const [a, b] = [counted([3, 4], "float32", 1), counted([4, 5], "float32", -7)];
    agree(Einsum, { inputs: [a, b], attributes: { equation: "ij,jk->ik" }, symbolic: [0, 1] });
    agree(Einsum, { inputs: [a, b], attributes: { equation: "ij, jk" }, symbolic: [0, 1] });
    agree(Einsum, { inputs: [a], attributes: { equation: "ij->ji" } });
    agree(Einsum, { inputs: [a], attributes: { equation: "ij->" } });
    agree(Einsum, { inputs: [counted([3, 3])], attributes: { equation: "ii->i" } });
    agree(Einsum, { inputs: [counted([2, 3, 4]), counted([2, 4, 5])], attributes: { equation: "...ij,...jk->...ik" }, symbolic: [0, 1] });
    agree(Einsum, { inputs: [counted([3], "int64"), counted([4], "int64")], attributes: { equation: "i,j->ij" }, symbolic: [0, 1] });
    expect(() => runOp({ op: Einsum, inputs: [a], attributes: { equation: "ijk->i" } })).toThrow(/OF3012/);
  });
});
