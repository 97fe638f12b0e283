/** onnxfuse: compiles ONNX models, and says what it did. */
import { compileModel, type Compiled } from "../compiler/compile.ts";
import { optimiseModel, type Optimised } from "../compiler/optimise.ts";
import type { CompileOptions as CompilerOptions } from "../compiler/options.ts";
import type { ModelSource } from "../onnx/read.ts";

export interface CompileOptions extends CompilerOptions {}
export type CompileResult = Compiled;

/**
 * Compiles a model into an artifact for `onnxfuse/runtime`. Sizes that neither the model nor the options fix stay
 * symbolic: one artifact serves them all. Throws a DiagnosticError for what the caller can mend.
 */
export async function compile(model: ModelSource, options: CompileOptions = {}): Promise<CompileResult> {
  return compileModel(model, options);
}

/** Fuses a model into ONNX that any runtime loads: rewrites in standard operators, regions as model-local functions. */
export const optimise = (model: ModelSource, options: CompileOptions = {}): Optimised => optimiseModel(model, options);

export type { Optimised } from "../compiler/optimise.ts";
export type { Counts, Detail, RegionTraffic, Report } from "../compiler/report.ts";
export type { FusionSwitches } from "../compiler/switches.ts";
export type { ModelSource } from "../onnx/read.ts";
export type { Site } from "../rewrite/site.ts";
export { DiagnosticError, type Diagnostic } from "../core/diagnostic.ts";
