/**
 * Verification: the original model and its compiled form on generated inputs. The original runs in the reference
 * interpreter at least once, then in the unfused build, which is faster. A difference is traced by bisection over the
 * rewrites to the one rule at the one site that makes it; that rewrite is dropped, and said so.
 */
import { compileModel, type Compiled } from "../compiler/compile.ts";
import type { CompileOptions, SkippedRewrite } from "../compiler/options.ts";
import { fail } from "../core/diagnostic.ts";
import type { ModelSource } from "../onnx/read.ts";
import { rules } from "../rules/index.ts";
import { Trials, type VerifiedRun } from "./trials.ts";

export interface Verification {
  /** What was run, and how far each result was from the original's. */
  readonly runs: readonly VerifiedRun[];
  /** What was not run, and why. */
  readonly notRun: readonly string[];
  /** Rewrites that changed a result, and are left out of the artifact. */
  readonly dropped: readonly (SkippedRewrite & { readonly difference: number })[];
  /** The largest difference allowed, as a share of an output's largest element. */
  readonly tolerance: number;
  /** Where weights are held in fewer bits: what that changes, in runs of the result. `runs` are then those of the same program with all bits. */
  readonly narrowed?: { readonly runs: readonly VerifiedRun[]; readonly worst: number; readonly where: string };
}
/** What kernels may add by themselves: another order of float additions. */
const kernelNumerics = 1e-5;
const largestAllowed = 1e-4;

/** Compiles and verifies within `budget` seconds (the reference run is always made). Fails with OF5201 where no rewrite is to blame. */
export async function compileVerified(source: ModelSource, options: CompileOptions, budget: number): Promise<Compiled & { readonly verification: Verification }> {
  const deadline = performance.now() + 1000 * budget;
  const { onStage: _, externalWeights: _outside, weights, ...unobserved } = options;
  const trials = await Trials.prepare(source, unobserved, { deadline });
  const skip: SkippedRewrite[] = [...(options.skip ?? [])];
  const dropped: (SkippedRewrite & { difference: number })[] = [];
  for (;;) {
    const compiled = compileModel(source, weights ? { ...unobserved, skip } : { ...options, skip });
    const tolerance = toleranceOf(compiled);
    const outcome = await trials.run(compiled, tolerance);
    const verification = { runs: outcome.runs, notRun: trials.notRun, dropped, tolerance };
    if (outcome.worst <= tolerance && !weights) return { ...compiled, verification };
    if (outcome.worst <= tolerance) {
      const narrow = compileModel(source, { ...options, skip });
      return { ...narrow, verification: { ...verification, narrowed: await trials.run(narrow, Infinity) } };
    }
    const culprit = await findCulprit(source, { ...unobserved, skip }, trials, tolerance);
    if (!culprit) {
      fail("OF5201", `the compiled model differs from the original by ${outcome.worst.toExponential(2)} of the largest element of '${outcome.where}', and no rewrite is to blame`, { hint: "please report the model; --enable_fusion=false may avoid it" });
    }
    skip.push(culprit);
    dropped.push({ ...culprit, difference: outcome.worst });
  }
}

/** What the rewrites that were done may add up to. */
export function toleranceOf({ report }: Pick<Compiled, "report">): number {
  const bounds = report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => {
    const numerics = rules.find((r) => r.name === s.name)?.numerics;
    return numerics === undefined || numerics.kind === "exact" ? 0 : numerics.bound;
  });
  return Math.min(largestAllowed, bounds.reduce((a, b) => a + b, kernelNumerics));
}

/** The first rewrite with which the results differ; undefined where they differ without any. */
async function findCulprit(source: ModelSource, options: CompileOptions, trials: Trials, tolerance: number): Promise<SkippedRewrite | undefined> {
  const differs = async (fuel: number): Promise<boolean> => (await trials.run(compileModel(source, { ...options, fuel }), tolerance)).worst > tolerance;
  const fired = (fuel: number): readonly SkippedRewrite[] => compileModel(source, { ...options, fuel }).report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => ({ rule: s.name, at: s.at }));
  if (await differs(0)) return undefined;
  let good = 0, bad = fired(Infinity).length + 1;
  while (!(await differs(bad))) bad *= 2;
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (await differs(middle)) bad = middle;
    else good = middle;
  }
  const before = fired(good);
  return fired(bad).find((s) => !before.some((b) => b.rule === s.rule && b.at === s.at));
}
