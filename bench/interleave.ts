/**
 * Times several contestants side by side in one process: A B C A B C …, after a warm-up, so that a machine whose speed
 * drifts slows all of them alike. Ratios are taken round by round and their median reported.
 *
 * Where a session lies in physical memory makes up to 3 % of a large model's time, with the same bytes; a contestant
 * may therefore have several sessions, whose mean is its time. Worker pools go on spinning for some tens of milliseconds
 * after a run and take a core from whoever comes next, so with threads everyone first runs unmeasured for a while.
 */
export interface Contestant {
  readonly name: string;
  run(): Promise<unknown>;
  /** Further sessions of the same. */
  readonly others?: readonly (() => Promise<unknown>)[];
}

export interface Quartiles { readonly q1: number; readonly median: number; readonly q3: number }
export interface Interleaved {
  /** Milliseconds a run, by contestant. */
  readonly times: Readonly<Record<string, Quartiles>>;
  /** Per-round time of each contestant over the first one's. Above 1: the first is faster. */
  readonly ratios: Readonly<Record<string, Quartiles>>;
  readonly rounds: number;
}

/**
 * Runs each contestant's sessions for `warmUp` milliseconds together, then `rounds` rounds of samples of at least
 * `sample` milliseconds each, every one after `settle` milliseconds of runs that do not count.
 */
export async function interleave(contestants: readonly Contestant[], { warmUp = 1500, rounds = 31, sample = 8, settle = 0 } = {}): Promise<Interleaved> {
  const entrants = [];
  for (const { name, run, others = [] } of contestants) {
    const sessions = [run, ...others];
    let shortest = Infinity;
    for (const session of sessions) shortest = Math.min(shortest, await runFor(session, warmUp / sessions.length, 2));
    entrants.push({ name, sessions, batch: Math.max(1, Math.ceil(sample / sessions.length / shortest)) });
  }
  const samples = new Map<string, number[]>(contestants.map((c) => [c.name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, sessions, batch } of entrants) {
      let time = 0;
      for (const session of sessions) {
        if (settle > 0) await runFor(session, settle, 1);
        const start = performance.now();
        for (let i = 0; i < batch; i++) await session();
        time += performance.now() - start;
      }
      samples.get(name)?.push(time / batch / sessions.length);
    }
  }
  const first = samples.get(contestants[0]?.name ?? "") ?? [];
  const entries = [...samples];
  return {
    rounds,
    times: Object.fromEntries(entries.map(([name, s]) => [name, quartiles(s)])),
    ratios: Object.fromEntries(entries.slice(1).map(([name, s]) => [name, quartiles(s.map((t, i) => t / (first[i] ?? NaN)))])),
  };
}

/** Runs for so long, and so often at least; the mean time of a run in milliseconds. */
async function runFor(run: () => Promise<unknown>, milliseconds: number, least: number): Promise<number> {
  const start = performance.now();
  let runs = 0;
  while (performance.now() - start < milliseconds || runs < least) { await run(); runs++; }
  return (performance.now() - start) / runs;
}

/** Lower quartile, median and upper quartile. */
export function quartiles(values: readonly number[]): Quartiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (p: number): number => sorted[Math.min(sorted.length - 1, Math.round(p * (sorted.length - 1)))] ?? NaN;
  return { q1: at(0.25), median: at(0.5), q3: at(0.75) };
}

export const geometricMean = (values: readonly number[]): number => Math.exp(values.reduce((s, v) => s + Math.log(v), 0) / values.length);
