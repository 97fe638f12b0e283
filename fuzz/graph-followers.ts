/** Ways to go on from a value: operators, and the short chains that fusion knows, on whatever type and sizes it has. */
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../src/core/tensor.ts";
import type { AttributeSpec } from "../test/support/model-spec.ts";
import type { GraphBuilder, Known } from "./graph-builder.ts";
import { hasArithmetic, produce, shuffled } from "./graph-producers.ts";
import { broadcastable, ints, tensor, within } from "./values.ts";

type Follow = (b: GraphBuilder, v: Known) => void;
const rank = (v: Known): number => v.tensor.dims.length;
const ofFloats = (v: Known): boolean => isFloat(v.tensor.dtype);
const float = (value: number): AttributeSpec => ({ float: value });
/** A small constant of the value's type that broadcasts to it; never 0 where it divides. */
const operand = (b: GraphBuilder, { tensor: { dtype, dims } }: Known, mode: "tame" | "positive" = "tame"): Known => {
  const shape = broadcastable(b.draw, dims);
  return b.constant(mode === "tame" ? tensor(b.draw, dtype, shape, "tame") : within(b.draw, dtype, shape, 1, 9));
};

const functions = ["Relu", "Abs", "Neg", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Reciprocal", "Erf", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Mish", "Gelu", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "Atan", "Identity"];
const unary: Follow = (b, v) => {
  const { dtype } = v.tensor;
  b.emit(b.draw.pick(ofFloats(v) ? functions : dtype === "bool" ? ["Not", "Identity"] : ["Abs", "Sign", "Identity"]), [v]);
};
const binary: Follow = (b, v) => {
  const { dtype, dims } = v.tensor;
  if (dtype !== "bool" && !hasArithmetic(dtype)) return cast(b, v);
  const type = b.draw.pick(dtype === "bool" ? ["And", "Or", "Xor", "Equal"] : ["Add", "Add", "Sub", "Mul", "Mul", "Max", "Min", "Equal", "Greater", "LessOrEqual", ...(ofFloats(v) ? ["Div", "Pow"] : [])]);
  const other = type === "Pow" ? b.constant(fromNumbers(dtype, [], [b.draw.pick([2, 0.5, 3, -1])])) : b.draw.once(3) ? operand(b, v) : produce(b, dtype, b.draw.once(2) ? dims : broadcastable(b.draw, dims), 1);
  b.emit(type, type !== "Pow" && b.draw.once(3) ? [other, v] : [v, other]);
};
/** Integers by what is neither 0 nor -1. */
const divide: Follow = (b, v) => {
  if (!hasArithmetic(v.tensor.dtype)) return;
  if (ofFloats(v)) b.emit("Div", [v, operand(b, v, "positive")]);
  else b.emit(b.draw.pick(["Div", "Mod"]), [v, b.constant(within(b.draw, v.tensor.dtype, broadcastable(b.draw, v.tensor.dims), 1, 9))]);
};
const affine: Follow = (b, v) => {
  if (!hasArithmetic(v.tensor.dtype)) return;
  const [scaled] = b.emit("Mul", b.draw.once(2) ? [v, operand(b, v)] : [operand(b, v), v]);
  if (scaled) b.emit(b.draw.pick(["Add", "Sub"]), [scaled, operand(b, scaled)]);
};
const gated: Follow = (b, v) => {
  if (!ofFloats(v)) return;
  const kind = b.draw.int(4), scalar = (x: number): Known => b.constant(fromNumbers(v.tensor.dtype, [], [x]));
  if (kind === 0) b.emit("Mul", [v, b.emit("Sigmoid", [v])[0]]);
  else if (kind === 1) { const [s] = b.emit("Softplus", [v]), [t] = s ? b.emit("Tanh", [s]) : []; if (t) b.emit("Mul", [v, t]); }
  else if (kind === 2) b.emit("Max", [v, b.emit("Mul", [v, scalar(0.25)])[0] ?? v]);
  else { const [shifted] = b.emit("Add", [v, scalar(3)]), [clipped] = shifted ? b.emit("Clip", [shifted, scalar(0), scalar(6)]) : []; if (clipped) b.emit("Mul", [v, clipped]); }
};
const choose: Follow = (b, v) => {
  const { dtype, dims } = v.tensor;
  if (dtype === "bool") { b.emit("Where", [v, produce(b, "float32", dims, 1), b.constant(tensor(b.draw, "float32", broadcastable(b.draw, dims), "tame"))]); return; }
  const [chosen] = hasArithmetic(dtype) ? b.emit(b.draw.pick(["Greater", "Less"]), [v, operand(b, v)]) : [];
  if (chosen) b.emit("Where", [chosen, v, operand(b, v)]);
};
/** Floats become integers only where all of them fit. */
const cast: Follow = (b, v) => {
  const fits = ofFloats(v) ? Array.from(toNumbers(v.tensor)).every((x) => Math.abs(x) < 120) : true;
  const to = b.draw.pick([...(["float32", "float32", "float64", "float16", "bool"] as const), ...(fits ? (["int32", "int64", "int8"] as const) : [])] satisfies readonly DType[]);
  b.emit("Cast", [v], { to: dtypes[to].onnx });
};
const clip: Follow = (b, v) => {
  if (!hasArithmetic(v.tensor.dtype)) return;
  const bound = (x: number): Known | undefined => (b.draw.once(4) ? undefined : b.constant(fromNumbers(v.tensor.dtype, [], [x])));
  b.emit("Clip", [v, bound(b.draw.int(4) - 2), bound(2 + b.draw.int(4))]);
};
const transpose: Follow = (b, v) => {
  const [once] = rank(v) ? b.emit("Transpose", [v], { perm: shuffled(b, rank(v)) }) : [];
  if (once && b.draw.once(3)) b.emit("Transpose", [once], { perm: shuffled(b, rank(v)) });
};
const reshape: Follow = (b, v) => {
  const { dims } = v.tensor, kind = b.draw.int(4);
  if (kind === 0) b.emit("Flatten", [v], { axis: b.draw.int(dims.length + 1) });
  else if (kind === 1) b.emit("Unsqueeze", [v, b.constant(ints(b.draw.int(dims.length + 1)))]);
  else if (kind === 2 && dims.includes(1)) b.emit("Squeeze", [v, b.constant(ints(dims.indexOf(1)))]);
  else if (sizeOf(dims)) b.emit("Reshape", [v, b.constant(dims.length > 1 && b.draw.once(2) ? ints(0, -1) : ints(-1, ...dims.slice(dims.length > 1 ? 2 : 1)))]);
};
const slice: Follow = (b, v) => {
  const { dims } = v.tensor;
  if (!dims.length) return;
  const axis = b.draw.int(dims.length), d = dims[axis] ?? 1, bound = (): number => b.draw.int(2 * d + 3) - d - 1;
  b.emit("Slice", [v, ...[bound(), bound(), axis, b.draw.pick([1, 1, 2, -1])].map((x) => b.constant(ints(x)))]);
};
const split: Follow = (b, v) => {
  const { dims } = v.tensor;
  if (!dims.length) return;
  const axis = b.draw.int(dims.length), d = dims[axis] ?? 1, first = b.draw.int(d + 1), parts = b.emit("Split", [v, b.constant(ints(first, d - first))], { axis }, 2);
  if (b.draw.once(2)) b.emit("Concat", parts.toReversed(), { axis });
};
const concat: Follow = (b, v) => {
  const { dtype, dims } = v.tensor;
  if (!dims.length) return;
  const axis = b.draw.int(dims.length), other = produce(b, dtype, dims.map((d, i) => (i === axis ? b.draw.int(4) : d)), 1);
  b.emit("Concat", b.draw.once(2) ? [v, other] : [other, v, v], { axis: b.draw.once(2) ? axis : axis - dims.length });
};
const reduce: Follow = (b, v) => {
  const { dtype, dims } = v.tensor, axes = dims.flatMap((_, i) => (b.draw.once(2) ? [i] : []));
  if (!hasArithmetic(dtype) || dims.includes(0)) return;
  const type = b.draw.pick(["ReduceSum", "ReduceMax", "ReduceMin", ...(ofFloats(v) ? ["ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"] : [])]);
  b.emit(type, [v, ...(axes.length ? [b.constant(ints(...axes))] : [])], { keepdims: b.draw.int(2) });
};
const alongAxis: Follow = (b, v) => {
  const { dims, dtype } = v.tensor;
  if (!dims.length || dims.includes(0) || !hasArithmetic(dtype)) return;
  const axis = b.draw.int(2 * dims.length) - dims.length, size = dims.at(axis) ?? 1, kind = b.draw.int(ofFloats(v) ? 5 : 3);
  if (kind === 0) b.emit("ArgMax", [v], { axis, keepdims: b.draw.int(2) });
  else if (kind === 1) b.emit("CumSum", [v, b.constant(fromNumbers("int64", [], [axis]))], { reverse: b.draw.int(2), exclusive: b.draw.int(2) });
  else if (kind === 2) b.emit("TopK", [v, b.constant(ints(b.draw.int(size) + 1))], { axis }, 2);
  else b.emit(b.draw.pick(["Softmax", "Softmax", "LogSoftmax"]), [v], { axis });
};
const normalise: Follow = (b, v) => {
  const { dims, dtype } = v.tensor;
  if (dtype !== "float32" || !dims.length || dims.includes(0)) return;
  const last = dims.slice(-1), row = (shape: readonly number[]): Known => b.constant(tensor(b.draw, dtype, shape, "tame"));
  if (dims.length > 1 && b.draw.once(2)) { const c = [dims[1] ?? 1]; b.emit("BatchNormalization", [v, row(c), row(c), row(c), b.constant(within(b.draw, dtype, c, 1, 9))]); }
  else b.emit("LayerNormalization", [v, row(last), ...(b.draw.once(2) ? [row(last)] : [])], { axis: -1, epsilon: float(0.01) });
};
const product: Follow = (b, v) => {
  const { dims, dtype } = v.tensor;
  if ((dtype !== "float32" && dtype !== "float64") || !dims.length) return;
  const k = dims.at(-1) ?? 1, n = b.draw.pick([1, 3, 4, 9]), weight = (shape: readonly number[]): Known => (b.draw.once(3) ? produce(b, dtype, shape, 0) : b.constant(tensor(b.draw, dtype, shape, "tame")));
  const [made] = dims.length === 2 && b.draw.once(2) ? b.emit("Gemm", [v, weight([n, k]), ...(b.draw.once(2) ? [weight([n])] : [])], { transB: 1, alpha: float(b.draw.pick([1, 0.5])) }) : b.emit("MatMul", [v, weight([k, n])]);
  if (made && b.draw.once(2)) b.emit("Add", [made, b.constant(tensor(b.draw, dtype, [n], "tame"))]);
};
const convolve: Follow = (b, v) => {
  const { dims, dtype } = v.tensor, [, channels = 1, ...spatial] = dims;
  if (dtype !== "float32" || dims.length < 3 || dims.length > 4 || sizeOf(dims) === 0 || channels > 12) return;
  const kernel = spatial.map((d) => 1 + b.draw.int(Math.min(3, d))), pads = kernel.map((k) => b.draw.int(k)), strides = kernel.map(() => b.draw.pick([1, 1, 2])), each = b.draw.once(3), m = each ? channels : b.draw.pick([1, 2, 4]);
  if (b.draw.once(3)) { b.emit(b.draw.pick(["MaxPool", "AveragePool"]), [v], { kernel_shape: kernel, strides, pads: [...pads, ...pads] }); return; }
  const weights = [b.constant(tensor(b.draw, dtype, [m, each ? 1 : channels, ...kernel], "tame")), ...(b.draw.once(2) ? [b.constant(tensor(b.draw, dtype, [m], "tame"))] : [])];
  const [made] = b.emit("Conv", [v, ...weights], { kernel_shape: kernel, strides, pads: [...pads, ...pads], group: each ? channels : 1 });
  const after = b.draw.int(3);
  if (made && after === 1) normalise(b, made);
  else if (made && after === 2) b.emit("Relu", [made]);
};
const pick: Follow = (b, v) => {
  const { dims, dtype } = v.tensor;
  if (!dims.length || dims.includes(0)) return;
  const axis = b.draw.int(dims.length), d = dims[axis] ?? 1, kind = b.draw.int(4), at = within(b.draw, "int64", [b.draw.pick([1, 2, 3])], -d, d);
  if (kind === 0) b.emit("Gather", [v, b.draw.once(2) ? b.constant(at) : b.feed(at)], { axis });
  else if (kind === 1) b.emit("Tile", [v, b.constant(ints(...dims.map((_, i) => (i === axis ? 2 : 1))))]);
  else if (kind === 2) b.emit("Expand", [v, b.constant(ints(...dims.map((size) => (size === 1 ? 3 : 1))))]);
  else if (dtype !== "bool") { const pads = dims.map((_, i) => (i === axis ? b.draw.int(3) : 0)); b.emit("Pad", [v, b.constant(ints(...pads, ...pads.map((p) => (p ? 1 : 0))))], { mode: "constant" }); }
};
const sizes: Follow = (b, v) => {
  const [shape] = b.emit("Shape", [v]), n = rank(v);
  if (!shape || !n) return;
  const [size] = b.emit("Gather", [shape, b.constant(fromNumbers("int64", [], [b.draw.int(n)]))], { axis: 0 });
  if (size && b.draw.once(2)) b.emit("Mul", [size, b.constant(fromNumbers("int64", [], [2]))]);
  else b.emit("Reshape", [v, shape]);
};

const followers: readonly Follow[] = [unary, unary, unary, binary, binary, binary, divide, affine, gated, choose, cast, clip, transpose, reshape, slice, split, concat, reduce, reduce, alongAxis, normalise, product, product, convolve, convolve, pick, sizes];

/** Goes on from one of the values, later ones rather. */
export function follow(b: GraphBuilder): void {
  const { values, draw } = b, able: readonly Tensor["dtype"][] = ["string"];
  const from = values.filter((v) => !able.includes(v.tensor.dtype)), v = draw.once(3) ? draw.pick(from) : from.at(-1);
  if (v) draw.pick(followers)(b, v);
}
