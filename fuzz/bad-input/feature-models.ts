/**
 * Small models of what real ones seldom hold together: control flow with captured values, sequences, optionals,
 * strings, functions of the model, sizes that data decides, recurrence, quantisation and weights in other files.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FunctionProtoSchema, ModelProtoSchema, NodeProtoSchema, OperatorSetIdProtoSchema, StringStringEntryProtoSchema, TensorProto_DataLocation } from "../../src/onnx/schema/onnx_pb.ts";
import type { Tensor } from "../../src/core/tensor.ts";
import { attention, chain, convBnRelu, float, int64, linearRelu } from "../../test/support/article-models.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "../../test/support/model-spec.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";

/** The bytes of the file that the model with external weights names. */
export const externalFile = { location: "weights.bin", bytes: new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8).buffer) };

const boolean = (value: number): Tensor => ({ dtype: "bool", dims: [], data: Uint8Array.of(value) });
const count = (value: bigint): Tensor => ({ dtype: "int64", dims: [], data: BigInt64Array.of(value) });
const text = (values: readonly string[]): Tensor => ({ dtype: "string", dims: [values.length], data: [...values] });
const x = { dtype: "float32", dims: ["N", 4] } as const;
const model = (nodes: readonly NodeSpec[], initializers: Readonly<Record<string, Tensor>> = {}, more: Partial<ModelSpec> = {}): ModelSpec =>
  ({ opset: 17, inputs: { x }, outputs: { y: undefined }, initializers, nodes, ...more });
const body = (nodes: readonly NodeSpec[], outputs: readonly string[], inputs: ModelSpec["inputs"] = {}): ModelSpec =>
  ({ opset: 17, inputs, outputs: Object.fromEntries(outputs.map((o) => [o, undefined])), initializers: {}, nodes });
const scalar = (dtype: "int64" | "bool") => ({ dtype, dims: [] }) as const;
const weights = (...dims: number[]): Tensor => randomTensor(dims, randomFrom(3), 0.3);

