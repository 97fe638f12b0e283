/**
 * As opset-history.test.ts, for what is more than one node of one type: control flow, sequences, optionals, strings,
 * vision, signals, integer products. The first opset that can say each is known from the standard's changelog.
 */
import { describe, expect, test } from "vitest";
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import type { Container } from "../src/core/container.ts";
import { held, type AttributeSpec, type ModelSpec, type NodeSpec, type ValueSpec } from "./support/model-spec.ts";
import { historyOf } from "./support/opset-history.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(9), of = (...dims: number[]): Tensor => randomTensor(dims, random);
const ints = (...values: number[]): Tensor => fromNumbers("int64", [values.length], values), int = (value: number): Tensor => fromNumbers("int64", [], [value]);
const row = (...values: number[]): Tensor => fromNumbers("float32", [values.length], values), bool = (value: boolean): Tensor => fromNumbers("bool", [], [Number(value)]);
const bytes = (...dims: number[]): Tensor => fromNumbers("uint8", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.int(256)));
const text = (...values: string[]): Tensor => ({ dtype: "string", dims: [values.length], data: values });
const float = (value: number): AttributeSpec => ({ float: value });
type Node = readonly [type: string, inputs: string, outputs: string, attributes?: NodeSpec["attributes"]];
const nodesOf = (nodes: readonly Node[]): NodeSpec[] => nodes.map(([type, inputs, outputs, attributes = {}]) => ({ type, inputs: inputs.split(" ").map((n) => (n === "-" ? "" : n)), outputs: outputs.split(" "), attributes }));
const f = (...dims: (number | string)[]): ValueSpec => ({ dtype: "float32", dims }), n = (...dims: (number | string)[]): ValueSpec => ({ dtype: "int64", dims }), b: ValueSpec = { dtype: "bool", dims: [] };
const body = (inputs: ModelSpec["inputs"], outputs: ModelSpec["outputs"], ...nodes: readonly Node[]): ModelSpec => ({ opset: 25, inputs, outputs, initializers: {}, nodes: nodesOf(nodes) });
const rows: Container = { kind: "sequence", item: { dtype: "float32", shape: [null, 2] } };

interface Case { readonly first: number; readonly feeds: Readonly<Record<string, Tensor>>; readonly constants?: ModelSpec["initializers"]; readonly nodes: readonly Node[]; readonly outputs: Readonly<Record<string, ValueSpec>> }
const y = (value: ValueSpec): Case["outputs"] => ({ y: value });
const image = { x: of(1, 2, 5, 6) }, plane = y(f("a", "b", "c", "d"));
const ngrams = { mode: "TF", min_gram_length: 1, max_gram_length: 2, max_skip_count: 0, ngram_counts: [0, 2], ngram_indexes: [0, 1, 2], pool_strings: { strings: ["a", "b", "a", "b"] } };
const loop = body({ i: n(), go: b, c: f(2) }, { going: b, c2: f(2), part: f(2) }, ["Mul", "c w", "m"], ["Add", "m x", "c2"], ["Neg", "c2", "part"], ["Identity", "go", "going"]);

