/** The catalogue: what joins the kernel of a convolution or product, and what must not. */
import { epilogues } from "../../scripts/pages/catalogue-contractions.ts";
import type { Value } from "../../src/graph/graph.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, keeps, testCatalogue, type Case } from "../support/catalogue-cases.ts";
import { add, conv1, conv3, deconv, gemm, matmul, mul, picture, relu, reshape, rows, slice, transpose } from "../support/catalogue-parts.ts";

type Activation = (b: GraphBuilder, x: Value) => Value;
const activations: Readonly<Record<string, Activation>> = {
  Relu: relu,
  "Clip as Relu6": (b, x) => b.add(op.Clip, [x, 0, 6]),
  LeakyRelu: (b, x) => b.add(op.LeakyRelu, [x], { alpha: 0.2 }),
  "PRelu by channel": (b, x) => b.add(op.PRelu, [x, b.random([4, 1, 1])]),
  Elu: (b, x) => b.add(op.Elu, [x]),
  Selu: (b, x) => b.add(op.Selu, [x]),
  Celu: (b, x) => b.add(op.Celu, [x], { alpha: 0.7 }),
  Sigmoid: (b, x) => b.add(op.Sigmoid, [x]),
  Tanh: (b, x) => b.add(op.Tanh, [x]),
  HardSigmoid: (b, x) => b.add(op.HardSigmoid, [x]),
  HardSwish: (b, x) => b.add(op.HardSwish, [x]),
  SiLU: (b, x) => mul(b, x, b.add(op.Sigmoid, [x])),
  Gelu: (b, x) => b.add(op.Gelu, [x]),
  "Gelu by tanh": (b, x) => b.add(op.Gelu, [x], { approximate: "tanh" }),
  Mish: (b, x) => b.add(op.Mish, [x]),
  Softplus: (b, x) => b.add(op.Softplus, [x]),
  Softsign: (b, x) => b.add(op.Softsign, [x]),
  "a Cast and a scale": (b, x) => mul(b, b.add(op.Cast, [b.add(op.Cast, [x], { to: 10 })], { to: 1 }), 2),
};
/** Behind a 3x3 convolution, one call each. */
const afterConv = Object.fromEntries(Object.entries(activations).map(([name, activation]): [string, Case] => [`${name} behind Conv`, fuses(1, (b) => activation(b, conv3(b)), [], name === "a Cast and a scale" ? { bound: 1e-3, without: ["large"] } : {})]));
const einsum = (equation: string, ...dims: readonly (readonly number[])[]) => (b: GraphBuilder): Value => b.add(op.Einsum, dims.map((d, i) => b.input(`x${i}`, d)), { equation });

