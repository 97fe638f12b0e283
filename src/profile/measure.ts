/**
 * Times every kernel of a program within its runs: the program taken apart and the program as it is take turns, and every
 * step is timed between two readings of the clock, so caches are as in a real run. Each kernel is put beside what the
 * machine allows for its work.
 */
import { attachWeights } from "../artifact/external-weights.ts";
import { readArtifact } from "../artifact/artifact.ts";
import type { KernelWork } from "../compiler/accounts/kernel-work.ts";
import { evaluateDimJson, type DimJson } from "../core/dim-json.ts";
import { load, type Feeds, type Session } from "../runtime/index.ts";
import { takeApart, type ApartStep } from "./apart.ts";
import { cacheBytes, measurePeaks, type Peaks } from "./peaks.ts";

/** What keeps a kernel from being faster: arithmetic, reading from the cache, or from memory. */
export type Bound = "compute" | "cache" | "memory";

export interface StepProfile extends ApartStep {
  /** What it has to do, at the sizes that were run; absent for host operators and where the artifact holds no report. */
  readonly work?: { readonly kind: string; readonly nodes: readonly string[]; readonly operations: number; readonly bytes: number; readonly inputs: readonly string[]; readonly outputs: readonly string[]; /** Its products are of integers. */ readonly integer?: boolean };
  /** Times it ran in a run, on average. */
  readonly count: number;
  /** Microseconds of one call. */
  readonly min: number;
  readonly mean: number;
  readonly max: number;
  /** Microseconds in a run, on average, and its share of all steps'. */
  readonly total: number;
  readonly share: number;
  /** At its least time. */
  readonly gflops?: number;
  readonly gbs?: number;
  readonly bound?: Bound;
  /** The least time that the bound allows, as a share of the least time measured. */
  readonly attained?: number;
}
/** One step of a run as it happened; microseconds from the run's start. */
export interface Occurrence { readonly step: number; readonly start: number; readonly duration: number }

export interface Profile {
  readonly runs: number;
  /** Microseconds of whole runs of the program as it is, copies in and out included. */
  readonly whole: { readonly min: number; readonly mean: number };
  /** Of the steps' mean times, and of two readings of the clock with nothing between. */
  readonly sum: number;
  readonly clock: number;
  readonly peaks: Peaks;
  /** In the order of the program. */
  readonly steps: readonly StepProfile[];
  /** The run whose steps took least together. */
  readonly timeline: readonly Occurrence[];
}

export interface ProfileOptions {
  readonly runs: number;
  readonly warmup: number;
  readonly externalData?: (file: string) => Uint8Array | undefined;
  readonly onProgress?: (text: string) => void;
}

/** Profiles an artifact. `feedsFor` gives what to feed a session of it. */
export async function profileArtifact(bytes: Uint8Array, feedsFor: (session: Session) => Feeds, options: ProfileOptions): Promise<Profile> {
  const { runs, warmup, onProgress = () => undefined } = options;
  const artifact = await attachWeights(readArtifact(bytes), options.externalData);
  const apart = takeApart(artifact), timed = await load(apart.artifact);
  const plain = await load(bytes, options.externalData ? { externalData: options.externalData } : {});
  const feeds = feedsFor(plain);
  const times = apart.steps.map((): number[] => []), whole: number[] = [];
  let timeline: readonly Occurrence[] = [], least = Infinity;
  for (let i = 0; i < warmup + runs; i++) {
    onProgress(i < warmup ? `warming up, ${i + 1} of ${warmup}` : `timing, ${i - warmup + 1} of ${runs}`);
    const begin = performance.now();
    await plain.run(feeds);
    const end = performance.now(), occurrences = await observed(timed, feeds);
    if (i < warmup) continue;
    whole.push(1000 * (end - begin));
    for (const o of occurrences) times[o.step]?.push(o.duration);
    const sum = occurrences.reduce((n, o) => n + o.duration, 0);
    if (sum < least) { least = sum; timeline = occurrences; }
  }
  onProgress("measuring the machine");
  const peaks = await measurePeaks();
  plain.dispose();
  timed.dispose();
  const totals = times.map((t) => t.reduce((a, b) => a + b, 0) / runs), sum = totals.reduce((a, b) => a + b, 0);
  const works = worksOf(artifact.report()), symbols = symbolsOf(artifact.manifest.inputs, feeds);
  const steps = apart.steps.map((step, i): StepProfile => {
    const list = times[i] ?? [], total = totals[i] ?? 0, min = leastOf(list);
    const work = works.get(step.name), sized = work && step.kind === "kernel" ? atSizes(work, symbols) : undefined;
    return {
      ...step, count: list.length / runs, min, mean: list.length ? (total * runs) / list.length : 0, max: list.reduce((a, b) => Math.max(a, b), 0), total, share: sum > 0 ? total / sum : 0,
      ...(sized ? { work: sized, ...(min > 0 ? standing(sized, min, peaks) : {}) } : {}),
    };
  });
  return { runs, whole: { min: leastOf(whole), mean: whole.reduce((a, b) => a + b, 0) / runs }, sum, clock: clockCost(), peaks, steps, timeline };
}

