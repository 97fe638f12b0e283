/** `--mode=3`: checks a model without compiling it, and reports on every operator as GE's `check_result.json` does. */
import { DiagnosticError, type Diagnostic } from "../core/diagnostic.ts";
import { decodeModel } from "../onnx/decode.ts";
import { nameNodes } from "../onnx/order.ts";
import { readModel, type ModelSource } from "../onnx/read.ts";
import { operators } from "../ops/index.ts";

interface Cause { readonly code: string; readonly message: string }
interface OperatorResult { readonly name: string; readonly type: string; readonly result: "success" | "failed"; readonly cause: readonly Cause[] }
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
  const problems = problemsOf(source);
  const known = nodesOf(source);
  const causes = new Map<string, Cause[]>();
  for (const d of problems) {
    const node = d.place?.node ?? "";
    if (!known.has(node)) known.set(node, "");
    causes.set(node, [...(causes.get(node) ?? []), { code: d.code, message: d.message }]);
  }
  const op = [...known].map(([node, type]): OperatorResult => ({ name: node, type, result: causes.has(node) ? "failed" : "success", cause: causes.get(node) ?? [] }));
  const failed = op.filter((o) => o.result === "failed").length;
  write({ name, result: problems.length ? "failed" : "success", total: op.length, pass: op.length - failed, fail: failed, op });
  return problems.length ? problems : undefined;
}

function problemsOf(source: ModelSource): readonly Diagnostic[] {
  try {
    readModel(source, operators);
    return [];
  } catch (e) {
    if (e instanceof DiagnosticError) return e.diagnostics;
    throw e;
  }
}

/** Operator types of the main graph's nodes, by name; none where the file is not a model. */
function nodesOf(source: ModelSource): Map<string, string> {
  try {
    const { graph } = decodeModel(source instanceof Uint8Array ? source : source.model);
    return new Map(nameNodes(graph.node).map((n) => [n.name, n.proto.opType]));
  } catch (e) {
    if (e instanceof DiagnosticError) return new Map();
    throw e;
  }
}
