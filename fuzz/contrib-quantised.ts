/** Cases of quantised operators, the standard's and com.microsoft's: scales per tensor and per channel, zero points at the ends of their range. */
import { dtypes, type DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";
import { close, exact, type FuzzCase, type Generator, type Tolerance } from "./fuzz-case.ts";
import { broadcastable, dims, fullDims, tensor, within } from "./values.ts";

const float = (value: number): { float: number } => ({ float: value });
/** Sums of many products of scaled integers. */
const scaled: Tolerance = { relative: 1e-4, absolute: 1e-3 };
type Part = Pick<FuzzCase, "inputs" | "attributes"> & Partial<FuzzCase>;
const microsoft = (type: string, part: (draw: Draw) => Part): Generator => (draw) => ({ type, domain: "com.microsoft", opset: 17, outputs: 1, tolerance: exact, ...part(draw) });
const bytes = ["uint8", "int8"] as const;
const scale = (draw: Draw, shape: readonly number[] = []): Tensor => fromNumbers("float32", shape, Array.from({ length: sizeOf(shape) }, () => draw.pick([0.25, 0.5, 1, 0.125, 2])));
const zero = (draw: Draw, dtype: DType, shape: readonly number[] = []): Tensor => {
  const isSigned = dtypes[dtype].kind === "int";
  return fromNumbers(dtype, shape, Array.from({ length: sizeOf(shape) }, () => (isSigned ? draw.pick([0, -128, 127, 3, -7]) : draw.pick([0, 255, 128, 3]))));
};
const extreme = (draw: Draw, dtype: DType, shape: readonly number[]): Tensor => tensor(draw, dtype, shape, "extreme");

/** One operand in, one out. */
const unary = (type: string, attributes: (draw: Draw, rank: number) => FuzzCase["attributes"], least = 0, most = 4): Generator => microsoft(type, (draw) => {
  const dtype = draw.pick(bytes), shape = fullDims(draw, least, most);
  return { inputs: [extreme(draw, dtype, shape), scale(draw), zero(draw, dtype), scale(draw), zero(draw, dtype)], attributes: attributes(draw, shape.length) ?? {}, constants: [1, 2, 3, 4] };
});
const binary = (type: string): Generator => microsoft(type, (draw) => {
  const shape = dims(draw, 0, 4), dtype = draw.pick(bytes), side = (): (Tensor | undefined)[] => [extreme(draw, dtype, broadcastable(draw, shape)), scale(draw), draw.once(4) ? undefined : zero(draw, dtype)];
  return { inputs: [...side(), ...side(), scale(draw), ...(draw.once(4) ? [] : [zero(draw, dtype)])], attributes: {}, constants: draw.once(2) ? [1, 2, 4, 5, 6, 7] : [] };
});

function qlinearConv(draw: Draw): FuzzCase {
  const spatial = [1 + draw.int(6), 1 + draw.int(6)], group = draw.pick([1, 1, 2, 3]), inner = 1 + draw.int(3), outer = 1 + draw.int(4), x = draw.pick(bytes), w = x === "int8" ? "int8" : draw.pick(bytes), kernel = spatial.map((d) => 1 + draw.int(Math.min(3, d))), each = draw.once(2) ? [group * outer] : [];
  const weightZero = w === "int8" && each.length ? fromNumbers(w, each, Array.from({ length: sizeOf(each) }, () => 0)) : within(draw, w, each, 0, 1);
  return {
    type: "QLinearConv", outputs: 1, tolerance: exact,
    inputs: [extreme(draw, x, [1 + draw.int(2), group * inner, ...spatial]), scale(draw), zero(draw, x), extreme(draw, w, [group * outer, inner, ...kernel]), scale(draw, each), weightZero, fromNumbers("float32", [], [draw.pick([8, 16, 32.5])]), zero(draw, x), ...(draw.once(2) ? [within(draw, "int32", [group * outer], -500, 500)] : [])],
    attributes: { group, strides: spatial.map(() => 1 + draw.int(2)), pads: [...kernel, ...kernel].map((k) => draw.int(k)), dilations: [1, 1], kernel_shape: kernel }, constants: [1, 2, 3, 4, 5, 6, 7, 8],
  };
}
function qlinearMatMul(draw: Draw): FuzzCase {
  const [m, k, n] = [1 + draw.int(9), 1 + draw.int(17), 1 + draw.int(9)], batch = draw.once(3) ? [1 + draw.int(2)] : [], a = draw.pick(bytes), b = draw.pick(bytes), each = draw.once(2) ? [n] : [], isColumns = each.length > 0 && draw.once(2);
  return {
    type: "QLinearMatMul", outputs: 1, tolerance: exact, constants: draw.once(2) ? [1, 2, 3, 4, 5, 6, 7] : [1, 2, 4, 5, 6, 7],
    inputs: [extreme(draw, a, [...batch, m, k]), scale(draw), zero(draw, a), extreme(draw, b, isColumns ? [k, n] : [...batch, k, n]), scale(draw, isColumns ? each : []), zero(draw, b, isColumns ? each : []), fromNumbers("float32", [], [draw.pick([8, 16, 33])]), zero(draw, a)],
  };
}
/** Blocks of n along an axis, in bits that a byte holds two or four of, or one. */
const blocked = (type: "DequantizeLinear" | "QuantizeLinear"): Generator => (draw) => {
  const block = draw.pick([2, 4, 16]), rank = 1 + draw.int(3), axis = draw.int(rank), shape = Array.from({ length: rank }, (_, i) => (i === axis ? block * (1 + draw.int(3)) : 1 + draw.int(4)));
  const each = shape.map((d, i) => (i === axis ? d / block : d)), narrow = draw.pick(["int4", "uint4", "int8", "uint8", "int16", "uint16"] as const), isSigned = dtypes[narrow].kind === "int", wide = narrow.endsWith("4") ? 8 : 40, whole = (s: readonly number[]): Tensor => within(draw, narrow, s, isSigned ? -wide : 0, isSigned ? wide : 2 * wide);
  const own = type === "DequantizeLinear" ? whole(shape) : tensor(draw, "float32", shape, "tame");
  return { type, inputs: [own, scale(draw, each), ...(draw.once(3) && type === "DequantizeLinear" ? [] : [whole(each)])], attributes: { axis: draw.once(2) ? axis : axis - rank, block_size: block }, outputs: 1, tolerance: exact, ...(narrow.endsWith("4") ? { through: type === "QuantizeLinear" ? "int32" : "float32" } : {}) };
};
const perAxis = (type: "DequantizeLinear" | "QuantizeLinear", narrow: readonly DType[]): Generator => (draw) => {
  const shape = fullDims(draw, 1, 4), axis = draw.int(shape.length), each = draw.once(2) ? [shape[axis] ?? 1] : [], to = draw.pick(narrow), isFloat8 = dtypes[to].kind === "float", isSigned = dtypes[to].kind === "int";
  const point = isFloat8 ? fromNumbers(to, each, Array.from({ length: sizeOf(each) }, () => 0)) : within(draw, to, each, isSigned ? -2 : 0, 3), x = type === "QuantizeLinear" ? tensor(draw, "float32", shape, isFloat8 ? draw.pick(["tame", "special"] as const) : "tame") : tensor(draw, to, shape, "tame");
  return { type, inputs: [type === "DequantizeLinear" && !isFloat8 ? within(draw, to, shape, isSigned ? -2 : 0, to.endsWith("2") ? 2 : 8) : x, scale(draw, each), point], attributes: { axis, ...(isFloat8 && type === "QuantizeLinear" ? { saturate: draw.int(2) } : {}) }, outputs: 1, tolerance: exact, through: type === "DequantizeLinear" || isFloat8 ? "float32" : "int32" };
};
const smallest = ["int4", "uint4", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"] as const;

function matMulNBits(draw: Draw): Part {
  const bits = draw.pick([4, 4, 4, 8, 2]), block = draw.pick([16, 32]), K = draw.pick([7, 16, 33, 64]), N = 1 + draw.int(9), blocks = Math.ceil(K / block), blob = (block * bits) / 8, isFloatZero = draw.once(4), points = draw.once(2);
  const zeros = isFloatZero ? fromNumbers("float32", [N * blocks], Array.from({ length: N * blocks }, () => draw.int(2 ** bits))) : within(draw, "uint8", [N * Math.ceil((blocks * bits) / 8)], 0, 256);
  return {
    inputs: [tensor(draw, "float32", [...fullDims(draw, 0, 2), 1 + draw.int(5), K], "tame"), within(draw, "uint8", [N, blocks, blob], 0, 256), fromNumbers("float32", [N * blocks], Array.from({ length: N * blocks }, () => draw.pick([0.25, 0.1, 1]))), points ? zeros : undefined, undefined, ...(draw.once(3) ? [tensor(draw, "float32", [N], "tame")] : [])],
    attributes: { K, N, bits, block_size: block, ...(draw.once(4) ? { accuracy_level: 1 } : {}) }, tolerance: scaled, constants: [1, 2, 3, 5],
  };
}
function gatherBlockQuantized(draw: Draw): Part {
  const block = draw.pick([16, 32]), rows = 1 + draw.int(5), columns = block * (1 + draw.int(2)) + draw.pick([0, 0, 4]), dtype = draw.pick(["uint4", "int4"] as const), isSigned = dtype === "int4", nibbles = (shape: readonly number[]): Tensor => within(draw, dtype, shape, isSigned ? -8 : 0, isSigned ? 8 : 16), blocks = Math.ceil(columns / block);
  return { inputs: [nibbles([rows, columns]), within(draw, draw.pick(["int32", "int64"] as const), fullDims(draw, 0, 2), -rows, rows), fromNumbers("float32", [rows, blocks], Array.from({ length: rows * blocks }, () => draw.pick([0.25, 0.5, 1]))), ...(draw.once(2) ? [nibbles([rows, blocks])] : [])], attributes: { gather_axis: 0, quantize_axis: 1, block_size: block }, constants: [0, 2, 3] };
}
function integerToFloat(draw: Draw): Part {
  const [m, k, n] = [1 + draw.int(9), 1 + draw.int(17), 1 + draw.int(9)], a = draw.pick(bytes), b = draw.pick(bytes), each = draw.once(2) ? [n] : [];
  return { inputs: [extreme(draw, a, [m, k]), extreme(draw, b, [k, n]), scale(draw), scale(draw, each), draw.once(3) ? undefined : zero(draw, a), draw.once(3) ? undefined : zero(draw, b, each), ...(draw.once(2) ? [tensor(draw, "float32", [n], "tame")] : [])], attributes: {}, tolerance: scaled };
}

export const contribQuantised: Readonly<Record<string, Generator>> = {
  QLinearConv: qlinearConv, QLinearMatMul: qlinearMatMul,
  BlockedDequantize: blocked("DequantizeLinear"), BlockedQuantize: blocked("QuantizeLinear"), SmallDequantize: perAxis("DequantizeLinear", smallest), SmallQuantize: perAxis("QuantizeLinear", smallest),
  QLinearAdd: binary("QLinearAdd"), QLinearMul: binary("QLinearMul"),
  QLinearSigmoid: unary("QLinearSigmoid", () => ({})), QLinearLeakyRelu: unary("QLinearLeakyRelu", (draw) => ({ alpha: float(draw.pick([0.1, 0.5])) })),
  QLinearSoftmax: unary("QLinearSoftmax", (draw, rank) => ({ axis: draw.int(2 * rank) - rank, opset: draw.pick([11, 13]) }), 1),
  QLinearGlobalAveragePool: unary("QLinearGlobalAveragePool", (draw) => ({ channels_last: draw.int(2) }), 4, 4),
  QLinearAveragePool: microsoft("QLinearAveragePool", (draw) => {
    const spatial = [2 + draw.int(5), 2 + draw.int(5)], kernel = spatial.map((d) => 1 + draw.int(Math.min(3, d))), dtype = draw.pick(bytes), last = draw.int(2), c = 1 + draw.int(4);
    return { inputs: [extreme(draw, dtype, last ? [1, ...spatial, c] : [1, c, ...spatial]), scale(draw), zero(draw, dtype), scale(draw), zero(draw, dtype)], attributes: { kernel_shape: kernel, strides: kernel.map(() => 1 + draw.int(2)), pads: [...kernel, ...kernel].map((k) => draw.int(k)), count_include_pad: draw.int(2), ceil_mode: draw.int(2), channels_last: last }, constants: [1, 2, 3, 4] };
  }),
  QLinearConcat: microsoft("QLinearConcat", (draw) => {
    const shape = fullDims(draw, 1, 4), axis = draw.int(shape.length), dtype = draw.pick(bytes), parts = Array.from({ length: 1 + draw.int(3) }, () => [extreme(draw, dtype, shape.map((d, i) => (i === axis ? 1 + draw.int(4) : d))), scale(draw), zero(draw, dtype)]);
    return { inputs: [scale(draw), zero(draw, dtype), ...parts.flat()], attributes: { axis: draw.once(2) ? axis : axis - shape.length }, constants: [0, 1, ...parts.flatMap((_, i) => [3 + 3 * i, 4 + 3 * i])] };
  }),
  QLinearWhere: microsoft("QLinearWhere", (draw) => {
    const shape = fullDims(draw, 0, 4), dtype = draw.pick(bytes), side = (): Tensor[] => [extreme(draw, dtype, broadcastable(draw, shape)), scale(draw), zero(draw, dtype)];
    return { inputs: [tensor(draw, "bool", broadcastable(draw, shape), "tame"), ...side(), ...side(), scale(draw), zero(draw, dtype)], attributes: {}, constants: [2, 3, 5, 6, 7, 8] };
  }),
  QGemm: microsoft("QGemm", (draw) => {
    const [m, k, n] = [1 + draw.int(9), 1 + draw.int(17), 1 + draw.int(9)], a = draw.pick(bytes), b = draw.pick(bytes), transA = draw.int(2), transB = draw.int(2), each = draw.once(2) ? [n] : [], c = draw.pick([undefined, [n], [1, n], [m, n], [m, 1]]), isFloat = draw.once(2);
    return { inputs: [extreme(draw, a, transA ? [k, m] : [m, k]), scale(draw), zero(draw, a), extreme(draw, b, transB ? [n, k] : [k, n]), scale(draw, each), zero(draw, b, each), c && within(draw, "int32", c, -500, 500), ...(isFloat ? [] : [fromNumbers("float32", [], [draw.pick([8, 33])]), zero(draw, a)])], attributes: { transA, transB, alpha: float(draw.pick([1, 0.5])) }, tolerance: isFloat ? scaled : exact, constants: [1, 2, 4, 5, 7, 8] };
  }),
  MatMulIntegerToFloat: microsoft("MatMulIntegerToFloat", integerToFloat),
  DynamicQuantizeMatMul: microsoft("DynamicQuantizeMatMul", (draw) => {
    const [k, n] = [1 + draw.int(17), 1 + draw.int(9)], b = draw.pick(bytes), each = draw.once(2) ? [n] : [];
    return { inputs: [tensor(draw, "float32", [...fullDims(draw, 0, 2), 1 + draw.int(5), k], "tame"), extreme(draw, b, [k, n]), scale(draw, each), draw.once(3) ? undefined : zero(draw, b, each), ...(draw.once(2) ? [tensor(draw, "float32", [n], "tame")] : [])], attributes: {}, tolerance: scaled, ...(draw.once(2) ? { constants: [1, 2, 3] } : {}) };
  }),
  MatMulNBits: microsoft("MatMulNBits", matMulNBits), GatherBlockQuantized: microsoft("GatherBlockQuantized", (draw) => ({ ...gatherBlockQuantized(draw), opset: 21, tolerance: close })),
};
