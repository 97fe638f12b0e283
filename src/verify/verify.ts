/**
 * Verification: the original model and its compiled form on generated inputs. The original runs in the reference
 * interpreter at least once, then in the unfused build, which is faster. A difference is traced by bisection over the
 * rewrites to the one rule at the one site that makes it; that rewrite is dropped, and said so.
 */
import { compileModel, type Compiled } from "../compiler/compile.ts";
import type { CompileOptions, SkippedRewrite } from "../compiler/options.ts";
import { fail } from "../core/diagnostic.ts";
import type { ModelSource } from "../onnx/read.ts";
import type { Site } from "../rewrite/site.ts";
import type { InputKind } from "./inputs.ts";
import { Trials, type Outcome, type VerifiedRun } from "./trials.ts";

export interface Verification {
  /** What was run, and how far each result was from the original's. */
  readonly runs: readonly VerifiedRun[];
  /** What was not run, and why. */
  readonly notRun: readonly string[];
  /** Rewrites that changed a result, and are left out of the artifact. */
  readonly dropped: readonly DroppedRewrite[];
  /** Every rewrite that was tried, in the order of the report: those that stayed, then those that were dropped. */
  readonly sites: readonly VerifiedSite[];
  /** The largest difference allowed, as a share of an output's largest element. */
  readonly tolerance: number;
  /** Where weights are held in fewer bits: what that changes, in runs of the result. `runs` are then those of the same program with all bits. */
  readonly narrowed?: Outcome;
}
export interface DroppedRewrite extends SkippedRewrite {
  /** How far an output was off with it, as a share of its largest element; infinite for NaN in other places. */
  readonly difference: number;
  readonly inputs: InputKind;
  readonly output: string;
}
/** A rewrite at its site. */
export interface VerifiedSite {
  readonly rule: string;
  readonly at: string;
  readonly outcome: "kept" | "dropped";
  /** How far the rule says that it may move a result; 0 for exact ones. */
  readonly bound: number;
}
/** What kernels may add by themselves: another order of float additions. */
const kernelNumerics = 1e-5;
/** More is never put down to rounding. */
const largestAllowed = 1e-4;
/** What rounding may come to in another order, where the model itself magnifies it: of what it comes to without any rewrite. */
const reordered = 2;

/** Compiles and verifies within `budget` seconds (the reference run is always made). Fails with OF5201 where no rewrite is to blame. */
export async function compileVerified(source: ModelSource, options: CompileOptions, budget: number): Promise<Compiled & { readonly verification: Verification }> {
  const deadline = performance.now() + 1000 * budget;
  const { onStage: _, externalWeights: _outside, weights, ...unobserved } = options;
  const trials = await Trials.prepare(source, unobserved, { deadline });
  const skip: SkippedRewrite[] = [...(options.skip ?? [])];
  const dropped: DroppedRewrite[] = [];
  let kernels = kernelNumerics;
  for (;;) {
    const compiled = compileModel(source, weights ? { ...unobserved, skip } : { ...options, skip });
    const tolerance = toleranceOf(compiled, kernels);
    const { outcome, direct } = await judge(compiled, { ...unobserved, skip }, source, trials, tolerance);
    if (outcome.worst <= tolerance) {
      const notRun = [...trials.notRun, ...(direct ? ["special inputs on convolutions by Winograd's algorithm, where an infinity spreads over its tile: direct convolutions were run on them instead"] : [])];
      const verification = { runs: outcome.runs, notRun, dropped, sites: verdicts(compiled.report.sites, dropped), tolerance };
      if (!weights) return { ...compiled, verification };
      const narrow = compileModel(source, { ...options, skip }), special = direct ? { special: compileModel(source, { ...unobserved, weights, skip, winograd: false }) } : {};
      return { ...narrow, verification: { ...verification, narrowed: await trials.run(narrow, Infinity, special) } };
    }
    const culprit = await findCulprit(source, { ...unobserved, skip }, trials, outcome, tolerance);
    if (!culprit) {
      const alone = kernels === kernelNumerics ? await roundingAlone(source, unobserved, trials) : Infinity;
      if (alone <= largestAllowed) { kernels = Math.min(largestAllowed, reordered * alone); continue; }
      fail("OF5201", `the compiled model differs from the original by ${outcome.worst.toExponential(2)} of the largest element of '${outcome.where}', and no rewrite is to blame`, { hint: "please report the model; --enable_fusion=false may avoid it" });
    }
    const { worst: difference, inputs, where: output } = outcome;
    const reason = difference === Infinity ? `with it '${output}' has NaN or infinities in other places, on ${inputs} inputs` : `with it '${output}' differs by ${difference.toExponential(1)} of its largest element, on ${inputs} inputs`;
    skip.push({ ...culprit, reason });
    dropped.push({ ...culprit, difference, inputs, output });
  }
}