testCatalogue(epilogues, {
  "activations, of every kind, and anything element by element": {
    ...afterConv,
    "behind ConvTranspose": fuses(1, (b) => relu(b, deconv(b))),
    "behind MatMul of rank 3": fuses(1, (b) => b.add(op.Gelu, [add(b, matmul(b), b.random([6]))])),
    "behind Gemm": fuses(1, (b) => b.add(op.Tanh, [gemm(b, { alpha: 0.5, transB: 1 })])),
    "behind Conv of one and three axes": fuses(2, (b) => [relu(b, b.add(op.Conv, [b.input("x", ["n", 3, 9]), b.random([4, 3, 3])])), relu(b, b.add(op.Conv, [b.input("z", ["n", 3, 4, 4, 4]), b.random([4, 3, 2, 2, 2])]))]),
    "with limits that are fed": fuses(1, (b) => b.add(op.Clip, [conv3(b), b.input("low", []), b.input("high", [])]), [], { without: ["special"] }),
    "limits the wrong way round": fuses(1, (b) => b.add(op.Clip, [conv3(b), 2, 1])),
    "a random number in between stays apart": keeps(2, (b) => { const y = b.add(op.GlobalAveragePool, [conv3(b)]); return relu(b, y); }),
  },
  "residual sums, with broadcasting": {
    "Conv and what is fed": fuses(1, (b) => relu(b, add(b, conv3(b), picture(b, 4, 6, "z")))),
    "the input itself": fuses(1, (b) => { const x = picture(b, 4); return relu(b, add(b, x, conv3(b, x, [4, 4]))); }),
    "one a channel, fed": fuses(1, (b) => add(b, conv3(b), b.input("z", ["n", 4, 1, 1]))),
    "a gate of another branch": fuses(1, (b) => mul(b, conv3(b), b.input("z", [6, 6]))),
    "two convolutions added: the later one adds": fuses(2, (b) => relu(b, add(b, conv3(b), conv3(b, picture(b, 3, 6, "z"))))),
    "a convolution in groups": fuses(1, (b) => { const x = picture(b, 4); return relu(b, add(b, b.add(op.Conv, [x, b.random([4, 2, 3, 3])], { group: 2, pads: [1, 1, 1, 1] }), x)); }),
    "MatMul and a bias": fuses(1, (b) => add(b, add(b, matmul(b, rows(b), [8, 8]), b.random([8])), rows(b, "z"))),
    "a sum that others read too": fuses(2, (b) => { const x = rows(b), s = add(b, matmul(b, x, [8, 8]), x); return [s, b.add(op.Softmax, [s])]; }),
    "not: computed from the result itself": keeps(2, (b) => { const y = conv3(b); return add(b, y, b.add(op.MaxPool, [y], { kernel_shape: [3, 3], pads: [1, 1, 1, 1] })); }),
    "not: a sum that enlarges": keeps(2, (b) => add(b, b.add(op.Conv, [b.input("x", [1, 3, 6, 6]), b.random([4, 3, 3, 3])]), b.input("z", [2, 1, 1, 1]))),
  },
  "activations, factors and biases behind a Transpose or Reshape of the result": {
    "an activation behind channels last": fuses(1, (b) => relu(b, transpose(b, conv3(b), 0, 2, 3, 1)), "compute-before-view"),
    "a bias and an activation behind channels last": fuses(1, (b) => relu(b, add(b, transpose(b, conv3(b), 0, 2, 3, 1), b.random([4]))), "compute-before-view"),
    "an activation behind a Reshape": fuses(1, (b) => b.add(op.Sigmoid, [reshape(b, conv3(b), 0, 4, 36)]), "compute-before-view"),
    "a bias of channels behind a Reshape": fuses(1, (b) => add(b, reshape(b, conv3(b), 0, 4, -1), b.random([1, 4, 1])), "compute-before-view"),
    "the scale of heads": fuses(2, (b) => b.add(op.MatMul, [mul(b, transpose(b, reshape(b, matmul(b, rows(b), [8, 8]), 0, 0, 2, 4), 0, 2, 1, 3), 0.5), b.input("k", ["n", 2, 4, 7])]), "compute-before-view"),
    "a product whose channels are rows": fuses(1, (b) => mul(b, transpose(b, matmul(b), 0, 2, 1), b.random([6, 1])), "compute-before-view"),
    "flattened before an activation": fuses(1, (b) => relu(b, b.add(op.Flatten, [conv3(b)])), "compute-before-view"),
    "not: others read the view": keeps(3, (b) => { const z = reshape(b, conv3(b), 0, 4, 36); return [relu(b, z), b.add(op.Softmax, [z])]; }, "compute-before-view"),
    "not: a constant for each place": keeps(2, (b) => mul(b, reshape(b, conv3(b), 0, 4, 36), b.random([4, 36])), "compute-before-view"),
    "not: a number for each head": keeps(2, (b) => mul(b, reshape(b, matmul(b, rows(b), [8, 8]), 0, 0, 2, 4), b.random([2, 1])), "compute-before-view"),
  },
  "transposed operands and results": {
    "Gemm by a transposed A": fuses(1, (b) => b.add(op.Gemm, [transpose(b, b.input("x", [5, "n"]), 1, 0), b.random([5, 4]), b.random([4])])),
    "Gemm by a transposed B that is fed": fuses(1, (b) => b.add(op.Gemm, [b.input("x", ["n", 5]), transpose(b, b.input("z", [4, 5]), 1, 0)])),
    "Gemm by a Transpose that changes nothing": fuses(1, (b) => b.add(op.Gemm, [transpose(b, b.input("x", ["n", 5]), 0, 1), b.random([5, 4])])),
    "Gemm, then Transpose, C not a number": fuses(1, (b) => transpose(b, gemm(b), 1, 0)),
    "MatMul by transposed keys": fuses(1, (b) => b.add(op.MatMul, [b.input("q", ["n", 2, 5, 8]), transpose(b, b.input("k", ["n", 2, 7, 8]), 0, 1, 3, 2)])),
    "MatMul with the heads moved": fuses(1, (b) => b.add(op.MatMul, [transpose(b, b.input("q", ["n", 5, 2, 8]), 0, 2, 1, 3), transpose(b, b.input("k", ["n", 7, 2, 8]), 0, 2, 3, 1)])),
    "MatMul, then Transpose": fuses(1, (b) => transpose(b, b.add(op.MatMul, [b.input("q", ["n", 5, 8]), b.input("k", ["n", 8, 7])]), 0, 2, 1)),
    "both operands and the result": fuses(1, (b) => transpose(b, b.add(op.MatMul, [transpose(b, b.input("q", ["n", 8, 5]), 0, 2, 1), transpose(b, b.input("k", ["n", 7, 8]), 0, 2, 1)]), 0, 2, 1)),
  },
  "scales before or after a product": {
    "after, fed matrices": fuses(1, (b) => b.add(op.Div, [b.add(op.MatMul, [rows(b), b.input("z", ["n", 8, 7])]), 8])),
    "after, a number that is fed": fuses(1, (b) => mul(b, b.add(op.MatMul, [rows(b), b.input("z", ["n", 8, 7])]), b.input("s", []))),
    "before a product: where it is": keeps(3, (b) => b.add(op.MatMul, [mul(b, rows(b), 1e30), mul(b, b.input("z", ["n", 8, 7]), 1e-30)]), [], { without: ["tiny"] }),
    "one a column before a product by a constant": keeps(2, (b) => matmul(b, mul(b, rows(b), b.random([8])))),
  },
  "reshapes around a product": {
    "rows flattened and back": fuses(1, (b) => reshape(b, matmul(b, reshape(b, rows(b), -1, 8)), -1, 5, 6)),
    "with bias and activation": fuses(1, (b) => reshape(b, relu(b, add(b, matmul(b, reshape(b, rows(b), -1, 8)), b.random([6]))), -1, 5, 6)),
    "columns split into heads": fuses(2, (b) => b.add(op.MatMul, [transpose(b, reshape(b, matmul(b), 0, 0, 2, 3), 0, 2, 1, 3), b.input("k", ["n", 2, 3, 7])])),
  },
  "Einsum": {
    "a product": fuses(1, einsum("ij,jk->ik", [5, 8], [8, 6])),
    "a product of many": fuses(1, einsum("bij,bkj->bik", [2, 5, 8], [2, 6, 8])),
    "heads": fuses(1, einsum("bqhd,bkhd->bhqk", [2, 5, 3, 4], [2, 6, 3, 4])),
    "a bias and an activation behind": fuses(1, (b) => relu(b, add(b, einsum("bij,jk->bik", [2, 5, 8], [8, 6])(b), b.random([6])))),
    "the diagonal": fuses(1, einsum("ii->i", [5, 5])),
    "no result given": fuses(1, einsum("ij,jk", [5, 8], [8, 6])),
    "an ellipsis that broadcasts": fuses(1, einsum("...ij,...jk->...ik", [2, 5, 8], [1, 8, 6])),
    "three operands": fuses(1, einsum("ij,jk,kl->il", [3, 4], [4, 5], [5, 2])),
    "a sum": fuses(1, einsum("ij->j", [5, 8])),
  },
  "rows chosen after a product, chosen before it instead": {
    "the last of a sequence": fuses(1, (b) => slice(b, add(b, matmul(b), b.random([6])), 1, -1, 9), "select-rows-before-product"),
    "a row by its number": fuses(1, (b) => b.add(op.Gather, [matmul(b), b.scalar(-1, "int64")], { axis: 1 }), "select-rows-before-product"),
    "not: columns": keeps(2, (b) => relu(b, slice(b, matmul(b), 2, 0, 3)), "select-rows-before-product"),
    "not: all rows are read elsewhere": keeps(2, (b) => { const y = matmul(b); return [y, relu(b, slice(b, y, 1, -1, 9))]; }, "select-rows-before-product"),
  },
  "1x1 convolutions as products; Winograd for 3x3; depthwise loops": {
    "1x1": fuses(1, (b) => relu(b, conv1(b, picture(b, 8), [8, 6]))),
    "1x1 with strides": fuses(1, (b) => conv1(b, picture(b, 8), [8, 6], { strides: [2, 2] })),
    "1x1 of rows and columns left out by Slice": fuses(1, (b) => conv1(b, slice(b, slice(b, picture(b, 8), 2, 0, 9, 2), 3, 0, 9, 2), [8, 6])),
    "a window as large as the picture": fuses(1, (b) => relu(b, b.add(op.Conv, [picture(b), b.random([5, 3, 6, 6])]))),
    "behind a mean of the plane": fuses(2, (b) => b.add(op.Sigmoid, [conv1(b, b.add(op.GlobalAveragePool, [picture(b, 8)]), [8, 6])])),
    "3x3 of many channels": fuses(1, (b) => conv3(b, b.input("x", ["n", 32, 20, 20]), [32, 32]), [], { bound: 1e-4, without: ["special"] }),
    "depthwise": fuses(1, (b) => b.add(op.Clip, [b.add(op.Conv, [picture(b, 8), b.random([8, 1, 3, 3])], { group: 8, pads: [1, 1, 1, 1] }), 0, 6])),
    "depthwise with two filters a channel": fuses(1, (b) => b.add(op.Conv, [picture(b, 4), b.random([8, 1, 3, 3])], { group: 4 })),
    "three axes, one of them of depth 1": fuses(1, (b) => relu(b, b.add(op.Conv, [b.input("x", ["n", 3, 4, 6, 6]), b.random([4, 3, 1, 3, 3])], { pads: [0, 1, 1, 0, 1, 1] }))),
    "groups of two channels": fuses(1, (b) => b.add(op.Conv, [picture(b, 8), b.random([8, 2, 3, 3])], { group: 4, dilations: [2, 2] })),
  },
  "layouts with channels last": {
    "a convolution between transpositions": fuses(1, (b) => transpose(b, conv3(b, transpose(b, b.input("x", ["n", 6, 6, 3]), 0, 3, 1, 2)), 0, 2, 3, 1)),
    "two of them, with bias and activation in the other order": fuses(2, (b) => {
      const first = transpose(b, conv3(b, transpose(b, b.input("x", ["n", 6, 6, 3]), 0, 3, 1, 2)), 0, 2, 3, 1);
      return transpose(b, conv3(b, transpose(b, relu(b, add(b, first, b.random([4]))), 0, 3, 1, 2), [4, 4]), 0, 2, 3, 1);
    }),
  },
}, ["factoring and distributing products over sums", "dilation spelled as space to batch"]);
