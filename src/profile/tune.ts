/**
 * Measures which schedules are quickest on this machine. A variant is one choice for every kernel; the program of each is
 * timed kernel by kernel (measure.ts), in turns with the default, and a kernel keeps a choice that beats its default
 * clearly. Kernels whose loops a variant leaves as they are take no part. What was measured is handed out after every
 * variant, so that work that was interrupted goes on where it stopped.
 */
import { attachWeights } from "../artifact/external-weights.ts";
import { readArtifact } from "../artifact/artifact.ts";
import { compileModel } from "../compiler/compile.ts";
import type { CompileOptions } from "../compiler/options.ts";
import { stepsOf } from "../compiler/program-steps.ts";
import type { Stage } from "../compiler/stages.ts";
import type { ModelSource } from "../onnx/read.ts";
import { load, type Feeds, type Session } from "../runtime/index.ts";
import { signatureOf, type Choices, type KernelChoice } from "../schedule/choices.ts";
import { labelled, takeApart } from "./apart.ts";

export { isChoices, type Choices } from "../schedule/choices.ts";

/** What is tried, by name. */
export const variants: Readonly<Record<string, KernelChoice>> = {
  "2x16": { tile: "2x16" },
  direct: { winograd: false },
  "direct, 2x16": { winograd: false, tile: "2x16" },
  "no strips": { strips: false },
  "no strips, 2x16": { strips: false, tile: "2x16" },
  "outer split": { split: "outer" },
  "outer split, 2x16": { split: "outer", tile: "2x16" },
};
/** Those that can make a difference on so many threads. */
export const variantsFor = (threads: number): readonly (readonly [name: string, choice: KernelChoice])[] => Object.entries(variants).filter(([, c]) => threads > 1 || c.split === undefined);

/** Microseconds by signature: the default's and the variant's least. */
export type Measured = Readonly<Record<string, readonly [byDefault: number, variant: number]>>;
/** By variant; a variant is there when it has been measured. */
export type Measurements = Readonly<Record<string, Measured>>;

export interface TuneOptions {
  readonly rounds: number;
  /** How many threads compute: choices are measured as they will run. */
  readonly threads: number;
  /** What earlier runs have measured. */
  readonly known: Measurements;
  /** Takes what is measured, after each variant. */
  readonly onMeasured: (all: Measurements) => void;
  readonly onProgress?: (text: string) => void;
  /** True when the work is to end. */
  readonly stopped: () => boolean;
}

/** A choice must be quicker by this much: less is noise. */
const leastGain = 0.03;

/** Measures what is not known yet; undefined when stopped before the end. `feedsFor` gives what to feed a session of one of two artifacts. */
export async function tune(source: ModelSource, options: CompileOptions, feedsFor: (session: Session, artifacts: readonly Uint8Array[]) => Feeds, tuning: TuneOptions): Promise<Choices | undefined> {
  const { onProgress = () => undefined, onMeasured, stopped, rounds, threads } = tuning;
  let all = tuning.known;
  const plain = built(source, options, {}, threads);
  const tried = new Map([...plain.kernels].map(([kernel, { loops }]) => [kernel, new Set([loops])]));
  for (const [name, choice] of variantsFor(threads)) {
    if (stopped()) return undefined;
    onProgress(`${name}: compiling`);
    const choices = Object.fromEntries([...plain.kernels.values()].map((k) => [k.signature, choice]));
    const other = built(source, options, choices, threads);
    const changed = [...plain.kernels].filter(([kernel]) => isNew(tried.get(kernel), other.kernels.get(kernel)?.loops));
    if (Object.hasOwn(all, name)) continue;
    const times = changed.length === 0 ? new Map<string, readonly [number, number]>() : await compare([plain.artifact, other.artifact], feedsFor, tuning, (round) => onProgress(`${name}: ${changed.length} kernels, round ${round} of ${rounds}`));
    if (!times) return undefined;
    all = { ...all, [name]: measured(changed.map(([kernel, k]) => ({ signature: k.signature, time: times.get(kernel) }))) };
    onMeasured(all);
  }
  return choicesFrom(all);
}