/** Runs the trials; those with infinities once more with direct convolutions, where that makes the difference. */
async function judge(compiled: Compiled, options: CompileOptions, source: ModelSource, trials: Trials, tolerance: number): Promise<{ readonly outcome: Outcome; readonly direct: boolean }> {
  const outcome = await trials.run(compiled, tolerance);
  if (outcome.worst <= tolerance || outcome.inputs !== "special" || options.winograd === false) return { outcome, direct: false };
  const special = compileModel(source, { ...options, winograd: false });
  return { outcome: await trials.run(compiled, tolerance, { special }), direct: true };
}

function verdicts(sites: readonly Site[], dropped: readonly DroppedRewrite[]): VerifiedSite[] {
  const kept = sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map(({ name, at, bound = 0 }): VerifiedSite => ({ rule: name, at, outcome: "kept", bound }));
  return [...kept, ...dropped.map(({ rule, at }): VerifiedSite => ({ rule, at, outcome: "dropped", bound: 0 }))];
}

/** What the rewrites that were done may add up to, over what kernels add. */
export function toleranceOf({ report }: Pick<Compiled, "report">, kernels = kernelNumerics): number {
  return Math.min(largestAllowed, report.sites.reduce((sum, s) => sum + (s.kind === "rule" && s.outcome === "fired" ? (s.bound ?? 0) : 0), kernels));
}

/** How far results are from the reference's where nothing is rewritten: a model fed large values may magnify every rounding. */
async function roundingAlone(source: ModelSource, options: CompileOptions, trials: Trials): Promise<number> {
  const special = compileModel(source, { ...options, fuel: 0, winograd: false });
  return (await trials.run(compileModel(source, { ...options, fuel: 0 }), Infinity, { special })).worst;
}

/** The first rewrite with which the failing trial differs; undefined where it differs without any. */
async function findCulprit(source: ModelSource, options: CompileOptions, trials: Trials, { trial, inputs }: Outcome, tolerance: number): Promise<SkippedRewrite | undefined> {
  const tried = new Map<number, { readonly differs: boolean; readonly fired: readonly SkippedRewrite[] }>();
  const attempt = async (fuel: number): Promise<{ readonly differs: boolean; readonly fired: readonly SkippedRewrite[] }> => {
    const known = tried.get(fuel);
    if (known) return known;
    const compiled = compileModel(source, { ...options, fuel, ...(inputs === "special" ? { winograd: false } : {}) });
    const { worst } = await trials.run(compiled, tolerance, { only: trial });
    const made = { differs: worst > tolerance, fired: compiled.report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").flatMap((s) => Array.from({ length: s.times ?? 1 }, () => ({ rule: s.name, at: s.at }))) };
    tried.set(fuel, made);
    return made;
  };
  if ((await attempt(0)).differs) return undefined;
  let good = 0, bad = 1;
  for (; !(await attempt(bad)).differs; bad *= 2) {
    if (bad > mostRewrites) return undefined;
    good = bad;
  }
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if ((await attempt(middle)).differs) bad = middle;
    else good = middle;
  }
  const before = [...(await attempt(good)).fired];
  return (await attempt(bad)).fired.find((s) => {
    const at = before.findIndex((b) => b.rule === s.rule && b.at === s.at);
    if (at >= 0) before.splice(at, 1);
    return at < 0;
  });
}
/** More than any model has: a difference that no number of rewrites shows is not a rewrite's. */
const mostRewrites = 2 ** 20;
