/** What verification found, for people: one line for each rule that stayed, with its sites, and each rewrite that was dropped. */
import type { Simplified, Verification } from "../../api/index.ts";

/** Sites that a line names. */
const named = 4;

export function verificationLines({ runs, notRun, dropped, sites, tolerance, narrowed }: Verification): string[] {
  const worst = Math.max(0, ...runs.flatMap((r) => Object.values(r.outputs).map((d) => d.maxScaled)));
  const kept = new Map<string, string[]>();
  for (const { rule, at, outcome } of sites) if (outcome === "kept") kept.set(rule, [...(kept.get(rule) ?? []), at]);
  return [
    `Verified in ${runs.length} runs: largest difference ${worst.toExponential(1)} of the largest element (${tolerance.toExponential(1)} is allowed)`,
    ...[...kept].map(([rule, at]) => `Verified ${rule} at ${at.slice(0, named).join(", ")}${at.length > named ? ` and ${at.length - named} more` : ""}`),
    ...(narrowed ? [`Weights in fewer bits ${narrowed.worst === Infinity ? `put NaN, infinities or integers of '${narrowed.where}' into other places` : `change results by ${narrowed.worst.toExponential(1)} of the largest element at most`}, on ${narrowed.inputs} inputs (${narrowed.runs.length} runs)`] : []),
    ...dropped.map((d) => `Dropped ${d.rule} at ${d.at}: on ${d.inputs} inputs it ${d.difference === Infinity ? `puts NaN or infinities into other places of '${d.output}'` : `moves '${d.output}' by ${d.difference.toExponential(1)} of its largest element`}`),
    ...notRun.map((what) => `Not verified: ${what}`),
  ];
}

/** What comparing an emitted model with the original found. */
export const comparedLine = ({ runs, tolerance }: Simplified["check"]): string => `Compared with the original on ${runs.length} inputs: equal within ${tolerance.toExponential(0)}`;
