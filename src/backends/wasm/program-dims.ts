/** The sizes that a module reads from the plan's table. */
import { isSymbolic, type Dim, type SymbolicDim } from "../../core/dim.ts";
import { dimsOfBody } from "../../kernel/dims.ts";
import type { Program } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";
import { threadScratch } from "../../memory/thread-scratch.ts";

/**
 * Sizes that the legal kernels of a program take, symbolic offsets of their buffers and of threads' working memory, in
 * order of appearance.
 */
export function programDims(program: Program): SymbolicDim[] {
  const dims = new Map<string, SymbolicDim>();
  const note = (d: Dim): void => { if (isSymbolic(d)) dims.set(d.key, d); };
  for (const step of allSteps(program.steps)) {
    if (step.kind !== "call") continue;
    // Kernels that are alike read the same sizes, which the first of them has named.
    if (!step.kernel.phases?.every((p) => p.like)) dimsOfBody(step.kernel.body, dims);
    for (const buffer of [...step.kernel.inputs, ...step.kernel.outputs, ...step.kernel.scratch]) note(program.placements.get(buffer)?.layout.offset ?? 0);
    for (const offset of threadScratch(step.kernel).offsets.values()) note(offset);
  }
  return [...dims.values()];
}
