/** The catalogue: normalisations and reductions from their parts. */
import { normalisation } from "../../scripts/pages/catalogue-normalisation.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import type { Value } from "../../src/graph/graph.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, fusesLoosely, keeps, testCatalogue } from "../support/catalogue-cases.ts";
import { add, conv3, matmul, mul, picture, relu, reshape, rows, slice, concat, transpose } from "../support/catalogue-parts.ts";

/** Rows long enough to be worth a kernel that stores one. */
const wide = (b: GraphBuilder, name = "x"): Value => b.input(name, ["n", 5, 32]);
const mean = (b: GraphBuilder, x: Value, axes: readonly number[] = [-1], keepdims = 1): Value => b.add(op.ReduceMean, [x, b.int64(...axes)], { keepdims });
const root = (b: GraphBuilder, x: Value): Value => b.add(op.Sqrt, [x]);
interface Form { readonly centre?: boolean; readonly power?: boolean; readonly how?: "Div" | "Reciprocal" | "Pow"; readonly axes?: readonly number[]; readonly of?: readonly number[]; readonly keepdims?: number; readonly statistics?: Value }
/** A normalisation over the last axis without scale and bias. */
function normalised(b: GraphBuilder, x: Value, { centre = true, power = true, how = "Div", axes = [-1], keepdims = 1 }: Form = {}): Value {
  const d = centre ? b.add(op.Sub, [x, mean(b, x, axes, keepdims)]) : x;
  const variance = add(b, mean(b, power ? b.add(op.Pow, [d, 2]) : mul(b, d, d), axes, keepdims), 1e-5);
  if (how === "Pow") return mul(b, d, b.add(op.Pow, [variance, -0.5]));
  return how === "Div" ? b.add(op.Div, [d, root(b, variance)]) : mul(b, d, b.add(op.Reciprocal, [root(b, variance)]));
}
const affine = (b: GraphBuilder, x: Value, n = 8): Value => add(b, mul(b, x, b.random([n])), b.random([n]));
const asFloat = (b: GraphBuilder, x: Value): Value => b.add(op.Cast, [x], { to: 1 });
const asHalf = (b: GraphBuilder, x: Value): Value => b.add(op.Cast, [x], { to: 10 });
const layerNorm = "recognise-layer-normalization", rmsNorm = "recognise-rms-normalization";
/** NaN and infinities in a row make all of it NaN, whatever the order. */
const finite = { without: ["special"] } as const;

