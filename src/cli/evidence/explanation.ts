/** What a report says, in lines for people: a summary, one node's story, one rule's sites, refusals by what they cost. */
import type { NodeStory } from "../../compiler/accounts/fates.ts";
import type { Report, Site } from "../../api/index.ts";
import { assumedSize, type Missed } from "../../compiler/accounts/missed.ts";
import { formatDimJson } from "../../core/dim-json.ts";
import { formatBytes } from "../table.ts";

/** The whole report. */
export function explanation(report: Report): string[] {
  const fired = report.sites.filter((s) => s.outcome === "fired"), refused = report.sites.filter((s) => s.outcome === "refused");
  const { original, compiled } = report.nodes;
  const lines = [`${original} nodes in the model, ${compiled} steps in the program.`, ...fateLines(report), "", `Fused (${fired.length}):`];
  for (const s of fired) lines.push(`  ${s.name} at ${s.at}: ${s.nodes.join(", ")}`);
  if (fired.length === 0) lines.push("  nothing");
  lines.push("", `Not fused (${refused.length}):`);
  for (const s of refused) lines.push(...refusal(s));
  if (refused.length === 0) lines.push("  nothing was refused");
  if (report.hostOperators.length) lines.push("", "Run by the host, without a kernel:", ...report.hostOperators.map((h) => `  ${h.op}: ${h.nodes.join(", ")}`));
  return lines;
}

/** How many original nodes went where. */
function fateLines(report: Report): string[] {
  const counts = new Map<string, number>();
  const add = (kind: string, nodes: number): void => { if (nodes > 0) counts.set(kind, (counts.get(kind) ?? 0) + nodes); };
  add("in kernels", new Set(report.traffic.flatMap((t) => t.nodes)).size);
  for (const f of report.fates) add(fateWords[f.kind], new Set(f.nodes).size);
  return [`Where the nodes went: ${[...counts].map(([kind, n]) => `${n} ${kind}`).join(", ") || "nowhere"}.`];
}
const fateWords = {
  view: "views", host: "on the host", control: "control flow", folded: "folded", eliminated: "eliminated", merged: "merged into equals",
  inlined: "inlined", rewritten: "rewritten away", constant: "constants", unread: "out of reach",
} as const;

/** What became of one node, and every site it takes part in. */
export function storyLines(story: NodeStory): string[] {
  const lines = [`${story.node}:`];
  for (const f of story.fates) {
    lines.push(`  ${f.kind}${f.region === undefined ? "" : ` in ${f.region}`}: ${f.why}`);
    if (f.kind === "fused") lines.push(`    with:   ${f.nodes.filter((n) => n !== story.node).join(", ")}`);
  }
  if (story.sites.length === 0) lines.push("", "No rule and no region had it as a candidate.");
  else lines.push("", `Sites (${story.sites.length}):`, ...story.sites.flatMap(siteLines));
  return lines;
}

/** Every site of a rule or region kind. */
export const ruleLines = (name: string, sites: readonly Site[]): string[] => (sites.length === 0
  ? [`${name} had no candidate in this model.`]
  : [`${name}: ${sites.filter((s) => s.outcome === "fired").length} fired, ${sites.filter((s) => s.outcome === "refused").length} refused.`, "", ...sites.flatMap(siteLines)]);

const siteLines = (s: Site): string[] => (s.outcome === "refused" ? refusal(s) : [`  ${s.name} at ${s.at} fired`, `    nodes:  ${s.nodes.join(", ")}`]);

function refusal(s: Site): string[] {
  return [`  ${s.name} at ${s.at} [${s.code ?? ""}]`, `    nodes:  ${s.nodes.join(", ")}`, `    reason: ${s.reason ?? ""}`, ...(s.remedy === undefined ? [] : [`    remedy: ${s.remedy}`])];
}

/** Refusals, dearest first. */
export function missedLines(missed: readonly Missed[]): string[] {
  if (missed.length === 0) return ["Nothing that could be done was left undone."];
  const timed = missed.some((m) => m.ms !== undefined);
  return [
    `Missed (${missed.length}), by the ${timed ? "time that the steps around it take for the bytes they hand over" : "bytes that move through memory for it"}:`,
    ...missed.flatMap(({ site, bytes, ms }, i) => {
      const [head = "", ...rest] = refusal(site);
      const formula = typeof site.bytes === "object" ? ` (${formatDimJson(site.bytes)}, sizes not given taken for ${assumedSize})` : "";
      return [`${String(i + 1).padStart(3)}. ${ms === undefined ? "" : `${ms.toFixed(3)} ms, `}${formatBytes(bytes)}${formula}: ${head.trim()}`, ...rest.map((l) => `   ${l}`)];
    }),
  ];
}
