/** One node of nearly every operator, for tests over element types and over opsets. */
import { dtypes, isFloat, type DType } from "../../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../../src/core/tensor.ts";
import type { AttributeSpec, ModelSpec } from "./model-spec.ts";

const floats: readonly DType[] = ["float32", "float64", "float16", "bfloat16"];
const float8: readonly DType[] = ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"];
const floats8and4: readonly DType[] = [...float8, "float4e2m1"];
const signed: readonly DType[] = ["int8", "int16", "int32", "int64"], unsigned: readonly DType[] = ["uint8", "uint16", "uint32", "uint64"];
const numeric = [...floats, ...signed, ...unsigned], wide: readonly DType[] = [...floats, "int32", "int64", "uint32", "uint64"];
const plain: readonly DType[] = [...numeric, "bool"], all = (Object.keys(dtypes) as DType[]).filter((d) => d !== "string");

/** Operators that take the same inputs and attributes, with the element types that the standard gives them. */
export interface Row {
  readonly types: readonly DType[];
  /** Operators with the same inputs and attributes. */
  readonly operators: string;
  /** Sizes of the inputs of the row's type; [2, 3, 4] where not given. */
  readonly inputs?: readonly (readonly number[])[];
  /** Inputs of fixed types and values, by position among all inputs. */
  readonly constants?: Readonly<Record<number, Tensor>>;
  readonly attributes?: Readonly<Record<string, AttributeSpec>>;
  /** Types of the outputs, where they are not all the row's; as many as there are outputs. */
  readonly gives?: readonly (DType | "own")[];
}
const ints = (...values: readonly number[]): Tensor => fromNumbers("int64", [values.length], values);
const bools = (...values: readonly number[]): Tensor => fromNumbers("bool", [values.length], values);
const two = [[2, 3, 4], [3, 1]], image = [[1, 4, 4, 4]];

