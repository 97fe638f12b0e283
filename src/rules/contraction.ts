/**
 * Contractions with constant weights as targets of folding: an affine function of their output channels goes into
 * weights and bias. Weights are copied, never changed, since other nodes may read them.
 */
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Conv, ConvTranspose, Gemm, MatMul } from "../ops/index.ts";
import { constant, op, optionalInput, value, type ConstantValue, type OpPattern } from "../rewrite/pattern.ts";
import { isRefusal, refuse, type Editor } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import type { Affine, Channels } from "./affine.ts";
import { byColumn, byFilter, oneChannel, type ChannelMap } from "./channel-map.ts";
import { roundOnce, scaledOnce, whyNotAdded, whyNotCopied } from "./folded-tensor.ts";

export interface Operands {
  readonly x: Value;
  readonly weight: ConstantValue;
  readonly bias: ConstantValue | undefined;
  readonly anchor: Node;
}

export interface Contraction {
  readonly op: OpDef;
  readonly pattern: OpPattern<Operands>;
  channels(m: Operands): Channels;
  /** The contraction with the affine function of its output folded in. */
  fold(m: Operands, affine: Affine, edit: Editor): Value | Refusal;
  /** Nodes to fold into, for examples: the plain one first. */
  readonly samples: readonly ((b: GraphBuilder) => Value)[];
}

const biased = (of: OpDef): OpPattern<Operands> =>
  op(of, [value("x"), constant("weight"), optionalInput(constant("bias"))], { as: "anchor" });
const isIdentity = (factors: Float64Array): boolean => factors.every((f) => f === 1);

/** Weights scaled by output channel; the same value where all factors are 1. */
function scaleWeight({ weight, anchor }: Operands, { scale }: Affine, channels: ChannelMap, edit: Editor): (() => Value) | Refusal {
  if (isIdentity(scale)) return () => weight;
  const kept = whyNotCopied(weight, anchor);
  if (kept) return kept;
  const folded = scaledOnce(`the weight of '${anchor.name}'`, weight.constant, scale, channels, channels);
  return isRefusal(folded) ? folded : () => edit.constant(folded, `${weight.name}_folded`);
}

/** scale · bias + shift for a bias of one element a channel, absent meaning 0. */
function foldBias({ bias, weight, anchor }: Operands, { scale, shift }: Affine): Tensor | Refusal {
  const before = bias && toNumbers(bias.constant);
  const values = Float64Array.from(scale, (s, c) => s * (before?.[c] ?? 0) + (shift[c] ?? 0));
  const what = `the bias of '${anchor.name}'`;
  return whyNotAdded(what, weight.constant.dtype, values) ?? roundOnce(what, weight.constant.dtype, [values.length], values, oneChannel);
}

function convolution(of: OpDef, channelsIn: (weight: Tensor, groups: number) => ChannelMap, samples: Contraction["samples"]): Contraction {
  const layout = (m: Operands): ChannelMap => channelsIn(m.weight.constant, Number(m.anchor.attributes["group"]));
  return {
    op: of, pattern: biased(of), samples,
    channels: (m) => ({ axis: 1, count: layout(m).count }),
    fold(m, affine, edit) {
      const weight = scaleWeight(m, affine, layout(m), edit);
      if (isRefusal(weight)) return weight;
      const bias = foldBias(m, affine);
      if (isRefusal(bias)) return bias;
      return edit.insert(of, [m.x, weight(), edit.constant(bias, `${m.anchor.name}_bias`)], m.anchor.attributes, { name: m.anchor.name });
    },
  };
}

export const intoConv: Contraction = convolution(Conv, ({ dims }) => {
  const count = dims[0] ?? 1, perChannel = sizeOf(dims) / count;
  return byFilter(count, perChannel);
}, [
  (b) => b.add(Conv, [b.input("x", [2, 3, 7, 6]), b.random([4, 3, 3, 3]), b.random([4])], { pads: [1, 1, 1, 1] }, "conv"),
  (b) => b.add(Conv, [b.input("x", ["batch", 4, 5, 5]), b.random([6, 2, 3, 3])], { group: 2, strides: [2, 2] }, "conv"),
  (b) => b.add(Conv, [b.input("x", [1, 4, 9]), b.random([4, 1, 3]), b.random([4])], { group: 4, dilations: [2] }, "conv"),
  (b) => b.add(Conv, [b.input("x", [1, 2, 4, 4], "float16"), b.random([3, 2, 1, 1], { dtype: "float16" }), b.random([3], { dtype: "float16" })], {}, "conv"),
]);

