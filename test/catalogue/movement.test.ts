/** The catalogue: shapes and data movement. */
import { movement } from "../../scripts/pages/catalogue-movement.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import type { Value } from "../../src/graph/graph.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, keeps, leaves, testCatalogue, type Build } from "../support/catalogue-cases.ts";
import { add, concat, conv1, conv3, matmul, mul, part, picture, relu, reshape, rows, slice, split, transpose } from "../support/catalogue-parts.ts";

const unsqueeze = (b: GraphBuilder, x: Value, ...axes: readonly number[]): Value => b.add(op.Unsqueeze, [x, b.int64(...axes)]);
const squeeze = (b: GraphBuilder, x: Value, ...axes: readonly number[]): Value => b.add(op.Squeeze, [x, b.int64(...axes)]);
const gather = (b: GraphBuilder, x: Value, axis: number, ...at: readonly number[]): Value => b.add(op.Gather, [x, b.int64(...at)], { axis });
const pick = (b: GraphBuilder, x: Value, axis: number, at: number): Value => b.add(op.Gather, [x, b.scalar(at, "int64")], { axis });
const pad = (b: GraphBuilder, x: Value, ...pads: readonly number[]): Value => b.add(op.Pad, [x, b.int64(...pads)]);
const cast = (b: GraphBuilder, x: Value, to: number): Value => b.add(op.Cast, [x], { to });
const expand = (b: GraphBuilder, x: Value, ...to: readonly number[]): Value => b.add(op.Expand, [x, b.int64(...to)]);
const softmax = (b: GraphBuilder, x: Value): Value => b.add(op.Softmax, [x]);
const sigmoid = (b: GraphBuilder, x: Value): Value => b.add(op.Sigmoid, [x]);
/** Something of rows, then a function of elements: what moves must go into its kernel. */
const then = (f: (b: GraphBuilder, x: Value) => Value, of: (b: GraphBuilder) => Value = rows): Build => (b) => sigmoid(b, f(b, of(b)));
const finite = { without: ["special"] } as const;
/** The last axis' parts of a Split, each with a function of its own. */
const shuffled = (b: GraphBuilder, x: Value, c: number): Value => reshape(b, transpose(b, reshape(b, x, 0, 2, c / 2, 6, 6), 0, 2, 1, 3, 4), 0, c, 6, 6);