const specs: Readonly<Record<string, ModelSpec>> = {
  "conv-bn-relu": convBnRelu("conv").spec,
  "conv-transpose": convBnRelu("transpose").spec,
  gemm: linearRelu("gemm"),
  matmul: linearRelu("matmul"),
  attention: attention("BNSD", true, true, { batch: 1, heads: 2, sequence: 8, dim: 8 }),
  chain: chain("twelve"),
  loop: model([
    { type: "Loop", inputs: ["trips", "yes", "x"], outputs: ["last", "all"], attributes: { body: body([
      { type: "Add", inputs: ["carried", "x"], outputs: ["sum"] }, { type: "Identity", inputs: ["going"], outputs: ["goes"] }, { type: "ReduceMean", inputs: ["sum"], outputs: ["slice"], attributes: { keepdims: 0 } },
    ], ["goes", "sum", "slice"], { i: scalar("int64"), going: scalar("bool"), carried: x }) } },
    { type: "ReduceSum", inputs: ["all"], outputs: ["total"] }, { type: "Mul", inputs: ["last", "total"], outputs: ["y"] },
  ], { trips: count(5n), yes: boolean(1) }),
  "loop-fed": model([
    { type: "Loop", inputs: ["trips", "", "x"], outputs: ["y"], attributes: { body: body([
      { type: "Concat", inputs: ["carried", "x"], outputs: ["longer"], attributes: { axis: 0 } }, { type: "ReduceSum", inputs: ["longer"], outputs: ["s"], attributes: { keepdims: 0 } }, { type: "Less", inputs: ["s", "limit"], outputs: ["goes"] },
    ], ["goes", "longer"], { i: scalar("int64"), going: scalar("bool"), carried: { dtype: "float32", dims: ["M", 4] } }) } },
  ], { limit: float([], [100]) }, { inputs: { x, trips: scalar("int64") } }),
  if: model([
    { type: "ReduceSum", inputs: ["x"], outputs: ["s"], attributes: { keepdims: 0 } }, { type: "Greater", inputs: ["s", "zero"], outputs: ["c"] },
    { type: "If", inputs: ["c"], outputs: ["y"], attributes: {
      then_branch: body([{ type: "If", inputs: ["c"], outputs: ["t"], attributes: { then_branch: body([{ type: "Relu", inputs: ["x"], outputs: ["a"] }], ["a"]), else_branch: body([{ type: "Neg", inputs: ["x"], outputs: ["b"] }], ["b"]) } }], ["t"]),
      else_branch: body([{ type: "Concat", inputs: ["x", "x"], outputs: ["e"], attributes: { axis: 0 } }], ["e"]),
    } },
  ], { zero: float([], [0]) }),
  scan: model([
    { type: "Scan", inputs: ["start", "x"], outputs: ["end", "y"], attributes: { num_scan_inputs: 1, body: body([{ type: "Add", inputs: ["state", "row"], outputs: ["next"] }, { type: "Tanh", inputs: ["next"], outputs: ["out"] }], ["next", "out"], { state: { dtype: "float32", dims: [4] }, row: { dtype: "float32", dims: [4] } }) } },
  ], { start: float([4], [0, 0, 0, 0]) }),
  sequence: model([
    { type: "SplitToSequence", inputs: ["x"], outputs: ["parts"], attributes: { axis: 1, keepdims: 1 } }, { type: "SequenceAt", inputs: ["parts", "one"], outputs: ["p"] },
    { type: "SequenceInsert", inputs: ["parts", "p"], outputs: ["more"] }, { type: "SequenceErase", inputs: ["more", "one"], outputs: ["fewer"] }, { type: "ConcatFromSequence", inputs: ["fewer"], outputs: ["y"], attributes: { axis: 1 } },
  ], { one: count(1n) }),
  optional: model([
    { type: "Optional", inputs: ["x"], outputs: ["o"] }, { type: "OptionalHasElement", inputs: ["o"], outputs: ["has"] }, { type: "OptionalGetElement", inputs: ["o"], outputs: ["v"] },
    { type: "Where", inputs: ["has", "v", "x"], outputs: ["y"] },
  ], {}, { opset: 18 }),
  strings: model([
    { type: "StringConcat", inputs: ["s", "t"], outputs: ["st"] }, { type: "StringSplit", inputs: ["st"], outputs: ["y", "n"], attributes: { delimiter: "a", maxsplit: 2 } },
    { type: "StringNormalizer", inputs: ["s"], outputs: ["z"], attributes: { case_change_action: "UPPER", stopwords: { strings: ["the"] } } },
  ], { t: text(["banana"]) }, { opset: 20, inputs: { s: { dtype: "string", dims: ["N"] } }, outputs: { y: undefined, n: undefined, z: undefined } }),
  "sizes-from-data": model([
    { type: "NonZero", inputs: ["x"], outputs: ["at"] }, { type: "Transpose", inputs: ["at"], outputs: ["rows"], attributes: { perm: [1, 0] } }, { type: "GatherND", inputs: ["x", "rows"], outputs: ["kept"] },
    { type: "Unique", inputs: ["kept"], outputs: ["u"], attributes: { sorted: 1 } }, { type: "TopK", inputs: ["u", "k"], outputs: ["top", "where"] }, { type: "Shape", inputs: ["top"], outputs: ["shape"] },
    { type: "ConstantOfShape", inputs: ["shape"], outputs: ["zeros"] }, { type: "Add", inputs: ["top", "zeros"], outputs: ["y"] },
  ], { k: int64([1]) }),
  "shape-arithmetic": model([
    { type: "Shape", inputs: ["x"], outputs: ["s"] }, { type: "Gather", inputs: ["s", "first"], outputs: ["n"] }, { type: "Concat", inputs: ["n", "two", "rest"], outputs: ["target"], attributes: { axis: 0 } },
    { type: "Reshape", inputs: ["x", "target"], outputs: ["r"] }, { type: "Slice", inputs: ["r", "starts", "ends", "axes", "steps"], outputs: ["cut"] }, { type: "Pad", inputs: ["cut", "pads"], outputs: ["padded"] },
    { type: "Tile", inputs: ["padded", "times"], outputs: ["tiled"] }, { type: "Expand", inputs: ["tiled", "wide"], outputs: ["e"] }, { type: "Split", inputs: ["e", "parts"], outputs: ["y", "z"], attributes: { axis: 1 } },
  ], { first: int64([0]), two: int64([2]), rest: int64([-1]), starts: int64([0]), ends: int64([9223372036]), axes: int64([2]), steps: int64([1]), pads: int64([0, 0, 1, 0, 0, 1]), times: int64([1, 2, 1]), wide: int64([1, 1, 1]), parts: int64([1, 3]) }, { outputs: { y: undefined, z: undefined } }),
  range: model([
    { type: "Range", inputs: ["from", "to", "by"], outputs: ["r"] }, { type: "Gather", inputs: ["x", "r"], outputs: ["g"], attributes: { axis: 1 } }, { type: "OneHot", inputs: ["r", "depth", "values"], outputs: ["h"] },
    { type: "MatMul", inputs: ["g", "h"], outputs: ["m"] }, { type: "CumSum", inputs: ["m", "axis"], outputs: ["y"] },
  ], { from: count(0n), to: count(3n), by: count(1n), depth: count(5n), values: float([2], [0, 1]), axis: count(1n) }),
  resize: model([{ type: "Resize", inputs: ["i", "", "scales"], outputs: ["r"], attributes: { mode: "linear" } }, { type: "MaxPool", inputs: ["r"], outputs: ["y"], attributes: { kernel_shape: [2, 2], strides: [2, 2], pads: [0, 0, 1, 1], ceil_mode: 1 } }],
    { scales: float([4], [1, 1, 2, 1.5]) }, { inputs: { i: { dtype: "float32", dims: ["N", 2, 6, 6] } } }),
  lstm: model([{ type: "LSTM", inputs: ["i", "w", "r", "b"], outputs: ["y", "h", "c"], attributes: { hidden_size: 4 } }], { w: weights(1, 16, 4), r: weights(1, 16, 4), b: weights(1, 32) }, { inputs: { i: { dtype: "float32", dims: ["T", 1, 4] } }, outputs: { y: undefined, h: undefined, c: undefined } }),
  quantised: model([
    { type: "QuantizeLinear", inputs: ["x", "scale", "zero"], outputs: ["q"] }, { type: "DequantizeLinear", inputs: ["q", "scale", "zero"], outputs: ["d"] }, { type: "DequantizeLinear", inputs: ["w", "ws"], outputs: ["dw"] },
    { type: "MatMul", inputs: ["d", "dw"], outputs: ["m"] }, { type: "QuantizeLinear", inputs: ["m", "scale", "zero"], outputs: ["mq"] }, { type: "DequantizeLinear", inputs: ["mq", "scale", "zero"], outputs: ["y"] },
  ], { scale: float([], [0.02]), zero: { dtype: "uint8", dims: [], data: Uint8Array.of(128) }, w: { dtype: "int8", dims: [4, 4], data: Int8Array.from({ length: 16 }, (_, i) => i * 7 - 50) }, ws: float([], [0.01]) }),
  einsum: model([{ type: "Einsum", inputs: ["x", "w"], outputs: ["y"], attributes: { equation: "ij,jk->ik" } }], { w: weights(4, 4) }),
  "layer-norm": model([{ type: "LayerNormalization", inputs: ["x", "w"], outputs: ["n"] }, { type: "Gelu", inputs: ["n"], outputs: ["g"] }, { type: "Softmax", inputs: ["g"], outputs: ["y"] }], { w: weights(4) }, { opset: 20 }),
  suppression: model([{ type: "NonMaxSuppression", inputs: ["boxes", "scores", "most", "iou"], outputs: ["y"] }], { most: count(3n), iou: float([], [0.5]) }, { inputs: { boxes: { dtype: "float32", dims: [1, 6, 4] }, scores: { dtype: "float32", dims: [1, 2, 6] } } }),
  "microsoft-attention": model([
    { type: "FusedMatMul", domain: "com.microsoft", inputs: ["q", "w"], outputs: ["k"], attributes: { transB: 1 } }, { type: "SkipSimplifiedLayerNormalization", domain: "com.microsoft", inputs: ["k", "q", "g"], outputs: ["n"] },
    { type: "MultiHeadAttention", domain: "com.microsoft", inputs: ["n", "k", "q", "", "", "", "pk", "pv"], outputs: ["y", "nk", "nv"], attributes: { num_heads: 2 } },
  ], { w: weights(4, 4), g: weights(4) }, { inputs: { q: { dtype: "float32", dims: ["N", "S", 4] }, pk: { dtype: "float32", dims: ["N", 2, "P", 2] }, pv: { dtype: "float32", dims: ["N", 2, "P", 2] } }, outputs: { y: undefined, nk: undefined, nv: undefined } }),
  "microsoft-quantised": model([
    { type: "MatMulNBits", domain: "com.microsoft", inputs: ["a", "q", "s"], outputs: ["m"], attributes: { K: 16, N: 4, bits: 4, block_size: 16 } }, { type: "DynamicQuantizeMatMul", domain: "com.microsoft", inputs: ["m", "b", "bs"], outputs: ["d"] },
    { type: "BiasGelu", domain: "com.microsoft", inputs: ["d", "c"], outputs: ["y"] },
  ], { q: { dtype: "uint8", dims: [4, 1, 8], data: Uint8Array.from({ length: 32 }, (_, i) => i * 7) }, s: weights(4), b: { dtype: "int8", dims: [4, 4], data: Int8Array.from({ length: 16 }, (_, i) => i - 8) }, bs: float([], [0.02]), c: weights(4) }, { inputs: { a: { dtype: "float32", dims: ["N", 16] } } }),
  trees: model([
    { type: "TreeEnsembleRegressor", domain: "ai.onnx.ml", inputs: ["x"], outputs: ["t"], attributes: {
      n_targets: 1, nodes_treeids: [0, 0, 0], nodes_nodeids: [0, 1, 2], nodes_featureids: [1, 0, 0], nodes_modes: { strings: ["BRANCH_LEQ", "LEAF", "LEAF"] }, nodes_values: { floats: [0.5, 0, 0] },
      nodes_truenodeids: [1, 0, 0], nodes_falsenodeids: [2, 0, 0], target_treeids: [0, 0], target_nodeids: [1, 2], target_ids: [0, 0], target_weights: { floats: [1, -1] },
    } },
    { type: "Cast", inputs: ["t"], outputs: ["i"], attributes: { to: 7 } }, { type: "LabelEncoder", domain: "ai.onnx.ml", inputs: ["i"], outputs: ["y"], attributes: { keys_int64s: [1, -1], values_floats: { floats: [10, 20] }, default_float: { float: 0 } } },
  ], {}, { versions: { "ai.onnx.ml": 3 } }),
  "nested-loops": model([
    { type: "Scan", inputs: ["x", "rows"], outputs: ["last", "y"], attributes: { num_scan_inputs: 1, body: body([
      { type: "Loop", inputs: ["trips", "", "state"], outputs: ["inner"], attributes: { body: body([{ type: "MatMul", inputs: ["c", "w"], outputs: ["p"] }, { type: "Add", inputs: ["p", "row"], outputs: ["next"] }], ["go", "next"], { j: scalar("int64"), go: scalar("bool"), c: x }) } },
      { type: "ReduceMean", inputs: ["inner"], outputs: ["mean"], attributes: { axes: [0], keepdims: 0 } },
    ], ["inner", "mean"], { state: x, row: { dtype: "float32", dims: ["M"] } }) } },
  ], { trips: count(3n), w: weights(4, 4) }, { inputs: { x, rows: { dtype: "float32", dims: ["T", "M"] } } }),
};