/** Whether no variant before gave the kernel these loops; notes them. Loops that are measured twice would have two chances. */
function isNew(before: Set<string> | undefined, loops: string | undefined): boolean {
  if (!before || loops === undefined || before.has(loops)) return false;
  before.add(loops);
  return true;
}

/** Sums of the kernels of each signature. */
function measured(kernels: readonly { readonly signature: string; readonly time: readonly [number, number] | undefined }[]): Measured {
  const out: Record<string, readonly [number, number]> = {};
  for (const { signature, time } of kernels) {
    if (!time) continue;
    const [a, b] = out[signature] ?? [0, 0];
    out[signature] = [a + time[0], b + time[1]];
  }
  return out;
}

/** The quickest variant of every kernel that gains by one. Depends on nothing but the measurements. */
export function choicesFrom(all: Measurements): Choices {
  const best = new Map<string, { readonly ratio: number; readonly choice: KernelChoice }>();
  for (const [name, choice] of Object.entries(variants)) {
    for (const [signature, [byDefault, variant]] of Object.entries(all[name] ?? {})) {
      const ratio = variant / byDefault;
      if (ratio <= 1 - leastGain && ratio < (best.get(signature)?.ratio ?? 1)) best.set(signature, { ratio, choice });
    }
  }
  return Object.fromEntries([...best].sort(([a], [b]) => (a < b ? -1 : 1)).map(([signature, { choice }]) => [signature, choice]));
}

interface TunedKernel { readonly signature: string; /** The scheduled loops as text. */ readonly loops: string }

function built(source: ModelSource, options: CompileOptions, choices: Choices, threads: number): { readonly artifact: Uint8Array; readonly kernels: ReadonlyMap<string, TunedKernel> } {
  const signatures = new Map<string, string>(), kernels = new Map<string, TunedKernel>();
  const onStage = (stage: Stage): void => {
    if (stage.name === "laid-out") for (const { kernel } of stepsOf(stage.program)) { const s = signatureOf(kernel); if (s !== undefined) signatures.set(kernel.name, s); }
    if (stage.name === "scheduled") for (const { kernel, text } of stepsOf(stage.program)) { const signature = signatures.get(kernel.name); if (signature !== undefined) kernels.set(kernel.name, { signature, loops: text() }); }
  };
  const { externalWeights: _, choices: _given, ...rest } = options;
  const { artifact } = compileModel(source, { ...rest, choices, onStage, strip: true, ...(threads > 1 ? { separateSteps: true } : {}) });
  return { artifact, kernels };
}

/** The least times of each kernel of two artifacts, by name, in turns; undefined when stopped. */
async function compare(artifacts: readonly Uint8Array[], feedsFor: (session: Session, artifacts: readonly Uint8Array[]) => Feeds, { rounds, threads, stopped }: TuneOptions, onRound: (round: number) => void): Promise<ReadonlyMap<string, readonly [number, number]> | undefined> {
  const lanes = await Promise.all(artifacts.map(async (bytes) => {
    const { artifact, steps } = (threads > 1 ? labelled : takeApart)(await attachWeights(readArtifact(bytes), undefined));
    const session = await load(artifact, { threads });
    return { session, steps, feeds: feedsFor(session, artifacts), least: new Map<string, number>() };
  }));
  try {
    for (let round = 0; round <= rounds; round++) {
      onRound(round);
      for (const { session, steps, feeds, least } of lanes) {
        const times = new Map<string, number>();
        await session.run(feeds, { onStep: (label, _, ms) => { const name = steps[Number(label)]?.name ?? ""; times.set(name, (times.get(name) ?? 0) + 1000 * ms); } });
        // The first round warms up.
        if (round > 0) for (const [name, time] of times) least.set(name, Math.min(least.get(name) ?? Infinity, time));
        // Lets an interruption be seen.
        await new Promise((done) => { setTimeout(done, 0); });
        if (stopped()) return undefined;
      }
    }
  } finally {
    for (const { session } of lanes) session.dispose();
  }
  const [first, second] = lanes;
  return new Map([...(first?.least ?? [])].flatMap(([name, time]) => { const by = second?.least.get(name); return by === undefined ? [] : [[name, [time, by] as const] as const]; }));
}
