/** The catalogue: quantisation and precision. Results of integers must be those of the interpreter; one step of the scale where sums of floats stand before a rounding. */
import { quantisation } from "../../scripts/pages/catalogue-quantisation.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import type { Value } from "../../src/graph/graph.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, keeps, leaves, testCatalogue } from "../support/catalogue-cases.ts";
import { add, mul, relu, reshape, rows, split, transpose } from "../support/catalogue-parts.ts";

const scale = 0.05;
const zero = (b: GraphBuilder, value = 128): Value => b.scalar(value, "uint8");
const bytes = (b: GraphBuilder, dims: readonly (number | string)[] = ["n", 4, 6, 6], name = "x"): Value => b.input(name, dims, "uint8");
const back = (b: GraphBuilder, x: Value, s = scale, z = 128): Value => b.add(op.DequantizeLinear, [x, b.scalar(s), zero(b, z)]);
const quantized = (b: GraphBuilder, x: Value, s = scale, z = 128): Value => b.add(op.QuantizeLinear, [x, b.scalar(s), zero(b, z)]);
const between = (f: (b: GraphBuilder, x: Value) => Value, s = scale) => (b: GraphBuilder): Value => quantized(b, f(b, back(b, bytes(b))), s);
const weights = (b: GraphBuilder, dims: readonly number[], axis = 0): Value => {
  const n = dims[axis] ?? 1;
  return b.add(op.DequantizeLinear, [b.random(dims, { low: -99, high: 99, dtype: "int8" }), b.random([n], { low: 0.01, high: 0.02 }), b.numbers(Array.from({ length: n }, () => 0), [n], "int8")], { axis });
};
/** One byte in a hundred of them. */
const step = { bound: 0.012 } as const;
const dynamic = (b: GraphBuilder, x: Value, width: number, columns: number): Value => {
  const [q, s, z] = b.addAll(op.DynamicQuantizeLinear, [x], {}, 3);
  const sums = b.add(op.MatMulInteger, [q, b.random([width, columns], { low: -99, high: 99, dtype: "int8" }), z, b.scalar(0, "int8")]);
  return mul(b, b.add(op.Cast, [sums], { to: 1 }), mul(b, s ?? 1, b.scalar(0.01)));
};

