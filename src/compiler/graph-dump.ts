/** The graph of a stage as a dump: ONNX in protobuf's text format, GE's proto, or readable SSA text. */
import { readableText } from "../graph/readable.ts";
import { geText } from "../onnx/ge-text.ts";
import { newestOpset } from "../onnx/operators.ts";
import { leaveOutElements } from "../onnx/model-json.ts";
import { ModelProtoSchema } from "../onnx/schema/onnx_pb.ts";
import { textFormat } from "../onnx/text-format.ts";
import { modelProto } from "../onnx/write.ts";
import type { Stage } from "./stages.ts";

export type DumpFormat = "onnx" | "ge_proto" | "readable";
/** How much of an ONNX dump: everything, all but the elements of weights, or the nodes alone. */
export type DumpContent = "weights" | "types" | "nodes";
export type GraphStage = Extract<Stage, { graph: unknown }>;

/** The text; operators are spelled for the newest opset, and what it cannot say stands in its own form. */
export function dumpGraph(stage: GraphStage, format: DumpFormat, content: DumpContent): string {
  if (format === "readable") return readableText(stage.graph);
  if (format === "ge_proto") return geText(stage.graph);
  const opsets = new Map([...stage.info.opsets, ["", newestOpset]]);
  const proto = modelProto(stage.graph, { ...stage.info, opsets }, { ownForms: true, ...(stage.name === "partitioned" ? { regions: stage.regions } : {}) });
  if (proto.graph && content !== "weights") leaveOutElements(proto.graph);
  if (proto.graph && content === "nodes") { proto.graph.initializer = []; proto.graph.valueInfo = []; }
  return textFormat(ModelProtoSchema, proto);
}