testCatalogue(normalisation, {
  "LayerNorm from mean, difference, square, root and quotient": {
    "by power": fuses(1, (b) => affine(b, normalised(b, rows(b))), layerNorm, finite),
    "by product": fuses(1, (b) => affine(b, normalised(b, rows(b), { power: false })), layerNorm, finite),
    "by the reciprocal of the root": fuses(1, (b) => affine(b, normalised(b, rows(b), { how: "Reciprocal" })), layerNorm, finite),
    "by a negative power": fuses(1, (b) => affine(b, normalised(b, rows(b), { how: "Pow" })), layerNorm, finite),
    "without scale and bias": fuses(1, (b) => normalised(b, rows(b)), layerNorm, finite),
    "the difference computed twice": fuses(1, (b) => { const x = rows(b), m = mean(b, x), d = b.add(op.Sub, [x, m]), e = b.add(op.Sub, [x, m]); return affine(b, b.add(op.Div, [d, root(b, add(b, mean(b, b.add(op.Pow, [e, 2])), 1e-5))])); }, layerNorm, finite),
    "over the last two axes": fuses(1, (b) => normalised(b, rows(b), { axes: [-2, -1] }), layerNorm, finite),
    "not: keepdims 0": keeps(3, (b) => normalised(b, b.input("x", [6, 6]), { keepdims: 0 }), layerNorm, finite),
    "over one axis that is not the last": fuses(1, (b) => normalised(b, rows(b), { axes: [1] }), layerNorm, finite),
    "not: two means over other axes": keeps(2, (b) => { const x = rows(b), d = b.add(op.Sub, [x, mean(b, x, [-1])]); return b.add(op.Div, [d, root(b, add(b, mean(b, mul(b, d, d), [-2]), 1e-5))]); }, layerNorm, finite),
    "not: the difference from another mean": keeps(1, (b) => { const x = rows(b), z = rows(b, "z"), d = b.add(op.Sub, [x, mean(b, z)]); return b.add(op.Div, [d, root(b, add(b, mean(b, mul(b, d, d)), 1e-5))]); }, layerNorm, finite),
  },
  "LayerNorm between casts to float32 and back": {
    "float16 rows": fuses(1, (b) => asHalf(b, affine(b, normalised(b, asFloat(b, b.input("x", ["n", 5, 8], "float16"))))), [], { ...finite, bound: 1e-3, without: ["special", "large"] }),
  },
  "LayerNorm over channels between two transpositions": {
    "channels last and back": fuses(1, (b) => transpose(b, b.add(op.LayerNormalization, [transpose(b, picture(b, 8), 0, 2, 3, 1), b.random([8]), b.random([8])]), 0, 3, 1, 2), [], finite),
  },
  "LayerNorm over a leading axis, spelled out": {
    "channels": fuses(1, (b) => { const x = picture(b, 8); return add(b, mul(b, normalised(b, x, { axes: [1] }), b.random([8, 1, 1])), b.random([8, 1, 1])); }, layerNorm, finite),
  },
  "LayerNorm and the addition of a bias": {
    "a bias behind another": fuses(1, (b) => add(b, b.add(op.LayerNormalization, [rows(b), b.random([8])]), b.random([8])), [], finite),
  },
  "RMSNorm, also with 1 + γ folded": {
    "by product": fuses(1, (b) => mul(b, normalised(b, rows(b), { centre: false, power: false }), b.random([8])), rmsNorm, finite),
    "by power and reciprocal": fuses(1, (b) => mul(b, b.random([8]), normalised(b, rows(b), { centre: false, how: "Reciprocal" })), rmsNorm, finite),
    "with 1 + γ": fuses(1, (b) => mul(b, normalised(b, rows(b), { centre: false }), add(b, b.random([8]), 1)), rmsNorm, finite),
    "between casts": fuses(1, (b) => asHalf(b, mul(b, normalised(b, asFloat(b, b.input("x", ["n", 5, 8], "float16")), { centre: false }), b.random([8]))), [], { bound: 1e-3, without: ["special", "large"] }),
    "not: epsilon behind the root": keeps(1, (b) => { const x = wide(b); return b.add(op.Div, [x, add(b, root(b, mean(b, mul(b, x, x))), 1e-5)]); }, rmsNorm, finite),
  },
  "addition of a residual, then LayerNorm or RMSNorm": {
    "LayerNorm, the sum read again": fuses(1, (b) => { const s = add(b, wide(b), wide(b, "z")); return [s, b.add(op.LayerNormalization, [s, b.random([32]), b.random([32])])]; }, [], finite),
    "RMSNorm, the sum read again": fuses(1, (b) => { const s = add(b, wide(b), wide(b, "z")); return [s, mul(b, normalised(b, s, { centre: false }), b.random([32]))]; }, rmsNorm, finite),
    "with a bias, broadcasting": fuses(1, (b) => { const s = add(b, add(b, wide(b), b.random([32])), b.input("z", [1, 5, 32])); return b.add(op.LayerNormalization, [s, b.random([32])]); }, [], finite),
    "behind a product": fuses(2, (b) => { const s = add(b, matmul(b, rows(b), [8, 32]), wide(b, "z")); return [s, b.add(op.LayerNormalization, [s, b.random([32])])]; }, [], finite),
    "not: rows of a few elements": keeps(2, (b) => { const s = add(b, rows(b), rows(b, "z")); return [s, b.add(op.LayerNormalization, [s, b.random([8])])]; }, [], finite),
  },
  "embedding look-ups, their sum, LayerNorm": {
    "words, positions and segments": fuses(1, (b) => {
      const look = (name: string): Value => b.add(op.Gather, [b.random([9, 32]), b.input(name, ["n", 5], "int64")]);
      return b.add(op.LayerNormalization, [add(b, add(b, look("word"), look("segment")), b.random([5, 32])), b.random([32]), b.random([32])]);
    }),
  },
  "GroupNorm from Reshape, InstanceNormalization, Reshape, scale and bias": {
    "of 8 channels in 2 groups": fuses(2, (b) => {
      const x = picture(b, 8), y = b.add(op.InstanceNormalization, [reshape(b, x, 0, 2, -1), b.numbers([1, 1]), b.numbers([0, 0])]);
      return add(b, mul(b, reshape(b, y, 0, 8, 6, 6), b.random([8, 1, 1])), b.random([8, 1, 1]));
    }, [], finite),
  },
  "GroupNorm with SiLU": {
    "GroupNormalization, x · sigmoid(x)": fuses(1, (b) => { const y = b.add(op.GroupNormalization, [picture(b, 8), b.random([8]), b.random([8])], { num_groups: 2 }); return mul(b, y, b.add(op.Sigmoid, [y])); }, [], finite),
  },
  "InstanceNorm and GroupNorm as LayerNorm": {
    "InstanceNormalization and Relu": fuses(1, (b) => relu(b, b.add(op.InstanceNormalization, [picture(b, 4), b.random([4]), b.random([4])])), [], finite),
    "InstanceNormalization behind a convolution": fuses(2, (b) => b.add(op.InstanceNormalization, [conv3(b), b.random([4]), b.random([4])]), [], { without: ["special", "zero", "tiny"] }),
  },
  "mean-variance normalisation from its parts": {
    "over the plane and the batch": fuses(1, (b) => b.add(op.MeanVarianceNormalization, [picture(b)]), [], { ...finite, bound: 1e-3, without: ["special", "zero", "tiny"] }),
  },
  "division by the root of the sum of squares": {
    "spelled out": fuses(1, (b) => { const x = wide(b); return b.add(op.Div, [x, b.add(op.Max, [b.add(op.ReduceL2, [x, b.int64(-1)]), 1e-12])]); }, [], finite),
    "LpNormalization": fuses(1, (b) => b.add(op.LpNormalization, [rows(b)], { axis: -1, p: 2 }), [], { without: ["special", "zero", "tiny"] }),
  },
  "ReduceL1, L2, SumSquare, LogSum, LogSumExp from their parts": {
    "L1": fuses(1, (b) => b.add(op.ReduceSum, [b.add(op.Abs, [rows(b)]), b.int64(-1)])),
    "L2": fuses(1, (b) => { const x = rows(b); return root(b, b.add(op.ReduceSum, [mul(b, x, x), b.int64(-1)])); }),
    "the logarithm of a sum of exponentials": fuses(1, (b) => b.add(op.Log, [b.add(op.ReduceSum, [b.add(op.Exp, [rows(b)]), b.int64(-1)])])),
  },
  "ReduceMean over the plane as GlobalAveragePool, and back": {
    "the mean of a plane, then a 1x1 product": fuses(2, (b) => b.add(op.Gemm, [mean(b, picture(b, 4), [2, 3], 0), b.random([4, 5])]), [], finite),
    "GlobalAveragePool and Flatten": fuses(2, (b) => b.add(op.Gemm, [b.add(op.Flatten, [b.add(op.GlobalAveragePool, [picture(b, 4)])]), b.random([4, 5])]), [], finite),
    "the maximum of a plane": fuses(1, (b) => b.add(op.ReduceMax, [relu(b, picture(b, 4)), b.int64(2, 3)])),
  },
  "two reductions after each other as one": {
    "maxima": fuses(1, (b) => b.add(op.ReduceMax, [b.add(op.ReduceMax, [picture(b), b.int64(3)]), b.int64(2)]), "merge-reductions"),
    "means, where approximations are allowed": fusesLoosely(1, (b) => mean(b, mean(b, picture(b), [3]), [2]), "merge-sums"),
    "not: the maximum of sums": keeps(2, (b) => b.add(op.ReduceMax, [b.add(op.ReduceSum, [picture(b), b.int64(3)]), b.int64(2)]), ["merge-reductions", "merge-sums"], finite),
  },
  "a reduction and Unsqueeze, Squeeze or Reshape": {
    "Unsqueeze": fuses(1, (b) => b.add(op.Unsqueeze, [mean(b, rows(b), [1], 0), b.int64(1)]), [], finite),
    "Squeeze": fuses(1, (b) => b.add(op.Squeeze, [mean(b, rows(b), [1]), b.int64(1)]), [], finite),
  },
  "adaptive pooling": {
    "windows that divide the plane": fuses(1, (b) => relu(b, b.add(op.AveragePool, [picture(b)], { kernel_shape: [3, 3], strides: [3, 3] }))),
  },
  "RMSNorm of queries and keys before their rotation": {
    "of one head": fuses(2, (b) => {
      const x = b.input("x", ["n", 2, 5, 16]), y = b.add(op.RMSNormalization, [x, b.random([16])]);
      const turned = concat(b, -1, b.add(op.Neg, [slice(b, y, -1, 8, 16)]), slice(b, y, -1, 0, 8));
      return add(b, mul(b, y, b.random([5, 16])), mul(b, turned, b.random([5, 16])));
    }, [], finite),
  },
  "norms and exponentials kept in float32": {
    "LayerNormalization of float16": fuses(1, (b) => b.add(op.LayerNormalization, [b.input("x", ["n", 5, 8], "float16"), b.random([8], { dtype: "float16" })]), [], { bound: 1e-3, without: ["special", "large"] }),
    "Softmax of float16": fuses(1, (b) => b.add(op.Softmax, [b.input("x", ["n", 5, 8], "float16")]), [], { bound: 1e-3, without: ["special"] }),
  },
  "Softmax and LogSoftmax spelled out with the maximum subtracted": {
    "Softmax": fuses(1, (b) => { const x = rows(b), e = b.add(op.Exp, [b.add(op.Sub, [x, b.add(op.ReduceMax, [x, b.int64(-1)])])]); return mul(b, e, b.add(op.Reciprocal, [b.add(op.ReduceSum, [e, b.int64(-1)])])); }, "recognise-softmax", finite),
    "not: keepdims 0": keeps(2, (b) => { const x = b.input("x", [6, 6]), e = b.add(op.Exp, [b.add(op.Sub, [x, b.add(op.ReduceMax, [x, b.int64(-1)], { keepdims: 0 })])]); return b.add(op.Div, [e, b.add(op.ReduceSum, [e, b.int64(-1)])]); }, "recognise-softmax", { without: ["special", "large"] }),
  },
}, ["pooled sums, strides moved into pools", "mean and variance in one pass"]);