testCatalogue(quantisation, {
  "operators that only choose or move elements (MaxPool, ReduceMax, Slice, Gather, Expand, Tile, nearest Resize, Reshape, Transpose, Concat …) between conversions, on integers": {
    "MaxPool": fuses(1, between((b, x) => b.add(op.MaxPool, [x], { kernel_shape: [2, 2] })), "quantize-selection"),
    "Transpose": fuses(1, between((b, x) => transpose(b, x, 0, 2, 3, 1)), "quantize-before-movement"),
    "Reshape": fuses(1, between((b, x) => reshape(b, x, 0, -1)), "quantize-before-movement"),
    "Slice": fuses(1, between((b, x) => b.add(op.Slice, [x, b.int64(1), b.int64(3), b.int64(1)])), "quantize-selection"),
    "not: MaxPool to another scale": keeps(1, between((b, x) => b.add(op.MaxPool, [x], { kernel_shape: [2, 2] }), 0.06), "quantize-selection", step),
  },
  "Split between conversions": {
    "two halves": fuses(2, (b) => split(b, back(b, bytes(b)), 1, 2, 2).map((v) => relu(b, back(b, quantized(b, v)))), "quantize-split"),
    "not: work on the parts": keeps(3, (b) => split(b, back(b, bytes(b)), 1, 2, 2).map((v) => quantized(b, relu(b, v))), "quantize-split", step),
  },
  "Softmax and AveragePool between conversions": {
    "AveragePool": fuses(1, between((b, x) => b.add(op.AveragePool, [x], { kernel_shape: [2, 2], strides: [2, 2] })), "quantize-reduction", step),
    "Softmax": fuses(1, (b) => quantized(b, b.add(op.Softmax, [back(b, bytes(b, ["n", 5, 8]))]), 1 / 256, 0), "quantize-reduction", step),
  },
  "linear Resize between conversions": { "twice as large": fuses(2, between((b, x) => b.add(op.Resize, [x, undefined, b.numbers([1, 1, 2, 2])], { mode: "linear" })), [], step) },
  "Conv with bias and activation between conversions as one integer convolution": {
    "with Relu": fuses(1, between((b, x) => relu(b, b.add(op.Conv, [x, weights(b, [6, 4, 3, 3])], { pads: [1, 1, 1, 1] })), 0.1), "integer-conv", step),
    "alone": fuses(1, between((b, x) => b.add(op.Conv, [x, weights(b, [6, 4, 3, 3])], { pads: [1, 1, 1, 1] }), 0.1), "quantize-conv", step),
    "without QuantizeLinear behind": fuses(1, (b) => b.add(op.Conv, [back(b, bytes(b)), weights(b, [6, 4, 3, 3])]), "integer-conv"),
    "not: a bias of floats": keeps(1, between((b, x) => b.add(op.Conv, [x, weights(b, [6, 4, 3, 3]), b.random([6])]), 0.1), "quantize-conv", step),
  },
  "transposed convolution between conversions": { "2x2": fuses(2, between((b, x) => b.add(op.ConvTranspose, [x, weights(b, [4, 6, 2, 2], 1)], { strides: [2, 2] }), 0.1), [], step) },
  "MatMul and Gemm between conversions as one integer product": {
    "MatMul": fuses(1, (b) => quantized(b, b.add(op.MatMul, [back(b, bytes(b, ["n", 5, 8])), weights(b, [8, 6], 1)]), 0.1), "quantize-matmul", step),
    "MatMul without QuantizeLinear behind": fuses(1, (b) => b.add(op.MatMul, [back(b, bytes(b, ["n", 5, 8])), weights(b, [8, 6], 1)]), "integer-matmul"),
    "Gemm without QuantizeLinear behind": fuses(1, (b) => b.add(op.Gemm, [back(b, bytes(b, ["n", 8])), weights(b, [6, 8])], { transB: 1 }), "integer-gemm"),
    "not: a scale for each row of the matrix": keeps(2, (b) => b.add(op.MatMul, [back(b, bytes(b, ["n", 5, 8])), weights(b, [8, 6], 0)]), ["integer-matmul", "quantize-matmul"]),
  },
  "Add, Mul, Where, LeakyRelu, GlobalAveragePool, ReduceMean between conversions": {
    "Add": fuses(1, (b) => quantized(b, add(b, back(b, bytes(b)), back(b, bytes(b, ["n", 4, 6, 6], "z"), 0.03, 100)), 0.08), [], step),
    "Mul": fuses(1, (b) => quantized(b, mul(b, back(b, bytes(b)), back(b, bytes(b, ["n", 4, 1, 1], "z"), 0.03, 100)), 0.2), [], step),
    "GlobalAveragePool": fuses(1, between((b, x) => b.add(op.GlobalAveragePool, [x])), [], step),
  },
  "a function of one quantised value as a table of 256 results": {
    "Sigmoid": fuses(1, between((b, x) => b.add(op.Sigmoid, [x]), 1 / 128), "tabulate-quantized", step),
    "not: Tanh of a sum, which stays a loop": keeps(1, between((b, x) => b.add(op.Tanh, [add(b, x, 0.3)]), 1 / 64), "tabulate-quantized", step),
    "not: Relu, which is cheaper computed": keeps(1, between(relu), "tabulate-quantized", step),
  },
  "operators of onnxruntime's quantiser (QLinearAdd, QLinearMul, QLinearSigmoid, QLinearSoftmax, QLinearConcat …)": {
    "QLinearAdd": fuses(1, (b) => b.add(op.QLinearAdd, [bytes(b), b.scalar(0.05), zero(b), bytes(b, ["n", 4, 6, 6], "z"), b.scalar(0.03), zero(b, 100), b.scalar(0.08), zero(b)]), [], step),
    "QLinearSigmoid": fuses(1, (b) => b.add(op.QLinearSigmoid, [bytes(b), b.scalar(0.05), zero(b), b.scalar(1 / 256), zero(b, 0)]), [], step),
  },
  "weights of 8, 4 or 2 bits, one scale for all, a column or a block, before MatMul or Gemm": {
    "8 bits, one scale a column": fuses(1, (b) => b.add(op.MatMul, [b.input("x", ["n", 64]), weights(b, [64, 48], 1)]), "widen-weights"),
    "4 bits in blocks": fuses(1, (b) => b.add(op.MatMul, [b.input("x", ["n", 64]), b.add(op.DequantizeLinear, [b.random([64, 48], { low: -8, high: 8, dtype: "int4" }), b.random([2, 48], { low: 0.01, high: 0.02 })], { axis: 0, block_size: 32 })]), "widen-weights"),
    "with bias and activation": fuses(1, (b) => relu(b, add(b, b.add(op.MatMul, [b.input("x", ["n", 64]), weights(b, [64, 48], 1)]), b.random([48]))), "widen-weights"),
  },
  "tables of 4 bits that rows are gathered from": { "4 bits, a scale a row": fuses(1, (b) => b.add(op.Gather, [b.add(op.DequantizeLinear, [b.random([9, 32], { low: -8, high: 8, dtype: "int4" }), b.random([9, 1], { low: 0.01, high: 0.02 })], { axis: 1, block_size: 32 }), b.input("i", ["n", 3], "int64")])) },
  "bias after a product with quantised weights": { "a column": fuses(1, (b) => add(b, b.add(op.MatMul, [b.input("x", ["n", 64]), weights(b, [64, 48], 1)]), b.random([48]))) },
  "DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Add": {
    "with a bias": fuses(2, (b) => add(b, dynamic(b, b.input("x", [5, 8]), 8, 6), b.random([6])), [], { ...step, without: ["special", "tiny"] }),
  },
  "MatMulInteger or ConvInteger, Cast, Mul, Add": {
    "MatMulInteger": fuses(1, (b) => add(b, mul(b, b.add(op.Cast, [b.add(op.MatMulInteger, [bytes(b, ["n", 5, 8]), b.random([8, 6], { low: -99, high: 99, dtype: "int8" }), zero(b)])], { to: 1 }), 0.01), b.random([6]))),
    "ConvInteger": fuses(1, (b) => mul(b, b.add(op.Cast, [b.add(op.ConvInteger, [bytes(b), b.random([6, 4, 3, 3], { low: 0, high: 99, dtype: "uint8" }), zero(b)])], { to: 1 }), b.random([6, 1, 1]))),
  },
  "conversion to integers and back dropped in between layers": { "the rounding stays": keeps(1, (b) => relu(b, back(b, quantized(b, rows(b)))), [], { without: ["special"], bound: 0.012 }) },
  "conversion from integers and back, by the same scale": {
    "nothing is left": leaves(2, 1, (b) => relu(b, back(b, quantized(b, back(b, bytes(b)))))),
    "not: another scale": keeps(1, (b) => quantized(b, back(b, bytes(b)), 0.06), "drop-requantization", step),
  },
  "conversion from one scale to another as one factor": { "a half": fuses(1, (b) => quantized(b, back(b, bytes(b), 0.5), 0.25), "merge-requantization") },
  "Relu and Clip before QuantizeLinear": {
    "Relu where the range starts at 0": fuses(1, (b) => quantized(b, relu(b, rows(b)), scale, 0), "absorb-limit-into-quantize", { without: ["special"] }),
    "not: where it starts below": keeps(1, (b) => quantized(b, relu(b, rows(b))), "absorb-limit-into-quantize", { without: ["special"] }),
  },
  "conversions moved up and down until they meet": { "over two movements": fuses(1, between((b, x) => reshape(b, transpose(b, x, 0, 2, 3, 1), 0, -1)), "quantize-before-movement") },
  "padding by 0 between equal conversions, into the convolution behind": { "one pixel": fuses(1, between((b, x) => relu(b, b.add(op.Conv, [back(b, quantized(b, b.add(op.Pad, [x, b.int64(0, 0, 1, 1, 0, 0, 1, 1)]))), weights(b, [6, 4, 3, 3])])), 0.1), "drop-requantized-padding", step) },
  "a DequantizeLinear of its own for every reader": { "rows that read it in passes: stored once": fuses(3, (b) => { const x = bytes(b, ["n", 5, 8]); return [b.add(op.Softmax, [back(b, x)]), b.add(op.ReduceMax, [back(b, x), b.int64(1)])]; }) },
  "dequantised constants as floats": { "a factor": leaves(1, 1, (b) => mul(b, rows(b), back(b, b.random([8], { low: 0, high: 255, dtype: "uint8" })))) },
  "float8 and float4 widened": { "a float8 factor": fuses(1, (b) => mul(b, rows(b), b.add(op.Cast, [b.random([8], { dtype: "float8e4m3fn" })], { to: 1 }))) },
  "float16 and bfloat16 weights for operators that compute in float32": { "cast weights": fuses(1, (b) => b.add(op.MatMul, [rows(b), b.add(op.Cast, [b.random([8, 6], { dtype: "float16" })], { to: 1 })])) },
  "a DequantizeLinear for the plain operand of Where": { "two kinds of operands": fuses(1, (b) => quantized(b, b.add(op.Where, [b.input("c", ["n", 4, 1, 1], "bool"), back(b, bytes(b)), 0.5])), [], step) },
  "signed weights as unsigned ones": { "a product by signed bytes": fuses(1, (b) => b.add(op.MatMulInteger, [bytes(b, ["n", 5, 8]), b.random([8, 6], { low: -128, high: 128, dtype: "int8" }), zero(b)])) },
}, [
  "weights or biases beside quantised operands quantised too", "FakeQuantize", "binary weights", "activations scaled so that float16 does not overflow", "Cast moved so that more runs in float16", "float32 models in float16", "operands in the tile order of integer units", "float64 as float32",
  "weights of 4 bits in memory", "integer products of one input side by side, with scales that are known only when they run",
]);
