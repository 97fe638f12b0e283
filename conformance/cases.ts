/**
 * Which cases there are: the folders of node tests as the ONNX standard ships them, what operator each one tests, and
 * whether it is of the part that is counted by itself (opset up to 26, plain tensors only).
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { ModelProtoSchema, type ModelProto } from "../src/onnx/schema/onnx_pb.ts";
import { nodeCasesFolder } from "../test/support/node-cases.ts";

/** Where Debian's package libonnx-testdata puts the node tests. */
const debianFolder = "/usr/share/libonnx-testdata/data/node";

export interface CaseInfo {
  readonly name: string;
  /** `domain:type` of the operator that the case tests. */
  readonly operator: string;
  /** Opset up to 26, and all inputs and outputs tensors of the types that typed arrays hold, or strings. */
  readonly plain: boolean;
}

/** The folder of cases: the one given, the test data's, or Debian's; undefined where there is none. */
export function casesFolder(given: string | undefined): string | undefined {
  if (given === undefined) return nodeCasesFolder() ?? (existsSync(debianFolder) ? debianFolder : undefined);
  const nested = join(given, "node");
  return existsSync(nested) ? nested : given;
}

/** All cases of a folder, in order of name. */
export function listCases(folder: string): CaseInfo[] {
  const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, "model.onnx"))).sort();
  const models = new Map(names.map((name) => [name, fromBinary(ModelProtoSchema, readFileSync(join(folder, name, "model.onnx")))]));
  return names.map((name) => {
    const model = models.get(name), original = models.get(name.replace(/_expanded.*$/, "")) ?? model;
    return { name, operator: original ? testedOperator(original) : "", plain: model !== undefined && isPlain(model) };
  });
}

/** The operator of a case's model: of its nodes, the one that is not there only to feed another. */
function testedOperator({ graph }: ModelProto): string {
  const nodes = graph?.node ?? [];
  const last = nodes.length === 1 ? nodes[0] : nodes.find((n) => n.opType.startsWith("Sequence") || n.opType.startsWith("Optional")) ?? nodes.findLast((n) => n.opType !== "Identity" && n.opType !== "Constant") ?? nodes[0];
  return `${last?.domain === "ai.onnx" ? "" : last?.domain ?? ""}:${last?.opType ?? ""}`;
}

/** float32, the integers of 8 to 64 bits, string, bool, float16, float64, uint32, uint64 by their numbers in the standard. */
const plainTypes = { first: 1, last: 13 };
function isPlain(model: ModelProto): boolean {
  const opset = model.opsetImport.find((o) => o.domain === "" || o.domain === "ai.onnx")?.version ?? 0n;
  return opset <= 26n && [...(model.graph?.input ?? []), ...(model.graph?.output ?? [])].every(({ type }) =>
    type?.value.case === "tensorType" && type.value.value.elemType >= plainTypes.first && type.value.value.elemType <= plainTypes.last);
}

/** Why something stopped, in one line. */
export function reasonOf(error: unknown): string {
  if (error instanceof DiagnosticError) return error.diagnostics.map((d) => `${d.code}: ${d.message}`)[0] ?? error.message;
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}
