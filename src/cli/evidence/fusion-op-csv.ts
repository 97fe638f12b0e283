/** `fusion_op.csv`: what each kernel fused and the memory it moves, in the columns of msprof, with traffic before and after. */
import type { Report } from "../../api/index.ts";
import { dimAdd } from "../../core/dim.ts";
import { dimFromJson, dimToJson, evaluateDimJson, formatDimJson, type DimJson } from "../../core/dim-json.ts";
import { csv } from "./csv.ts";

const columns = ["Model Name", "Model ID", "Fusion Op", "Original Ops", "Memory Input(KB)", "Memory Output(KB)", "Memory Weight(KB)", "Memory Workspace(KB)", "Memory Total(KB)", "Traffic Before(KB)", "Traffic After(KB)"];

/** One line a region; sizes in KB, or as expressions in bytes where they are symbolic. */
export function fusionOpCsv(report: Report): string {
  const rows = report.traffic.map((t) => [
    report.model, "0", t.region, t.nodes.join(";"), size(t.after.read), size(t.after.written), size(t.weights), "0",
    total([t.after.read, t.after.written, t.weights]), total([t.before.read, t.before.written]), total([t.after.read, t.after.written]),
  ]);
  return csv([columns, ...rows]);
}

const kilobytes = (bytes: number): string => String(Number((bytes / 1024).toFixed(3)));
const size = (d: DimJson): string => { const n = evaluateDimJson(d, new Map()); return n === undefined ? `${formatDimJson(d)} B` : kilobytes(n); };
function total(parts: readonly DimJson[]): string {
  const known = parts.map((p) => evaluateDimJson(p, new Map()));
  if (known.every((k): k is number => k !== undefined)) return kilobytes(known.reduce((a, b) => a + b, 0));
  return size(dimToJson(parts.map(dimFromJson).reduce((a, b) => dimAdd(a, b), 0)));
}
