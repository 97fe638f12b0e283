/**
 * First inference and peak memory: a fresh process loads a model, runs it once and ends; ours, onnxruntime-web and
 * onnxruntime-node in turns, one thread each. Times are medians of the rounds, from the script's first line to the first
 * result, without Node's own start; memory is the process's peak resident size.
 * Usage: tsx bench/first-inference.ts [--rounds N] [MODEL_ID…]
 */
import { parseArgs } from "node:util";
import { caseIds } from "../test/support/cases.ts";
import { inFreshProcess, machine, median, prepared, type Engine } from "./fresh.ts";
import { geometricMean } from "./interleave.ts";
import { publish, table, taken } from "./page.ts";

interface Fresh { readonly first: number; readonly load: number; readonly process: number; readonly peak: number }
interface Row { readonly id: string; readonly runs: Readonly<Record<Engine, readonly Fresh[]>> }

const names: readonly Engine[] = ["onnxfuse", "onnxruntime-web", "onnxruntime-node"];
const { values, positionals } = parseArgs({ allowPositionals: true, options: { rounds: { type: "string", default: "5" }, publish: { type: "boolean", default: false } } });

const rows: Row[] = [];
for (const id of positionals.length ? positionals : caseIds()) {
  const runs: Record<Engine, Fresh[]> = { onnxfuse: [], "onnxruntime-web": [], "onnxruntime-node": [] };
  await prepared(id, (files) => {
    for (let round = 0; round < Number(values.rounds); round++) for (const name of names) runs[name].push(inFreshProcess<Fresh>("fresh.mjs", name, files));
  });
  rows.push({ id, runs });
  console.log(cells(rows.at(-1) as Row).join("  "));
}

function of(row: Row, engine: Engine, what: keyof Fresh): number { return median(row.runs[engine].map((r) => r[what])); }
function ratio(row: Row, engine: Engine, what: keyof Fresh): number { return of(row, engine, what) / of(row, "onnxfuse", what); }
function cells(row: Row): (string | number)[] {
  const ms = (e: Engine): string => of(row, e, "first").toFixed(1), mb = (e: Engine): string => (of(row, e, "peak") / 2 ** 20).toFixed(0);
  return [row.id, ...names.map(ms), ratio(row, "onnxruntime-web", "first").toFixed(1), ratio(row, "onnxruntime-node", "first").toFixed(2), ...names.map(mb), (1 / ratio(row, "onnxruntime-web", "peak")).toFixed(2)];
}

const mean = (engine: Engine, what: keyof Fresh): string => geometricMean(rows.map((r) => ratio(r, engine, what))).toFixed(2);
const lines = [
  taken(machine()), "",
  ...table(["model", "onnxfuse ms", "onnxruntime-web ms", "onnxruntime-node ms", "× web", "× node", "onnxfuse MB", "onnxruntime-web MB", "onnxruntime-node MB", "of web's"], rows.map(cells)), "",
  `Geometric mean: ${mean("onnxruntime-web", "first")} times as fast as onnxruntime-web and ${mean("onnxruntime-node", "first")} times as fast as onnxruntime-node to the first result; 1/${mean("onnxruntime-web", "peak")} of onnxruntime-web's memory.`,
];
console.log(lines.join("\n"));
if (values.publish) publish("first-inference", { machine: machine(), models: rows }, lines);
