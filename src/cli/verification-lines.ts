/** What verification found, for people. */
import type { Verification } from "../api/index.ts";

export function verificationLines({ runs, notRun, dropped, tolerance }: Verification): string[] {
  const worst = Math.max(0, ...runs.flatMap((r) => Object.values(r.outputs).map((d) => d.maxScaled)));
  return [
    `Verified in ${runs.length} runs: largest difference ${worst.toExponential(1)} of the largest element (${tolerance.toExponential(1)} is allowed)`,
    ...dropped.map((d) => `Dropped ${d.rule} at ${d.at}: with it the results differ by ${d.difference.toExponential(1)}`),
    ...notRun.map((what) => `Not verified: ${what}`),
  ];
}