export const intoConvTranspose: Contraction = convolution(ConvTranspose, ({ dims }, groups) => {
  const [inputs = 1, perGroup = 1] = dims, taps = sizeOf(dims.slice(2));
  return { count: perGroup * groups, run: taps, width: perGroup, repeat: inputs / groups };
}, [
  (b) => b.add(ConvTranspose, [b.input("x", [2, 3, 4, 5]), b.random([3, 4, 3, 3]), b.random([4])], { strides: [2, 2] }, "deconv"),
  (b) => b.add(ConvTranspose, [b.input("x", [1, 4, 5, 4]), b.random([4, 3, 2, 2])], { group: 2, pads: [1, 0, 0, 1] }, "deconv"),
]);

/** Gemm: channels are the columns; C, of any shape that broadcasts, becomes full in its last axis. */
export const intoGemm: Contraction = {
  op: Gemm, pattern: biased(Gemm),
  channels: ({ weight, anchor }) => ({ axis: 1, count: weight.constant.dims[anchor.attributes["transB"] ? 0 : 1] ?? 1 }),
  fold(m, affine, edit) {
    const { dims } = m.weight.constant;
    const count = affine.scale.length, transposed = Boolean(m.anchor.attributes["transB"]);
    const weight = scaleWeight(m, affine, transposed ? byFilter(count, dims[1] ?? 1) : byColumn(count), edit);
    if (isRefusal(weight)) return weight;
    const bias = gemmBias(m, affine);
    if (isRefusal(bias)) return bias;
    return edit.insert(Gemm, [m.x, weight(), edit.constant(bias, `${m.anchor.name}_bias`)], { ...m.anchor.attributes, beta: 1 }, { name: m.anchor.name });
  },
  samples: [
    (b) => b.add(Gemm, [b.input("x", ["batch", 5]), b.random([5, 4]), b.random([4])], {}, "gemm"),
    (b) => b.add(Gemm, [b.input("x", [5, 3]), b.random([4, 5]), b.random([3, 1])], { transA: 1, transB: 1, alpha: 0.5, beta: 2 }, "gemm"),
    (b) => b.add(Gemm, [b.input("x", [2, 5]), b.random([5, 4])], {}, "gemm"),
  ],
};

function gemmBias({ bias, weight, anchor }: Operands, { scale, shift }: Affine): Tensor | Refusal {
  const beta = Number(anchor.attributes["beta"]), count = scale.length;
  const c = bias?.constant ?? fromNumbers(weight.constant.dtype, [], [0]);
  const rows = c.dims.length === 2 ? c.dims[0] ?? 1 : 1, columns = c.dims.at(-1) ?? 1;
  const before = toNumbers(c);
  const values = Float64Array.from({ length: rows * count }, (_, i) => {
    const row = Math.floor(i / count), column = i % count;
    return (scale[column] ?? 1) * beta * (before[row * columns + (columns === 1 ? 0 : column)] ?? 0) + (shift[column] ?? 0);
  });
  return roundOnce(`the bias of '${anchor.name}'`, weight.constant.dtype, rows === 1 ? [count] : [rows, count], values, oneChannel);
}

/** MatMul by a constant matrix: channels are the columns. With a shift it becomes Gemm, where the rank allows. */
export const intoMatMul: Contraction = {
  op: MatMul,
  pattern: op(MatMul, [value("x"), constant("weight", { wants: "a matrix", holds: (w) => w.constant.dims.length === 2 })], { as: "anchor" }) as OpPattern<Operands>,
  channels: ({ weight, anchor }) => ({ axis: (anchor.outputs[0]?.type.shape.length ?? 1) - 1, count: weight.constant.dims[1] ?? 1 }),
  fold(m, affine, edit) {
    const count = affine.scale.length;
    const weight = scaleWeight(m, affine, byColumn(count), edit);
    if (isRefusal(weight)) return weight;
    const { name } = m.anchor;
    if (affine.shift.every((t) => t === 0)) return edit.insert(MatMul, [m.x, weight()], {}, { name });
    if (m.x.type.shape.length !== 2) return refuse("rank", `'${name}' has rank ${m.x.type.shape.length}; a bias folds into rank 2`, "none: the addition joins the kernel of the product instead");
    const bias = foldBias(m, affine);
    return isRefusal(bias) ? bias : edit.insert(Gemm, [m.x, weight(), edit.constant(bias, `${name}_bias`)], {}, { name });
  },
  samples: [
    (b) => b.add(MatMul, [b.input("x", ["rows", 5]), b.random([5, 4])], {}, "matmul"),
  ],
};

/** Output shape of the contraction, in which channels have been counted. */
export const outputShape = ({ anchor }: Operands) => anchor.outputs[0]?.type.shape ?? [];
