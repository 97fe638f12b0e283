/** What verification found, for people: one line for each rule that stayed, with its sites, and each rewrite that was dropped. */
import type { Verification } from "../api/index.ts";

/** Sites that a line names. */
const named = 4;

export function verificationLines({ runs, notRun, dropped, sites, tolerance }: Verification): string[] {
  const worst = Math.max(0, ...runs.flatMap((r) => Object.values(r.outputs).map((d) => d.maxScaled)));
  const kept = new Map<string, string[]>();
  for (const { rule, at, outcome } of sites) if (outcome === "kept") kept.set(rule, [...(kept.get(rule) ?? []), at]);
  return [
    `Verified in ${runs.length} runs: largest difference ${worst.toExponential(1)} of the largest element (${tolerance.toExponential(1)} is allowed)`,
    ...[...kept].map(([rule, at]) => `Verified ${rule} at ${at.slice(0, named).join(", ")}${at.length > named ? ` and ${at.length - named} more` : ""}`),
    ...dropped.map((d) => `Dropped ${d.rule} at ${d.at}: on ${d.inputs} inputs it ${d.difference === Infinity ? `puts NaN or infinities into other places of '${d.output}'` : `moves '${d.output}' by ${d.difference.toExponential(1)} of its largest element`}`),
    ...notRun.map((what) => `Not verified: ${what}`),
  ];
}
