/** The sizes that a module reads from the plan's table. */
import { isSymbolic, type SymbolicDim } from "../../core/dim.ts";
import { dimsOfBody } from "../../kernel/dims.ts";
import type { Program } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";

/** Sizes that the legal kernels of a program take and symbolic offsets of their buffers, in order of appearance. */
export function programDims(program: Program): SymbolicDim[] {
  const dims = new Map<string, SymbolicDim>();
  for (const step of allSteps(program.steps)) {
    if (step.kind !== "call") continue;
    dimsOfBody(step.kernel.body, dims);
    for (const buffer of [...step.kernel.inputs, ...step.kernel.outputs, ...step.kernel.scratch]) {
      const offset = program.placements.get(buffer)?.layout.offset ?? 0;
      if (isSymbolic(offset)) dims.set(offset.key, offset);
    }
  }
  return [...dims.values()];
}
