/** Which steps a program needs: those whose results are read by a later needed step or are outputs, and host operators without results. */
import { present } from "../core/assert.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Placement, ProgramInput, ProgramOutput, Step, Storage } from "../kernel/program.ts";

/** The steps without those that nothing needs. Memory is followed by storage, so that views and parts count. */
export function liveSteps(steps: readonly Step[], outputs: readonly ProgramOutput[], placements: ReadonlyMap<Buffer, Placement>): Step[] {
  const storageOf = (b: Buffer): Storage => present(placements.get(b), `placement of ${b.name}`).storage;
  const read = new Set(outputs.map((o) => storageOf(o.buffer)));
  const keep = (list: readonly Step[]): Step[] => {
    const kept: Step[] = [];
    for (const step of [...list].reverse()) {
      if (step.kind === "if") {
        const otherwise = keep(step.else), then = keep(step.then);
        if (then.length + otherwise.length === 0) continue;
        if ("name" in step.condition) read.add(storageOf(step.condition));
        kept.unshift({ ...step, then, else: otherwise });
        continue;
      }
      const writes = writesOf(step);
      if ((writes.length > 0 || step.kind === "call") && !writes.some((b) => read.has(storageOf(b)))) continue;
      for (const b of readsOf(step)) read.add(storageOf(b));
      kept.unshift(step);
    }
    return kept;
  };
  return keep(steps);
}

/** Buffers that a step itself writes; those of nested steps not included. */
function writesOf(step: Step): readonly Buffer[] {
  switch (step.kind) {
    case "call": return step.kernel.outputs;
    case "host": return step.outputs.filter((b) => b !== undefined);
    case "if": return [];
    case "loop": return step.carry.map((c) => c.to);
  }
}
function readsOf(step: Step): readonly Buffer[] {
  switch (step.kind) {
    case "call": return step.kernel.inputs;
    case "host": return step.inputs.filter((b) => b !== undefined);
    case "if": return "name" in step.condition ? [step.condition] : [];
    case "loop": return [step.iteration, ...(step.count ? [step.count] : []), ...(step.condition ? [step.condition] : []), ...step.carry.map((c) => c.from)];
  }
}

/** Every buffer that the steps, inputs and outputs name. */
export function usedBuffers(steps: readonly Step[], inputs: readonly ProgramInput[], outputs: readonly ProgramOutput[]): Set<Buffer> {
  const used = new Set<Buffer>([...inputs, ...outputs].map((x) => x.buffer));
  const visit = (list: readonly Step[]): void => {
    for (const step of list) {
      for (const b of [...readsOf(step), ...writesOf(step), ...(step.kind === "call" ? step.kernel.scratch : [])]) used.add(b);
      if (step.kind === "if") { visit(step.then); visit(step.else); }
      else if (step.kind === "loop") visit(step.body);
    }
  };
  visit(steps);
  return used;
}
