/** What verification found, for people. */
import type { Verification } from "../api/index.ts";

export function verificationLines({ runs, notRun, dropped, tolerance, narrowed }: Verification): string[] {
  const worst = Math.max(0, ...runs.flatMap((r) => Object.values(r.outputs).map((d) => d.maxScaled)));
  return [
    `Verified in ${runs.length} runs: largest difference ${worst.toExponential(1)} of the largest element (${tolerance.toExponential(1)} is allowed)`,
    ...(narrowed ? [`Weights in fewer bits change results by ${narrowed.worst.toExponential(1)} of the largest element at most${narrowed.where === "" ? "" : `, in '${narrowed.where}'`} (${narrowed.runs.length} runs)`] : []),
    ...dropped.map((d) => `Dropped ${d.rule} at ${d.at}: with it the results differ by ${d.difference.toExponential(1)}`),
    ...notRun.map((what) => `Not verified: ${what}`),
  ];
}
