/**
 * Where onnxruntime gives what the standard does not say. Each entry names the smallest inputs that show it, told from a
 * case and the difference found; docs/onnxruntime-differences.md lists them.
 */
import { dtypes, isFloat } from "../src/core/dtype.ts";
import { rowMajorStrides, toBigInts, toNumbers, type Tensor } from "../src/core/tensor.ts";
import type { FuzzCase } from "./fuzz-case.ts";

export interface KnownDifference {
  readonly operators: readonly string[];
  /** What onnxruntime does. */
  readonly onnxruntime: string;
  /** What the standard says, and we do. */
  readonly standard: string;
  when(c: FuzzCase): boolean;
}

const holds = (c: FuzzCase, is: (x: number) => boolean): boolean => c.inputs.some((t) => t && isFloat(t.dtype) && Array.from(toNumbers(t)).some(is));
const listOf = (c: FuzzCase, name: string): readonly number[] => { const v = c.attributes?.[name]; return Array.isArray(v) ? v : []; };
/** Whether all elements are equal that some index along the other axes leaves. */
function hasEqualGroup(x: Tensor, axes: readonly number[]): boolean {
  const rank = x.dims.length, over = new Set(axes.map((a) => (a + rank) % rank)), groups = new Map<string, Set<number>>(), strides = rowMajorStrides(x.dims);
  Array.from(toNumbers(x)).forEach((v, i) => {
    const key = x.dims.flatMap((size, d) => (over.has(d) ? [] : [Math.floor(i / (strides[d] ?? 1)) % size])).join(), known = groups.get(key) ?? new Set();
    groups.set(key, known.add(v));
  });
  return [...groups.values()].some((values) => values.size === 1);
}
const isSame = (c: FuzzCase): boolean => String(c.attributes?.["auto_pad"] ?? "").startsWith("SAME");

/** Whether sums (of squares, or products) of the first input's integers leave its range. */
function mayOverflow(c: FuzzCase): boolean {
  const [x] = c.inputs;
  if (!x || isFloat(x.dtype)) return false;
  const values = Array.from(toNumbers(x), Math.abs), sum = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0);
  const most = c.type === "ReduceProd" ? values.reduce((a, b) => a * Math.max(1, b), 1) : sum(c.type === "ReduceSumSquare" ? values.map((v) => v * v) : values);
  return most >= 2 ** Math.min(53, 8 * dtypes[x.dtype].size - 1);
}

