/**
 * Differential fuzzing of single operators against onnxruntime, its optimisation disabled.
 * Usage: npm run fuzz:operators [-- --count N] [--seed S] [--only OPERATOR] [--case INDEX]
 * Case i of a seed is always the same: `--case` shows one in full. Exit code 1 where something differs that is not known.
 */
import { parseArgs } from "node:util";
import { specOf } from "../test/support/operator-oracle.ts";
import { judge } from "./compare.ts";
import { drawFromSeed } from "./draw.ts";
import { generators } from "./generators.ts";
import { isKnown } from "./known-differences.ts";

const { values } = parseArgs({ options: { seed: { type: "string" }, count: { type: "string" }, only: { type: "string" }, case: { type: "string" } } });
const seed = Number(values.seed ?? Date.now() % 1e9), names = Object.keys(generators).filter((n) => values.only === undefined || n === values.only);
const first = Number(values.case ?? 0), count = values.case === undefined ? Number(values.count ?? 20000) : 1;
console.log(`seed ${seed}, ${count} cases, ${names.length} operators`);
const totals: Record<string, number> = {}, found = new Map<string, { first: number; count: number; message: string }>(), unjudged = new Map<string, number>();
for (let i = first; i < first + count; i++) {
  const name = names[i % names.length] ?? "", generator = generators[name];
  if (!generator) throw new Error(`no generator for ${String(values.only)}`);
  const c = generator(drawFromSeed((Math.imul(seed, 0x9e3779b1) ^ Math.imul(i + 1, 0x85ebca6b)) >>> 0)), verdict = await judge(c);
  const known = verdict.kind === "differs" && isKnown(c, verdict.message ?? "");
  const kind = known ? "known to differ" : verdict.kind;
  totals[kind] = (totals[kind] ?? 0) + 1;
  if (kind === "unjudged") unjudged.set(`${name}: ${verdict.message?.replace(/[0-9'"(].*/, "") ?? ""}`, (unjudged.get(`${name}: ${verdict.message?.replace(/[0-9'"(].*/, "") ?? ""}`) ?? 0) + 1);
  if (kind === "differs") {
    const key = `${name}: ${(verdict.message ?? "").replace(/-?[0-9.e+-]+/g, "#")}`, so = found.get(key);
    found.set(key, { first: so?.first ?? i, count: (so?.count ?? 0) + 1, message: so?.message ?? verdict.message ?? "" });
    if (!so) console.log(`case ${i}, ${name} (${c.inputs.map((t) => (t ? `${t.dtype}[${t.dims}]` : "-")).join(", ")}) ${JSON.stringify(c.attributes ?? {}, brief)}: ${verdict.message ?? ""}`);
  }
  if (values.case !== undefined) { console.log(verdict); console.dir(specOf(c), { depth: 8, maxArrayLength: 64 }); }
}
function brief(_: string, value: unknown): unknown { return typeof value === "bigint" ? Number(value) : value; }
console.log(Object.entries(totals).map(([kind, n]) => `${n} ${kind}`).join(", "));
if (unjudged.size) console.log(`unjudged: ${[...unjudged].sort(([, a], [, b]) => b - a).slice(0, 40).map(([k, n]) => `${n}x ${k}`).join("; ")}`);
for (const [key, { first, count }] of found) console.log(`${count}x ${key} (case ${first})`);
if (found.size) process.exitCode = 1;
