/**
 * Differential fuzzing of single operators and small graphs against onnxruntime, its optimisation disabled.
 * Usage: npm run fuzz:operators [-- --count N] [--seed S] [--from INDEX] [--only OPERATOR|graph] [--case INDEX]
 * Every third case is a graph. Case i of a seed is always the same: `--case` shows one in full. Exit code 1 where
 * something differs that is not known.
 */
import { parseArgs } from "node:util";
import type { AttributeSpec, ModelSpec } from "../test/support/model-spec.ts";
import { specOf } from "../test/support/operator-oracle.ts";
import { judge } from "./compare.ts";
import { drawOfCase, type Draw } from "./draw.ts";
import { generators } from "./generators.ts";
import { describeGraph, graphSpec } from "./graph-case.ts";
import { drawGraph } from "./graphs.ts";
import { judgeGraph, type GraphVerdict } from "./judge-graph.ts";
import { isKnown } from "./known-differences.ts";

interface Judged { readonly name: string; readonly verdict: GraphVerdict; readonly text: string; readonly spec: ModelSpec; readonly feeds: unknown }

const { values } = parseArgs({ options: { seed: { type: "string" }, count: { type: "string" }, from: { type: "string" }, only: { type: "string" }, case: { type: "string" } } });
const names = Object.keys(generators).filter((n) => values.only === undefined || n === values.only);
const seed = Number(values.seed ?? Date.now() % 1e9), first = Number(values.case ?? values.from ?? 0), count = values.case === undefined ? Number(values.count ?? 20000) : 1;
if (!names.length && values.only !== "graph") throw new Error(`no generator for ${String(values.only)}`);

async function operatorCase(name: string, draw: Draw): Promise<Judged | undefined> {
  const generator = generators[name];
  if (!generator) return undefined;
  const c = generator(draw), verdict = await judge(c), known = verdict.kind === "differs" && isKnown(c, verdict.message ?? "");
  const text = `${name} (${c.inputs.map((t) => (t ? `${t.dtype}[${t.dims}]` : "-")).join(", ")}) ${JSON.stringify(c.attributes ?? {}, brief)}`;
  return { name, verdict: known ? { ...verdict, kind: "known to differ" } : verdict, text, ...specOf(c) };
}
async function graphCase(draw: Draw): Promise<Judged | undefined> {
  const c = drawGraph(draw);
  return c && { name: "graph", verdict: await judgeGraph(c).catch(brokenBy), text: `graph ${describeGraph(c)}`, spec: graphSpec(c), feeds: { ...c.feeds, ...c.constants } };
}
/** A fault that comes up while judging is one of ours too. */
const brokenBy = (e: unknown): GraphVerdict => ({ kind: "differs", message: `judging broke: ${e instanceof Error ? e.message : String(e)}` });
const brief = (_: string, value: AttributeSpec | bigint): unknown => (typeof value === "bigint" ? Number(value) : value);

console.log(`seed ${seed}, ${count} cases${first ? ` from ${first}` : ""}, ${names.length} operators`);
const totals: Record<string, number> = {}, found = new Map<string, { first: number; count: number }>(), unjudged = new Map<string, number>();
let graphs = 0, rounding = 0;
const summary = (): string => Object.entries(totals).map(([kind, n]) => `${n} ${kind}`).join(", ");
for (let i = first; i < first + count; i++) {
  if (i > first && (i - first) % 1000 === 0) console.log(`${i - first} tried: ${summary()}`);
  const draw = drawOfCase(seed, i);
  const isGraph = values.only === "graph" || (values.only === undefined && i % 3 === 2), judged = await (isGraph ? graphCase(draw) : operatorCase(names[i % names.length] ?? "", draw));
  if (!judged) continue;
  const { name, verdict: { kind, message = "", rounding: isRounding }, text } = judged;
  totals[kind] = (totals[kind] ?? 0) + 1;
  graphs += Number(isGraph);
  rounding += Number(isRounding ?? false);
  if (kind === "unjudged") {
    const key = `${name}: ${message.replace(/[0-9'"(].*/, "")}`;
    unjudged.set(key, (unjudged.get(key) ?? 0) + 1);
  }
  if (kind === "differs") {
    const key = `${name}: ${message.replace(/-?\d[\d.e+-]*/g, "#")}`, so = found.get(key);
    found.set(key, { first: so?.first ?? i, count: (so?.count ?? 0) + 1 });
    console.log(so ? `case ${i}: ${message}` : `case ${i}, ${text}: ${message}`);
  }
  if (values.case !== undefined) { console.log(judged.verdict, text); console.dir(judged.spec, { depth: 8, maxArrayLength: 64 }); console.dir(judged.feeds, { depth: 8, maxArrayLength: 64 }); }
}
console.log(`${summary()}; ${graphs} graphs, ${rounding} of them equal but for rounding that their conditioning explains`);
if (unjudged.size) console.log(`unjudged: ${[...unjudged].sort(([, a], [, b]) => b - a).slice(0, 40).map(([k, n]) => `${n}x ${k}`).join("; ")}`);
for (const [key, { first, count }] of found) console.log(`${count}x ${key} (case ${first})`);
if (found.size) process.exitCode = 1;
