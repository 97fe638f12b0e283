/** `onnxfuse bench`: times artifacts side by side, taking turns so that they meet the same machine. */
import { basename } from "node:path";
import { compileOptionsOf } from "../options/compile-options.ts";
import { assumedLines } from "../assumed-sizes.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { openSession } from "../open.ts";
import { table } from "../table.ts";
import { jsonOption, modelOptions, threadsOption, type Command } from "./command.ts";

export interface Timing { readonly artifact: string; readonly min: number; readonly median: number; readonly mean: number; readonly p99: number }

export const bench: Command = {
  name: "bench", operands: "<artifacts...>", doc: "time artifacts or models side by side",
  options: [
    { flags: "warmup <runs>", doc: "runs before timing (default 10)" }, { flags: "iterations <runs>", doc: "timed runs (default 100)" },
    ...feedOptions, threadsOption, ...modelOptions, jsonOption,
  ],
  async run(line, console) {
    const warmup = line.count("warmup", 10), iterations = line.count("iterations", 100, 1);
    const opened = await Promise.all(line.operands.map(async (path) => {
      const { session, artifact } = await openSession(path, await compileOptionsOf(line), line.count("threads", 1, 1));
      for (const w of session.warnings) console.error(`${basename(path)}: ${w.code}: ${w.message}`);
      return { path, session, artifact };
    }));
    const artifacts = opened.map((l) => l.artifact);
    const lanes = opened.map(({ path, session }) => ({ path, session, plan: feedsFor(session, artifacts, line), times: [] as number[] }));
    const assumed = Object.assign({}, ...lanes.map((l) => l.plan.assumed)) as Record<string, number>;
    for (const text of assumedLines(assumed)) console.error(text);
    for (let i = 0; i < warmup + iterations; i++) {
      console.progress?.(i < warmup ? `warming up, ${i + 1} of ${warmup}` : `timing, ${i - warmup + 1} of ${iterations}`);
      for (const lane of lanes) {
        const start = performance.now();
        await lane.session.run(lane.plan.feeds);
        if (i >= warmup) lane.times.push(performance.now() - start);
      }
    }
    console.progress?.();
    const results = lanes.map((l): Timing => ({ artifact: l.path, ...statistics(l.times) }));
    if (line.has("json")) { console.out(JSON.stringify({ warmup, iterations, threads: line.count("threads", 1, 1), unit: "ms", artifacts: results })); return 0; }
    const first = results[0]?.median ?? NaN;
    const ms = (x: number): string => x.toFixed(3);
    for (const text of table(["artifact", "min ms", "median", "mean", "p99", "speed-up"], results.map((r) => [basename(r.artifact), ms(r.min), ms(r.median), ms(r.mean), ms(r.p99), `${(first / r.median).toFixed(2)}x`]))) console.out(text);
    return 0;
  },
};

function statistics(times: readonly number[]): Omit<Timing, "artifact"> {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
  return { min: at(0), median: at(0.5), mean: times.reduce((a, b) => a + b, 0) / times.length, p99: at(0.99) };
}
