/** Models in protobuf's JSON form, without the elements of their weights. */
import { clearField, toJson } from "@bufbuild/protobuf";
import type { OpDef } from "../graph/op.ts";
import { decodeModel } from "./decode.ts";
import { readModel, type ModelSource } from "./read.ts";
import { ModelProtoSchema, TensorProtoSchema, type GraphProto, type TensorProto } from "./schema/onnx_pb.ts";
import { writeType } from "./type-proto.ts";

/** `shapes` adds the inferred type of every value. Fails with OF2xxx. */
export function modelJson(source: Exclude<ModelSource, Uint8Array>, operators: readonly OpDef[], shapes: boolean): unknown {
  const proto = decodeModel(source.model);
  if (shapes) proto.graph.valueInfo = readModel(source, operators).graph.nodes.flatMap((n) => n.outputs.map((v) => writeType(v.name, v.type)));
  leaveOutElements(proto.graph);
  return toJson(ModelProtoSchema, proto);
}

/** Takes the elements out of every tensor of a graph and its subgraphs; names, types and sizes stay. */
export function leaveOutElements(graph: GraphProto): void {
  for (const t of graph.initializer) clear(t);
  for (const node of graph.node) for (const a of node.attribute) {
    for (const t of a.t ? [a.t, ...a.tensors] : a.tensors) clear(t);
    for (const g of a.g ? [a.g, ...a.graphs] : a.graphs) leaveOutElements(g);
  }
}

function clear(tensor: TensorProto): void {
  clearField(tensor, TensorProtoSchema.field.rawData);
  for (const list of [tensor.floatData, tensor.int32Data, tensor.int64Data, tensor.doubleData, tensor.uint64Data, tensor.stringData]) list.length = 0;
}
