/**
 * Trials: generated inputs with what the original model gives for them. The first result is the reference
 * interpreter's, the others those of the unfused build, which is faster; where inputs hold infinities, that build
 * computes convolutions directly, since Winograd's spread them over their tiles.
 */
import { readArtifact } from "../artifact/artifact.ts";
import { compileModel, type Compiled } from "../compiler/compile.ts";
import type { CompileOptions } from "../compiler/options.ts";
import type { Datum } from "../core/datum.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { evaluateDimJson } from "../core/dim-json.ts";
import { isFloat } from "../core/dtype.ts";
import { sizeOf, toNumbers, type Tensor as CoreTensor } from "../core/tensor.ts";
import { readModel, type ModelSource } from "../onnx/read.ts";
import { operators } from "../ops/index.ts";
import { interpretData } from "../reference/interpret.ts";
import { load } from "../runtime/load.ts";
import { datumOf, resultOf, type RunValue } from "../runtime/run-values.ts";
import type { Session } from "../runtime/session.ts";
import { generateDatum, inputKinds, type InputKind } from "./inputs.ts";
import { leavesOf } from "./leaves.ts";
import { differenceOf, type Difference } from "./metrics.ts";
import { sizeCandidates, symbolsIn } from "./sizes.ts";

export interface VerifiedRun {
  readonly inputs: InputKind;
  readonly sizes: Readonly<Record<string, number>>;
  readonly against: "reference" | "unfused";
  readonly outputs: Readonly<Record<string, Difference>>;
}

/** How many trials, and until when they may be prepared; the first always is. */
export interface TrialLimits {
  /** A `performance.now()`. Default never. */
  readonly deadline?: number;
  /** Default: every kind of input at every one of the sizes, two at most. */
  readonly count?: number;
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
export class Trials {
  readonly #trials: readonly Trial[];
  readonly notRun: readonly string[];

  private constructor(trials: readonly Trial[], notRun: readonly string[]) {
    this.#trials = trials;
    this.notRun = notRun;
  }

  /** Trials of a model. */
  static async prepare(source: ModelSource, options: CompileOptions, { deadline = Infinity, count }: TrialLimits): Promise<Trials> {
    const { skip: _, fuel: _fuel, rules: _rules, customRules: _custom, ...plain } = options;
    const { artifact } = compileModel(source, { ...plain, enableFusion: false });
    const session = await load(artifact);
    let direct: Session | undefined;
    const trials: Trial[] = [], notRun: string[] = [];
    const inputs = readArtifact(artifact).manifest.inputs;
    const symbols = [...inputs.reduce((set, i) => symbolsIn(i.dims, set), new Set<string>())];
    const sizes = await workingSizes(session, artifact, sizeCandidates(symbols), symbols.length === 0 ? 1 : 2);
    if (sizes.length === 0) notRun.push(`all runs: none of the sizes tried for ${symbols.join(", ")} run`);
    else if (!sizes.some((s) => s.telling)) notRun.push(`runs that tell much: at the sizes tried${symbols.length ? ` for ${symbols.join(", ")}` : ""} results have no elements, or none that is finite`);
    const wanted = sizes.length === 0 ? 0 : (count ?? sizes.length * inputKinds.length);
    for (let i = 0; i < wanted; i++) {
      const kind = inputKinds[i % inputKinds.length] ?? "normal", n = Math.floor(i / inputKinds.length) % sizes.length, binding = sizes[n]?.binding ?? new Map();
      const feeds = feedsOf(artifact, binding, kind, trials.length + 1);
      if (trials.length === 0) trials.push({ inputs: kind, sizes: binding, against: "reference", feeds, expected: reference(source, options, feeds) });
      else if (performance.now() > deadline) notRun.push(`${kind} inputs at sizes ${n + 1}: the time was up`);
      else {
        if (kind === "special") direct ??= plain.winograd === false ? session : await load(compileModel(source, { ...plain, enableFusion: false, winograd: false }).artifact);
        trials.push({ inputs: kind, sizes: binding, against: "unfused", feeds, expected: await run(kind === "special" ? (direct ?? session) : session, feeds) });
      }
    }
    direct?.dispose();
    session.dispose();
    return new Trials(trials, notRun);
  }

