/** Cases of operators that accumulate: reductions, products, convolutions, pools, normalisations. */
import type { DType } from "../src/core/dtype.ts";
import { fromNumbers } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";
import { close, exact, type FuzzCase, type Generator } from "./fuzz-case.ts";
import { broadcastable, dims, floats, fullDims, ints, steadyMode, tensor, within } from "./values.ts";

const float = (value: number): { float: number } => ({ float: value });
const positive = (draw: Draw, dtype: DType, shape: readonly number[]) => within(draw, dtype, shape, 1, 9);

/** Those of which an empty set has one: others are not defined by the standard's release that all agree on. */
const ofNothing: ReadonlySet<string> = new Set(["ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceProd"]);
const reduction = (type: string, types: readonly DType[], tolerance = close): Generator => (draw) => {
  const shape = ofNothing.has(type) ? dims(draw, 0, 6) : fullDims(draw, 0, 6), given = draw.once(4) ? undefined : shape.map((_, i) => i).filter(() => draw.once(2)), dtype = draw.pick(types);
  const x = type.startsWith("ReduceLog") ? positive(draw, dtype, shape) : type === "ReduceProd" ? within(draw, dtype, shape, -1, 2) : tensor(draw, dtype, shape, type === "ReduceMean" ? "tame" : steadyMode(draw));
  return {
    type, opset: 18, inputs: [x, ...(given ? [ints(...given.map((a) => (draw.once(2) ? a - shape.length : a)))] : [])], outputs: 1, tolerance,
    attributes: { keepdims: draw.int(2), ...(draw.once(4) ? { noop_with_empty_axes: 1 } : {}) }, ...(given && (!given.length || draw.once(2)) ? { constants: [1] } : {}),
  };
};
const numeric = ["float32", "float32", "float64", "int32", "int64"] as const;
const extreme = (type: string): Generator => (draw) => {
  const shape = fullDims(draw, 1, 5);
  return { type, inputs: [tensor(draw, draw.pick(["float32", "float64", "int32", "int8", "uint8"] as const), shape, "tame")], attributes: { axis: draw.int(2 * shape.length) - shape.length, keepdims: draw.int(2), select_last_index: draw.int(2) }, outputs: 1, tolerance: exact };
};
const alongAxis = (type: string): Generator => (draw) => {
  const shape = dims(draw, 1, 5);
  return { type, inputs: [tensor(draw, draw.pick(floats), shape, type === "Hardmax" ? "tame" : steadyMode(draw))], attributes: { axis: draw.int(2 * shape.length) - shape.length }, outputs: 1, tolerance: close };
};