const cases: Readonly<Record<string, Case>> = {
  "If, capturing what is outside": { first: 7, feeds: { p: bool(true), x: of(3) }, outputs: y(f(3)), nodes: [["If", "p", "y", { then_branch: body({}, { t: f(3) }, ["Relu", "x", "t"]), else_branch: body({}, { e: f(3) }, ["Neg", "x", "e"]) }]] },
  "If whose branches hold sequences": { first: 13, feeds: { p: bool(false), x: of(3, 2) }, outputs: y(f("a", 2)), constants: { k: int(0) }, nodes: [
    ["If", "p", "s", { then_branch: body({}, { t: held(rows) }, ["SequenceConstruct", "x x", "t"]), else_branch: body({}, { e: held(rows) }, ["SequenceConstruct", "x", "e"]) }], ["SequenceAt", "s k", "y"],
  ] },
  "Loop, counted, stacking": { first: 7, feeds: { m: int(4), x: of(2), w: of(2) }, outputs: { y: f(2), all: f("t", 2) }, nodes: [["Loop", "m - x", "y all", { body: loop }]] },
  "Loop until a condition": { first: 7, feeds: { x: row(1, 2), go: bool(true), limit: row(40) }, outputs: y(f(2)), nodes: [
    ["Loop", "- go x", "y", { body: body({ i: n(), in: b, c: f(2) }, { out: b, c2: f(2) }, ["Add", "c c", "c2"], ["ReduceMax", "c2", "most", { keepdims: 0 }], ["Squeeze", "limit", "l"], ["Less", "most l", "out"]) }],
  ] },
  "Loop that carries a sequence": { first: 13, feeds: { m: int(3), x: of(1, 2) }, outputs: y(f("a", 2)), nodes: [
    ["SequenceEmpty", "", "s"], ["Loop", "m - s", "t", { body: body({ i: n(), go: b, c: held({ kind: "sequence", item: { dtype: "float32" } }) }, { going: b, c2: held({ kind: "sequence", item: { dtype: "float32" } }) }, ["SequenceInsert", "c x", "c2"], ["Identity", "go", "going"]) }],
    ["ConcatFromSequence", "t", "y", { axis: 0 }],
  ] },
  "Scan, backwards along another axis": { first: 9, feeds: { s: of(2), x: of(2, 4) }, outputs: { y: f(2), all: f("t", 2) }, nodes: [
    ["Scan", "s x", "y all", { num_scan_inputs: 1, scan_input_axes: [1], scan_input_directions: [1], body: body({ st: f(2), u: f(2) }, { st2: f(2), o: f(2) }, ["Add", "st u", "st2"], ["Mul", "st2 u", "o"]) }],
  ] },
  "SequenceMap": { first: 13, feeds: { x: of(5, 2), k: ints(2, 3) }, outputs: y(f("a", 2)), nodes: [
    ["SplitToSequence", "x k", "s", { axis: 0 }], ["SequenceMap", "s x", "t", { body: body({ item: f("r", 2), all: f(5, 2) }, { out: f("r", 2) }, ["ReduceMax", "all", "most", { keepdims: 0 }], ["Sub", "item most", "out"]) }], ["ConcatFromSequence", "t", "y", { axis: 0 }],
  ] },
  "sequences": { first: 11, feeds: { x: of(4, 3), v: of(2, 3) }, outputs: { y: f("a", 3), count: n(), item: f("r", 3) }, constants: { k: ints(1, 3), i: int(-1), j: int(0) }, nodes: [
    ["SplitToSequence", "x k", "s", { axis: 0 }], ["SequenceInsert", "s v j", "t"], ["SequenceErase", "t i", "u"], ["SequenceLength", "u", "count"], ["SequenceAt", "u j", "item"], ["ConcatFromSequence", "u", "y", { axis: 0 }],
  ] },
  "an optional": { first: 15, feeds: { x: of(3) }, outputs: { y: f(3), has: b }, nodes: [["Optional", "x", "o"], ["OptionalHasElement", "o", "has"], ["OptionalGetElement", "o", "y"]] },
  "StringNormalizer": { first: 10, feeds: { x: text("Mon", "tue", "WED") }, outputs: y({ dtype: "string", dims: ["k"] }), nodes: [["StringNormalizer", "x", "y", { case_change_action: "UPPER", stopwords: { strings: ["mon"] }, is_case_sensitive: 0, locale: "C" }]] },
  "StringConcat": { first: 20, feeds: { x: text("a", "b"), z: text("c", "d") }, outputs: y({ dtype: "string", dims: [2] }), nodes: [["StringConcat", "x z", "y"]] },
  "StringSplit": { first: 20, feeds: { x: text("a b", "c") }, outputs: { y: { dtype: "string", dims: [2, "k"] }, count: n(2) }, nodes: [["StringSplit", "x", "y count", { delimiter: " " }]] },
  "RegexFullMatch": { first: 20, feeds: { x: text("a1", "b") }, outputs: y({ dtype: "bool", dims: [2] }), nodes: [["RegexFullMatch", "x", "y", { pattern: "[a-z]\\d" }]] },
  "TfIdfVectorizer": { first: 9, feeds: { x: text("a", "b", "a") }, outputs: y(f(3)), nodes: [["TfIdfVectorizer", "x", "y", ngrams]] },
  "Cast of strings to numbers": { first: 9, feeds: { x: text("1.5", "-2") }, outputs: y(f(2)), nodes: [["Cast", "x", "y", { to: 1 }]] },
  "Resize, nearest": { first: 11, feeds: image, outputs: plane, constants: { s: row(1, 1, 2, 1.5) }, nodes: [["Resize", "x - s", "y", { mode: "nearest" }]] },
  "Resize, larger by whole numbers as Upsample did": { first: 7, feeds: image, outputs: plane, constants: { s: row(1, 1, 2, 3) }, nodes: [["Resize", "x - s", "y", { mode: "nearest", coordinate_transformation_mode: "asymmetric", nearest_mode: "floor" }]] },
  "Resize, smaller as in opset 10": { first: 10, feeds: image, outputs: plane, constants: { s: row(1, 1, 0.5, 0.5) }, nodes: [["Resize", "x - s", "y", { mode: "linear", coordinate_transformation_mode: "asymmetric" }]] },
  "Resize, cubic, to sizes": { first: 11, feeds: image, outputs: plane, constants: { s: ints(1, 2, 7, 9) }, nodes: [["Resize", "x - - s", "y", { mode: "cubic", coordinate_transformation_mode: "align_corners" }]] },
  "Resize along two axes, antialiased": { first: 18, feeds: image, outputs: plane, constants: { s: row(0.6, 0.5) }, nodes: [["Resize", "x - s", "y", { mode: "linear", antialias: 1, axes: [2, 3] }]] },
  "RoiAlign": { first: 16, feeds: image, outputs: plane, constants: { r: fromNumbers("float32", [2, 4], [0, 0, 4, 3, 1, 1, 5, 4]), i: ints(0, 0) }, nodes: [["RoiAlign", "x r i", "y", { output_height: 2, output_width: 2, sampling_ratio: 2 }]] },
  "RoiAlign, without half a pixel": { first: 10, feeds: image, outputs: plane, constants: { r: fromNumbers("float32", [2, 4], [0, 0, 4, 3, 1, 1, 5, 4]), i: ints(0, 0) }, nodes: [["RoiAlign", "x r i", "y", { output_height: 2, output_width: 2, sampling_ratio: 2, coordinate_transformation_mode: "output_half_pixel" }]] },
  "GridSample, linear": { first: 16, feeds: { ...image, g: of(1, 3, 4, 2) }, outputs: plane, nodes: [["GridSample", "x g", "y", { mode: "linear", padding_mode: "border" }]] },
  "GridSample, cubic": { first: 16, feeds: { ...image, g: of(1, 3, 4, 2) }, outputs: plane, nodes: [["GridSample", "x g", "y", { mode: "cubic", align_corners: 1 }]] },
  "AffineGrid": { first: 20, feeds: { t: of(1, 2, 3) }, outputs: plane, constants: { s: ints(1, 1, 3, 4) }, nodes: [["AffineGrid", "t s", "y"]] },
  "NonMaxSuppression": { first: 10, feeds: { x: fromNumbers("float32", [1, 3, 4], [0, 0, 1, 1, 0, 0.1, 1, 1.1, 5, 5, 6, 6]), s: fromNumbers("float32", [1, 1, 3], [0.9, 0.8, 0.7]) }, outputs: y(n("k", 3)), constants: { k: ints(3), t: row(0.5) }, nodes: [["NonMaxSuppression", "x s k t", "y"]] },
  "MaxRoiPool": { first: 7, feeds: image, outputs: plane, constants: { r: fromNumbers("float32", [1, 5], [0, 0, 0, 4, 3]) }, nodes: [["MaxRoiPool", "x r", "y", { pooled_shape: [2, 2] }]] },
  "MaxPool with places, MaxUnpool": { first: 9, feeds: { x: of(1, 2, 4, 4) }, outputs: plane, nodes: [["MaxPool", "x", "p i", { kernel_shape: [2, 2], strides: [2, 2] }], ["MaxUnpool", "p i", "y", { kernel_shape: [2, 2], strides: [2, 2] }]] },
  "Col2Im": { first: 18, feeds: { x: of(1, 8, 6) }, outputs: plane, constants: { s: ints(3, 4), k: ints(2, 2) }, nodes: [["Col2Im", "x s k", "y"]] },
  "CenterCropPad": { first: 18, feeds: image, outputs: plane, constants: { s: ints(3, 8) }, nodes: [["CenterCropPad", "x s", "y", { axes: [2, 3] }]] },
  "DeformConv": { first: 19, feeds: { x: of(1, 1, 3, 3), o: of(1, 8, 2, 2) }, outputs: plane, constants: { w: of(1, 1, 2, 2) }, nodes: [["DeformConv", "x w o", "y", { kernel_shape: [2, 2] }]] },
  "DFT along an axis": { first: 17, feeds: { x: of(1, 6, 3, 1) }, outputs: y(f(1, "k", 3, 2)), constants: { a: int(1) }, nodes: [["DFT", "x - a", "y", { onesided: 1 }]] },
  "STFT": { first: 17, feeds: { x: of(1, 16, 1) }, outputs: y(f(1, "t", "k", 2)), constants: { s: int(4), l: int(8) }, nodes: [["STFT", "x s - l", "y"]] },
  "windows": { first: 17, feeds: { k: int(6) }, outputs: { y: f("k"), z: f("k"), w: f("k") }, nodes: [["HannWindow", "k", "y"], ["HammingWindow", "k", "z", { periodic: 0 }], ["BlackmanWindow", "k", "w"]] },
  "QLinearConv": { first: 10, feeds: { x: bytes(1, 2, 4, 4) }, outputs: y({ dtype: "uint8", dims: ["a", "b", "c", "d"] }), constants: { xs: fromNumbers("float32", [], [0.1]), z: fromNumbers("uint8", [], [120]), w: bytes(3, 2, 2, 2), ws: fromNumbers("float32", [], [0.02]), ys: fromNumbers("float32", [], [1.5]) }, nodes: [["QLinearConv", "x xs z w ws z ys z", "y"]] },
  "QLinearMatMul": { first: 10, feeds: { x: bytes(3, 4) }, outputs: y({ dtype: "uint8", dims: [3, 5] }), constants: { xs: fromNumbers("float32", [], [0.1]), z: fromNumbers("uint8", [], [120]), w: bytes(4, 5), ws: fromNumbers("float32", [], [0.02]), ys: fromNumbers("float32", [], [1.5]) }, nodes: [["QLinearMatMul", "x xs z w ws z ys z", "y"]] },
  "MatMulInteger": { first: 10, feeds: { x: bytes(3, 4), z: bytes(4, 5) }, outputs: y({ dtype: "int32", dims: [3, 5] }), nodes: [["MatMulInteger", "x z", "y"]] },
  "DynamicQuantizeLinear": { first: 11, feeds: { x: of(3, 4) }, outputs: { y: { dtype: "uint8", dims: [3, 4] }, s: f(), z: { dtype: "uint8", dims: [] } }, nodes: [["DynamicQuantizeLinear", "x", "y s z"]] },
  "SoftmaxCrossEntropyLoss": { first: 12, feeds: { x: of(3, 5), t: ints(1, 4, 0) }, outputs: y(f()), nodes: [["SoftmaxCrossEntropyLoss", "x t", "y", { reduction: "mean" }]] },
  "NegativeLogLikelihoodLoss": { first: 12, feeds: { x: of(3, 5), t: ints(1, 4, 0) }, outputs: y(f()), nodes: [["NegativeLogLikelihoodLoss", "x t", "y", { reduction: "sum" }]] },
  "LpNormalization, GlobalLpPool": { first: 7, feeds: image, outputs: plane, nodes: [["LpNormalization", "x", "l", { axis: 1, p: 1 }], ["GlobalLpPool", "l", "y", { p: 2 }]] },
  "ConstantOfShape": { first: 9, feeds: { s: ints(2, 3) }, outputs: y(f("a", "b")), nodes: [["ConstantOfShape", "s", "y", { value: row(0.5) }]] },
  "ThresholdedRelu": { first: 10, feeds: { x: of(7) }, outputs: y(f(7)), nodes: [["ThresholdedRelu", "x", "y", { alpha: float(0.3) }]] },
};

describe("graphs over opsets", () => {
  test.each(Object.entries(cases))("%s", async (_, { first, feeds, constants = {}, nodes, outputs }) => {
    const inputs = Object.fromEntries(Object.entries(feeds).map(([name, t]): [string, ValueSpec] => [name, { dtype: t.dtype, dims: t.dims }]));
    const history = await historyOf({ opset: 25, ir: 10, inputs, outputs, initializers: constants, nodes: nodesOf(nodes) }, feeds);
    expect(history.wrong).toEqual([]);
    expect(history.first).toBe(first);
    expect(history.ran.length).toBeGreaterThan(0);
  }, 60_000);
});
