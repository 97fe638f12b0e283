/**
 * Parallel branches of one input whose results are added, a 3x3 and a 1x1 convolution and the input itself (as RepVGG
 * trains them), are one convolution: the smaller kernel is added to the larger where both read the same elements.
 * After Ding et al., RepVGG: Making VGG-style ConvNets Great Again (2021).
 */
import { formatShape, shapeEqual } from "../core/dim.ts";
import { sizeOf, toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, BatchNormalization, Conv, Relu } from "../ops/index.ts";
import { anyOf, commuted, constant, op, optionalInput, value, type ConstantValue } from "../rewrite/pattern.ts";
import { approximates, defineRule, isRefusal, refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { affineOfBatchNorm } from "./affine.ts";
import { byFilter, oneChannel } from "./channel-map.ts";
import { roundOnce } from "./folded-tensor.ts";

/** A branch as a convolution: weights [M, C/groups, kernel…] and a bias of M elements. */
interface Branch {
  readonly name: string;
  readonly weight: Float64Array;
  readonly dims: readonly number[];
  readonly bias: ArrayLike<number> | undefined;
  readonly group: number;
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  /** Elements before the first one, for each spatial axis. */
  readonly begins: readonly number[];
}

const numbers = (x: unknown, length: number, otherwise: number): readonly number[] => (Array.isArray(x) && x.length > 0 ? x.map(Number) : Array.from({ length }, () => otherwise));

function branchOf(conv: Node, weight: ConstantValue, bias: ConstantValue | undefined): Branch | Refusal {
  const { auto_pad: autoPad, pads, strides, dilations, group } = conv.attributes, spatial = weight.constant.dims.length - 2;
  if (autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER") return refuse("auto-pad", `'${conv.name}' pads by ${autoPad}`, "give explicit pads");
  return {
    name: conv.name, weight: Float64Array.from(toNumbers(weight.constant)), dims: weight.constant.dims, bias: bias && toNumbers(bias.constant), group: Number(group),
    strides: numbers(strides, spatial, 1), dilations: numbers(dilations, spatial, 1), begins: numbers(autoPad === "VALID" ? [] : pads, 2 * spatial, 0).slice(0, spatial),
  };
}

/** The input itself, each channel times its factor and plus its shift: a 1x1 convolution in the groups of another branch. */
function identityBranch(name: string, like: Branch, scale: ArrayLike<number>, shift: ArrayLike<number> | undefined): Branch {
  const [count = 1, perGroup = 1, ...kernel] = like.dims, filters = count / like.group, weight = new Float64Array(count * perGroup);
  for (let m = 0; m < count; m++) weight[m * perGroup + (m - Math.floor(m / filters) * perGroup)] = scale[m] ?? 1;
  const each = (x: number): number[] => kernel.map(() => x);
  return { name, weight, dims: [count, perGroup, ...each(1)], bias: shift, group: like.group, strides: each(1), dilations: each(1), begins: each(0) };
}

/** For each tap of `small`, the tap of `large` that reads the same element; undefined where there is one without. */
function tapsWithin(large: Branch, small: Branch): readonly number[] | undefined {
  const inner = small.dims.slice(2), outer = large.dims.slice(2);
  const taps: number[] = [];
  for (let tap = 0; tap < sizeOf(inner); tap++) {
    let rest = tap, at = 0, step = 1;
    for (let d = inner.length - 1; d >= 0; d--) {
      const size = inner[d] ?? 1, j = rest % size, dilation = large.dilations[d] ?? 1;
      rest = Math.floor(rest / size);
      const i = ((large.begins[d] ?? 0) - (small.begins[d] ?? 0) + j * (small.dilations[d] ?? 1)) / dilation;
      if (!Number.isInteger(i) || i < 0 || i >= (outer[d] ?? 1)) return undefined;
      at += i * step;
      step *= outer[d] ?? 1;
    }
    taps.push(at);
  }
  return taps;
}

interface Merged { readonly weight: Float64Array; readonly bias: Float64Array; readonly of: Branch }
function merge(a: Branch, b: Branch): Merged | Refusal {
  const same = a.group === b.group && a.strides.join() === b.strides.join() && a.dims[0] === b.dims[0] && a.dims[1] === b.dims[1];
  if (!same) return refuse("convolutions-differ", `'${a.name}' has ${a.group} groups and strides ${a.strides.join("x")}, '${b.name}' ${b.group} and ${b.strides.join("x")}`, "give both branches the same groups, channels and strides");
  const [large, small] = sizeOf(a.dims) >= sizeOf(b.dims) ? [a, b] : [b, a];
  const taps = tapsWithin(large, small);
  if (!taps) return refuse("kernel-not-within", `'${small.name}' (kernel ${small.dims.slice(2).join("x")}) reads elements that '${large.name}' (kernel ${large.dims.slice(2).join("x")}) does not read at the same place`, "align the pads and dilations of the branches");
  const weight = large.weight.slice(), outer = sizeOf(large.dims.slice(2));
  small.weight.forEach((w, i) => { const to = Math.floor(i / taps.length) * outer + (taps[i % taps.length] ?? 0); weight[to] = (weight[to] ?? 0) + w; });
  const bias = Float64Array.from({ length: large.dims[0] ?? 1 }, (_, m) => (large.bias?.[m] ?? 0) + (small.bias?.[m] ?? 0));
  return { weight, bias, of: large };
}

const first = op(Conv, [value("x"), constant("weight"), optionalInput(constant("bias"))], { as: "conv" });
const second = op(Conv, [value("x"), constant("otherWeight"), optionalInput(constant("otherBias"))], { as: "other" });
const norm = op(BatchNormalization, [value("x"), constant("gamma"), constant("beta"), constant("mean"), constant("variance")], {
  as: "norm", attributes: { wants: "inference mode (training_mode 0)", code: "batch-norm-training", holds: (a) => a["training_mode"] === 0 && a["spatial"] !== 0 },
});

type Build = (b: GraphBuilder, x: Value) => Value;
const build = (dims: readonly (number | string)[], ...branches: readonly Build[]) => (): ReturnType<GraphBuilder["build"]> => {
  const b = new GraphBuilder(), x = b.input("x", dims);
  return b.build(b.add(Relu, [branches.slice(1).reduce((sum, branch) => b.add(Add, [sum, branch(b, x)]), branches[0]?.(b, x) ?? x)]));
};
const branch = (kernel: readonly number[], attributes: Readonly<Record<string, number | string | readonly number[]>> = {}, [m, c] = [4, 4]): Build => (b, x) =>
  b.add(Conv, [x, b.random([m ?? 4, c ?? 4, ...kernel]), b.random([m ?? 4])], attributes);
const itself: Build = (_, x) => x;
const normalised: Build = (b, x) => b.add(BatchNormalization, [x, b.random([4]), b.random([4]), b.random([4]), b.random([4], { low: 0.5, high: 2 })]);
const image = ["n", 4, 6, 7], same = { pads: [1, 1, 1, 1] };

export const mergeParallelConvs = defineRule({
  name: "merge-parallel-convs",
  doc: "Convolutions of one input whose results are added, and the input itself or its BatchNormalization, become one convolution where every tap of the smaller kernel falls on one of the larger: RepVGG's three branches are one.",
  match: anyOf(op(Add, [first, second]), commuted(Add, [first, norm]), commuted(Add, [first, value("x")])),
  commonplace: ["other-operator", "different-operand", "not-constant"],
  numerics: approximates(1e-5, "the branches of an infinite input may add up to NaN where one convolution gives an infinity"),
  rewrite(m, edit) {
    const { conv, weight } = m, [result] = edit.root.outputs, own = conv.outputs[0]?.type.shape ?? [];
    const partner = m.other?.outputs[0] ?? m.x;
    if (!result || !shapeEqual(own, result.type.shape) || !shapeEqual(partner.type.shape, result.type.shape))
      return refuse("shape-grows", `the branches are ${formatShape(own)} and ${formatShape(partner.type.shape)}`, "give both branches one shape");
    const a = branchOf(conv, weight, m.bias);
    if (isRefusal(a)) return a;
    const affine = m.norm && m.gamma && m.beta && m.mean && m.variance ? affineOfBatchNorm(m.norm, { gamma: m.gamma, beta: m.beta, mean: m.mean, variance: m.variance }) : undefined;
    if (isRefusal(affine)) return affine;
    const b = m.other && m.otherWeight ? branchOf(m.other, m.otherWeight, m.otherBias) : identityBranch(m.norm?.name ?? m.x.name, a, affine?.scale ?? [], affine?.shift);
    if (isRefusal(b)) return b;
    const merged = merge(a, b);
    if (isRefusal(merged)) return merged;
    const { dims } = merged.of, { dtype } = weight.constant, perChannel = sizeOf(dims.slice(1));
    const folded = roundOnce(`the weight of '${conv.name}'`, dtype, dims, merged.weight, byFilter(dims[0] ?? 1, perChannel));
    if (isRefusal(folded)) return folded;
    const bias = roundOnce(`the bias of '${conv.name}'`, dtype, [dims[0] ?? 1], merged.bias, oneChannel);
    if (isRefusal(bias)) return bias;
    const large = merged.of.name === m.other?.name ? m.other : conv;
    return edit.insert(Conv, [m.x, edit.constant(folded, `${weight.name}_merged`), edit.constant(bias, `${conv.name}_bias`)], large.attributes, { name: large.name });
  },
  example: build(image, branch([3, 3], same), branch([1, 1]), itself),
  examples: [
    build(image, branch([1, 1]), branch([3, 3], same), normalised),
    build(image, itself, branch([3, 3], { ...same, group: 2 }, [4, 2])),
    build([1, 3, 8, 8], branch([5, 5], { pads: [2, 2, 2, 2], strides: [2, 2] }, [6, 3]), branch([3, 3], { ...same, strides: [2, 2] }, [6, 3])),
    build([1, 4, 9], branch([3], { pads: [2, 2], dilations: [2] }), branch([1])),
  ],
  refuses: {
    approximate: build(image, branch([3, 3], same), itself),
    "kernel-not-within": build(image, branch([3, 1], { pads: [1, 0, 1, 0] }), branch([1, 3], { pads: [0, 1, 0, 1] })),
    "convolutions-differ": build(image, branch([3, 3], same), branch([3, 3], { ...same, group: 2 }, [4, 2])),
    "auto-pad": build(image, branch([3, 3], { auto_pad: "SAME_UPPER" }), branch([1, 1])),
    "shape-grows": build(["n", 1, 6, 7], branch([3, 3], same, [4, 1]), itself),
    "interior-value-used": () => {
      const b = new GraphBuilder(), x = b.input("x", image), y = branch([3, 3], same)(b, x);
      return b.build(b.add(Add, [y, branch([1, 1])(b, x)]), b.add(Relu, [y]));
    },
  },
});
