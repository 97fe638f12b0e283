/**
 * A profile as files: `op_summary.csv` and `op_statistic.csv` with the columns of msprof and ours behind them, and a trace
 * that chrome://tracing and Perfetto read.
 */
import type { Profile, StepProfile } from "../../profile/measure.ts";
import { csv } from "./csv.ts";

const number = (x: number | undefined, digits = 3): string => (x === undefined ? "N/A" : x.toFixed(digits));
const list = (texts: readonly string[] | undefined, part: (text: string) => string): string => (texts ?? []).map(part).join(";");
const dtypeOf = (text: string): string => text.slice(0, text.indexOf("[")).toUpperCase();
const shapeOf = (text: string): string => text.slice(text.indexOf("[") + 1, -1);
const taskType = (s: StepProfile): string => (s.kind === "kernel" ? "WASM_SIMD" : "HOST");

const summaryColumns = [
  "Model Name", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type", "Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)", "Block Dim",
  "Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats",
  "Kind", "Original Ops", "Operations", "Bytes", "GFLOP/s", "GB/s", "Bound", "Attained(%)",
];

/** One row for every step of the quickest run, in its order. Rates are those of that row's duration. */
export function opSummaryCsv(profile: Profile, model: string, dynamic: boolean): string {
  let end = 0;
  const rows = profile.timeline.flatMap(({ step, start, duration }, i) => {
    const s = profile.steps[step];
    if (!s) return [];
    const wait = Math.max(0, start - end), { work } = s;
    end = start + duration;
    const scale = duration > 0 ? s.min / duration : 0;
    const at = (x: number | undefined): number | undefined => (x === undefined ? undefined : x * scale);
    return [[
      model, i, 0, s.name, s.label, dynamic ? "dynamic" : "static", taskType(s), number(start), number(duration), number(wait), 1,
      list(work?.inputs, shapeOf), list(work?.inputs, dtypeOf), list(work?.inputs, () => "ND"), list(work?.outputs, shapeOf), list(work?.outputs, dtypeOf), list(work?.outputs, () => "ND"),
      work?.kind ?? (s.kind === "host" ? "host" : "N/A"), work?.nodes.join(";") ?? "", work?.operations ?? "N/A", work?.bytes ?? "N/A",
      number(at(s.gflops)), number(at(s.gbs)), s.bound ?? "N/A", number(s.attained === undefined ? undefined : 100 * s.attained * scale, 1),
    ]];
  });
  return csv([summaryColumns, ...rows]);
}

const statisticColumns = ["Model Name", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)", "Ratio(%)"];

export interface Statistic { readonly label: string; readonly core: string; readonly count: number; readonly total: number; readonly min: number; readonly mean: number; readonly max: number; readonly share: number }

/** Steps by what they compute; times in microseconds a run, the dearest first. */
export function statistics({ steps, sum }: Profile): Statistic[] {
  const groups = new Map<string, StepProfile[]>();
  for (const s of steps) if (s.count > 0) groups.set(`${taskType(s)} ${s.label}`, [...(groups.get(`${taskType(s)} ${s.label}`) ?? []), s]);
  return [...groups.values()].map((list): Statistic => {
    const count = list.reduce((n, s) => n + s.count, 0), total = list.reduce((n, s) => n + s.total, 0);
    return {
      label: list[0]?.label ?? "", core: list[0] ? taskType(list[0]) : "", count, total, mean: total / count, share: sum > 0 ? total / sum : 0,
      min: Math.min(...list.map((s) => s.min)), max: Math.max(...list.map((s) => s.max)),
    };
  }).sort((a, b) => b.total - a.total);
}

/** One row for every kind of region; times and counts are those of one run, on average. */
export function opStatisticCsv(profile: Profile, model: string): string {
  return csv([statisticColumns, ...statistics(profile).map((s) => [model, s.label, s.core, number(s.count, s.count % 1 ? 2 : 0), number(s.total), number(s.min), number(s.mean), number(s.max), number(100 * s.share, 2)])]);
}

/** The quickest run as trace events; microseconds. */
export function chromeTrace(profile: Profile, model: string): string {
  const events = profile.timeline.flatMap(({ step, start, duration }) => {
    const s = profile.steps[step];
    return s ? [{
      name: s.label, cat: s.kind, ph: "X", pid: 1, tid: 1, ts: start, dur: duration,
      args: { kernel: s.name, ...(s.work ? { kind: s.work.kind, nodes: s.work.nodes, inputs: s.work.inputs, outputs: s.work.outputs, operations: s.work.operations, bytes: s.work.bytes } : {}), ...(s.bound ? { bound: s.bound } : {}) },
    }] : [];
  });
  const names = [{ name: "process_name", ph: "M", pid: 1, args: { name: `onnxfuse ${model}` } }, { name: "thread_name", ph: "M", pid: 1, tid: 1, args: { name: "WebAssembly" } }];
  return JSON.stringify({ displayTimeUnit: "ms", traceEvents: [...names, ...events] });
}
