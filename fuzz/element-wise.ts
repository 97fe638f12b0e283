/** Cases of element-wise operators, alone and broadcast. */
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromBigInts, fromNumbers, toBigInts } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";
import { close, exact, functions, type Generator, type FuzzCase } from "./fuzz-case.ts";
import { all, anyMode, broadcastable, dims, floats, integers, numbers, tensor, within } from "./values.ts";

const unary = (type: string, types: readonly DType[], tolerance = exact, attributes: (draw: Draw) => FuzzCase["attributes"] = () => ({})): Generator => (draw) =>
  ({ type, inputs: [tensor(draw, draw.pick(types), dims(draw), anyMode(draw))], attributes: attributes(draw) ?? {}, outputs: 1, tolerance });
const anyFloat = (draw: Draw): { float: number } => ({ float: draw.pick([1, 0, -1, 0.5, 2.25, -0.75]) });

const binary = (type: string, types: readonly DType[], tolerance = exact, opset = 21): Generator => (draw) => {
  const shape = dims(draw), dtype = draw.pick(types), mode = anyMode(draw);
  return { type, opset, inputs: [tensor(draw, dtype, broadcastable(draw, shape), mode), tensor(draw, dtype, broadcastable(draw, shape), mode)], outputs: 1, tolerance };
};
/** Divisors are not 0, which is not defined for integers, nor -1, by which the least integer overflows. */
const division = (type: string, attributes: (dtype: DType, draw: Draw) => FuzzCase["attributes"]): Generator => (draw) => {
  const shape = dims(draw), dtype = draw.pick(numbers), mode = anyMode(draw), b = tensor(draw, dtype, broadcastable(draw, shape), mode);
  const divisor = isFloat(dtype) ? b : fromBigInts(dtype, b.dims, toBigInts(b).map((v) => (v === 0n ? 1n : v === -1n ? 3n : v)));
  return { type, inputs: [tensor(draw, dtype, broadcastable(draw, shape), mode), divisor], attributes: attributes(dtype, draw) ?? {}, outputs: 1, tolerance: exact };
};
const variadic = (type: string, types: readonly DType[], tolerance = exact): Generator => (draw) => {
  const shape = dims(draw), dtype = draw.pick(types), mode = type === "Sum" || type === "Mean" ? draw.pick(["tame", "special"] as const) : anyMode(draw);
  return { type, inputs: Array.from({ length: 1 + draw.int(3) }, () => tensor(draw, dtype, broadcastable(draw, shape), mode)), outputs: 1, tolerance };
};
const castTypes = [...all, "bfloat16"] as const satisfies readonly DType[];