const withExternalWeights = (): Uint8Array => {
  const m = fromBinary(ModelProtoSchema, modelBytes(model([{ type: "Add", inputs: ["x", "w"], outputs: ["y"] }], { w: float([4], [0, 0, 0, 0]) })));
  for (const t of m.graph?.initializer ?? []) {
    t.rawData = new Uint8Array(0);
    t.dataLocation = TensorProto_DataLocation.EXTERNAL;
    t.externalData = Object.entries({ location: externalFile.location, offset: "16", length: "16" }).map(([key, value]) => create(StringStringEntryProtoSchema, { key, value }));
  }
  return toBinary(ModelProtoSchema, m);
};

const withFunction = (): Uint8Array => {
  const m = fromBinary(ModelProtoSchema, modelBytes(model([{ type: "Twice", domain: "local", inputs: ["x"], outputs: ["a"] }, { type: "Twice", domain: "local", inputs: ["a"], outputs: ["y"] }])));
  const node = (opType: string, domain: string, input: string[], output: string[]) => create(NodeProtoSchema, { opType, domain, input, output });
  const opsetImport = [create(OperatorSetIdProtoSchema, { domain: "", version: 17n }), create(OperatorSetIdProtoSchema, { domain: "local", version: 1n })];
  m.functions.push(
    create(FunctionProtoSchema, { name: "Twice", domain: "local", input: ["p"], output: ["q"], opsetImport, node: [node("Once", "local", ["p"], ["o"]), node("Add", "", ["o", "p"], ["q"])] }),
    create(FunctionProtoSchema, { name: "Once", domain: "local", input: ["p"], output: ["q"], opsetImport, node: [node("Relu", "", ["p"], ["q"])] }),
  );
  return toBinary(ModelProtoSchema, m);
};

/** Serialised models by name. */
export const featureModels = (): ReadonlyMap<string, Uint8Array> =>
  new Map([...Object.entries(specs).map(([name, spec]) => [name, modelBytes(spec)] as const), ["external-weights", withExternalWeights()], ["function", withFunction()]]);
