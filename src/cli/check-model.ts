/** `--mode=3`: checks a model without compiling it, and reports on every operator as GE's `check_result.json` does. */
import { DiagnosticError, type Diagnostic } from "../core/diagnostic.ts";
import { decodeModel } from "../onnx/decode.ts";
import { nameNodes, subgraphProtos } from "../onnx/order.ts";
import { readModel, type ModelSource } from "../onnx/read.ts";
import type { NodeProto } from "../onnx/schema/onnx_pb.ts";
import { operators } from "../ops/index.ts";

interface OperatorResult { readonly name: string; readonly type: string; readonly result: "success" | "failed"; readonly cause: readonly { readonly code: string; readonly message: string }[] }
export interface CheckResult {
  readonly name: string;
  readonly result: "success" | "failed";
  readonly total: number;
  readonly pass: number;
  readonly fail: number;
  readonly op: readonly OperatorResult[];
}

/** Checks a model and hands the result to `write`; the diagnostics when it failed. */
export function checkModel(source: ModelSource, name: string, write: (result: CheckResult) => void): readonly Diagnostic[] | undefined {
  try {
    const { info } = readModel(source, operators);
    write(resultOf(name, info.nodeTypes, []));
    return undefined;
  } catch (e) {
    if (!(e instanceof DiagnosticError)) throw e;
    write(resultOf(name, nodesOf(source), e.diagnostics));
    return e.diagnostics;
  }
}

/** Every node with what is wrong with it; what concerns no node stands under an entry without a name. */
function resultOf(name: string, nodes: ReadonlyMap<string, string>, diagnostics: readonly Diagnostic[]): CheckResult {
  const causes = new Map<string, { code: string; message: string }[]>();
  for (const { code, message, place } of diagnostics) {
    const node = place?.node ?? "";
    causes.set(node, [...(causes.get(node) ?? []), { code, message }]);
  }
  const listed = new Map([...nodes, ...[...causes.keys()].filter((node) => !nodes.has(node)).map((node): [string, string] => [node, ""])]);
  const op = [...listed].map(([node, type]): OperatorResult => ({ name: node, type, result: causes.has(node) ? "failed" : "success", cause: causes.get(node) ?? [] }));
  return { name, result: causes.size ? "failed" : "success", total: op.length, pass: op.length - causes.size, fail: causes.size, op };
}

/** Names and types of a model's nodes, as far as the file can be decoded. */
function nodesOf(source: ModelSource): ReadonlyMap<string, string> {
  try {
    return new Map(allNodes(decodeModel(source instanceof Uint8Array ? source : source.model).graph.node));
  } catch (e) {
    if (e instanceof DiagnosticError) return new Map();
    throw e;
  }
}
const allNodes = (nodes: readonly NodeProto[]): [string, string][] =>
  nameNodes(nodes).flatMap(({ name, proto }) => [[name, proto.opType] satisfies [string, string], ...subgraphProtos(proto.attribute).flatMap((g) => allNodes(g.node))]);
