/**
 * When each storage of a program is in use. Steps are numbered in pre-order, branches of an If one after the other, so
 * that storages of different branches may share memory. Inputs live from before the first step, outputs until after the
 * last. What a loop body reads before it writes, or shares with the outside, lives for the whole loop.
 */
import { present } from "../core/assert.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Program, Step, Storage } from "../kernel/program.ts";

export interface Lifetime { readonly first: number; readonly last: number }

export interface Liveness {
  /** Arena, input and output storages that are used. */
  readonly lifetimes: ReadonlyMap<Storage, Lifetime>;
  /** Number of each step. */
  readonly numbers: ReadonlyMap<Step, number>;
  readonly steps: number;
}

/** Buffers a step itself reads and writes, those of nested steps not included. */
export function accessesOf(step: Step): { readonly reads: readonly Buffer[]; readonly writes: readonly Buffer[] } {
  const there = (list: readonly (Buffer | undefined)[]): Buffer[] => list.filter((b): b is Buffer => b !== undefined);
  switch (step.kind) {
    case "call": return { reads: step.kernel.inputs, writes: [...step.kernel.outputs, ...step.kernel.scratch] };
    case "host": return { reads: there(step.inputs), writes: there(step.outputs) };
    case "if": return { reads: "predicate" in step.condition ? [] : [step.condition], writes: [] };
    case "loop": return { reads: there([step.count, step.condition, ...step.carry.map((c) => c.from)]), writes: [step.iteration, ...step.carry.map((c) => c.to)] };
  }
}

interface Range { first: number; last: number }

/** Lifetimes of all storages that are not weights. */
export function liveness(program: Program): Liveness {
  const ranges = new Map<Storage, Range>();
  const numbers = new Map<Step, number>();
  let next = 0;
  const storageOf = (b: Buffer): Storage => present(program.placements.get(b), `placement of ${b.name}`).storage;
  const touch = (s: Storage, at: number): void => {
    if (s.kind === "weight") return;
    const range = ranges.get(s);
    if (!range) ranges.set(s, { first: at, last: at });
    else { range.first = Math.min(range.first, at); range.last = Math.max(range.last, at); }
  };
  const walk = (steps: readonly Step[]): void => {
    for (const step of steps) {
      const at = next++;
      numbers.set(step, at);
      const { reads, writes } = accessesOf(step);
      for (const b of [...reads, ...writes]) touch(storageOf(b), at);
      if (step.kind === "if") { walk(step.then); walk(step.else); }
      else if (step.kind === "loop") { walk(step.body); spreadOverLoop(step, at, next++, ranges, storageOf); }
    }
  };
  for (const i of program.inputs) touch(storageOf(i.buffer), -1);
  walk(program.steps);
  for (const o of program.outputs) touch(storageOf(o.buffer), next);
  return { lifetimes: ranges, numbers, steps: next };
}

/** Extends to the whole loop the storages that carry something from one iteration, or from outside, into another. */
function spreadOverLoop(loop: Extract<Step, { kind: "loop" }>, first: number, last: number, ranges: Map<Storage, Range>, storageOf: (b: Buffer) => Storage): void {
  const written = new Set<Storage>(), carried = new Set<Storage>();
  const { reads, writes } = accessesOf(loop);
  for (const b of [...reads, ...writes]) carried.add(storageOf(b));
  const walk = (steps: readonly Step[], certain: boolean): void => {
    for (const step of steps) {
      const access = accessesOf(step);
      for (const b of access.reads) if (!written.has(storageOf(b))) carried.add(storageOf(b));
      if (certain) for (const b of access.writes) written.add(storageOf(b));
      else for (const b of access.writes) if (!written.has(storageOf(b))) carried.add(storageOf(b));
      if (step.kind === "if") { walk(step.then, false); walk(step.else, false); }
      else if (step.kind === "loop") walk(step.body, false);
    }
  };
  walk(loop.body, true);
  for (const [storage, range] of ranges) {
    const inside = range.last >= first && range.first <= last;
    if (inside && (carried.has(storage) || range.first < first)) {
      range.first = Math.min(range.first, first);
      range.last = Math.max(range.last, last);
    }
  }
}
