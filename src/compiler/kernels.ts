/** Program-wide application of kernel passes. */
import { present } from "../core/assert.ts";
import { dimMul, dimProduct } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import { mapNested } from "../kernel/accesses.ts";
import type { Buffer } from "../kernel/expr.ts";
import { rowMajor, type Kernel, type Layout } from "../kernel/kernel.ts";
import type { Program, Step } from "../kernel/program.ts";
import { allSteps } from "../kernel/segments.ts";

/** The program with every kernel replaced; a kernel that several steps share is replaced once. */
export function mapKernels(program: Program, change: (kernel: Kernel) => Kernel): Program {
  const done = new Map<Kernel, Kernel>();
  const changed = (kernel: Kernel): Kernel => {
    const known = done.get(kernel);
    if (known) return known;
    const fresh = change(kernel);
    done.set(kernel, fresh);
    return fresh;
  };
  const step = (s: Step): Step => (s.kind === "call" ? { ...s, kernel: changed(s.kernel) } : mapNested(s, step));
  return { ...program, steps: program.steps.map(step) };
}

/** Where the elements of the program's buffers lie. */
export const layoutsOf = ({ placements }: Program) => (b: Buffer): Layout => present(placements.get(b), `placement of ${b.name}`).layout;

/** The program with a place in the arena for working memory that schedules have added. */
export function placeScratch(program: Program): Program {
  const placements = new Map(program.placements);
  for (const s of allSteps(program.steps)) {
    if (s.kind !== "call") continue;
    for (const b of s.kernel.scratch) {
      if (!placements.has(b)) placements.set(b, { storage: { name: b.name, kind: "arena", bytes: dimProduct([...b.shape, byteSize(b.dtype)]) }, layout: rowMajor(b.shape, dimMul) });
    }
  }
  return { ...program, placements };
}