export const knownDifferences: readonly KnownDifference[] = [
  {
    operators: ["ReduceMax", "ReduceMin", "GlobalMaxPool", "MaxPool", "TopK", "ArgMax", "ArgMin", "Hardmax", "ReduceLogSumExp"],
    onnxruntime: "compares past NaN, so that the result hangs on where it stands and on the vector width",
    standard: "numpy's maximum and sort, by which the standard's reference computes: NaN is passed on, and sorts above every number",
    when: (c) => holds(c, Number.isNaN),
  },
  {
    operators: ["GlobalMaxPool", "MaxPool"],
    onnxruntime: "starts from the lowest finite number, which an image of −∞ becomes",
    standard: "the maximum of −∞ alone is −∞",
    when: (c) => holds(c, (x) => x === -Infinity),
  },
  {
    operators: ["LRN"],
    onnxruntime: "keeps a running sum over channels, in which NaN stays, and an infinity leaves NaN, when the channel that has it is passed",
    standard: "each sum is over the channels of its own window",
    when: (c) => holds(c, (x) => !Number.isFinite(x)),
  },
  {
    operators: ["InstanceNormalization", "BatchNormalization"],
    onnxruntime: "takes mean · scale from the shift first, which is NaN where the scale is infinite",
    standard: "what is normalised is scaled, then shifted",
    when: (c) => holds(c, (x) => Math.abs(x) === Infinity),
  },
  {
    operators: ["InstanceNormalization"],
    onnxruntime: "takes mean · scale from the shift first: of an image of one element the rounding of that is left",
    standard: "an element less the mean of itself is 0, so that the shift is left",
    when: ({ inputs: [x] }) => x !== undefined && x.dims.slice(2).every((size) => size === 1),
  },
  {
    operators: ["LayerNormalization"],
    onnxruntime: "gives NaN as the mean of a row that holds an infinity",
    standard: "the mean is an infinity where all infinities have one sign",
    when: (c) => holds(c, (x) => Math.abs(x) === Infinity),
  },
  {
    operators: ["ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceProd", "ReduceMean", "CumSum"],
    onnxruntime: "computes with floats on the way where sums or products of integers overflow, or have more than 53 bits, depending on the axes",
    standard: "integers wrap, as in numpy, by which the standard's reference computes",
    when: mayOverflow,
  },
  {
    operators: ["ScatterND", "ScatterElements"],
    onnxruntime: "compares past NaN where reduction is max or min",
    standard: "numpy's maximum and minimum, by which the standard's reference computes, pass NaN on",
    when: (c) => ["max", "min"].includes(String(c.attributes?.["reduction"])) && holds(c, Number.isNaN),
  },
  {
    operators: ["ReduceMean"],
    onnxruntime: "gives 0 as the mean of no elements where an axis is counted from the end",
    standard: "leaves it undefined; we give NaN, 0 divided by 0, as numpy does",
    when: (c) => c.inputs[0]?.dims.includes(0) ?? false,
  },
  {
    operators: ["ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceProd"],
    onnxruntime: "passes over axes that are counted from the end where the tensor has no elements",
    standard: "such an axis is reduced as any other",
    when: ({ inputs: [x, axes] }) => x !== undefined && x.dims.includes(0) && axes !== undefined && Array.from(toNumbers(axes)).some((a) => a < 0),
  },
  {
    operators: ["LogSoftmax", "Softmax"],
    onnxruntime: "leaves elements finite or infinite in a row that holds NaN or +∞ (float64)",
    standard: "each element is divided by (or has subtracted) a sum over the whole row, which is NaN",
    when: (c) => holds(c, (x) => Number.isNaN(x) || x === Infinity),
  },
  {
    operators: ["LpPool", "MaxPool", "AveragePool", "Conv", "ConvInteger"],
    onnxruntime: "leaves dilations out of the padding of auto_pad = SAME_UPPER and SAME_LOWER in pools, and pads by less than nothing where the stride is larger than the window",
    standard: "the output has ⌈input / stride⌉ elements, and padding is not negative",
    when: (c) => isSame(c) && (listOf(c, "dilations").some((d) => d > 1) || listOf(c, "strides").some((s, i) => s > (listOf(c, "kernel_shape")[i] ?? s))),
  },
  {
    operators: ["Conv"],
    onnxruntime: "multiplies the zeros of padding by the weights, which gives NaN where these are not finite",
    standard: "what lies outside the image adds nothing",
    when: (c) => { const [, w] = c.inputs; return w !== undefined && listOf(c, "pads").some((p) => p > 0) && Array.from(toNumbers(w)).some((v) => !Number.isFinite(v)); },
  },
  {
    operators: ["MatMul", "Gemm"],
    onnxruntime: "leaves the memory of a product over no elements as it was (float64)",
    standard: "an empty sum is 0",
    when: (c) => c.inputs.some((t) => t?.dims.includes(0)),
  },
  {
    operators: ["QLinearAveragePool"],
    onnxruntime: "adds the zero point before it rounds to even, so that halves go the other way where it is odd",
    standard: "the operator is in no standard; values are quantised as QuantizeLinear does, which rounds first, so that the pool between conversions gives the same",
    when: ({ inputs: [, , , , zero] }) => zero !== undefined && (toNumbers(zero)[0] ?? 0) % 2 !== 0,
  },
  {
    operators: ["QLinearAveragePool"],
    onnxruntime: "divides by the whole window where padding counts, also by what ceil_mode lets it reach beyond the padding",
    standard: "what lies beyond the padding does not count, as AveragePool says since opset 19",
    when: (c) => c.attributes?.["ceil_mode"] === 1 && c.attributes["count_include_pad"] === 1,
  },
  {
    operators: ["LSTM", "GRU", "RNN"],
    onnxruntime: "gives 0 as the last state of a sequence of no steps",
    standard: "does not say; the state before any step is the initial one, in which such a sequence ends",
    when: ({ inputs: [, , , , lengths] }) => lengths !== undefined && Array.from(toNumbers(lengths)).includes(0),
  },
  {
    operators: ["MultiHeadAttention"],
    onnxruntime: "hides nothing from the last query where unidirectional is 1 and there are other keys than those of the past and one for each query",
    standard: "the operator is in no standard; each query sees the keys up to its own",
    when: ({ inputs: [query, key], attributes }) => attributes?.["unidirectional"] === 1 && query?.dims.length === 3 && query.dims[1] !== key?.dims[key.dims.length === 4 ? 2 : 1],
  },
  {
    operators: ["Attention"],
    onnxruntime: "hides nothing from a single query where is_causal is 1 and there are more new keys than queries behind those of the past",
    standard: "query i sees the keys of the past and the first i + 1 new ones",
    when: ({ inputs: [q, k, , , past], attributes }) => attributes?.["is_causal"] === 1 && past !== undefined && q !== undefined && k !== undefined && q.dims.at(-2) === 1 && (k.dims.at(-2) ?? 0) > 1,
  },
  {
    operators: ["Attention"],
    onnxruntime: "gives 0 for a query from which mask and causality hide every key",
    standard: "the softmax of nothing but −∞ is NaN, in the function body and in the reference",
    when: (c) => c.domain === undefined && c.attributes?.["is_causal"] === 1 && c.inputs[3] !== undefined,
  },
  {
    operators: ["AffineGrid"],
    onnxruntime: "takes the last position, 1, where align_corners is 1 and an axis has one element",
    standard: "a grid begins at −1, as the reference has it",
    when: (c) => c.attributes?.["align_corners"] === 1 && c.inputs[1] !== undefined && Array.from(toNumbers(c.inputs[1])).slice(2).includes(1),
  },
  {
    operators: ["Col2Im"],
    onnxruntime: "puts columns in wrong places where an image of one axis, or of three or more, has dilations",
    standard: "tap k of a block lies k · dilation from its first, along every axis",
    when: (c) => listOf(c, "dilations").length !== 2 && listOf(c, "dilations").some((d) => d > 1),
  },
  {
    operators: ["MeanVarianceNormalization"],
    onnxruntime: "takes the variance as the mean of squares less the square of the mean, which rounding makes negative, and its root NaN, where elements are equal",
    standard: "the variance of equal elements is 0",
    when: (c) => { const [x] = c.inputs, given = listOf(c, "axes"); return x !== undefined && hasEqualGroup(x, given.length ? given : [0, 2, 3]); },
  },
  {
    operators: ["Resize"],
    onnxruntime: "aligns corners with those of the rounded result where a scale is given and size · scale is no whole number",
    standard: "scale is length_resized / length_original, so that the length is not rounded, as the reference computes it and its node tests expect",
    when: (c) => c.attributes?.["coordinate_transformation_mode"] === "align_corners" && c.inputs[2] !== undefined && Array.from(toNumbers(c.inputs[2])).some((scale, axis) => !Number.isInteger(Math.fround(scale * (c.inputs[0]?.dims[axis] ?? 1)))),
  },
  {
    operators: ["Slice"],
    onnxruntime: "takes an end of INT32_MAX or INT64_MAX with a negative step as “up to the first element”",
    standard: "such an end is clamped to the last element, so that nothing is left; INT_MIN means the first",
    when: (c) => {
      const ends = c.inputs[2], steps = c.inputs[4];
      return ends !== undefined && steps !== undefined && Array.from(toNumbers(ends)).some((e, i) => e >= 2147483647 && (toNumbers(steps)[i] ?? 1) < 0);
    },
  },
  {
    operators: ["Mod"],
    onnxruntime: "takes 64-bit integers through float64 where fmod is 1",
    standard: "the remainder of integers is exact",
    when: (c) => c.attributes?.["fmod"] === 1 && (c.inputs[0]?.dtype === "int64" || c.inputs[0]?.dtype === "uint64"),
  },
  {
    operators: ["Sign"],
    onnxruntime: "gives 0 for NaN of float16",
    standard: "NaN has no sign; numpy's sign, by which the reference computes, passes it on, as onnxruntime does for float32",
    when: (c) => c.inputs[0]?.dtype === "float16" && holds(c, Number.isNaN),
  },
  {
    operators: ["Sign"],
    onnxruntime: "gives -1 for int64 from 2^31 to below 2^32",
    standard: "these are above 0",
    when: (c) => { const [x] = c.inputs; return x?.dtype === "int64" && toBigInts(x).some((v) => v >= 2n ** 31n && v < 2n ** 32n); },
  },
  {
    operators: ["Clip"],
    onnxruntime: "gives the lower bound for some integers of 64 bits that are larger than 32 bits hold and above the upper one",
    standard: "what is above the upper bound becomes it",
    when: ({ inputs: [x] }) => x !== undefined && (x.dtype === "int64" || x.dtype === "uint64") && Array.from(toNumbers(x)).some((v) => Math.abs(v) >= 2 ** 31),
  },
  {
    operators: ["Concat"],
    onnxruntime: "joins parts that have no elements with others whose sizes are not theirs, and leaves the memory as it was",
    standard: "sizes along the other axes are equal; others are refused",
    when: (c) => { const axis = Number(c.attributes?.["axis"]), other = (t: Tensor | undefined): string => (t?.dims ?? []).filter((_, i, d) => i !== (axis + d.length) % d.length).join(); return c.inputs.some((t) => other(t) !== other(c.inputs[0])); },
  },
  {
    operators: ["Clip"],
    onnxruntime: "brings an infinity to the largest finite number where that bound is left out",
    standard: "the text gives the largest finite number as default, the function body compares with the bounds that are there only; we follow the body",
    when: (c) => holds(c, (x) => Math.abs(x) === Infinity) && (!c.inputs[1] || !c.inputs[2]),
  },
  {
    operators: ["Gelu", "Shrink", "HardSigmoid", "Elu", "LeakyRelu", "Selu", "ThresholdedRelu", "Celu"],
    onnxruntime: "computes float64 with constants or sums of float32",
    standard: "the result has the precision of its type",
    when: (c) => c.inputs[0]?.dtype === "float64",
  },
  {
    operators: ["LinearRegressor", "LinearClassifier"],
    onnxruntime: "leaves a single score as it is where post_transform is LOGISTIC or SOFTMAX",
    standard: "the transform applies to the scores, however many there are",
    when: (c) => c.attributes?.["post_transform"] !== "NONE",
  },
  {
    operators: ["TreeEnsembleRegressor"],
    onnxruntime: "does not add the base value of a target for which no leaf has voted",
    standard: "base values are added to the final prediction of every target",
    when: (c) => c.attributes?.["base_values"] !== undefined,
  },
];

export const isKnown = (c: FuzzCase, message: string): boolean =>
  message.startsWith("reference against onnxruntime") && knownDifferences.some((k) => k.operators.includes(c.type) && k.when(c));