testCatalogue(movement, {
  "Identity, Dropout for inference, Cast to the same type, Reshape to the same shape": {
    "all of them": leaves(1, 1, then((b, x) => reshape(b, cast(b, b.add(op.Dropout, [b.add(op.Identity, [x])]), 1), 0, 5, 8))),
    "between input and output": fuses(1, (b) => b.add(op.Identity, [rows(b)])),
    "a result with two names": fuses(2, (b) => { const y = relu(b, rows(b)); return [y, b.add(op.Identity, [y])]; }),
    "Flatten that changes nothing": leaves(1, 1, (b) => sigmoid(b, b.add(op.Flatten, [b.input("x", ["n", 8])]))),
    "not: Dropout whose mask is read": fuses(1, (b) => b.addAll(op.Dropout, [rows(b)], {}, 2)),
  },
  "Cast after Cast": {
    "wider and back": leaves(1, 1, then((b, x) => cast(b, cast(b, x, 11), 1)), finite),
    "not: through a narrower float": leaves(3, 1, then((b, x) => cast(b, cast(b, x, 10), 1)), { bound: 1e-3, without: ["special", "large"] }),
    "not: through integers": leaves(3, 1, then((b, x) => cast(b, cast(b, x, 6), 1)), { without: ["special"] }),
    "not: bytes that lose their sign": leaves(3, 1, (b) => relu(b, cast(b, cast(b, b.input("x", ["n", 8], "int8"), 2), 1))),
  },
  "Cast or Slice around Shape": {
    "the shape of a Cast": fuses(1, (b) => { const x = b.input("x", ["n", 6]); return relu(b, b.add(op.Reshape, [x, slice(b, concat(b, 0, b.add(op.Shape, [cast(b, x, 11)]), b.int64(1)), 0, 0, 3)])); }),
  },
  "chains of Reshape, Flatten, Squeeze, Unsqueeze": {
    "one after the other": leaves(2, 1, then((b, x) => reshape(b, squeeze(b, unsqueeze(b, b.add(op.Flatten, [x]), 1, 3), 1), 0, 8, 5))),
    "Squeeze of Unsqueeze": leaves(1, 1, then((b, x) => squeeze(b, unsqueeze(b, x, 1), 1))),
    "Unsqueeze of Unsqueeze": leaves(2, 1, then((b, x) => unsqueeze(b, unsqueeze(b, x, 0), 0))),
    "a size that is copied from the middle": fuses(1, then((b, x) => reshape(b, reshape(b, x, 4, 6), 0, 2, 3), (b) => b.input("x", [2, 12]))),
    "Unsqueeze of a constant": leaves(2, 1, then((b, x) => mul(b, x, unsqueeze(b, b.random([8]), 0)))),
  },
  "Expand to the same shape": {
    "to its own": leaves(1, 1, then((b, x) => expand(b, x, 1, 5, 8))),
    "to a smaller one": leaves(1, 1, then((b, x) => expand(b, x, 8))),
    "not: to a size of two where there is one": fuses(1, (b) => relu(b, expand(b, b.input("x", [1, 3]), 2, 3))),
  },
  "Expand before an operator that broadcasts": {
    "a column": fuses(1, (b) => mul(b, rows(b), expand(b, b.input("z", [5, 1]), 1, 5, 8))),
    "not: what the other operand does not cover": fuses(1, (b) => mul(b, b.input("x", [1, 8]), expand(b, b.input("z", [5, 1]), 5, 8))),
  },
  "the same value joined n times": {
    "before a function of elements": fuses(1, then((b, x) => concat(b, 1, x, x, x))),
    "Tile": fuses(1, then((b, x) => b.add(op.Tile, [x, b.int64(1, 2, 3)]))),
  },
  "Slice of everything, Slice after Slice": {
    "everything": leaves(1, 1, then((b, x) => slice(b, x, 1, 0, 9))),
    "one axis, then another": fuses(1, then((b, x) => slice(b, slice(b, x, 1, 1, 4), 2, 2, 7))),
    "with steps, of steps": fuses(1, then((b, x) => slice(b, slice(b, x, 2, 1, 8, 2), 2, -1, -9, -2))),
    "backwards, past the start": fuses(1, then((b, x) => slice(b, x, 1, 9, -99, -1))),
    "of an unknown size": fuses(1, (b) => relu(b, slice(b, slice(b, b.input("x", ["n", 8]), 0, 0, 2), 0, -1, 5))),
  },
  "Slices side by side as Split, Gathers of single rows as Split": {
    "two halves": fuses(1, (b) => { const x = rows(b); return add(b, slice(b, x, 2, 0, 4), mul(b, slice(b, x, 2, 4, 8), 2)); }),
    "rows with a gap": fuses(1, (b) => { const x = rows(b); return add(b, pick(b, x, 1, 0), pick(b, x, 1, -1)); }),
    "parts read by products": fuses(3, (b) => { const x = b.input("x", ["n", 3, 8]); return add(b, matmul(b, pick(b, x, 1, 0), [8, 6]), b.add(op.Softmax, [matmul(b, pick(b, x, 1, 2), [8, 6])])); }),
  },
  "Gather of neighbouring or evenly spaced indices": {
    "all of them": fuses(1, then((b, x) => gather(b, x, 1, 0, 1, 2, 3, 4))),
    "neighbours": fuses(1, then((b, x) => gather(b, x, 1, 1, 2, 3))),
    "negative ones": fuses(1, then((b, x) => gather(b, x, 2, -1, -2, -3))),
    "from a Range": fuses(1, then((b, x) => b.add(op.Gather, [x, b.add(op.Range, [b.scalar(0, "int64"), b.scalar(8, "int64"), b.scalar(2, "int64")])], { axis: 2 }))),
  },
  "Pad by 0, Tile by 1, Concat of one, Split into one, Resize by 1": {
    "all of them": leaves(1, 1, (b) => {
      const x = concat(b, 1, b.add(op.Tile, [pad(b, picture(b), 0, 0, 0, 0, 0, 0, 0, 0), b.int64(1, 1, 1, 1)]));
      return sigmoid(b, b.add(op.Resize, [part(split(b, x, 1, 3), 0), undefined, b.numbers([1, 1, 1, 1])], { mode: "linear" }));
    }),
    "a part without elements": fuses(1, (b) => relu(b, concat(b, 1, rows(b), slice(b, rows(b, "z"), 1, 3, 3)))),
  },
  "Transpose of Transpose, Transpose of sizes 1": {
    "back again": leaves(1, 1, then((b, x) => transpose(b, transpose(b, x, 1, 2, 0), 2, 0, 1))),
    "composed": leaves(2, 1, then((b, x) => transpose(b, transpose(b, x, 1, 2, 0), 1, 0, 2))),
    "of sizes 1": fuses(1, (b) => matmul(b, reshape(b, transpose(b, b.input("x", ["n", 8, 1, 1]), 0, 2, 3, 1), 0, 8))),
  },
  "Transpose moved through element-wise operators, reductions, joins": {
    "a pair around elements": fuses(1, (b) => transpose(b, relu(b, add(b, transpose(b, picture(b), 0, 2, 3, 1), b.random([3]))), 0, 3, 1, 2)),
    "around a softmax": fuses(1, (b) => transpose(b, softmax(b, transpose(b, picture(b, 8), 0, 2, 3, 1)), 0, 3, 1, 2), [], finite),
    "around a mean": fuses(1, (b) => b.add(op.ReduceMean, [transpose(b, picture(b, 8), 0, 2, 3, 1), b.int64(1, 2)]), [], finite),
    "two branches in the other order": fuses(1, (b) => { const x = transpose(b, picture(b), 0, 2, 3, 1); return add(b, sigmoid(b, x), transpose(b, picture(b, 3, 6, "z"), 0, 2, 3, 1)); }),
    "around a join": fuses(2, (b) => transpose(b, concat(b, 3, transpose(b, relu(b, picture(b)), 0, 2, 3, 1), transpose(b, sigmoid(b, picture(b, 2, 6, "z")), 0, 2, 3, 1)), 0, 3, 1, 2)),
  },
  "pixel shuffle and its reverse from Reshape, Transpose, Reshape": {
    "before elements": fuses(1, (b) => relu(b, reshape(b, transpose(b, reshape(b, picture(b, 8, 3), 0, 2, 2, 2, 3, 3), 0, 1, 4, 2, 5, 3), 0, 2, 6, 6))),
    "DepthToSpace, then back": fuses(1, (b) => relu(b, b.add(op.SpaceToDepth, [b.add(op.DepthToSpace, [picture(b, 8, 3)], { blocksize: 2 })], { blocksize: 2 }))),
  },
  "channel shuffle": {
    "before elements": fuses(1, (b) => relu(b, shuffled(b, picture(b, 8), 8))),
    "before a convolution in groups": fuses(2, (b) => b.add(op.Conv, [shuffled(b, picture(b, 8), 8), b.random([8, 4, 3, 3])], { group: 2 })),
  },
  "slices of a picture joined (focus) before a convolution": {
    "four of them": fuses(2, (b) => { const x = picture(b); return conv3(b, concat(b, 1, ...[[0, 0], [1, 0], [0, 1], [1, 1]].map(([r = 0, c = 0]) => slice(b, slice(b, x, 2, r, 6, 2), 3, c, 6, 2))), [12, 4]); }),
  },
  "nearest Resize from Reshape, Tile, Expand": {
    "twice as large": fuses(1, (b) => relu(b, reshape(b, expand(b, reshape(b, picture(b), 0, 3, 6, 1, 6, 1), 1, 1, 1, 2, 1, 2), 0, 3, 12, 12))),
  },
  "Concat of all parts of a Split": { "in their order": leaves(1, 1, then((b, x) => concat(b, 2, ...split(b, x, 2, 3, 5)))) },
  "Concat of parts in another order": { "two parts exchanged before elements": fuses(1, then((b, x) => { const [a, c] = split(b, x, 2, 3, 5); return a && c ? concat(b, 2, c, a) : x; })) },
  "Concat of Concat": { "along the same axis, a part of it fed": fuses(4, (b) => softmax(b, concat(b, 2, concat(b, 2, relu(b, rows(b)), sigmoid(b, rows(b, "y"))), rows(b, "z"))), [], finite) },
  "Slice or Split that picks operands of a Concat": {
    "one operand": fuses(1, (b) => sigmoid(b, slice(b, concat(b, 2, rows(b), rows(b, "z")), 2, 8, 16)), "pick-from-concat"),
    "by Split": fuses(1, (b) => { const [a, c] = split(b, concat(b, 2, rows(b), rows(b, "z")), 2, 8, 8); return a && c ? mul(b, a, c) : []; }, "pick-from-concat"),
    "not: across a border": keeps(1, (b) => sigmoid(b, slice(b, concat(b, 2, rows(b), rows(b, "z")), 2, 4, 12)), "pick-from-concat"),
  },
  "Concat in place": {
    "of two convolutions": fuses(2, (b) => concat(b, 1, relu(b, conv3(b)), conv3(b, picture(b, 3, 6, "z")))),
    "not: a part that is a result too": fuses(3, (b) => { const y = relu(b, conv3(b)); return [y, concat(b, 1, y, conv3(b, picture(b, 3, 6, "z")))]; }),
  },
  "Shape, Size, Gather, arithmetic on sizes": {
    "the product of sizes": fuses(1, (b) => { const x = rows(b), s = b.add(op.Shape, [x]); return relu(b, b.add(op.Reshape, [x, concat(b, 0, b.add(op.Mul, [gather(b, s, 0, 0), gather(b, s, 0, 1)]), gather(b, s, 0, 2))])); }),
    "Shape from the second size on": fuses(1, (b) => { const x = rows(b); return relu(b, b.add(op.Reshape, [x, concat(b, 0, b.int64(-1), b.add(op.Shape, [x], { start: 2 }))])); }),
    "−1 replaced by 1 for Expand": fuses(1, (b) => { const s = b.int64(-1, 5, -1), ones = b.int64(1, 1, 1); return relu(b, b.add(op.Expand, [rows(b), b.add(op.Where, [b.add(op.Equal, [s, b.int64(-1)]), ones, s])])); }),
  },
  "a target of Reshape joined from parts": {
    "one of them unknown": fuses(1, (b) => { const x = rows(b); return relu(b, b.add(op.Reshape, [x, concat(b, 0, gather(b, b.add(op.Shape, [x]), 0, 0), b.int64(-1))])); }),
    "two of them unknown": fuses(1, (b) => { const x = b.input("x", ["n", "m", 6]), s = b.add(op.Shape, [x]); return relu(b, b.add(op.Reshape, [x, concat(b, 0, gather(b, s, 0, 0), gather(b, s, 0, 1), b.int64(2, 3))])); }),
  },
  "ConstantOfShape, Range, EyeLike, OneHot, Trilu and CumSum of constants": {
    "a mask of a known length": leaves(2, 1, then((b, x) => add(b, x, b.add(op.Trilu, [b.add(op.ConstantOfShape, [b.int64(5, 8)]), b.scalar(1, "int64")])))),
    "positions by CumSum": leaves(2, 1, then((b, x) => mul(b, x, cast(b, b.add(op.CumSum, [b.numbers(Array.from({ length: 8 }, () => 1), [8], "int64"), b.scalar(0, "int64")]), 1)))),
    "zeros of an unknown size": fuses(1, (b) => { const x = rows(b); return relu(b, add(b, x, b.add(op.ConstantOfShape, [b.add(op.Shape, [x])]))); }),
  },
  "ScatterND and ScatterElements that overwrite a slice": {
    "rows of what is computed": fuses(1, (b) => b.add(op.ScatterND, [relu(b, b.input("x", [5, 8])), b.numbers([1, 3], [2, 1], "int64"), b.input("u", [2, 8])])),
    "added, not overwritten": fuses(2, (b) => b.add(op.ScatterND, [relu(b, b.input("x", [5, 8])), b.numbers([1, 1], [2, 1], "int64"), b.input("u", [2, 8])], { reduction: "add" }), [], finite),
  },
  "Reshape through element-wise operators": { "a pair around elements": fuses(1, (b) => reshape(b, relu(b, mul(b, reshape(b, rows(b), -1, 8), b.random([8]))), -1, 5, 8)) },
  "ranks of operands made equal": { "by Unsqueeze": fuses(1, (b) => mul(b, picture(b), unsqueeze(b, b.input("z", [3]), 1, 2))) },
  "Squeeze and Unsqueeze around Gather": { "a row": fuses(1, then((b, x) => squeeze(b, gather(b, x, 1, 2), 1))) },
  "equal NonZero computed twice": { "of one value": fuses(2, (b) => { const x = rows(b), [a, c] = [b.add(op.NonZero, [x]), b.add(op.NonZero, [x])]; return b.add(op.Add, [a, c]); }, [], { without: ["normal", "negative", "large", "tiny", "special"] }) },
  "sizes of 1 in Einsum": { "a label of size 1": fuses(1, (b) => b.add(op.Einsum, [b.input("x", [1, 5, 8]), b.input("z", [3, 8, 6])], { equation: "...ij,...jk->...ik" })) },
  "sizes of Split given as a constant, unused parts": { "one part of three": fuses(1, (b) => relu(b, part(split(b, rows(b), 2, 2, 3, 3), 1))) },
  "Slice moved up through a product": { "rows": fuses(1, (b) => slice(b, matmul(b), 1, 0, 2), "select-rows-before-product") },
  "colour order of the input moved into weights": {
    "by Gather": fuses(1, (b) => conv3(b, gather(b, picture(b), 1, 2, 1, 0)), "fold-channel-order-into-conv"),
    "by Slice backwards": fuses(1, (b) => conv3(b, slice(b, picture(b), 1, 2, -9, -1)), "fold-channel-order-into-conv"),
    "not: read by others": keeps(2, (b) => { const x = gather(b, picture(b), 1, 2, 1, 0); return [conv3(b, x), softmax(b, x)]; }, "fold-channel-order-into-conv", finite),
  },
  "unary operators moved across Concat": { "behind a join": fuses(1, (b) => relu(b, concat(b, 1, rows(b), rows(b, "z")))) },
  "Cast moved across movements": { "around a Transpose": fuses(1, (b) => cast(b, transpose(b, cast(b, b.input("x", ["n", 5, 8], "uint8"), 1), 0, 2, 1), 2)) },
  "pairs of Reshape around Softmax, norms and 1-D convolution": {
    "Softmax": fuses(1, (b) => reshape(b, softmax(b, reshape(b, rows(b), -1, 8)), -1, 5, 8), [], finite),
    "a convolution of one axis as two": fuses(1, (b) => squeeze(b, b.add(op.Conv, [unsqueeze(b, b.input("x", ["n", 3, 9]), 2), b.random([4, 3, 1, 3])]), 2)),
  },
  "Transpose inside operators with strided reads": { "a sum of columns": fuses(1, (b) => b.add(op.ReduceSum, [transpose(b, rows(b), 0, 2, 1), b.int64(-1)]), [], finite) },
  "channels-last through a whole network": { "three convolutions": fuses(3, (b) => transpose(b, relu(b, conv1(b, relu(b, conv3(b, relu(b, conv3(b, transpose(b, b.input("x", ["n", 6, 6, 3]), 0, 3, 1, 2))), [4, 4])), [4, 5])), 0, 2, 3, 1)) },
  "64-bit indices in 32 bits": { "indices that are computed, whose range is checked": fuses(2, (b) => b.add(op.Gather, [rows(b), b.add(op.Mod, [b.add(op.Add, [b.input("i", ["n"], "int64"), b.int64(3)]), b.int64(5)])], { axis: 1 })) },
  "convolutions of one input with the same window": { "two of them": fuses(3, (b) => { const x = picture(b, 8); return [0, 1].map(() => b.add(op.GlobalMaxPool, [conv1(b, x, [8, 4])])); }, "merge-sibling-convolutions") },
}, ["small operands combined first", "boxes filtered before NonMaxSuppression", "unused inputs and outputs, doubled outputs", "STFT and DFT as products", "layouts of Loop, Scan and recurrent operators"]);
