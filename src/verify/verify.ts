/**
 * Verification: the original model and its compiled form on generated inputs. The original runs in the reference
 * interpreter at least once, then in the unfused build, which is faster. A difference is traced by bisection over the
 * rewrites to the one rule at the one site that makes it; that rewrite is dropped, and said so.
 */
import { readArtifact } from "../artifact/artifact.ts";
import { evaluateDimJson } from "../core/dim-json.ts";
import { compileModel, type Compiled } from "../compiler/compile.ts";
import type { CompileOptions, SkippedRewrite } from "../compiler/options.ts";
import { DiagnosticError, fail } from "../core/diagnostic.ts";
import type { Datum } from "../core/datum.ts";
import type { Tensor as CoreTensor } from "../core/tensor.ts";
import { readModel, type ModelSource } from "../onnx/read.ts";
import { operators } from "../ops/index.ts";
import { interpretData } from "../reference/interpret.ts";
import { rules } from "../rules/index.ts";
import { load } from "../runtime/load.ts";
import type { Session } from "../runtime/session.ts";
import { datumOf, resultOf, type RunValue } from "../runtime/run-values.ts";
import { generateDatum, inputKinds, type InputKind } from "./inputs.ts";
import { leavesOf } from "./leaves.ts";
import { differenceOf, type Difference } from "./metrics.ts";
import { sizeCandidates, symbolsIn } from "./sizes.ts";

export interface Verification {
  /** What was run, and how far each result was from the original's. */
  readonly runs: readonly VerifiedRun[];
  /** What was not run, and why. */
  readonly notRun: readonly string[];
  /** Rewrites that changed a result, and are left out of the artifact. */
  readonly dropped: readonly (SkippedRewrite & { readonly difference: number })[];
  /** The largest difference allowed, as a share of an output's largest element. */
  readonly tolerance: number;
}
export interface VerifiedRun {
  readonly inputs: InputKind;
  readonly sizes: Readonly<Record<string, number>>;
  readonly against: "reference" | "unfused";
  readonly outputs: Readonly<Record<string, Difference>>;
}

/** What kernels may add by themselves: another order of float additions. */
const kernelNumerics = 1e-5;
const largestAllowed = 1e-4;

/** Compiles and verifies within `budget` seconds (the reference run is always made). Fails with OF5201 where no rewrite is to blame. */
export async function compileVerified(source: ModelSource, options: CompileOptions, budget: number): Promise<Compiled & { readonly verification: Verification }> {
  const deadline = performance.now() + 1000 * budget;
  const { onStage: _, externalWeights: _outside, ...unobserved } = options;
  const trials = await Trials.prepare(source, unobserved, deadline);
  const skip: SkippedRewrite[] = [...(options.skip ?? [])];
  const dropped: (SkippedRewrite & { difference: number })[] = [];
  for (;;) {
    const compiled = compileModel(source, { ...options, skip });
    const tolerance = toleranceOf(compiled);
    const outcome = await trials.run(compiled, tolerance);
    if (outcome.worst <= tolerance) return { ...compiled, verification: { runs: outcome.runs, notRun: trials.notRun, dropped, tolerance } };
    const culprit = await findCulprit(source, { ...unobserved, skip }, trials, tolerance);
    if (!culprit) {
      fail("OF5201", `the compiled model differs from the original by ${outcome.worst.toExponential(2)} of the largest element of '${outcome.where}', and no rewrite is to blame`, { hint: "please report the model; --enable_fusion=false may avoid it" });
    }
    skip.push(culprit);
    dropped.push({ ...culprit, difference: outcome.worst });
  }
}

