/**
 * A mixture of experts said by other operators, as exporters of PyTorch write one: the router's scores choose, and then
 * each expert gathers the tokens that chose it, computes them by matrix products, and adds what it gives, times the
 * weights, to their rows. An expert that no token chose computes on no rows. For experts whose weights are constant.
 */
import { fromNumbers, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { ExpandContext, ExpansionNode, TypeInfo } from "../graph/op.ts";
import { Gelu, Relu, Sigmoid, Swish } from "./activation.ts";
import { Add, Div, Mul } from "./arithmetic.ts";
import { Clip } from "./clip.ts";
import { DequantizedMatMul } from "./dequantized-matmul.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { ConstantOfShape, Expand } from "./fill.ts";
import { Gather, GatherElements } from "./gather.ts";
import { Equal } from "./logic.ts";
import { MatMul } from "./matmul.ts";
import { bitsAt } from "./microsoft-block-quantized.ts";
import { NonZero, TopK } from "./order.ts";
import { ReduceSum } from "./reduce.ts";
import { Reshape, Squeeze, Unsqueeze } from "./reshape.ts";
import { ScatterElements, ScatterND } from "./scatter.ts";
import { Shape } from "./shape.ts";
import { Slice } from "./slice.ts";
import { Softmax } from "./softmax.ts";
import { Transpose } from "./transpose.ts";
import { Where } from "./where.ts";

export interface ExpertOptions {
  readonly k: number; readonly activation_type: string; readonly activation_alpha: number; readonly activation_beta: number; readonly swiglu_fusion: number; readonly swiglu_limit: number | undefined;
}
/** One layer of all experts. */
export interface ExpertLayer {
  readonly outputs: number;
  /** The chosen rows of one expert's weights, [outputs, inputs], times `x`. */
  product(to: Expansion, x: string, expert: number, rows: readonly number[]): string;
  readonly bias: Tensor | undefined;
}
export interface Experts { readonly first: ExpertLayer; readonly second: ExpertLayer; readonly gated: ExpertLayer | undefined }
/** The names of the chosen scores, [tokens, k], of all of them, [tokens, experts], and of which are chosen, the last expert being 0; gives the weights of those chosen. */
export type Weigh = (to: Expansion, chosen: string, scores: string, places: string) => string;

/** Softmax of all scores, or of those chosen alone. */
export const softmaxWeights = (amongChosen: boolean): Weigh => (to, chosen, scores, places) =>
  (amongChosen ? to.add(Softmax, [chosen], { axis: -1 }) : to.add(GatherElements, [to.add(Softmax, [scores], { axis: -1 }), places], { axis: 1 }));
/** Elements of a tensor of weights, brought to a sum of 1 where that is asked for and it is not 0. */
export const givenWeights = (weights: string, normalised: boolean): Weigh => (to, _, __, places) => {
  const own = to.add(GatherElements, [backwards(to, weights), places], { axis: 1 });
  if (!normalised) return own;
  const sum = to.add(ReduceSum, [own, listOf(-1)]);
  return to.add(Where, [to.add(Equal, [sum, scalarOf("float32", 0)]), scalarOf("float32", 0), to.add(Div, [own, sum])]);
};
/** Scores with the last expert first: of equal ones TopK takes the first, and the operator the last. */
const backwards = (to: Expansion, scores: string): string => to.add(Slice, [scores, listOf(-1), listOf(-(2 ** 31)), listOf(1), listOf(-1)]);

/** A float32 mixture of `count` experts; undefined where what it reads is of another type. */
export function expandExperts({ inputs: [input = "", router = ""], inputTypes: [x, scores], outputs: [output] }: ExpandContext, count: number, experts: Experts, weigh: Weigh, options: ExpertOptions): readonly ExpansionNode[] | undefined {
  if (x?.dtype !== "float32" || scores?.dtype !== "float32") return undefined;
  const to = new Expansion(), width = experts.second.outputs, flat = x.shape.length === 2 ? input : to.add(Reshape, [input, listOf(-1, width)]);
  const reversed = backwards(to, router), chosen = topK(to, reversed, options.k);
  const weights = weigh(to, chosen.values, reversed, chosen.places), one = to.add(Expand, [scalarOf("float32", 1), to.add(Shape, [chosen.places])]);
  const none = to.add(ConstantOfShape, [to.add(Shape, [reversed])], { value: fromNumbers("float32", [1], [0]) });
  const byExpert = (values: string): string => to.add(Transpose, [to.add(ScatterElements, [none, chosen.places, values], { axis: 1 })], { perm: [1, 0] });
  const hits = byExpert(one), shares = byExpert(weights);
  let sum = to.add(ConstantOfShape, [to.add(Shape, [flat])], { value: fromNumbers("float32", [1], [0]) });
  for (let expert = 0; expert < count; expert++) {
    const of = (rows: string): string => to.add(Gather, [rows, fromNumbers("int64", [], [count - 1 - expert])], { axis: 0 });
    const tokens = to.add(Squeeze, [to.add(NonZero, [of(hits)]), listOf(0)]), own = to.add(Gather, [flat, tokens], { axis: 0 });
    const share = to.add(Unsqueeze, [to.add(Gather, [of(shares), tokens], { axis: 0 }), listOf(1)]);
    const result = to.add(Mul, [expertOf(to, own, expert, experts, options), share]);
    sum = to.add(ScatterND, [sum, to.add(Unsqueeze, [tokens, listOf(1)]), result], { reduction: "add" }, x.shape.length === 2 && expert === count - 1 ? output : undefined);
  }
  if (x.shape.length !== 2) to.add(Reshape, [sum, to.add(Shape, [input])], {}, output);
  return to.nodes;
}

function topK(to: Expansion, scores: string, k: number): { readonly values: string; readonly places: string } {
  const values = `top${to.nodes.length}`, places = `${values}_places`;
  to.nodes.push({ op: TopK, inputs: [scores, listOf(k)], outputs: [values, places], attributes: { axis: 1 } });
  return { values, places };
}

/** One expert on the tokens that chose it. The gate and the linear part of swiglu are interleaved, one after the other, or layers of their own. */
function expertOf(to: Expansion, x: string, expert: number, { first, second, gated }: Experts, options: ExpertOptions): string {
  const all = (n: number, from = 0, step = 1): readonly number[] => Array.from({ length: n }, (_, i) => from + i * step);
  const layer = (of: ExpertLayer, input: string, rows: readonly number[]): string => {
    const product = of.product(to, input, expert, rows), bias = of.bias && toNumbers(of.bias);
    return bias ? to.add(Add, [product, fromNumbers("float32", [rows.length], rows.map((row) => bias[expert * of.outputs + row] ?? 0))]) : product;
  };
  const last = (hidden: string): string => layer(second, hidden, all(second.outputs));
  if (options.activation_type !== "swiglu") {
    const hidden = activated(to, layer(first, x, all(first.outputs)), options.activation_type);
    return last(gated ? to.add(Mul, [hidden, layer(gated, x, all(gated.outputs))]) : hidden);
  }
  const half = first.outputs / 2, part = (which: 0 | 1): readonly number[] => (options.swiglu_fusion === 1 ? all(half, which, 2) : all(half, which * half));
  const [gate, linear] = gated ? [layer(first, x, all(first.outputs)), layer(gated, x, all(gated.outputs))] : [layer(first, x, part(0)), layer(first, x, part(1))];
  return last(swiGlu(to, gate, linear, options));
}
function activated(to: Expansion, x: string, type: string): string {
  switch (type) {
    case "relu": return to.add(Relu, [x]);
    case "gelu": return to.add(Gelu, [x], { approximate: "tanh" });
    case "silu": return to.add(Swish, [x]);
    default: return x;
  }
}
function swiGlu(to: Expansion, gate: string, linear: string, { activation_alpha: alpha, activation_beta: beta, swiglu_limit: limit }: ExpertOptions): string {
  const g = limit === undefined ? gate : to.add(Clip, [gate, undefined, scalarOf("float32", limit)]);
  const l = limit === undefined ? linear : to.add(Clip, [linear, scalarOf("float32", -limit), scalarOf("float32", limit)]);
  const own = to.add(Mul, [g, to.add(Sigmoid, [alpha === 1 ? g : to.add(Mul, [g, scalarOf("float32", alpha)])])]);
  return to.add(Mul, [own, beta === 0 ? l : to.add(Add, [l, scalarOf("float32", beta)])]);
}

const constantsOf = (types: readonly (TypeInfo | undefined)[]): readonly (Tensor | undefined)[] => types.map((t) => t?.constant);

/** A layer of floats, [experts, outputs, inputs]; undefined where its elements are not known. */
export function floatLayer(weights: TypeInfo | undefined, bias: TypeInfo | undefined): ExpertLayer | undefined {
  const [w, b] = constantsOf([weights, bias]), [, outputs = 0, inputs = 0] = w?.dims ?? [];
  if (w?.dtype !== "float32" || (bias && b?.dtype !== "float32")) return undefined;
  const values = toNumbers(w);
  return {
    outputs, bias: b,
    product(to, x, expert, rows) {
      const own = new Float32Array(inputs * rows.length);
      rows.forEach((row, o) => { for (let i = 0; i < inputs; i++) own[i * rows.length + o] = values[(expert * outputs + row) * inputs + i] ?? 0; });
      return to.add(MatMul, [x, tensor("float32", [inputs, rows.length], own)]);
    },
  };
}

/** A layer of integers of 2, 4 or 8 bits, with scales and zero points for each row or for each block of one. */
export function packedLayer(weights: TypeInfo | undefined, scales: TypeInfo | undefined, zeros: TypeInfo | undefined, bias: TypeInfo | undefined, bits: number): ExpertLayer | undefined {
  const [w, s, z, b] = constantsOf([weights, scales, zeros, bias]), [, outputs = 0, rowBytes = 0] = w?.dims ?? [], inputs = (rowBytes * 8) / bits;
  if (!w || s?.dtype !== "float32" || (zeros && !z) || (bias && b?.dtype !== "float32")) return undefined;
  const bytes = toNumbers(w), factors = toNumbers(s), points = z && toNumbers(z), blocks = s.dims[2] ?? 1, block = Math.ceil(inputs / blocks);
  // Zero points are packed along a row's blocks, or along the rows of an expert.
  const [lines, each] = s.dims.length === 3 ? [outputs, blocks] : [1, outputs], lineBytes = Math.ceil((each * bits) / 8);
  const zeroAt = (expert: number, row: number, own: number): number =>
    (points ? bitsAt(points, (expert * lines + (lines === 1 ? 0 : row)) * lineBytes, s.dims.length === 3 ? own : row, bits) : 2 ** (bits - 1));
  return {
    outputs, bias: b,
    product(to, x, expert, rows) {
      const cells = <T>(columns: number, f: (row: number, column: number) => T): T[] => rows.flatMap((row) => Array.from({ length: columns }, (_, c) => f(row, c)));
      const own = Uint8Array.from(cells(inputs, (row, i) => bitsAt(bytes, (expert * outputs + row) * rowBytes, i, bits)));
      const ownScales = Float32Array.from(cells(blocks, (row, c) => factors[(expert * outputs + row) * blocks + c] ?? 0));
      const ownZeros = Uint8Array.from(cells(blocks, (row, c) => zeroAt(expert, row, c)));
      return to.add(DequantizedMatMul, [x, tensor("uint8", [rows.length, inputs], own), tensor("float32", [rows.length, blocks], ownScales), tensor("uint8", [rows.length, blocks], ownZeros)], { block_size: block, transB: 1 });
    },
  };
}