export const rows: readonly Row[] = [
  { types: numeric, operators: "Abs Sign Clip Erf" },
  { types: numeric, operators: "Add Sub Mul Max Min", inputs: two },
  { types: numeric, operators: "Less LessOrEqual Greater GreaterOrEqual", inputs: two, gives: ["bool"] },
  { types: numeric, operators: "Div", inputs: [[2, 3, 4], []] },
  { types: [...signed, ...unsigned], operators: "Mod", inputs: [[2, 3, 4], []] },
  { types: numeric, operators: "Mod", inputs: [[2, 3, 4], []], attributes: { fmod: 1 } },
  { types: numeric, operators: "ArgMax ArgMin", attributes: { axis: 1 }, gives: ["int64"] },
  { types: [...floats, ...signed], operators: "Neg Relu" },
  { types: floats, operators: "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Sin Sinh Tan Tanh Ceil Floor Round Exp Log Sqrt Reciprocal Sigmoid Elu Selu Celu HardSigmoid HardSwish Mish Softplus Softsign ThresholdedRelu LeakyRelu Gelu Swish Softmax LogSoftmax Hardmax LpNormalization" },
  { types: [...floats, ...float8], operators: "IsNaN IsInf", gives: ["bool"] },
  { types: numeric, operators: "Shrink" },
  { types: floats, operators: "Mean Sum", inputs: two },
  { types: wide, operators: "PRelu", inputs: [[2, 3, 4], [4]] },
  { types: [...floats, "int32", "int64"], operators: "Pow", inputs: two },
  { types: floats, operators: "GlobalAveragePool GlobalMaxPool GlobalLpPool", inputs: image },
  { types: floats, operators: "AveragePool LpPool", inputs: image, attributes: { kernel_shape: [2, 2] } },
  { types: [...floats, "int8", "uint8"], operators: "MaxPool", inputs: image, attributes: { kernel_shape: [2, 2] } },
  { types: floats, operators: "Conv", inputs: [[1, 4, 4, 4], [2, 4, 2, 2], [2]] },
  { types: floats, operators: "ConvTranspose", inputs: [[1, 4, 4, 4], [4, 2, 2, 2], [2]] },
  { types: floats, operators: "LRN", inputs: image, attributes: { size: 3 } },
  { types: floats, operators: "MeanVarianceNormalization", inputs: image },
  { types: floats, operators: "InstanceNormalization", inputs: [[1, 4, 4, 4], [4], [4]] },
  { types: floats, operators: "BatchNormalization", inputs: [[1, 4, 4, 4], [4], [4], [4], [4]] },
  { types: floats, operators: "GroupNormalization", inputs: [[1, 4, 4, 4], [4], [4]], attributes: { num_groups: 2 } },
  { types: floats, operators: "LayerNormalization RMSNormalization", inputs: [[2, 3, 4], [4]] },
  { types: floats, operators: "Det", inputs: [[2, 3, 3]] },
  { types: wide, operators: "MatMul", inputs: [[2, 3, 4], [4, 5]] },
  { types: wide, operators: "Gemm", inputs: [[3, 4], [4, 5], [5]] },
  { types: numeric, operators: "Einsum", inputs: [[2, 3], [3, 4]], attributes: { equation: "ij,jk->ik" } },
  { types: wide, operators: "CumSum CumProd", constants: { 1: fromNumbers("int64", [], [1]) } },
  { types: wide, operators: "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare", constants: { 1: ints(1) } },
  { types: [...wide, "int8", "uint8", "bool"], operators: "ReduceMax ReduceMin", constants: { 1: ints(1) } },
  { types: numeric, operators: "TopK", constants: { 1: ints(2) }, gives: ["own", "int64"] },
  { types: [...signed, ...unsigned], operators: "BitwiseAnd BitwiseOr BitwiseXor", inputs: two },
  { types: [...signed, ...unsigned], operators: "BitwiseNot" },
  { types: unsigned, operators: "BitShift", inputs: two, attributes: { direction: "LEFT" } },
  { types: plain, operators: "Equal", inputs: two, gives: ["bool"] },
  { types: plain, operators: "Where", inputs: [[3, 4], [2, 3, 4]], constants: { 0: fromNumbers("bool", [3, 1], [1, 0, 1]) } },
  { types: plain, operators: "Concat", inputs: [[2, 3, 4], [2, 1, 4]], attributes: { axis: 1 } },
  { types: plain, operators: "NonZero", inputs: [[3, 4]], gives: ["int64"] },
  { types: plain, operators: "EyeLike", inputs: [[3, 4]] },
  { types: plain, operators: "Trilu" },
  { types: plain, operators: "DepthToSpace SpaceToDepth", inputs: image, attributes: { blocksize: 2 } },
  { types: plain, operators: "Gather", constants: { 1: ints(1, 0, -1) }, attributes: { axis: 1 } },
  { types: plain, operators: "GatherElements", inputs: [[3, 2]], constants: { 1: fromNumbers("int64", [1, 2], [2, 0]) } },
  { types: plain, operators: "GatherND", constants: { 1: fromNumbers("int64", [2, 2], [1, 2, 0, 1]) } },
  { types: plain, operators: "ScatterElements", inputs: [[3, 2], [1, 2]], constants: { 1: fromNumbers("int64", [1, 2], [2, 0]) } },
  { types: plain, operators: "ScatterND", inputs: [[4, 3], [2, 3]], constants: { 1: fromNumbers("int64", [2, 1], [3, 0]) } },
  { types: plain, operators: "Slice", constants: { 1: ints(2), 2: ints(-9), 3: ints(1), 4: ints(-1) } },
  { types: plain, operators: "Expand", inputs: [[3, 1]], constants: { 1: ints(2, 3, 4) } },
  { types: plain, operators: "Tile", constants: { 1: ints(1, 2, 2) } },
  { types: plain, operators: "Split", inputs: [[4, 3]], attributes: { num_outputs: 2 }, gives: ["own", "own"] },
  { types: plain, operators: "Compress", constants: { 1: bools(0, 1, 1) }, attributes: { axis: 1 } },
  { types: plain, operators: "ReverseSequence", inputs: [[4, 2]], constants: { 1: ints(2, 4) } },
  { types: plain, operators: "Unique" },
  { types: plain, operators: "OneHot", inputs: [[2]], constants: { 0: ints(1, 2), 1: ints(4) } },
  { types: plain, operators: "Resize", inputs: image, constants: { 3: ints(1, 4, 8, 6) }, attributes: { mode: "nearest" } },
  { types: all, operators: "Identity Transpose Flatten" },
  { types: all, operators: "Size Shape", gives: ["int64"] },
  { types: all, operators: "Reshape", constants: { 1: ints(4, -1) } },
  { types: all, operators: "Squeeze", inputs: [[2, 1, 3]], constants: { 1: ints(1) } },
  { types: all, operators: "Unsqueeze", constants: { 1: ints(0, 2) } },
  { types: all, operators: "Pad", constants: { 1: ints(0, 1, 0, 0, 0, 2) } },
  { types: all, operators: "CastLike", constants: { 1: fromNumbers("float32", [], [0]) }, gives: ["float32"] },
  { types: ["float32"], operators: "Clip", constants: { 1: fromNumbers("float32", [], [-0.5]), 2: fromNumbers("float32", [], [0.75]) } },
  { types: floats, operators: "Dropout" },
  { types: ["float32"], operators: "Pad", constants: { 1: ints(0, 1, 1, 0, 0, 2) }, attributes: { mode: "reflect" } },
  { types: ["float32"], operators: "LSTM", inputs: [[4, 2, 3], [1, 20, 3], [1, 20, 5], [1, 40]], attributes: { hidden_size: 5 } },
  { types: ["float32"], operators: "GRU", inputs: [[4, 2, 3], [1, 15, 3], [1, 15, 5], [1, 30]], attributes: { hidden_size: 5 } },
  { types: ["float32"], operators: "RNN", inputs: [[4, 2, 3], [1, 5, 3], [1, 5, 5], [1, 10]], attributes: { hidden_size: 5 } },
  { types: ["int8", ...floats8and4, "int4", "uint4", "int2", "uint2", "uint8", "int16", "uint16", "int32"], operators: "DequantizeLinear", constants: { 1: fromNumbers("float32", [], [0.25]) }, gives: ["float32"] },
  { types: ["float32", "float16", "bfloat16"], operators: "QuantizeLinear", inputs: [[2, 3, 4], []], constants: { 2: fromNumbers("uint8", [], [100]) }, gives: ["uint8"] },
  { types: [...floats, "int16", "int32", "int64"], operators: "Range", inputs: [[], [], []] },
];

