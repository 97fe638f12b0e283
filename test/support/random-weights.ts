/** Models whose weights are ConstantOfShape get seeded random weights of a sane scale, so that results depend on them. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ModelProtoSchema, NodeProtoSchema, TensorProtoSchema, type TensorProto } from "../../src/onnx/schema/onnx_pb.ts";
import { randomFrom } from "./random.ts";

/** The model with every ConstantOfShape of a constant shape as an initializer; matrices and kernels keep the variance of what they multiply. */
export function withRandomWeights(bytes: Uint8Array, seed: number): Uint8Array {
  const model = fromBinary(ModelProtoSchema, bytes);
  const { graph } = model;
  if (!graph) throw new Error("no graph");
  const constants = new Map<string, TensorProto>(graph.initializer.map((t) => [t.name, t]));
  for (const node of graph.node) for (const a of node.attribute) if (node.opType === "Constant" && a.name === "value" && a.t) constants.set(node.output[0] ?? "", a.t);
  const random = randomFrom(seed);
  let replaced = 0;
  graph.node = graph.node.flatMap((node) => {
    const shape = node.opType === "ConstantOfShape" ? constants.get(node.input[0] ?? "") : undefined;
    if (!shape) return [node];
    const dims = int64sOf(shape);
    const size = dims.reduce((n, d) => n * d, 1), inputs = dims.slice(1).reduce((n, d) => n * d, 1);
    const values = Float32Array.from({ length: size }, () => (dims.length < 2 ? 0.5 + random() : (2 * random() - 1) * Math.sqrt(6 / inputs)));
    graph.initializer.push(create(TensorProtoSchema, { name: node.output[0] ?? "", dims: dims.map(BigInt), dataType: 1, rawData: new Uint8Array(values.buffer) }));
    replaced++;
    return [];
  });
  if (replaced === 0) throw new Error("the model has no ConstantOfShape");
  const used = new Set(graph.node.flatMap((n) => n.input));
  graph.node = graph.node.filter((n) => n.opType !== "Constant" || used.has(n.output[0] ?? "")).map((n) => create(NodeProtoSchema, n));
  return toBinary(ModelProtoSchema, model);
}

function int64sOf(t: TensorProto): number[] {
  if (t.rawData.length) return Array.from(new BigInt64Array(Uint8Array.from(t.rawData).buffer), Number);
  return t.int64Data.map(Number);
}
