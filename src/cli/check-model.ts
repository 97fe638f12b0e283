/** `--mode=3`: checks a model without compiling it, and reports on every operator as GE's `check_result.json` does. */
import { DiagnosticError, type Diagnostic } from "../core/diagnostic.ts";
import { readModel, type ModelSource } from "../onnx/read.ts";
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
    const op = [...info.nodeTypes].map(([node, type]): OperatorResult => ({ name: node, type, result: "success", cause: [] }));
    write({ name, result: "success", total: op.length, pass: op.length, fail: 0, op });
    return undefined;
  } catch (e) {
    if (!(e instanceof DiagnosticError)) throw e;
    const op = e.diagnostics.map((d): OperatorResult => ({ name: d.place?.node ?? "", type: d.place?.field ?? "", result: "failed", cause: [{ code: d.code, message: d.message }] }));
    write({ name, result: "failed", total: op.length, pass: 0, fail: op.length, op });
    return e.diagnostics;
  }
}
