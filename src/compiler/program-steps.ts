/** Kernels of a program as they stand at a stage, each once. */
import type { Kernel } from "../kernel/kernel.ts";
import { printKernel } from "../kernel/print.ts";
import type { Program } from "../kernel/program.ts";
import { allSteps } from "../kernel/segments.ts";

/** The kernels that a program calls, and their loops as text. */
export function stepsOf(program: Program): { readonly kernel: Kernel; readonly text: () => string }[] {
  const kernels = new Set([...allSteps(program.steps)].flatMap((s) => (s.kind === "call" ? [s.kernel] : [])));
  return [...kernels].map((kernel) => ({ kernel, text: () => printKernel(kernel) }));
}
