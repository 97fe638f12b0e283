/** What accompanies a run: who is told of its steps, and when it is given up. */
import { fail } from "../core/diagnostic.ts";

/** Told of each step after it ran. */
export type StepObserver = (label: string, kind: "segment" | "host", milliseconds: number) => void;
/** Who watches a run, and when it is to be given up (by `performance.now`). */
export interface Watch { readonly observer?: StepObserver | undefined; readonly until?: number | undefined }
export type Run = (watch: Watch) => void;

/** Fails with OF7017 where a run has had its time. Asked between steps and between iterations: code is not interrupted. */
export function checkTime({ until }: Watch): void {
  if (until !== undefined && performance.now() > until) fail("OF7017", "the run took longer than its time limit", { hint: "give it a larger `timeLimit`, or check the values that are fed to its loops" });
}
