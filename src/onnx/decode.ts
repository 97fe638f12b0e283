/**
 * Bytes → ModelProto. Refuses what is not a whole ONNX model before anything in it is believed. Fields of bytes are
 * views of the file, not copies.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { fail } from "../core/diagnostic.ts";
import { ModelProtoSchema, type GraphProto, type ModelProto } from "./schema/onnx_pb.ts";

/** IR versions before 3 lack opset imports. */
const oldestIr = 3n;

/** Fails with OF2001 (not ONNX, or damaged) or OF2002 (IR version). */
export function decodeModel(bytes: Uint8Array): ModelProto & { graph: GraphProto } {
  if (bytes.length === 0) fail("OF2001", "the model is empty");
  const model = parse(bytes);
  const { graph } = model;
  if (!graph || model.irVersion <= 0n || (graph.node.length === 0 && graph.output.length === 0))
    fail("OF2001", "this is not an ONNX model", { hint: "give the .onnx file itself, not an archive or a pointer file" });
  if (model.irVersion < oldestIr)
    fail("OF2002", `IR version ${model.irVersion} is older than ${oldestIr}`, { hint: "convert the model with onnx.version_converter" });
  if (model.opsetImport.length === 0)
    fail("OF2001", "the model imports no operator set, so it is damaged or cut off");
  return Object.assign(model, { graph });
}

function parse(bytes: Uint8Array): ModelProto {
  try {
    return fromBinary(ModelProtoSchema, bytes);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return fail("OF2001", `this is not an ONNX model, or it is cut off: ${error.message}`, { hint: "check that the file was downloaded in full" });
  }
}
