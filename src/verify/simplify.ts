/** A model in fewer operators of its own opset, and the check that it still is the same function. */
import { compileModel } from "../compiler/compile.ts";
import { optimiseModel, type Optimised, type OptimiseOptions } from "../compiler/optimise.ts";
import { fail } from "../core/diagnostic.ts";
import type { ModelSource } from "../onnx/read.ts";
import { Trials, type VerifiedRun } from "./trials.ts";
import { toleranceOf } from "./verify.ts";

export interface SimplifyOptions extends Omit<OptimiseOptions, "level"> {
  /** On how many generated inputs the result is compared with the model. Default 3. */
  readonly check?: number;
}
export interface Simplified extends Optimised {
  /** What was compared, and how far apart the results may be, as a share of an output's largest element. */
  readonly check: { readonly runs: readonly VerifiedRun[]; readonly tolerance: number };
}

/**
 * Simplifies and checks. Fails as `optimiseModel` does at level `standard`, with OF5203 where the results differ, and
 * with OF5204 where no sizes were found under which the model runs.
 */
export async function simplifyModel(source: ModelSource, { check = 3, ...options }: SimplifyOptions = {}): Promise<Simplified> {
  const simplified = optimiseModel(source, { ...options, level: "standard" });
  return { ...simplified, check: await checkAgainst(source, simplified, options, check) };
}

/** Compares a model, as the options make it, with what became of it. */
export async function checkAgainst(source: ModelSource, result: Pick<Optimised, "model" | "externalData" | "report">, options: OptimiseOptions, count: number): Promise<Simplified["check"]> {
  const tolerance = toleranceOf(result);
  if (count === 0) return { runs: [], tolerance };
  const { dims, inputShapes, freezeInitializers, outputs, outputTypes } = options;
  const trials = await Trials.prepare(source, { ...(dims ? { dims } : {}), ...(inputShapes ? { inputShapes } : {}), ...(freezeInitializers ? { freezeInitializers } : {}), ...(outputs ? { outputs } : {}), ...(outputTypes ? { outputTypes } : {}) }, { count });
  const compiled = compileModel({ model: result.model, externalData: (file) => result.externalData[file] }, { enableFusion: false });
  const { runs, worst, where } = await trials.run(compiled, tolerance);
  if (runs.length === 0) fail("OF5204", "the result could not be checked: the model runs at none of the sizes tried", { hint: "give the sizes of its inputs, or check nothing" });
  if (worst > tolerance) fail("OF5203", `the resulting model differs by ${worst.toExponential(2)} of the largest element of '${where}' on ${runs.at(-1)?.inputs ?? ""} inputs`, { hint: "please report the model; without fusion, only exact steps are taken" });
  return { runs, tolerance };
}
