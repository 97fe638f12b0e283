/**
 * What a second thread brings: every model with one and with two threads, in turns in one process; the median of ratios
 * of 31 rounds. The engines' own comparison is bench.ts with BENCH_THREADS=2.
 * Usage: tsx bench/threads.ts [--publish] [MODEL_ID…]
 */
import { parseArgs } from "node:util";
import { compileModel } from "../src/compiler/compile.ts";
import { load, Tensor } from "../src/runtime/index.ts";
import { caseIds, loadCase } from "../test/support/cases.ts";
import { machine } from "./fresh.ts";
import { geometricMean, interleave, type Interleaved } from "./interleave.ts";
import { publish, table, taken } from "./page.ts";

const { values, positionals } = parseArgs({ allowPositionals: true, options: { publish: { type: "boolean", default: false } } });
const rows: { readonly id: string; readonly threads: number; readonly result: Interleaved }[] = [];
for (const id of positionals.length ? positionals : caseIds()) {
  const model = loadCase(id), { artifact } = compileModel(model.bytes);
  const feeds = Object.fromEntries(Object.entries(model.feeds).map(([name, t]) => [name, new Tensor(t.dtype, t.data, t.dims)]));
  const two = await load(artifact, { threads: 2 }), one = await load(artifact);
  const result = await interleave([{ name: "two", run: () => two.run(feeds) }, { name: "one", run: () => one.run(feeds) }]);
  rows.push({ id, threads: two.threads, result });
  two.dispose();
  one.dispose();
  console.log(cells(rows.at(-1) as (typeof rows)[number]).join("  "));
}

function cells({ id, threads, result: { times, ratios } }: (typeof rows)[number]): string[] {
  const two = threads === 1 ? "runs on one" : (times["two"]?.median.toFixed(3) ?? "");
  return [id, times["one"]?.median.toFixed(3) ?? "", two, ratios["one"]?.median.toFixed(2) ?? ""];
}
const lines = [
  taken(machine()), "", ...table(["model", "one thread ms", "two threads ms", "times as fast"], rows.map(cells)), "",
  `Geometric mean ${geometricMean(rows.map((r) => r.result.ratios["one"]?.median ?? NaN)).toFixed(2)}.`,
];
console.log(lines.join("\n"));
if (values.publish) publish("threads", { machine: machine(), models: rows }, lines);
