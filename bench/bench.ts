/**
 * All models against onnxruntime-web and against our own unfused build: each model in a process of its own, three
 * separate runs of which the worst counts; both sides with BENCH_THREADS=n threads. Prints a table; `--publish` writes it to
 * the README (of several threads, or of an engine with relaxed SIMD, to docs/performance.md), and JSON beside this file.
 * Usage: npm run bench [-- --publish] [MODEL_ID…]
 */
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { caseIds } from "../test/support/cases.ts";
import { machine } from "./fresh.ts";
import { geometricMean, type Interleaved, type Quartiles } from "./interleave.ts";
import { publish, table, taken } from "./page.ts";

interface Run extends Interleaved { readonly id: string; readonly bytes: number; readonly calls: number; readonly frozenCalls: number }
interface Row { readonly id: string; readonly runs: readonly Run[]; readonly web: Quartiles; readonly unfused: Quartiles }

const { values, positionals } = parseArgs({ allowPositionals: true, options: { publish: { type: "boolean", default: false } } });
const head = ["model", "calls", "artifact KB", "fused ms", "pinned ms", "unfused ms", "onnxruntime-web ms", "fused vs unfused", "vs onnxruntime-web"];
const threads = Number(process.env["BENCH_THREADS"] ?? 1);
const repeats = Number(process.env["BENCH_RUNS"] ?? 3);
const ids = positionals.length ? positionals : caseIds();
const rows: Row[] = [];
for (const id of ids) {
  const runs: Run[] = [];
  for (let i = 0; i < repeats; i++) {
    const done = spawnSync(process.execPath, ["--import", "tsx", "bench/model.ts", id], { encoding: "utf8", maxBuffer: 1 << 26 });
    const line = done.stdout.trim().split("\n").at(-1) ?? "";
    if (done.status !== 0 || !line.startsWith("{")) { console.error(`${id}: ${done.stderr.trim().split("\n").slice(-6).join("\n")}`); break; }
    runs.push(JSON.parse(line) as Run);
  }
  if (runs.length < repeats) continue;
  const worst = (name: string): Quartiles => runs.map((r) => r.ratios[name] as Quartiles).reduce((a, b) => (b.median < a.median ? b : a));
  rows.push({ id, runs, web: worst("web"), unfused: worst("unfused") });
  console.log(cells(rows.at(-1) as Row).join("  "));
}

function cells(row: Row): string[] {
  const last = row.runs.at(-1) as Run;
  const ms = (name: string): string => (last.times[name] as Quartiles).median.toFixed(3);
  const ratio = (q: Quartiles): string => `${q.median.toFixed(2)} (${q.q1.toFixed(2)}–${q.q3.toFixed(2)})`;
  const frozen = last.frozenCalls === last.calls ? "" : ` (${last.frozenCalls} frozen)`;
  return [row.id, `${last.calls}${frozen}`, (last.bytes / 1024).toFixed(0), ms("fused"), ms("pinned"), ms("unfused"), ms("web"), ratio(row.unfused), ratio(row.web)];
}

if (rows.length) {
  const summary = { web: geometricMean(rows.map((r) => r.web.median)), unfused: geometricMean(rows.map((r) => r.unfused.median)) };
  const lines = [
    taken(machine()), "", ...table(head, rows.map(cells)), "",
    `Geometric mean: ${summary.web.toFixed(2)} times onnxruntime-web, ${summary.unfused.toFixed(2)} times our own build without fusion.`,
  ];
  console.log(lines.join("\n"));
  const results = { machine: machine(), summary, models: rows.map(({ id, runs, web, unfused }) => ({ id, calls: runs[0]?.calls, frozenCalls: runs[0]?.frozenCalls, bytes: runs[0]?.bytes, times: runs.map((r) => r.times), worst: { web, unfused } })) };
  if (values.publish) publish(threads === 1 ? "models" : `models-${threads}-threads`, results, lines, threads === 1 ? "README.md" : "docs/performance.md");
}
if (rows.length < ids.length) process.exitCode = 1;