export const elementWise: Readonly<Record<string, Generator>> = {
  ...Object.fromEntries(["Abs", "Neg", "Sign"].map((t) => [t, unary(t, t === "Neg" ? [...floats, "int32", "int64", "int8", "int16"] : numbers)])),
  ...Object.fromEntries(["Floor", "Ceil", "Round", "Sqrt", "IsNaN", "Relu"].map((t) => [t, unary(t, t === "Relu" ? [...floats, "int32", "int8"] : floats)])),
  ...Object.fromEntries(["Reciprocal", "Exp", "Log", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish", "Mish"].map((t) => [t, unary(t, floats, functions)])),
  ...Object.fromEntries(["LeakyRelu", "Elu", "Celu", "ThresholdedRelu"].map((t) => [t, unary(t, floats, functions, (draw) => ({ alpha: t === "Celu" ? { float: draw.pick([1, 0.5, 2.25]) } : anyFloat(draw) }))])),
  Selu: unary("Selu", floats, functions), HardSigmoid: unary("HardSigmoid", floats, functions, (draw) => ({ alpha: anyFloat(draw), beta: anyFloat(draw) })),
  Shrink: (draw) => { const dtype = draw.pick(numbers); return { type: "Shrink", inputs: [tensor(draw, dtype, dims(draw), isFloat(dtype) ? anyMode(draw) : "tame")], attributes: { lambd: { float: draw.pick([0.5, 0, 1.5]) }, bias: { float: draw.pick([1, 0, 2]) } }, outputs: 1, tolerance: functions }; },
  Gelu: unary("Gelu", floats, functions, (draw) => ({ approximate: draw.pick(["none", "tanh"]) })),
  IsInf: unary("IsInf", floats, exact, (draw) => ({ detect_negative: draw.int(2), detect_positive: draw.int(2) })),
  Not: unary("Not", ["bool"]), BitwiseNot: unary("BitwiseNot", integers), Identity: unary("Identity", all),
  ...Object.fromEntries(["Add", "Sub", "Mul"].map((t) => [t, binary(t, numbers)])),
  ...Object.fromEntries(["Less", "Greater", "LessOrEqual", "GreaterOrEqual"].map((t) => [t, binary(t, numbers)])),
  Equal: binary("Equal", all),
  ...Object.fromEntries(["And", "Or", "Xor"].map((t) => [t, binary(t, ["bool"])])),
  ...Object.fromEntries(["BitwiseAnd", "BitwiseOr", "BitwiseXor"].map((t) => [t, binary(t, integers)])),
  PRelu: (draw) => { const shape = dims(draw), dtype = draw.pick(floats); return { type: "PRelu", inputs: [tensor(draw, dtype, shape, anyMode(draw)), tensor(draw, dtype, broadcastable(draw, shape), "tame")], outputs: 1, tolerance: exact }; },
  Div: division("Div", () => ({})),
  Mod: division("Mod", (dtype, draw) => ({ fmod: isFloat(dtype) ? 1 : draw.int(2) })),
  BitShift: (draw) => {
    const shape = dims(draw), dtype = draw.pick(["uint8", "uint32", "uint64", "uint16"] as const);
    return { type: "BitShift", inputs: [tensor(draw, dtype, broadcastable(draw, shape), anyMode(draw)), within(draw, dtype, broadcastable(draw, shape), 0, 8)], attributes: { direction: draw.pick(["LEFT", "RIGHT"]) }, outputs: 1, tolerance: exact };
  },
  Pow: (draw) => {
    const shape = dims(draw), dtype = draw.pick(["float32", "float64", "int32", "int64"] as const), to = draw.pick(isFloat(dtype) ? (["float32", "int64", "float64", "int32"] as const) : (["int32", "int64"] as const));
    const exponent = isFloat(dtype) ? tensor(draw, to, broadcastable(draw, shape), draw.pick(["tame", "special"] as const)) : within(draw, to, broadcastable(draw, shape), 0, 6);
    return { type: "Pow", inputs: [tensor(draw, dtype, broadcastable(draw, shape), draw.pick(["tame", "special"] as const)), exponent], outputs: 1, tolerance: functions };
  },
  Sum: variadic("Sum", floats, close), Mean: variadic("Mean", floats, close), Max: variadic("Max", numbers), Min: variadic("Min", numbers),
  Where: (draw) => {
    const shape = dims(draw), dtype = draw.pick(all), part = (): readonly number[] => broadcastable(draw, shape);
    return { type: "Where", inputs: [tensor(draw, "bool", part(), "tame"), tensor(draw, dtype, part(), anyMode(draw)), tensor(draw, dtype, part(), anyMode(draw))], outputs: 1, tolerance: exact };
  },
  Clip: (draw) => {
    const dtype = draw.pick(numbers), bound = (v: number) => (draw.once(3) ? undefined : fromNumbers(dtype, [], [v]));
    return { type: "Clip", inputs: [tensor(draw, dtype, dims(draw), anyMode(draw)), bound(draw.int(4)), bound(draw.int(4) + 2)], outputs: 1, tolerance: exact };
  },
  Cast: (draw) => {
    const from = draw.pick(castTypes), to = draw.pick(castTypes), mode = isFloat(from) && !isFloat(to) ? "tame" : anyMode(draw);
    const x = isFloat(from) && !isFloat(to) && dtypes[to].kind === "uint" ? within(draw, from, dims(draw), 0, 100) : tensor(draw, from, dims(draw), mode);
    return { type: "Cast", inputs: [x], attributes: { to: dtypes[to].onnx }, outputs: 1, tolerance: exact };
  },
  CastLike: (draw) => ({ type: "CastLike", inputs: [tensor(draw, draw.pick(integers), dims(draw), anyMode(draw)), tensor(draw, draw.pick(numbers), [1], "tame")], outputs: 1, tolerance: exact }),
};
