/** onnxfuse: compiles ONNX models, and says what it did. */
import { checkOptions, checkSource } from "../compiler/check-options.ts";
import { compileModel, type Compiled } from "../compiler/compile.ts";
import { optimiseModel, type Optimised, type OptimiseOptions } from "../compiler/optimise.ts";
import type { CompileOptions as CompilerOptions } from "../compiler/options.ts";
import type { ModelSource } from "../onnx/read.ts";
import { simplifyModel, type Simplified, type SimplifyOptions } from "../verify/simplify.ts";
import { compileVerified, type Verification } from "../verify/verify.ts";

export interface CompileOptions extends CompilerOptions {
  /** Compares the result with the original model on generated inputs, and drops rewrites that change it. Default false. */
  readonly verify?: boolean;
  /** Seconds that verification may take. Default 60. */
  readonly verifyBudget?: number;
}
export interface CompileResult extends Compiled {
  /** What was verified, where it was asked for. */
  readonly verification?: Verification;
}

/**
 * Compiles a model into an artifact for `onnxfuse/runtime`. Sizes that neither the model nor the options fix stay
 * symbolic: one artifact serves them all. Throws a DiagnosticError for what the caller can mend.
 */
export async function compile(model: ModelSource, options: CompileOptions = {}): Promise<CompileResult> {
  checkSource(model);
  checkOptions(options);
  const { verify = false, verifyBudget = 60, ...rest } = options;
  return verify ? compileVerified(model, rest, verifyBudget) : compileModel(model, rest);
}

/** Fuses a model into ONNX that any runtime loads: rewrites in standard operators, and at level `functions`, the default, regions as model-local functions. */
export function optimise(model: ModelSource, options: OptimiseOptions = {}): Optimised {
  checkSource(model);
  checkOptions(options);
  return optimiseModel(model, options);
}

/**
 * Simplifies a model into ONNX of the same opset with fewer nodes, never more, and compares the two on generated inputs
 * (`check`, default 3). Throws a DiagnosticError for what the caller can mend, and where the results differ.
 */
export async function simplify(model: ModelSource, options: SimplifyOptions = {}): Promise<Simplified> {
  checkSource(model);
  checkOptions(options);
  return simplifyModel(model, options);
}

export { proveCustomRules, proveRules } from "../verify/prove-rule.ts";
export type { CounterExample, Proof } from "../verify/proof.ts";
export * from "./rules.ts";
export type { Simplified, SimplifyOptions } from "../verify/simplify.ts";
export type { OperatorCounts } from "../onnx/operator-counts.ts";
export type { Optimised, OptimiseOptions } from "../compiler/optimise.ts";
export type { Counts, Detail, RegionTraffic, Report } from "../compiler/accounts/report.ts";
export type { FusionSwitches } from "../compiler/switches.ts";
export type { ModelSource } from "../onnx/read.ts";
export type { Verification } from "../verify/verify.ts";
export type { Site } from "../rewrite/site.ts";
export { DiagnosticError, type Diagnostic } from "../core/diagnostic.ts";
