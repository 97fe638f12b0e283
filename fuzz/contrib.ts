/** Cases of com.microsoft's activations, products, normalisations and what else is no attention and not quantised. */
import type { DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";
import { close, exact, functions, type FuzzCase, type Generator, type Tolerance } from "./fuzz-case.ts";
import { anyMode, dims, fullDims, ints, numbers, steadyMode, tensor, within } from "./values.ts";

const float = (value: number): { float: number } => ({ float: value });
const normal: Tolerance = { relative: 1e-4, absolute: 1e-4 };
const domain = "com.microsoft";
type Part = Pick<FuzzCase, "inputs" | "attributes"> & Partial<FuzzCase>;
const microsoft = (type: string, part: (draw: Draw) => Part): Generator => (draw) => ({ type, domain, opset: 17, outputs: 1, tolerance: close, ...part(draw) });
const tame = (draw: Draw, shape: readonly number[], dtype: DType = "float32"): Tensor => tensor(draw, dtype, shape, "tame");
const maybe = <T>(draw: Draw, make: () => T): T | undefined => (draw.once(2) ? make() : undefined);
const i32 = (shape: readonly number[], values: readonly number[]): Tensor => fromNumbers("int32", shape, values);

/** With a bias along the last axis. */
const biased = (type: string, isOptional: boolean): Generator => microsoft(type, (draw) => {
  const shape = fullDims(draw, 1, 4), x = tensor(draw, "float32", shape, anyMode(draw)), last = [shape.at(-1) ?? 1];
  return { inputs: [x, ...(isOptional && draw.once(2) ? [] : [tame(draw, last)])], attributes: {}, tolerance: functions };
});

const products: Readonly<Record<string, Generator>> = {
  FusedMatMul: microsoft("FusedMatMul", (draw) => {
    const [m, k, n] = [draw.pick([1, 2, 3, 5, 8, 17]), draw.pick([1, 2, 3, 7, 16]), draw.pick([1, 2, 4, 5, 9, 16])], batch = Array.from({ length: draw.int(3) }, () => 1 + draw.int(3));
    const transA = draw.int(2), transB = draw.int(2), batchA = batch.length ? draw.int(2) : 0, batchB = batch.length ? draw.int(2) : 0, [first = 1, ...rest] = batch;
    // The batch's first axis stands behind the others where it is transposed too.
    const arranged = (rows: number, columns: number, isTransposed: number, isBatch: number): number[] => {
      const [a, b] = isTransposed ? [columns, rows] : [rows, columns];
      return !batch.length ? [a, b] : isBatch ? [...rest, a, first, b] : [...batch, a, b];
    };
    const a = arranged(m, k, transA, 0), b = arranged(k, n, transB, 0);
    if (!batchA && !batchB) return { inputs: [tensor(draw, "float32", a, steadyMode(draw)), tensor(draw, "float32", b, steadyMode(draw))], attributes: { transA, transB, alpha: float(draw.pick([1, 0.5, -2])) } };
    const own = (rows: number, columns: number, isTransposed: number, isBatch: number): number[] => {
      if (!isBatch) return isTransposed ? [...batch, columns, rows] : [...batch, rows, columns];
      // [rows, batch..., columns], or its last two axes exchanged.
      const all = [rows, ...batch, columns];
      return isTransposed ? [...all.slice(0, -2), all.at(-1) ?? 1, all.at(-2) ?? 1] : all;
    };
    const transposedA = batchA ? 0 : transA, transposedB = batchB ? 0 : transB;
    return { inputs: [tame(draw, own(m, k, transposedA, batchA)), tame(draw, own(k, n, transposedB, batchB))], attributes: { transA: transposedA, transB: transposedB, transBatchA: batchA, transBatchB: batchB, alpha: float(draw.pick([1, 0.5])) } };
  }),
  FusedGemm: microsoft("FusedGemm", (draw) => {
    const [m, k, n] = [draw.pick([1, 3, 8, 17]), draw.pick([1, 2, 7, 16]), draw.pick([1, 5, 9, 16])], transA = draw.int(2), transB = draw.int(2), c = draw.pick([undefined, [n], [1, n], [m, 1], [m, n]]), activation = draw.pick(["Relu", "LeakyRelu", "Tanh", "Sigmoid", "Elu", "HardSigmoid", "Softplus", "Softsign", "ThresholdedRelu"]);
    const parameters = activation === "LeakyRelu" || activation === "Elu" || activation === "ThresholdedRelu" ? { activation_alpha: float(draw.pick([0.1, 1.5])) } : activation === "HardSigmoid" ? { activation_alpha: float(0.3), activation_beta: float(0.4) } : {};
    return { inputs: [tame(draw, transA ? [k, m] : [m, k]), tame(draw, transB ? [n, k] : [k, n]), ...(c ? [tame(draw, c)] : [])], attributes: { transA, transB, alpha: float(draw.pick([1, 0.5])), beta: float(draw.pick([1, 0.25])), activation, ...parameters } };
  }),
  FusedConv: microsoft("FusedConv", (draw) => {
    const rank = 2, spatial = Array.from({ length: rank }, () => 2 + draw.int(6)), group = draw.pick([1, 1, 2, 3]), inner = 1 + draw.int(3), outer = 1 + draw.int(4), kernel = spatial.map((d) => 1 + draw.int(Math.min(3, d))), strides = spatial.map(() => 1 + draw.int(2)), pads = [...kernel, ...kernel].map((k) => draw.int(k)), batch = 1 + draw.int(2);
    const out = spatial.map((d, i) => Math.floor((d + (pads[i] ?? 0) + (pads[i + rank] ?? 0) - (kernel[i] ?? 1)) / (strides[i] ?? 1)) + 1);
    const [activation, parameters] = draw.pick<readonly [string | undefined, readonly number[]]>([["Relu", []], [undefined, []], ["LeakyRelu", [0.1]], ["Clip", [-2, 3]], ["Tanh", []], ["Sigmoid", []], ["HardSigmoid", [0.2, 0.5]]]), z = draw.once(3);
    return {
      inputs: [tame(draw, [batch, group * inner, ...spatial]), tame(draw, [group * outer, inner, ...kernel]), ...(z || draw.once(2) ? [tame(draw, [group * outer])] : []), ...(z ? [tame(draw, [batch, group * outer, ...out])] : [])],
      attributes: { group, strides, pads, dilations: kernel.map(() => 1), ...(activation === undefined ? {} : { activation }), ...(parameters.length ? { activation_params: { floats: parameters } } : {}) }, ...(draw.once(2) ? { constants: [1] } : {}),
    };
  }),
  CDist: microsoft("CDist", (draw) => { const k = 1 + draw.int(9); return { inputs: [tame(draw, [1 + draw.int(5), k]), tame(draw, [1 + draw.int(5), k])], attributes: { metric: draw.pick(["euclidean", "sqeuclidean"]) }, tolerance: { relative: 1e-3, absolute: 5e-3 } }; }),
  Inverse: microsoft("Inverse", (draw) => {
    const n = 1 + draw.int(4), shape = [...fullDims(draw, 0, 2), n, n], x = Float32Array.from({ length: sizeOf(shape) }, (_, i) => (Math.floor((i % (n * n)) / n) === i % n ? 8 : 0) + draw.int(5) - 2);
    return { inputs: [{ dtype: "float32", dims: shape, data: x }], attributes: {}, tolerance: normal };
  }),
};

const norms: Readonly<Record<string, Generator>> = {
  SkipLayerNormalization: microsoft("SkipLayerNormalization", (draw) => {
    const hidden = draw.pick([1, 2, 3, 8, 17]), shape = draw.once(3) ? [1 + draw.int(5), hidden] : [1 + draw.int(3), 1 + draw.int(4), hidden], skip = shape.length === 3 ? draw.pick([shape, [1, ...shape.slice(1)], shape.slice(1)]) : shape, bias = draw.int(2);
    return { inputs: [tame(draw, shape), tame(draw, skip), tame(draw, [hidden]), draw.once(2) ? tame(draw, [hidden]) : undefined, ...(bias ? [tame(draw, [hidden])] : [])], attributes: { epsilon: float(draw.pick([1e-5, 0.01])) }, tolerance: normal, outputs: 1 };
  }),
  SkipSimplifiedLayerNormalization: microsoft("SkipSimplifiedLayerNormalization", (draw) => {
    const hidden = draw.pick([1, 2, 3, 8, 17]), shape = draw.once(3) ? [1 + draw.int(5), hidden] : [1 + draw.int(3), 1 + draw.int(4), hidden], skip = shape.length === 3 ? draw.pick([shape, [1, ...shape.slice(1)], shape.slice(1)]) : shape;
    return { inputs: [tame(draw, shape), tame(draw, skip), tame(draw, [hidden]), ...(draw.once(2) ? [tame(draw, [hidden])] : [])], attributes: draw.once(3) ? {} : { epsilon: float(draw.pick([1e-5, 0.01])) }, tolerance: normal };
  }),
  SimplifiedLayerNormalization: (draw) => {
    const shape = fullDims(draw, 1, 4), axis = draw.int(shape.length);
    return { type: "SimplifiedLayerNormalization", opset: 17, inputs: [tame(draw, shape), tame(draw, shape.slice(axis))], attributes: { axis: draw.once(2) ? axis : axis - shape.length, epsilon: float(draw.pick([1e-5, 0.01])) }, outputs: draw.once(3) ? 2 : 1, tolerance: normal };
  },
  EmbedLayerNormalization: microsoft("EmbedLayerNormalization", (draw) => {
    const [batch, length, hidden] = [1 + draw.int(3), 1 + draw.int(4), draw.pick([1, 4, 8])], [words, positions, segments] = [1 + draw.int(6), length + draw.int(3), 1 + draw.int(3)], isSegmented = draw.once(2), ids = (below: number, shape = [batch, length]): Tensor => within(draw, "int32", shape, 0, below);
    return {
      inputs: [ids(words), isSegmented ? ids(segments) : undefined, tame(draw, [words, hidden]), tame(draw, [positions, hidden]), isSegmented ? tame(draw, [segments, hidden]) : undefined, tame(draw, [hidden]), tame(draw, [hidden]), maybe(draw, () => ids(2)), maybe(draw, () => ids(positions, draw.once(2) ? [1, length] : [batch, length]))],
      attributes: { epsilon: float(draw.pick([1e-5, 0.01])), ...(draw.once(3) ? { mask_index_type: draw.int(2) } : {}) }, outputs: draw.pick([2, 3]), tolerance: normal,
    };
  }),
};

const others: Readonly<Record<string, Generator>> = {
  BiasGelu: biased("BiasGelu", false), FastGelu: biased("FastGelu", true), MicrosoftGelu: biased("Gelu", true),
  QuickGelu: microsoft("QuickGelu", (draw) => ({ inputs: [tensor(draw, "float32", dims(draw), anyMode(draw))], attributes: draw.once(2) ? {} : { alpha: float(draw.pick([1, 0.5, -1.5])) }, tolerance: functions })),
  MicrosoftTrilu: microsoft("Trilu", (draw) => ({ inputs: [tensor(draw, draw.pick(numbers), dims(draw, 2, 4), anyMode(draw)), ...(draw.once(2) ? [fromNumbers("int64", [], [draw.int(9) - 4])] : [])], attributes: { upper: draw.int(2) }, tolerance: exact })),
  MicrosoftPad: microsoft("Pad", (draw) => {
    const shape = fullDims(draw, 1, 4), mode = draw.pick(["constant", "reflect", "edge"]), amount = (d: number): number => (mode === "constant" ? draw.int(5) - Math.min(1, d - 1) : draw.int(d));
    return { inputs: [tensor(draw, draw.pick(["float32", "float64", "int32", "int64", "uint8"] as const), shape, anyMode(draw)), ints(...shape.map(amount), ...shape.map(amount))], attributes: { mode }, tolerance: exact };
  }),
  MicrosoftGatherND: microsoft("GatherND", (draw) => { const shape = fullDims(draw, 1, 4), depth = 1 + draw.int(shape.length); return { inputs: [tensor(draw, draw.pick(numbers), shape, anyMode(draw)), within(draw, draw.pick(["int64", "int32"] as const), [1 + draw.int(3), depth], 0, Math.min(...shape.slice(0, depth)))], attributes: {}, tolerance: exact }; }),
  ExpandDims: microsoft("ExpandDims", (draw) => { const shape = dims(draw, 0, 4); return { inputs: [tensor(draw, draw.pick(numbers), shape, anyMode(draw)), i32([], [draw.int(2 * shape.length + 2) - shape.length - 1])], attributes: {}, tolerance: exact, constants: [1] }; }),
  MicrosoftUnique: microsoft("Unique", (draw) => ({ inputs: [tame(draw, [1 + draw.int(17)])], attributes: {}, outputs: 3, tolerance: exact })),
  MicrosoftRange: microsoft("Range", (draw) => { const step = draw.pick([1, 2, -1, -3]), from = draw.int(9) - 4, dtype = draw.pick(["float32", "int32", "int64", "float64", "int16"] as const); return { inputs: [from, from + step * draw.int(9), ...(step === 1 && draw.once(2) ? [] : [step])].map((v) => fromNumbers(dtype, [], [v])), attributes: {}, tolerance: exact }; }),
  MurmurHash3: microsoft("MurmurHash3", (draw) => ({ inputs: [tensor(draw, draw.pick(["int32", "uint32", "int64", "uint64", "float32", "float64"] as const), dims(draw, 0, 3), anyMode(draw))], attributes: { seed: draw.int(100), positive: draw.int(2) }, tolerance: exact })),
  NGramRepeatBlock: microsoft("NGramRepeatBlock", (draw) => { const [batch, length, words] = [1 + draw.int(3), 1 + draw.int(9), 1 + draw.int(5)]; return { inputs: [within(draw, "int64", [batch, length], 0, words), tame(draw, [batch, words])], attributes: { ngram_size: 1 + draw.int(3) }, tolerance: exact }; }),
  CropAndResize: microsoft("CropAndResize", (draw) => {
    const [batch, boxes] = [1 + draw.int(2), 1 + draw.int(3)], corner = (): number => (draw.int(13) - 2) / 8;
    return { inputs: [tame(draw, [batch, 1 + draw.int(3), 2 + draw.int(6), 2 + draw.int(6)]), fromNumbers("float32", [boxes, 4], Array.from({ length: 4 * boxes }, corner)), within(draw, "int32", [boxes], 0, batch), i32([2], [1 + draw.int(5), 1 + draw.int(5)])], attributes: { mode: draw.pick(["bilinear", "nearest"]), extrapolation_value: float(draw.pick([0, 9])) }, constants: [3] };
  }),
  MicrosoftGridSample: microsoft("GridSample", (draw) => { const n = 1 + draw.int(2); return { inputs: [tame(draw, [n, 1 + draw.int(3), 1 + draw.int(6), 1 + draw.int(6)]), tensor(draw, "float32", [n, 1 + draw.int(4), 1 + draw.int(4), 2], "tame")].map((t, i) => (i ? fromNumbers("float32", t.dims, Array.from(t.data as Float32Array, (v) => v / 6)) : t)), attributes: { mode: draw.pick(["bilinear", "nearest", "bicubic"]), padding_mode: draw.pick(["zeros", "border", "reflection"]), align_corners: draw.int(2) } }; }),
  BiasAdd: microsoft("BiasAdd", (draw) => { const shape = [1 + draw.int(2), 1 + draw.int(4), draw.pick([1, 3, 8])], last = shape.slice(2); return { inputs: [tame(draw, shape), tame(draw, last), tame(draw, shape)], attributes: {} }; }),
  DynamicTimeWarping: microsoft("DynamicTimeWarping", (draw) => ({ inputs: [tensor(draw, "float32", draw.once(2) ? [1 + draw.int(6), 1 + draw.int(6)] : [1, 1 + draw.int(6), 1 + draw.int(6)], "tame")], attributes: {}, tolerance: exact })),
};

export const contrib: Readonly<Record<string, Generator>> = { ...products, ...norms, ...others };