function toleranceOf({ report }: Compiled): number {
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

interface Trial {
  readonly inputs: InputKind;
  readonly sizes: ReadonlyMap<string, number>;
  readonly against: "reference" | "unfused";
  readonly feeds: Readonly<Record<string, Datum>>;
  /** Its leaves, where it is no tensor. */
  readonly expected: Readonly<Record<string, CoreTensor>>;
}

/** Inputs with what the original model gives for them. */
class Trials {
  readonly #trials: readonly Trial[];
  readonly notRun: readonly string[];

  private constructor(trials: readonly Trial[], notRun: readonly string[]) {
    this.#trials = trials;
    this.notRun = notRun;
  }

  static async prepare(source: ModelSource, options: CompileOptions, deadline: number): Promise<Trials> {
    const { skip: _, fuel: _fuel, ...plain } = options;
    const { artifact } = compileModel(source, { ...plain, enableFusion: false });
    const session = await load(artifact);
    const trials: Trial[] = [], notRun: string[] = [];
    const inputs = readArtifact(artifact).manifest.inputs;
    const symbols = [...inputs.reduce((set, i) => symbolsIn(i.dims, set), new Set<string>())];
    const sizes = await workingSizes(session, artifact, sizeCandidates(symbols), symbols.length === 0 ? 1 : 2);
    if (sizes.length === 0) notRun.push(`all runs: none of the sizes tried for ${symbols.join(", ")} run`);
    for (const [n, binding] of sizes.entries()) for (const kind of inputKinds) {
      const feeds = feedsOf(artifact, binding, kind, trials.length + 1);
      if (trials.length === 0) trials.push({ inputs: kind, sizes: binding, against: "reference", feeds, expected: reference(source, options, feeds) });
      else if (performance.now() > deadline) notRun.push(`${kind} inputs at sizes ${n + 1}: the time was up`);
      else trials.push({ inputs: kind, sizes: binding, against: "unfused", feeds, expected: await run(session, feeds) });
    }
    session.dispose();
    return new Trials(trials, notRun);
  }

  /** Runs everything; the worst difference as a share of an output's largest element, infinite for wrong types or NaNs. */
  async run({ artifact, externalData }: Pick<Compiled, "artifact" | "externalData">, tolerance: number): Promise<{ readonly runs: readonly VerifiedRun[]; readonly worst: number; readonly where: string }> {
    const session = await load(artifact, { externalData: (file) => externalData[file] });
    const runs: VerifiedRun[] = [];
    let worst = 0, where = "";
    for (const t of this.#trials) {
      const results = await run(session, t.feeds);
      const outputs: Record<string, Difference> = {};
      for (const [name, expected] of Object.entries(t.expected)) {
        const actual = results[name];
        const d = actual && differenceOf(actual, expected);
        if (d) outputs[name] = d;
        const amount = !d || d.nonFinite > 0 || d.unequal > 0 ? Infinity : d.maxScaled;
        if (amount > worst) { worst = amount; where = name; }
      }
      runs.push({ inputs: t.inputs, sizes: Object.fromEntries(t.sizes), against: t.against, outputs });
      if (worst > tolerance) break;
    }
    session.dispose();
    return { runs, worst, where };
  }
}

/** Bindings under which the model runs, at most `count`. */
async function workingSizes(session: Session, artifact: Uint8Array, candidates: readonly ReadonlyMap<string, number>[], count: number): Promise<ReadonlyMap<string, number>[]> {
  const out: ReadonlyMap<string, number>[] = [];
  for (const binding of candidates) {
    if (out.length === count) break;
    try {
      await run(session, feedsOf(artifact, binding, "normal", 1));
      out.push(binding);
    } catch (e) {
      if (!(e instanceof DiagnosticError)) throw e;
    }
  }
  return out;
}

function feedsOf(artifact: Uint8Array, sizes: ReadonlyMap<string, number>, kind: InputKind, seed: number): Record<string, Datum> {
  const { inputs } = readArtifact(artifact).manifest;
  return Object.fromEntries(inputs.filter((i) => !i.default).map((input, n) => {
    const { name, dtype, dims, container } = input;
    return [name, generateDatum(container ? { dtype, container } : { dtype, shape: dims.map((d) => evaluateDimJson(d, sizes) ?? 1) }, kind, 1000 * seed + n)];
  }));
}

function reference(source: ModelSource, options: CompileOptions, feeds: Readonly<Record<string, Datum>>): Record<string, CoreTensor> {
  const { graph } = readModel(source, operators, {
    ...(options.dims ? { dims: options.dims } : {}), ...(options.inputShapes ? { inputShapes: options.inputShapes } : {}), freezeInitializers: options.freezeInitializers ?? false,
  });
  return leavesOf(interpretData(graph, feeds));
}

async function run(session: Session, feeds: Readonly<Record<string, Datum>>): Promise<Record<string, CoreTensor>> {
  const results = await session.run<Record<string, RunValue>>(Object.fromEntries(Object.entries(feeds).map(([name, d]) => [name, resultOf(d)])));
  return leavesOf(Object.fromEntries(Object.entries(results).map(([name, value]) => [name, datumOf(value)])));
}
