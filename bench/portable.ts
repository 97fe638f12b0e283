/**
 * Portable output in onnxruntime: every model as it is, which onnxruntime optimises by itself, against what
 * `--emit=onnx` makes of it at each level, also with onnxruntime's optimiser on; in turns in one process, one thread.
 * Times are of the processor, which a busy machine disturbs least. A ratio is the emitted model's shortest run over the
 * original's: below 1 the emitted model is faster.
 * Usage: tsx bench/portable.ts [--rounds N] [MODEL_ID …]; for all models it writes bench/portable.json and the table in
 * docs/performance.md. Models are read from the folder named by ONNXFUSE_TEST_DATA.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { optimise } from "../src/api/index.ts";
import { decodeModel } from "../src/onnx/decode.ts";
import { countOperators, totalOf } from "../src/onnx/operator-counts.ts";
import { Tensor, toOnnxruntime } from "../src/runtime/index.ts";
import { caseIds, loadCase } from "../test/support/cases.ts";
import { geometricMean } from "./interleave.ts";

const levels = ["standard", "functions", "ort"] as const;
interface Row { readonly id: string; readonly rounds: number; readonly nodes: Readonly<Record<string, number>>; readonly milliseconds: number; readonly ratios: Readonly<Record<string, number>> }

const argv = process.argv.slice(2), at = argv.indexOf("--rounds");
const rounds = at < 0 ? 40 : Number(argv.splice(at, 2)[1]);
const ids = argv.length ? argv : caseIds();

/** Milliseconds that this process has computed. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function measure(id: string): Promise<Row> {
  const { bytes, feeds } = loadCase(id);
  const forms = [{ name: "original", model: bytes }, ...levels.map((level) => ({ name: level, model: optimise(bytes, { level }).model }))];
  const inputs = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, toOnnxruntime(Tensor.of(t), OrtTensor)]));
  const sessions = await Promise.all(forms.map(({ model }) => InferenceSession.create(model, { graphOptimizationLevel: "all", logSeverityLevel: 3, intraOpNumThreads: 1, interOpNumThreads: 1 })));
  const best = forms.map(() => Infinity), batch = forms.map(() => 1);
  for (const [i, session] of sessions.entries()) {
    const start = processorTime();
    let runs = 0;
    while (runs < 3 || processorTime() - start < 100) { await session.run(inputs); runs++; }
    batch[i] = Math.max(1, Math.ceil(4 / ((processorTime() - start) / runs)));
  }
  for (let round = 0; round < rounds; round++) {
    for (const [i, session] of sessions.entries()) {
      const n = batch[i] ?? 1, start = processorTime();
      for (let run = 0; run < n; run++) await session.run(inputs);
      best[i] = Math.min(best[i] ?? Infinity, (processorTime() - start) / n);
    }
  }
  for (const session of sessions) await session.release();
  const [original = 1] = best;
  const counted = forms.map(({ name, model }, i): [string, number] => [name, totalOf(countOperators(decodeModel(model), i === 0))]);
  return { id, rounds, nodes: Object.fromEntries(counted), milliseconds: original, ratios: Object.fromEntries(levels.map((level, i) => [level, (best[i + 1] ?? NaN) / original])) };
}

const rows: Row[] = [];
for (const id of ids) {
  const row = await measure(id);
  rows.push(row);
  console.log(row.id.padEnd(22), JSON.stringify(row.nodes), row.milliseconds.toFixed(3), levels.map((l) => `${l} ${row.ratios[l]?.toFixed(3)}`).join("  "));
}
const mean = (level: string): number => geometricMean(rows.map((r) => r.ratios[level] ?? NaN));
console.log("geometric mean".padEnd(22), levels.map((l) => `${l} ${mean(l).toFixed(3)}`).join("  "));
if (argv.length === 0) {
  writeFileSync("bench/portable.json", `${JSON.stringify({ models: rows, means: Object.fromEntries(levels.map((l) => [l, mean(l)])) }, undefined, 1)}\n`);
  const page = readFileSync("docs/performance.md", "utf8"), begin = "<!-- portable -->", end = "<!-- /portable -->";
  const [before = "", rest = ""] = page.split(begin), [, after = ""] = rest.split(end);
  const cells = (values: readonly string[]): string => `| ${values.join(" | ")} |`;
  const table = [
    cells(["model", "nodes", ...levels.map((l) => `nodes, ${l}`), "original ms", ...levels.map((l) => `${l} / original`)]), cells(Array.from({ length: 6 + levels.length }, () => "---").slice(0, 3 + 2 * levels.length)),
    ...rows.map((r) => cells([r.id, String(r.nodes["original"]), ...levels.map((l) => String(r.nodes[l])), r.milliseconds.toFixed(3), ...levels.map((l) => (r.ratios[l] ?? NaN).toFixed(2))])),
    cells(["geometric mean", "", ...levels.map(() => ""), "", ...levels.map((l) => mean(l).toFixed(2))]),
  ];
  writeFileSync("docs/performance.md", `${before}${begin}\n${table.join("\n")}\n${end}${after}`);
}
process.exit(0);
