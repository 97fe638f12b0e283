/**
 * Compile time: ours in a warm process and onnxruntime-node's session creation with all optimisations in turns, and a
 * cold `atc`. Medians of the rounds. The bound is three times the session creation or 250 ms, whichever is larger, and a
 * second more for `atc`.
 * Usage: tsx bench/compile-time.ts [--rounds N] [--publish] [MODEL_ID…]
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { InferenceSession } from "onnxruntime-node";
import { compile } from "../dist/api/index.js";
import { caseIds, loadCase } from "../test/support/cases.ts";
import { machine, median } from "./fresh.ts";
import { publish, table, taken } from "./page.ts";

interface Row { readonly id: string; readonly compile: number; readonly session: number; readonly atc: number }

const { values, positionals } = parseArgs({ allowPositionals: true, options: { rounds: { type: "string", default: "7" }, publish: { type: "boolean", default: false } } });
const ids = positionals.length ? positionals : caseIds();

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function measure(id: string): Promise<Row> {
  const { bytes } = loadCase(id), ours: number[] = [], theirs: number[] = [], folder = mkdtempSync(join(tmpdir(), "onnxfuse-bench-"));
  await compile(bytes);
  for (let round = 0; round < Number(values.rounds); round++) {
    ours.push(await timed(() => compile(bytes)));
    theirs.push(await timed(() => InferenceSession.create(bytes, { graphOptimizationLevel: "all", intraOpNumThreads: 1, logSeverityLevel: 3 })));
  }
  const model = join(folder, "model.onnx"), cold: number[] = [];
  writeFileSync(model, bytes);
  for (let i = 0; i < 3; i++) cold.push(await timed(async () => atc(model, folder)));
  rmSync(folder, { recursive: true });
  return { id, compile: median(ours), session: median(theirs), atc: median(cold) };
}

function atc(model: string, folder: string): void {
  const done = spawnSync(process.execPath, [join(import.meta.dirname, "../dist/cli/atc.js"), `--model=${model}`, "--framework=5", `--output=${join(folder, "model")}`], { encoding: "utf8", cwd: folder });
  if (done.status !== 0) throw new Error(done.stderr + done.stdout);
}

const bound = (r: Row): number => Math.max(3 * r.session, 250);
const cells = (r: Row): string[] => [r.id, r.compile.toFixed(0), r.session.toFixed(0), bound(r).toFixed(0), (r.compile / bound(r)).toFixed(2), r.atc.toFixed(0)];
// Warm: every pass has been run on some model before.
for (const id of ids) await compile(loadCase(id).bytes);
const rows: Row[] = [];
for (const id of ids) {
  rows.push(await measure(id));
  console.log(cells(rows.at(-1) as Row).join("  "));
}
const within = rows.filter((r) => r.compile <= bound(r)).length, cold = rows.filter((r) => r.atc <= bound(r) + 1000).length;
const lines = [taken(machine()), "", ...table(["model", "compile ms", "onnxruntime-node session ms", "bound ms", "of the bound", "cold atc ms"], rows.map(cells)), "", `Within the bound: ${within} of ${rows.length} warm, ${cold} of ${rows.length} cold.`];
console.log(lines.join("\n"));
if (values.publish) publish("compile-time", { machine: machine(), models: rows }, lines);
