/**
 * Times several contestants side by side in one process: A B C A B C …, after a warm-up, so that a machine whose speed
 * drifts slows all of them alike. Ratios are taken round by round and their median reported.
 */
export interface Contestant {
  readonly name: string;
  run(): Promise<unknown>;
}

export interface Quartiles { readonly q1: number; readonly median: number; readonly q3: number }
export interface Interleaved {
  /** Milliseconds a run, by contestant. */
  readonly times: Readonly<Record<string, Quartiles>>;
  /** Per-round time of each contestant over the first one's. Above 1: the first is faster. */
  readonly ratios: Readonly<Record<string, Quartiles>>;
  readonly rounds: number;
}

/** Runs each contestant for `warmUp` milliseconds, then `rounds` rounds of samples of at least `sample` milliseconds each. */
export async function interleave(contestants: readonly Contestant[], { warmUp = 1500, rounds = 31, sample = 8 } = {}): Promise<Interleaved> {
  const batch = new Map<string, number>();
  for (const c of contestants) {
    const start = performance.now();
    let runs = 0;
    while (performance.now() - start < warmUp || runs < 2) { await c.run(); runs++; }
    batch.set(c.name, Math.max(1, Math.ceil(sample / ((performance.now() - start) / runs))));
  }
  const samples = new Map<string, number[]>(contestants.map((c) => [c.name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const c of contestants) {
      const n = batch.get(c.name) ?? 1;
      const start = performance.now();
      for (let i = 0; i < n; i++) await c.run();
      samples.get(c.name)?.push((performance.now() - start) / n);
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

/** Lower quartile, median and upper quartile. */
export function quartiles(values: readonly number[]): Quartiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (p: number): number => sorted[Math.min(sorted.length - 1, Math.round(p * (sorted.length - 1)))] ?? NaN;
  return { q1: at(0.25), median: at(0.5), q3: at(0.75) };
}

export const geometricMean = (values: readonly number[]): number => Math.exp(values.reduce((s, v) => s + Math.log(v), 0) / values.length);