const leastOf = (list: readonly number[]): number => (list.length === 0 ? 0 : list.reduce((a, b) => Math.min(a, b)));

async function observed(session: Session, feeds: Feeds): Promise<Occurrence[]> {
  const out: Occurrence[] = [], begin = performance.now();
  await session.run(feeds, { onStep: (label, _, milliseconds) => {
    const duration = 1000 * milliseconds;
    out.push({ step: Number(label), start: 1000 * (performance.now() - begin) - duration, duration });
  } });
  return out;
}

/** Microseconds between two readings of the clock: the median of many. */
function clockCost(): number {
  const gaps = Array.from({ length: 1001 }, () => { const start = performance.now(); return 1000 * (performance.now() - start); }).sort((a, b) => a - b);
  return gaps[500] ?? 0;
}

/** Work by kernel, from an artifact's report; what is no such list is none. */
function worksOf(report: unknown): ReadonlyMap<string, KernelWork> {
  const kernels = (report as { readonly kernels?: readonly KernelWork[] } | undefined)?.kernels;
  return new Map(Array.isArray(kernels) ? (kernels as readonly KernelWork[]).map((k) => [k.kernel, k]) : []);
}

/** Values of the symbols that the inputs' sizes declare. */
function symbolsOf(inputs: readonly { readonly name: string; readonly dims: readonly DimJson[] }[], feeds: Feeds): ReadonlyMap<string, number> {
  const out = new Map<string, number>();
  for (const { name, dims } of inputs) {
    const fed = feeds[name];
    if (typeof fed !== "object" || fed === null || !("dims" in fed)) continue;
    dims.forEach((d, axis) => { const size = fed.dims[axis]; if (typeof d === "string" && size !== undefined) out.set(d, size); });
  }
  return out;
}

/** The work at these sizes; undefined where a size is told by data. */
function atSizes(work: KernelWork, symbols: ReadonlyMap<string, number>): StepProfile["work"] | undefined {
  const [operations, ...moved] = [work.operations, work.read, work.weights, work.written].map((d) => evaluateDimJson(d, symbols));
  if (operations === undefined || moved.some((m) => m === undefined)) return undefined;
  return { kind: work.kind, nodes: work.nodes, operations, bytes: moved.reduce<number>((n, m) => n + (m ?? 0), 0), inputs: typesAt(work.inputs, work.shapes?.inputs, symbols), outputs: typesAt(work.outputs, work.shapes?.outputs, symbols), ...(work.integer ? { integer: true } : {}) };
}

/** Types with the sizes that were run, where they are known. */
const typesAt = (types: readonly string[], shapes: readonly (readonly DimJson[])[] | undefined, symbols: ReadonlyMap<string, number>): string[] => types.map((type, i) => {
  const dims = shapes?.[i]?.map((d) => evaluateDimJson(d, symbols));
  return dims === undefined || dims.includes(undefined) ? type : `${type.slice(0, type.indexOf("["))}[${dims.join(",")}]`;
});

function standing({ operations, bytes, integer }: { readonly operations: number; readonly bytes: number; readonly integer?: boolean }, min: number, peaks: Peaks): Pick<StepProfile, "gflops" | "gbs" | "bound" | "attained"> {
  const gflops = operations / min / 1000, gbs = bytes / min / 1000;
  const fits = bytes <= cacheBytes;
  const computing = operations / (integer ? peaks.integerGops : peaks.gflops) / 1000, moving = bytes / (fits ? peaks.cacheGBs : peaks.memoryGBs) / 1000;
  return { gflops, gbs, bound: computing >= moving ? "compute" : fits ? "cache" : "memory", attained: Math.max(computing, moving) / min };
}
