/**
 * Warm speed against onnxruntime-node (native code), one thread each, in processes of their own that take turns: each
 * warms up for 1.5 s and takes the median of 31 samples; of three such pairs the worst ratio counts.
 * Usage: tsx bench/against-node.ts [--publish] [MODEL_ID…]
 */
import { parseArgs } from "node:util";
import { caseIds } from "../test/support/cases.ts";
import { inFreshProcess, machine, prepared, type Engine } from "./fresh.ts";
import { geometricMean } from "./interleave.ts";
import { publish, table, taken } from "./page.ts";

interface Steady { readonly min: number; readonly q1: number; readonly median: number; readonly q3: number }
interface Row { readonly id: string; readonly pairs: readonly { readonly ours: Steady; readonly node: Steady }[]; readonly worst: number }

const { values, positionals } = parseArgs({ allowPositionals: true, options: { pairs: { type: "string", default: "3" }, warm: { type: "string", default: "1500" }, publish: { type: "boolean", default: false } } });
const rows: Row[] = [];
for (const id of positionals.length ? positionals : caseIds()) {
  await prepared(id, (files) => {
    const steady = (engine: Engine): Steady => inFreshProcess("steady.mjs", engine, files, values.warm);
    const pairs = Array.from({ length: Number(values.pairs) }, () => ({ ours: steady("onnxfuse"), node: steady("onnxruntime-node") }));
    rows.push({ id, pairs, worst: Math.min(...pairs.map((p) => p.node.median / p.ours.median)) });
  });
  console.log(cells(rows.at(-1) as Row).join("  "));
}

function cells({ id, pairs, worst }: Row): string[] {
  const last = pairs.at(-1);
  return [id, last?.ours.median.toFixed(3) ?? "", last?.node.median.toFixed(3) ?? "", worst.toFixed(2)];
}
const lines = [
  taken(machine()), "",
  ...table(["model", "onnxfuse ms", "onnxruntime-node ms", "times as fast"], rows.map(cells)), "",
  `Geometric mean ${geometricMean(rows.map((r) => r.worst)).toFixed(2)}; faster on ${rows.filter((r) => r.worst > 1).length} of ${rows.length}.`,
];
console.log(lines.join("\n"));
if (values.publish) publish("against-node", { machine: machine(), models: rows }, lines);
