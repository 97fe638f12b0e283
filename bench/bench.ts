/**
 * All models against onnxruntime-web and against our own unfused build: each model in a process of its own, three
 * separate runs of which the worst counts. Writes bench/results.json (with BENCH_THREADS=n,
 * which both sides then use, bench/results-n-threads.json) and prints the table for the README.
 * Usage: npm run bench [-- MODEL_ID…]
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { caseIds } from "../test/support/cases.ts";
import { geometricMean, type Interleaved, type Quartiles } from "./interleave.ts";

interface Run extends Interleaved { readonly id: string; readonly bytes: number; readonly calls: number; readonly frozenCalls: number }
interface Row { readonly id: string; readonly runs: readonly Run[]; readonly web: Quartiles; readonly unfused: Quartiles }

const arguments_ = process.argv.slice(2);
const threads = Number(process.env["BENCH_THREADS"] ?? 1);
const repeats = Number(process.env["BENCH_RUNS"] ?? 3);
const ids = arguments_.length ? arguments_ : caseIds();
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
  console.log(describe(rows.at(-1) as Row));
}

function describe(row: Row): string {
  const last = row.runs.at(-1) as Run;
  const ms = (name: string): string => (last.times[name] as Quartiles).median.toFixed(3);
  const ratio = (q: Quartiles): string => `${q.median.toFixed(2)} (${q.q1.toFixed(2)}–${q.q3.toFixed(2)})`;
  const frozen = last.frozenCalls === last.calls ? "" : ` (${last.frozenCalls} frozen)`;
  return `| ${row.id} | ${last.calls}${frozen} | ${(last.bytes / 1024).toFixed(0)} | ${ms("fused")} | ${ms("pinned")} | ${ms("unfused")} | ${ms("web")} | ${ratio(row.unfused)} | ${ratio(row.web)} |`;
}

console.log("\n| model | calls | artifact KB | fused ms | pinned ms | unfused ms | onnxruntime-web ms | fused vs unfused | vs onnxruntime-web |\n|---|---|---|---|---|---|---|---|---|");
for (const row of rows) console.log(describe(row));
if (rows.length) {
  const summary = { web: geometricMean(rows.map((r) => r.web.median)), unfused: geometricMean(rows.map((r) => r.unfused.median)) };
  console.log(`\ngeometric mean of ${rows.length} models: ${summary.unfused.toFixed(2)} over unfused, ${summary.web.toFixed(2)} over onnxruntime-web`);
  mkdirSync("bench", { recursive: true });
  const machine = { cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, node: process.version, date: new Date().toISOString().slice(0, 10) };
  writeFileSync(join("bench", threads === 1 ? "results.json" : `results-${threads}-threads.json`), `${JSON.stringify({ machine, summary, models: rows.map(({ id, runs, web, unfused }) => ({ id, calls: runs[0]?.calls, frozenCalls: runs[0]?.frozenCalls, bytes: runs[0]?.bytes, times: runs.map((r) => r.times), worst: { web, unfused } })) }, null, 1)}\n`);
}
if (rows.length < ids.length) process.exitCode = 1;