function matMul(draw: Draw): FuzzCase {
  const dtype = draw.pick(["float32", "float32", "float64", "int32"] as const), [m, k, n] = [draw.pick([1, 2, 3, 5, 8, 17]), draw.pick([1, 0, 2, 3, 7, 16]), draw.pick([1, 2, 4, 5, 9, 16])];
  const batch = dims(draw, 0, 2), a = [...broadcastable(draw, batch), ...(draw.once(6) ? [] : [m]), k], b = [...broadcastable(draw, batch), k, n];
  const vectorB = draw.once(6);
  return { type: "MatMul", inputs: [tensor(draw, dtype, a.length === 1 ? [k] : a, steadyMode(draw)), tensor(draw, dtype, vectorB ? [k] : b, steadyMode(draw))], outputs: 1, tolerance: close, ...(draw.once(3) ? { constants: [1] } : {}) };
}
function gemm(draw: Draw): FuzzCase {
  const dtype = draw.pick(["float32", "float64"] as const), [m, k, n] = [draw.pick([1, 3, 5, 8, 17]), draw.pick([1, 2, 7, 16]), draw.pick([1, 2, 5, 9, 16])], transA = draw.int(2), transB = draw.int(2);
  const c = draw.pick([undefined, [n], [1, n], [m, 1], [m, n], [1], []]);
  return { type: "Gemm", inputs: [tensor(draw, dtype, transA ? [k, m] : [m, k], "tame"), tensor(draw, dtype, transB ? [n, k] : [k, n], "tame"), ...(c ? [tensor(draw, dtype, c, "tame")] : [])], attributes: { transA, transB, alpha: float(draw.pick([1, 0.5, -2])), beta: float(draw.pick([1, 0, 0.25])) }, outputs: 1, tolerance: close };
}
/** Of images; now and then none. */
const batch = (draw: Draw): number => (draw.once(16) ? 0 : 1 + draw.int(2));
interface Window { readonly kernel: number[]; readonly attributes: Record<string, number[] | string | number> }
function window(draw: Draw, spatial: readonly number[], kernelBound = 3): Window {
  const dilations = spatial.map(() => draw.pick([1, 1, 2])), kernel = spatial.map((d, i) => { const k = 1 + draw.int(kernelBound); return (k - 1) * (dilations[i] ?? 1) + 1 <= d ? k : 1; });
  const auto = draw.pick(["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]);
  const pads = (): number[] => kernel.map((k) => draw.int(k));
  return { kernel, attributes: { strides: spatial.map(() => draw.pick([1, 1, 2, 3])), dilations, auto_pad: auto, ...(auto === "NOTSET" ? { pads: [...pads(), ...pads()] } : {}) } };
}
function conv(draw: Draw): FuzzCase {
  const rank = 1 + draw.int(3), spatial = Array.from({ length: rank }, () => 1 + draw.int(7)), group = draw.pick([1, 1, 2, 3]), inner = 1 + draw.int(3), outer = 1 + draw.int(4), { kernel, attributes } = window(draw, spatial);
  return {
    type: "Conv", inputs: [tensor(draw, "float32", [batch(draw), group * inner, ...spatial], "tame"), tensor(draw, "float32", [group * outer, inner, ...kernel], "tame"), ...(draw.once(2) ? [tensor(draw, "float32", [group * outer], "tame")] : [])],
    attributes: { ...attributes, group }, outputs: 1, tolerance: close, ...(draw.once(2) ? { constants: [1] } : {}),
  };
}
function convTranspose(draw: Draw): FuzzCase {
  const rank = 1 + draw.int(2), spatial = Array.from({ length: rank }, () => 1 + draw.int(5)), group = draw.pick([1, 2]), inner = 1 + draw.int(2), outer = 1 + draw.int(3), kernel = spatial.map(() => 1 + draw.int(3)), strides = spatial.map(() => 1 + draw.int(3));
  return {
    type: "ConvTranspose", inputs: [tensor(draw, "float32", [batch(draw), group * inner, ...spatial], "tame"), tensor(draw, "float32", [group * inner, outer, ...kernel], "tame"), ...(draw.once(2) ? [tensor(draw, "float32", [group * outer], "tame")] : [])],
    attributes: { group, strides, dilations: spatial.map(() => draw.pick([1, 2])), output_padding: strides.map((s) => draw.int(s)) }, outputs: 1, tolerance: close,
  };
}
const pool = (type: string): Generator => (draw) => {
  const rank = 1 + draw.int(3), spatial = Array.from({ length: rank }, () => 1 + draw.int(7)), { kernel, attributes } = window(draw, spatial), average = type === "AveragePool";
  const x = tensor(draw, type === "MaxPool" ? draw.pick(["float32", "float64", "int8", "uint8"] as const) : "float32", [batch(draw), 1 + draw.int(5), ...spatial], "tame");
  return { type, opset: 19, inputs: [x], attributes: { ...attributes, kernel_shape: kernel, ceil_mode: attributes["auto_pad"] === "NOTSET" ? draw.int(2) : 0, ...(average ? { count_include_pad: draw.int(2) } : type === "LpPool" ? { p: 1 + draw.int(2) } : {}) }, outputs: type === "MaxPool" && draw.once(2) ? 2 : 1, tolerance: close };
};

export const accumulation: Readonly<Record<string, Generator>> = {
  ...Object.fromEntries(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"].map((t) => [t, reduction(t, t === "ReduceL2" || t === "ReduceMean" ? floats : numeric)])),
  ReduceLogSum: reduction("ReduceLogSum", floats), ReduceLogSumExp: reduction("ReduceLogSumExp", floats),
  ArgMax: extreme("ArgMax"), ArgMin: extreme("ArgMin"), Softmax: alongAxis("Softmax"), LogSoftmax: alongAxis("LogSoftmax"), Hardmax: alongAxis("Hardmax"),
  MatMul: matMul, Gemm: gemm, Conv: conv, ConvTranspose: convTranspose, MaxPool: pool("MaxPool"), AveragePool: pool("AveragePool"), LpPool: pool("LpPool"),
  GlobalAveragePool: (draw) => ({ type: "GlobalAveragePool", inputs: [tensor(draw, "float32", fullDims(draw, 3, 5), "tame")], outputs: 1, tolerance: close }),
  GlobalMaxPool: (draw) => ({ type: "GlobalMaxPool", inputs: [tensor(draw, "float32", fullDims(draw, 3, 5), steadyMode(draw))], outputs: 1, tolerance: close }),
  LayerNormalization: (draw) => {
    const shape = fullDims(draw, 1, 4), axis = draw.int(shape.length), own = shape.slice(axis);
    return { type: "LayerNormalization", inputs: [tensor(draw, "float32", shape, "tame"), tensor(draw, "float32", own, "tame"), ...(draw.once(2) ? [tensor(draw, "float32", own, "tame")] : [])], attributes: { axis: draw.once(2) ? axis : axis - shape.length, epsilon: float(draw.pick([1e-5, 0.01])) }, outputs: draw.once(3) ? 3 : 1, tolerance: { relative: 1e-4, absolute: 1e-4 } };
  },
  BatchNormalization: (draw) => { const shape = fullDims(draw, 2, 5), c = [shape[1] ?? 1], one = () => tensor(draw, "float32", c, "tame"); return { type: "BatchNormalization", inputs: [tensor(draw, "float32", shape, "tame"), one(), one(), one(), positive(draw, "float32", c)], outputs: 1, tolerance: close }; },
  InstanceNormalization: (draw) => { const shape = fullDims(draw, 3, 5), c = [shape[1] ?? 1]; return { type: "InstanceNormalization", inputs: [tensor(draw, "float32", shape, "tame"), tensor(draw, "float32", c, "tame"), tensor(draw, "float32", c, "tame")], attributes: { epsilon: float(0.01) }, outputs: 1, tolerance: { relative: 1e-4, absolute: 1e-4 } }; },
  LpNormalization: (draw) => { const shape = fullDims(draw, 1, 4); return { type: "LpNormalization", inputs: [tensor(draw, "float32", shape, "tame")], attributes: { axis: draw.int(shape.length), p: 1 + draw.int(2) }, outputs: 1, tolerance: close }; },
  LRN: (draw) => ({ type: "LRN", inputs: [tensor(draw, "float32", fullDims(draw, 4, 4), "tame")], attributes: { size: draw.pick([1, 3, 5]), bias: float(draw.pick([1, 2])) }, outputs: 1, tolerance: close }),
  MatMulInteger: (draw) => { const [m, k, n] = [1 + draw.int(9), 1 + draw.int(17), 1 + draw.int(9)], a = draw.pick(["uint8", "int8"] as const), b = draw.pick(["uint8", "int8"] as const); return { type: "MatMulInteger", inputs: [tensor(draw, a, [m, k], "extreme"), tensor(draw, b, [k, n], "extreme"), ...(draw.once(2) ? [within(draw, a, [], 0, 9), within(draw, b, [], 0, 9)] : [])], outputs: 1, tolerance: exact }; },
  ConvInteger: (draw) => { const spatial = [1 + draw.int(6), 1 + draw.int(6)], { kernel, attributes } = window(draw, spatial), c = 1 + draw.int(3); return { type: "ConvInteger", inputs: [tensor(draw, "uint8", [1, c, ...spatial], "extreme"), tensor(draw, "uint8", [1 + draw.int(4), c, ...kernel], "extreme"), ...(draw.once(2) ? [within(draw, "uint8", [], 0, 9)] : [])], attributes, outputs: 1, tolerance: exact }; },
  Einsum: (draw) => { const [i, j, k] = [1 + draw.int(4), 1 + draw.int(5), 1 + draw.int(4)], [equation, ...shapes] = draw.pick([["ij,jk->ik", [i, j], [j, k]], ["ij->ji", [i, j]], ["ij->", [i, j]], ["bij,bjk->bik", [2, i, j], [2, j, k]], ["i,j->ij", [i], [j]], ["...ij,...jk->...ik", [2, i, j], [1, j, k]], ["ii->i", [i, i]], ["ijk,ij->k", [i, j, k], [i, j]]] as [string, ...number[][]][]); return { type: "Einsum", inputs: shapes.map((s) => tensor(draw, "float32", s, "tame")), attributes: { equation }, outputs: 1, tolerance: close }; },
  Resize: (draw) => {
    const shape = [1 + draw.int(2), 1 + draw.int(3), 1 + draw.int(6), 1 + draw.int(6)], mode = draw.pick(["nearest", "linear", "cubic"]), sizes = draw.once(2), scale = () => draw.pick([1, 2, 0.5, 1.5, 3, 0.75]);
    const coordinates = draw.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]);
    return { type: "Resize", inputs: [tensor(draw, "float32", shape, "tame"), undefined, sizes ? undefined : fromNumbers("float32", [4], [1, 1, scale(), scale()]), ...(sizes ? [ints(shape[0] ?? 1, shape[1] ?? 1, 1 + draw.int(9), 1 + draw.int(9))] : [])], attributes: { mode, coordinate_transformation_mode: coordinates, ...(mode === "nearest" ? { nearest_mode: draw.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]) } : {}) }, outputs: 1, tolerance: close, constants: sizes ? [3] : [2] };
  },
};