  /**
   * Runs everything until a difference is above `tolerance`, which is a share of an output's largest element; wrong types
   * and NaNs in other places are infinite differences.
   */
  async run(compiled: CompiledFiles, tolerance: number, { special = compiled, only }: RunOptions = {}): Promise<Outcome> {
    const session = await open(compiled), other = special === compiled ? session : await open(special);
    const runs: VerifiedRun[] = [];
    let worst = 0, where = "", trial = 0;
    for (const [i, t] of this.#trials.entries()) {
      if (only !== undefined && only !== i) continue;
      const results = await run(t.inputs === "special" ? other : session, t.feeds);
      const outputs: Record<string, Difference> = {};
      for (const [name, expected] of Object.entries(t.expected)) {
        const actual = results[name];
        const d = actual && differenceOf(actual, expected);
        if (d) outputs[name] = d;
        const amount = !d || d.nonFinite > 0 || d.unequal > 0 ? Infinity : d.maxScaled;
        if (amount > worst) { worst = amount; where = name; trial = i; }
      }
      runs.push({ inputs: t.inputs, sizes: Object.fromEntries(t.sizes), against: t.against, outputs });
      if (worst > tolerance) break;
    }
    if (other !== session) other.dispose();
    session.dispose();
    return { runs, worst, where, trial, inputs: this.#trials[trial]?.inputs ?? "normal" };
  }
}

type CompiledFiles = Pick<Compiled, "artifact" | "externalData">;
export interface RunOptions {
  /** The build for inputs with NaN and infinities. Default: the same. */
  readonly special?: CompiledFiles;
  /** This trial alone. */
  readonly only?: number;
}
/** What trials came to. */
export interface Outcome {
  readonly runs: readonly VerifiedRun[];
  /** The largest difference, of which output, at which trial, on which kind of inputs. */
  readonly worst: number;
  readonly where: string;
  readonly trial: number;
  readonly inputs: InputKind;
}

const open = ({ artifact, externalData }: CompiledFiles): Promise<Session> => load(artifact, { externalData: (file) => externalData[file] });

interface WorkingSizes {
  readonly binding: ReadonlyMap<string, number>;
  /** Every result has elements there, and finite ones. */
  readonly telling: boolean;
}

/**
 * Bindings under which the model runs, at most `count`: those that tell something first, since an image of a pixel or two
 * leaves the deeper layers of a network nothing to compute, and what comes of nothing compares equal.
 */
async function workingSizes(session: Session, artifact: Uint8Array, candidates: readonly ReadonlyMap<string, number>[], count: number): Promise<readonly WorkingSizes[]> {
  const out: WorkingSizes[] = [];
  for (const binding of candidates) {
    if (out.filter((s) => s.telling).length === count) break;
    try {
      const results = await run(session, feedsOf(artifact, binding, "normal", 1));
      out.push({ binding, telling: Object.values(results).every(tells) });
    } catch (e) {
      if (!(e instanceof DiagnosticError)) throw e;
    }
  }
  return [...out.filter((s) => s.telling), ...out.filter((s) => !s.telling)].slice(0, count);
}

const tells = (t: CoreTensor): boolean => sizeOf(t.dims) > 0 && (!isFloat(t.dtype) || Array.from(toNumbers(t)).some(Number.isFinite));

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
  const results = await session.run<Record<string, RunValue>>(Object.fromEntries(Object.entries(feeds).map(([name, d]) => [name, resultOf(d)])), { outputs: session.outputs.map((o) => o.name) });
  return leavesOf(Object.fromEntries(Object.entries(results).map(([name, value]) => [name, datumOf(value)])));
}
