/**
 * Segments: the maximal runs of consecutive `call` steps. Each becomes one exported function `run_<index>` of the
 * compiled module; indices count segments in the order of a pre-order walk of the steps (then before else).
 */
import { nestedSteps } from "./accesses.ts";
import type { CheckStep, LoopStep, Step } from "./program.ts";

export type CallStep = Extract<Step, { kind: "call" }>;
export type HostStep = Extract<Step, { kind: "host" }>;
export type IfStep = Extract<Step, { kind: "if" }>;
export type MoveStep = Extract<Step, { kind: "move" }>;

/** Steps with their calls gathered. */
export type SegmentedStep =
  | { readonly kind: "segment"; readonly index: number; readonly calls: readonly CallStep[] }
  | HostStep
  | MoveStep
  | CheckStep
  | { readonly kind: "if"; readonly step: IfStep; readonly then: readonly SegmentedStep[]; readonly else: readonly SegmentedStep[] }
  | { readonly kind: "loop"; readonly step: LoopStep; readonly body: readonly SegmentedStep[] };

export interface Segmentation {
  readonly steps: readonly SegmentedStep[];
  /** By index. */
  readonly segments: readonly (readonly CallStep[])[];
}

/** Groups the calls of a program's steps; with `apart`, every call is a segment of its own. */
export function segment(steps: readonly Step[], apart = false): Segmentation {
  const segments: CallStep[][] = [];
  const walk = (list: readonly Step[]): SegmentedStep[] => {
    const out: SegmentedStep[] = [];
    let open: CallStep[] | undefined;
    for (const step of list) {
      if (step.kind === "call") {
        if (!open || apart) {
          open = [];
          out.push({ kind: "segment", index: segments.length, calls: open });
          segments.push(open);
        }
        open.push(step);
        continue;
      }
      open = undefined;
      if (step.kind === "host" || step.kind === "move" || step.kind === "check") out.push(step);
      else if (step.kind === "if") out.push({ kind: "if", step, then: walk(step.then), else: walk(step.else) });
      else out.push({ kind: "loop", step, body: walk(step.body) });
    }
    return out;
  };
  return { steps: walk(steps), segments };
}

/** Every step, those in branches and loop bodies included, in pre-order. */
export function* allSteps(steps: readonly Step[]): Generator<Step> {
  for (const step of steps) {
    yield step;
    for (const nested of nestedSteps(step)) yield* allSteps(nested);
  }
}
