/**
 * When operators and attributes of the standard domain came into being, as far as that was after opset 7: from the
 * operator changelog of the ONNX specification. The writer asks here whether a model's opset can say a node.
 */
import type { DType } from "../core/dtype.ts";

/** The opset that introduced an operator; one that is not listed is older than opset 8. */
export const introducedOperators: Readonly<Record<string, number>> = {
  Acosh: 9, AffineGrid: 20, Asinh: 9, Atanh: 9, Attention: 23, Bernoulli: 15, BitCast: 26, BitShift: 11, BitwiseAnd: 18,
  BitwiseNot: 18, BitwiseOr: 18, BitwiseXor: 18, BlackmanWindow: 17, CastLike: 15, CausalConvWithState: 27, Celu: 12, CenterCropPad: 18, Col2Im: 18,
  Compress: 9, ConcatFromSequence: 11, ConstantOfShape: 9, ConvInteger: 10, Cosh: 9, CumProd: 26, CumSum: 11, DFT: 17,
  DeformConv: 19, DequantizeLinear: 10, Det: 11, DynamicQuantizeLinear: 11, Einsum: 12, Erf: 9, Expand: 8, EyeLike: 9,
  GatherElements: 11, GatherND: 11, Gelu: 20, GreaterOrEqual: 12, GridSample: 16, GroupNormalization: 18, HammingWindow: 17,
  HannWindow: 17, HardSwish: 14, ImageDecoder: 20, IsInf: 10, IsNaN: 9, LayerNormalization: 17, LessOrEqual: 12, LinearAttention: 27,
  MatMulInteger: 10, MaxUnpool: 9, MeanVarianceNormalization: 9, MelWeightMatrix: 17, Mish: 18, Mod: 10,
  NegativeLogLikelihoodLoss: 12, NonMaxSuppression: 10, NonZero: 9, OneHot: 9, Optional: 15, OptionalGetElement: 15,
  OptionalHasElement: 15, QLinearConv: 10, QLinearMatMul: 10, QuantizeLinear: 10, RMSNormalization: 23, Range: 11,
  RegexFullMatch: 20, Resize: 10, ReverseSequence: 10, RoiAlign: 10, RotaryEmbedding: 23, Round: 11, STFT: 17, Scan: 8,
  Scatter: 9, ScatterElements: 11, ScatterND: 11, SequenceAt: 11, SequenceConstruct: 11, SequenceEmpty: 11, SequenceErase: 11,
  SequenceInsert: 11, SequenceLength: 11, SequenceMap: 17, Shrink: 9, Sign: 9, Sinh: 9, SoftmaxCrossEntropyLoss: 12,
  SplitToSequence: 11, StringConcat: 20, StringNormalizer: 10, StringSplit: 20, Swish: 24, TensorScatter: 24, TfIdfVectorizer: 9,
  ThresholdedRelu: 10, Trilu: 14, Unique: 11, Where: 9,
};

/** The opset whose operators first took an element type; those not listed are as old as opset 7. */
export const introducedTypes: Partial<Readonly<Record<DType, number>>> = {
  bfloat16: 13, float8e4m3fn: 19, float8e4m3fnuz: 19, float8e5m2: 19, float8e5m2fnuz: 19, int4: 21, uint4: 21, float4e2m1: 23,
  float8e8m0: 24, int2: 25, uint2: 25,
};

type Kinds = Partial<Readonly<Record<DType | "sequence" | "optional", number>>>;
const from = (opset: number, ...types: readonly DType[]): Kinds => Object.fromEntries(types.map((t) => [t, opset]));
const narrow = ["int8", "int16", "uint8", "uint16"] as const, wide = ["int32", "int64", "uint32", "uint64"] as const;
const brain = from(22, "bfloat16"), arithmetic = from(14, ...narrow), products = from(9, ...wide), extremes: Kinds = { ...from(12, "int8", "uint8"), bool: 20 };
const held: Kinds = { sequence: 13, optional: 16 };

/** The opset whose form of an operator first took a type as its first operand or result (a container: anywhere), where both it and the type are older. */
export const introducedOperands: Readonly<Record<string, Kinds>> = {
  Acos: brain, Acosh: brain, Add: arithmetic, Asin: brain, Asinh: brain, Atan: brain, Atanh: brain, AveragePool: brain, BatchNormalization: from(14, "bfloat16"), Cast: { string: 9 },
  Clip: from(12, ...narrow, ...wide), Conv: brain, ConvTranspose: brain, Cos: brain, Cosh: brain, CumSum: from(14, "float16", "bfloat16"), DeformConv: brain,
  DequantizeLinear: from(21, "int16", "uint16"), Det: brain, Div: arithmetic, Elu: brain, EyeLike: brain, Flatten: from(9, ...narrow, ...wide, "bool", "string"),
  GRU: brain, Gemm: products, GlobalAveragePool: brain, GlobalLpPool: brain, GlobalMaxPool: brain, Greater: from(9, ...narrow, ...wide), GreaterOrEqual: from(16, "bfloat16"),
  GridSample: brain, HardSigmoid: brain, HardSwish: brain, Identity: { sequence: 14, optional: 16 }, If: held, InstanceNormalization: brain, IsInf: from(20, "float16", "bfloat16"),
  LSTM: brain, LeakyRelu: from(16, "bfloat16"), Less: from(9, ...narrow, ...wide), LessOrEqual: from(16, "bfloat16"), Loop: held, LpNormalization: brain, LpPool: brain, MatMul: products, Max: from(12, ...narrow, ...wide),
  MaxPool: { ...brain, ...from(12, "int8", "uint8") }, MaxRoiPool: brain, MaxUnpool: brain, Min: from(12, ...narrow, ...wide), Mish: brain, Mul: arithmetic,
  NegativeLogLikelihoodLoss: brain, PRelu: { ...products, bfloat16: 16 }, Pad: { ...from(11, ...narrow, ...wide), ...from(13, "bool", "string") }, Pow: { ...from(12, "int32", "int64"), bfloat16: 15 },
  QuantizeLinear: { ...from(21, "int16", "uint16"), ...from(19, "float16", "bfloat16") }, RNN: brain, Range: from(27, "float16", "bfloat16"), ReduceMax: extremes, ReduceMin: extremes, Relu: from(14, "int8", "int16", "int32", "int64"), RoiAlign: brain,
  Round: brain, Selu: brain, Sin: brain, Sinh: brain, Softplus: brain, Softsign: brain, Sub: arithmetic, Tan: brain, ThresholdedRelu: brain,
  TopK: { ...from(11, ...narrow, ...wide), bfloat16: 24 }, Where: from(16, "bfloat16"),
};

