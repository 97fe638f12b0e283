/** The console lines of a compilation, made from its report alone. */
import { chainOf } from "./operator-names.ts";
import type { Report } from "./report.ts";

/** Lines as `atc --log=info` prints them. `typeOf` gives an original node's operator type. */
export function fusionLines(report: Report, typeOf: (node: string) => string | undefined): string[] {
  const lines: string[] = [];
  for (const site of report.sites) {
    if (site.kind !== "region" || site.outcome !== "fired") continue;
    const types = site.nodes.map((n) => typeOf(n)).filter((t): t is string => t !== undefined && t !== "Constant");
    if (site.name === "FlashAttention") {
      lines.push("[GE] Detected Attention pattern: MatMul + Softmax + MatMul", "[GE] Fusion: Apply FlashAttention");
      const block = report.attention.find((a) => a.nodes.some((n) => site.nodes.includes(n)));
      if (block) lines.push(`[GE] FlashAttention block size: ${block.queries}x${block.keys}`);
    } else lines.push(`[GE] Fusion: ${chainOf(types)} -> ${site.name}`);
    lines.push(`[GE] Fused ${types.length} nodes into 1`);
  }
  return lines;
}

/** The summary: node counts and what was fused how often. */
export function summaryLines(report: Report): string[] {
  const { original, compiled } = report.nodes;
  return [
    `[GE] Original graph: ${original} nodes`,
    `[GE] After optimization: ${compiled} nodes`,
    `[GE] Fused ${original - compiled} nodes`,
    "[GE] Fusion details:",
    ...report.counts.details.filter((d) => d.times > 0).map((d) => `[GE]   ${d.label}: ${d.times} times`),
    ...report.switches.filter((s) => s.sites.length).map((s) => `[GE] Fusion switch ${s.name}:${s.on ? "on" : "off"} decided ${s.sites.length} sites`),
    ...approximationLines(report),
    ...narrowedLines(report),
  ];
}

/** Refused sites, for `--log=debug`. */
export function refusalLines(report: Report): string[] {
  return report.sites.filter((s) => s.outcome === "refused").map((s) => `[GE] Not fused: ${s.name} at ${s.at} [${s.code ?? ""}]: ${s.reason ?? ""}${s.remedy === undefined ? "" : `; ${s.remedy}`}`);
}

/** Rules that approximate and were allowed to. */
function approximationLines({ approximations }: Report): string[] {
  return approximations.map(({ rule, times }) => `[GE] Approximation: ${rule}, ${times} times`);
}

/** How many weights are held in fewer bits. */
function narrowedLines({ narrowed }: Report): string[] {
  if (!narrowed) return [];
  const done = narrowed.filter((n) => n.error !== undefined), worst = done.reduce((most, n) => Math.max(most, n.error ?? 0), 0);
  const fed = narrowed.filter((n) => n.kept === "overridable").length;
  return [`[GE] Weights in fewer bits: ${done.length} of ${narrowed.length}${fed ? ` (${fed} are inputs of the model too: --freeze-initializers makes them constant)` : ""}${done.length ? `, each element changed by at most ${worst.toExponential(1)} of its weight's largest` : ""}`];
}
