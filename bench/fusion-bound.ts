/**
 * What fusion has to gain and where it loses. For every model, kernel by kernel, fused and unfused builds run in turns:
 * - the bound: unfused time over the time of its contractions, attention and recurrences alone, which is the most that
 *   fusing everything else away for nothing could reach (Amdahl);
 * - offenders: fused kernels that cost more than the unfused kernels they replace.
 * Usage: tsx bench/fusion-bound.ts [--rows N] [--rounds N] MODEL_ID…
 */
import { parseArgs } from "node:util";
import { caseIds, loadCase } from "../test/support/cases.ts";
import { timedProgram, type KernelTime } from "./kernel-times.ts";
import { geometricMean } from "./interleave.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { rows: { type: "string", default: "0" }, top: { type: "string", default: "0" }, rounds: { type: "string", default: "60" }, seconds: { type: "string", default: "12" } } });
const sum = (times: readonly KernelTime[]): number => times.reduce((n, t) => n + t.milliseconds, 0);

interface Bound { readonly id: string; readonly contractions: number; readonly rest: number; readonly fused: number }

async function measure(id: string): Promise<Bound> {
  const model = loadCase(id);
  const programs = [await timedProgram(model, true), await timedProgram(model, false)];
  const start = performance.now();
  for (let round = 0; round < Number(values.rounds) || performance.now() - start < 2000; round++) {
    for (const p of programs) await p.run();
    if (performance.now() - start > 1000 * Number(values.seconds)) break;
  }
  const [fused = [], unfused = []] = programs.map((p) => p.times());
  compare(fused, unfused, Number(values.rows));
  for (const t of [...fused].sort((a, b) => b.milliseconds - a.milliseconds).slice(0, Number(values.top))) console.log(`${t.milliseconds.toFixed(3).padStart(9)} ${((100 * t.milliseconds) / sum(fused)).toFixed(1).padStart(5)}% ${t.label} ${t.kernel} ${t.kind} ${t.writes} ${t.nodes.length}`);
  const contractions = sum(unfused.filter((t) => t.kind !== "loops" && t.kind !== "host"));
  return { id, contractions, rest: sum(unfused) - contractions, fused: sum(fused) };
}

/** The fused kernels that lose most against what they replace. */
function compare(fused: readonly KernelTime[], unfused: readonly KernelTime[], rows: number): void {
  const of = new Map(unfused.flatMap((t) => t.nodes.map((n) => [n, t] as const)));
  const pairs = fused.map((t) => {
    const parts = new Set(t.nodes.flatMap((n) => of.get(n) ?? []));
    return { t, parts: parts.size, before: sum([...parts]) };
  });
  for (const { t, before, parts } of pairs.sort((a, b) => b.t.milliseconds - b.before - (a.t.milliseconds - a.before)).slice(0, rows)) {
    console.log(`${(t.milliseconds - before).toFixed(4).padStart(9)} ${t.milliseconds.toFixed(4).padStart(9)} of ${before.toFixed(4).padStart(9)} (${parts}) ${t.label} ${t.kernel} ${t.writes}`);
  }
}

const bounds: Bound[] = [];
console.log("| model | contractions ms | other kernels ms | bound | fused over unfused |\n|---|---|---|---|---|");
for (const id of positionals.length ? positionals : caseIds()) {
  const b = await measure(id);
  bounds.push(b);
  console.log(`| ${id} | ${b.contractions.toFixed(3)} | ${b.rest.toFixed(3)} | ${((b.contractions + b.rest) / b.contractions).toFixed(2)} | ${((b.contractions + b.rest) / b.fused).toFixed(2)} |`);
}
const mean = (of: (b: Bound) => number): string => geometricMean(bounds.map(of)).toFixed(2);
console.log(`| geometric mean | | | ${mean((b) => (b.contractions + b.rest) / b.contractions)} | ${mean((b) => (b.contractions + b.rest) / b.fused)} |`);