/** Small values that every type has, none of them 0 where there is one input alone. */
function sample(dtype: DType, dims: readonly number[], operand: number): Tensor {
  const value = (i: number): number => ((i * 7 + operand * 3) % 5) + (operand === 1 ? 1 : 0);
  return fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => (isFloat(dtype) ? value(i) / 2 - (i % 3 === 0 ? 1 : 0) : dtype === "bool" ? i % 2 : value(i) - (dtype.startsWith("int") && i % 4 === 0 ? 2 : 0))));
}
const ranges: readonly (readonly number[])[] = [[1], [9], [2]];

/** A model of opset 27 with one node of a row, and what to feed it. */
export function modelOf(type: string, dtype: DType, row: Row): { readonly spec: ModelSpec; readonly feeds: Record<string, Tensor> } {
  const { inputs = [[2, 3, 4]], constants = {}, attributes = {}, gives = ["own"] } = row;
  const feeds: Record<string, Tensor> = {}, initializers: Record<string, Tensor> = {}, names: string[] = [];
  const last = Math.max(-1, ...Object.keys(constants).map(Number));
  let own = 0;
  for (let i = 0; own < inputs.length || i <= last; i++) {
    const fixed = constants[i];
    if (fixed) { names.push(`k${i}`); initializers[`k${i}`] = fixed; continue; }
    const dims = inputs[own];
    if (!dims) { names.push(""); continue; }
    const tensor = type === "Range" ? fromNumbers(dtype, [], ranges[own] ?? []) : sample(dtype, dims, own);
    names.push(`x${own}`);
    feeds[`x${own++}`] = tensor;
  }
  const results = gives.map((_, i) => `y${i}`);
  const inputTypes = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, { dtype: t.dtype, dims: t.dims }]));
  return { feeds, spec: { opset: 27, ir: 13, inputs: inputTypes, outputs: Object.fromEntries(gives.map((given, i) => [`y${i}`, { dtype: given === "own" ? dtype : given, dims: ["?"] }])), initializers, nodes: [{ type, inputs: names, outputs: results, attributes }] } };
}