/** The opset of the form that opset 7 has; an operator that is not listed has had it from opset 1 on. */
export const formsOfOpset7: Readonly<Record<string, number>> = {
  Abs: 6, Acos: 7, Add: 7, And: 7, Asin: 7, Atan: 7, AveragePool: 7, BatchNormalization: 7, Cast: 6, Ceil: 6, Clip: 6, Concat: 4, Cos: 7,
  Div: 7, Dropout: 7, Elu: 6, Equal: 7, Exp: 6, Floor: 6, GRU: 7, Gemm: 7, GlobalLpPool: 2, Greater: 7, HardSigmoid: 6,
  InstanceNormalization: 6, LSTM: 7, LeakyRelu: 6, Less: 7, Log: 6, LpPool: 2, Max: 6, Mean: 6, Min: 6, Mul: 7, Multinomial: 7, Neg: 6,
  Or: 7, PRelu: 7, Pad: 2, Pow: 7, RNN: 7, Reciprocal: 6, Relu: 6, Reshape: 5, Selu: 6, Sigmoid: 6, Sin: 7, Split: 2, Sqrt: 6, Sub: 7,
  Sum: 6, Tan: 7, Tanh: 6, Tile: 6, Upsample: 7, Xor: 7,
};

/** The opset that gave an operator an attribute; those not listed are as old as the operator. */
export const introducedAttributes: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  ArgMax: { select_last_index: 12 },
  ArgMin: { select_last_index: 12 },
  Attention: { left_window_size: 25, right_window_size: 25 },
  AveragePool: { ceil_mode: 10, dilations: 19 },
  BatchNormalization: { training_mode: 14 },
  Cast: { round_mode: 24, saturate: 19 },
  CastLike: { round_mode: 24, saturate: 19 },
  DepthToSpace: { mode: 11 },
  DequantizeLinear: { axis: 13, block_size: 21, output_dtype: 23 },
  Dropout: { seed: 12 },
  GRU: { layout: 14 },
  GatherND: { batch_dims: 12 },
  GroupNormalization: { stash_type: 21 },
  LSTM: { layout: 14 },
  LpPool: { ceil_mode: 18, dilations: 18 },
  MaxPool: { ceil_mode: 10, dilations: 10, storage_order: 8 },
  QuantizeLinear: { axis: 13, block_size: 21, output_dtype: 21, precision: 23, saturate: 19 },
  RNN: { layout: 14 },
  ReduceL1: { noop_with_empty_axes: 18 },
  ReduceL2: { noop_with_empty_axes: 18 },
  ReduceLogSum: { noop_with_empty_axes: 18 },
  ReduceLogSumExp: { noop_with_empty_axes: 18 },
  ReduceMax: { noop_with_empty_axes: 18 },
  ReduceMean: { noop_with_empty_axes: 18 },
  ReduceMin: { noop_with_empty_axes: 18 },
  ReduceProd: { noop_with_empty_axes: 18 },
  ReduceSum: { noop_with_empty_axes: 13 },
  ReduceSumSquare: { noop_with_empty_axes: 18 },
  Reshape: { allowzero: 14 },
  Resize: { antialias: 18, axes: 18, coordinate_transformation_mode: 11, cubic_coeff_a: 11, exclude_outside: 11, extrapolation_value: 11, keep_aspect_ratio_policy: 18, nearest_mode: 11 },
  RoiAlign: { coordinate_transformation_mode: 16 },
  Scan: { scan_input_axes: 9, scan_input_directions: 9, scan_output_axes: 9, scan_output_directions: 9 },
  ScatterElements: { reduction: 16 },
  ScatterND: { reduction: 16 },
  Shape: { end: 15, start: 15 },
  Split: { num_outputs: 18 },
  TopK: { largest: 11, sorted: 11 },
};

/** Attributes that only older forms have, and that hold floats (a whole number would else be taken for an int). */
export const formerFloats: Readonly<Record<string, readonly string[]>> = {
  Clip: ["min", "max"], Dropout: ["ratio"], Pad: ["value"], Upsample: ["scales"],
};
