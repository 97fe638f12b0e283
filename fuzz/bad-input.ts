/**
 * What bad input gets: damaged models and artifacts are compiled, loaded and run. Each works or is refused with a
 * diagnostic, within 5 seconds of processor time and 1 GB; anything else is a failure, kept as a file.
 * Usage: npm run fuzz [-- --count N] [--seed S] [--from INDEX] [--jobs J] [--kind models|artifacts|all] [--own] [--keep FOLDER]
 *        npm run fuzz -- --replay FILE…
 * Mutant i of a seed is always the same. `--own` leaves out models that this repository does not hold. Exit code 1 after failures.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Corpus } from "./bad-input/corpus.ts";
import { mutantOf } from "./bad-input/mutant.ts";
import { supervise, type Result } from "./bad-input/supervisor.ts";
import type { Order, Settings } from "./bad-input/worker.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { count: { type: "string" }, seed: { type: "string" }, from: { type: "string" }, jobs: { type: "string" }, kind: { type: "string" }, keep: { type: "string" }, own: { type: "boolean" }, replay: { type: "boolean" } },
});
const seed = Number(values.seed ?? Date.now() % 1e6), count = Number(values.count ?? 20_000), first = Number(values.from ?? 0), jobs = Number(values.jobs ?? 2);
const kind = values.kind === "models" || values.kind === "artifacts" ? values.kind : "all", keep = values.keep ?? "fuzz-failures";
const settings: Settings = { seed, kind, own: values.own ?? false };

function* indices(): Iterable<Order> { for (let index = first; index < first + count; index++) yield { index }; }
const orders: Iterable<Order> = values.replay ? positionals.map((file) => ({ file, seed })) : indices();

const corpus = new Corpus(settings.own), outcomes = new Map<string, number>(), failures = new Map<string, number>();
let tried = 0, slowest = 0, largest = 0;
console.log(`seed ${seed}, ${values.replay ? `${positionals.length} files` : `${count} mutants from ${first}`}, ${jobs} jobs`);
await supervise(orders, jobs, settings, (result) => {
  tried++;
  const { answer, failure, stopped } = result;
  if (answer && !answer.damagedCode) { slowest = Math.max(slowest, answer.seconds); largest = Math.max(largest, answer.megabytes); }
  const outcome = failure !== undefined ? "failed" : stopped ? "stopped in damaged code" : answer?.outcome === "ran" ? "ran" : `refused (${answer?.stage ?? ""})`;
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  if (failure !== undefined) void report(result, failure);
  if (tried % 500 === 0) console.log(`${tried} tried: ${summary()}`);
});
console.log(`${tried} tried: ${summary()}; slowest ${slowest.toFixed(1)} s, largest ${Math.round(largest)} MB`);
if (failures.size) { console.log(`${failures.size} kinds of failure`); process.exitCode = 1; }

function summary(): string { return [...outcomes].map(([name, n]) => `${n} ${name}`).join(", "); }

/** Shows a kind of failure once, and keeps the file of each. */
async function report({ order, answer }: Result, failure: string): Promise<void> {
  const shape = failure.split("\n").slice(0, 3).join("\n").replace(/\d+(\.\d+)?/g, "#").replace(/'[^']*'/g, "'…'"), seen = failures.get(shape) ?? 0;
  failures.set(shape, seen + 1);
  if ("file" in order) { console.log(`${order.file}: ${failure}`); return; }
  const mutant = await mutantOf(corpus, seed, order.index, kind);
  if (seen < 3) console.log(`mutant ${order.index}, ${answer?.story ?? mutant.story}: ${failure.slice(0, 1500)}`);
  if (seen >= 20) return;
  mkdirSync(keep, { recursive: true });
  const file = join(keep, `${seed}-${order.index}.${mutant.kind === "model" ? "onnx" : "om"}`);
  writeFileSync(file, mutant.bytes);
  writeFileSync(`${file}.txt`, `${mutant.story}\n--seed ${mutant.seed}\n${failure}\n`);
}
