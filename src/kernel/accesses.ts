/** Which buffers a step itself touches, before and after the steps nested in it; theirs are not included. */
import type { Buffer } from "./expr.ts";
import type { Step } from "./program.ts";

export interface Accesses { readonly reads: readonly Buffer[]; readonly writes: readonly Buffer[] }
export interface StepAccesses {
  /** When the step starts; for a loop, when each iteration does. */
  readonly before: Accesses;
  /** When its nested steps have run; for a loop, after each iteration. Its results are written after the last. */
  readonly after: Accesses;
}

const none: Accesses = { reads: [], writes: [] };
const there = (list: readonly (Buffer | undefined)[]): Buffer[] => list.filter((b) => b !== undefined);

export function accessesOf(step: Step): StepAccesses {
  switch (step.kind) {
    case "call": return { before: { reads: step.kernel.inputs, writes: [...step.kernel.outputs, ...step.kernel.scratch] }, after: none };
    case "host": return { before: { reads: there(step.inputs), writes: there(step.outputs) }, after: none };
    case "move": return { before: { reads: step.moves.map((m) => m.from), writes: step.moves.map((m) => m.to) }, after: none };
    case "check": return { before: { reads: [step.low, step.high], writes: [] }, after: none };
    case "if": return { before: { reads: "predicate" in step.condition ? [] : [step.condition], writes: [] }, after: none };
    case "loop": {
      const { count, condition, next, iteration, carry, stack } = step;
      const counted = count && "name" in count ? count : undefined;
      return {
        before: { reads: there([counted, condition, ...carry.map((c) => c.initial)]), writes: there([iteration, ...carry.map((c) => c.input)]) },
        after: { reads: there([next, ...carry.map((c) => c.next), ...stack.map((s) => s.from)]), writes: there([...carry.map((c) => c.result), ...stack.map((s) => s.to)]) },
      };
    }
  }
}

/** All buffers that a step itself touches. */
export function touchedBy(step: Step): readonly Buffer[] {
  const { before, after } = accessesOf(step);
  return [...before.reads, ...before.writes, ...after.reads, ...after.writes];
}

/** The lists of steps nested in a step. */
export function nestedSteps(step: Step): readonly (readonly Step[])[] {
  if (step.kind === "if") return [step.then, step.else];
  return step.kind === "loop" ? [step.body] : [];
}

/** The step with every nested one, and those in them, changed. */
export function mapNested(step: Step, change: (s: Step) => Step): Step {
  if (step.kind === "if") return { ...step, then: step.then.map(change), else: step.else.map(change) };
  return step.kind === "loop" ? { ...step, body: step.body.map(change) } : step;
}
