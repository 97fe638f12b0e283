/**
 * Which element types an operator takes in its first input: one of its cases is run again with that type (and that of
 * every input that has the same) exchanged for each other one. A type counts where it is accepted and compiled code gives
 * what the reference interpreter gives.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { isTensor, type Datum } from "../src/core/datum.ts";
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { ModelProtoSchema } from "../src/onnx/schema/onnx_pb.ts";
import { nodeCaseMismatch } from "../test/conformance/tolerance.ts";
import type { NodeCase } from "../test/support/node-cases.ts";
import { runModel } from "./run-case.ts";

/** Types, in the standard's order; undefined where the case cannot be changed (its first input is no tensor). */
export async function elementTypes(node: NodeCase): Promise<DType[] | undefined> {
  const [set] = node.dataSets(), model = fromBinary(ModelProtoSchema, node.bytes), first = model.graph?.input[0]?.name ?? "", own = set?.feeds[first];
  if (!set || own === undefined || !isTensor(own)) return undefined;
  const accepted: DType[] = [];
  for (const dtype of Object.keys(dtypes) as DType[]) {
    if (dtype === own.dtype || ((dtype === "string") === (own.dtype === "string") && (await works(node, set.feeds, own.dtype, dtype)))) accepted.push(dtype);
  }
  return accepted;
}

async function works(node: NodeCase, feeds: Readonly<Record<string, Datum>>, from: DType, to: DType): Promise<boolean> {
  const bytes = retyped(node.bytes, dtypes[from].onnx, dtypes[to].onnx);
  const converted = Object.fromEntries(Object.entries(feeds).map(([name, d]) => [name, isTensor(d) && d.dtype === from ? convert(d, to) : d]));
  try {
    const expected = await runModel(bytes, converted, "reference"), actual = await runModel(bytes, converted, "fused");
    return Object.entries(expected).every(([name, d]) => nodeCaseMismatch(actual[name], d) === undefined);
  } catch {
    return false;
  }
}

/** Floats that become integers are scaled first where all would be 0; unsigned types take magnitudes. */
function convert(t: Tensor, to: DType): Tensor {
  const values = Array.from(toNumbers(t)), unsigned = dtypes[to].kind === "uint" || dtypes[to].kind === "bool";
  const whole = isFloat(t.dtype) && !isFloat(to) ? values.map((v) => Math.round(v * 3)) : values;
  return fromNumbers(to, t.dims, whole.map((v) => (unsigned ? Math.abs(v) : v)));
}

/** The model with one element type exchanged in its inputs, and outputs whose types are left to inference. */
function retyped(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const model = fromBinary(ModelProtoSchema, bytes), { graph } = model;
  if (!graph) return bytes;
  for (const { type } of graph.input) if (type?.value.case === "tensorType" && type.value.value.elemType === from) type.value.value.elemType = to;
  for (const output of graph.output) delete output.type;
  graph.valueInfo = [];
  return toBinary(ModelProtoSchema, model);
}
