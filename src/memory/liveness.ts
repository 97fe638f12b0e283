/**
 * When each storage of a program is in use. Steps are numbered in pre-order, branches of an If one after the other, so
 * that storages of different branches may share memory. Inputs live from before the first step, outputs until after the
 * last. What a loop body reads before it writes, or shares with the outside, lives for the whole loop.
 */
import { present } from "../core/assert.ts";
import type { Buffer } from "../kernel/expr.ts";
import { accessesOf, nestedSteps, type Accesses } from "../kernel/accesses.ts";
import type { LoopStep, Program, Step, Storage } from "../kernel/program.ts";

export interface Lifetime { readonly first: number; readonly last: number }

export interface Liveness {
  /** Arena, input and output storages that are used; values that are held have no memory. */
  readonly lifetimes: ReadonlyMap<Storage, Lifetime>;
  /** Number of each step. */
  readonly numbers: ReadonlyMap<Step, number>;
  readonly steps: number;
}

interface Range { first: number; last: number }

/** Lifetimes of all storages that are not weights. */
export function liveness(program: Program): Liveness {
  const ranges = new Map<Storage, Range>();
  const numbers = new Map<Step, number>();
  let next = 0;
  const storageOf = (b: Buffer): Storage => present(program.placements.get(b), `placement of ${b.name}`).storage;
  const touch = (s: Storage, at: number): void => {
    if (s.kind === "weight" || s.kind === "state" || s.kind === "held") return;
    const range = ranges.get(s);
    if (!range) ranges.set(s, { first: at, last: at });
    else { range.first = Math.min(range.first, at); range.last = Math.max(range.last, at); }
  };
  const loops: { readonly step: LoopStep; readonly first: number; readonly last: number }[] = [];
  /** What is checked keeps what it holds until the end, so that it can be looked at after a trap too. */
  const cells: Buffer[] = [];
  const walk = (steps: readonly Step[]): void => {
    for (const step of steps) {
      const at = next++;
      numbers.set(step, at);
      const { before, after } = accessesOf(step);
      for (const b of [...before.reads, ...before.writes]) touch(storageOf(b), at);
      nestedSteps(step).forEach(walk);
      if (step.kind === "check") cells.push(step.low, step.high);
      if (step.kind !== "loop") continue;
      const last = next++;
      for (const b of [...after.reads, ...after.writes]) touch(storageOf(b), last);
      loops.push({ step, first: at, last });
    }
  };
  for (const i of program.inputs) touch(storageOf(i.buffer), -1);
  walk(program.steps);
  for (const o of program.outputs) touch(storageOf(o.buffer), next);
  for (const b of cells) for (const end of [-1, next]) touch(storageOf(b), end);
  for (const { step, first, last } of loops) spreadOverLoop(step, first, last, ranges, storageOf);
  return { lifetimes: ranges, numbers, steps: next };
}

/**
 * Extends to the whole loop the storages that carry something from one iteration, or from outside, into another, and
 * those that something after the loop reads. What the loop step itself writes when all is done comes after its iterations.
 */
function spreadOverLoop(loop: LoopStep, first: number, last: number, ranges: Map<Storage, Range>, storageOf: (b: Buffer) => Storage): void {
  const carried = readBeforeWritten(loop, storageOf);
  for (const [storage, range] of ranges) {
    const inside = range.last >= first && range.first <= last;
    const leaves = range.last > last && range.first < last;
    if (inside && (carried.has(storage) || range.first < first || leaves)) {
      range.first = Math.min(range.first, first);
      range.last = Math.max(range.last, last);
    }
  }
}

/** Storages that some step of an iteration reads where the same iteration may not have written them before. */
function readBeforeWritten(loop: LoopStep, storageOf: (b: Buffer) => Storage): ReadonlySet<Storage> {
  const found = new Set<Storage>();
  const note = ({ reads, writes }: Accesses, written: Set<Storage>): void => {
    for (const b of reads) if (!written.has(storageOf(b))) found.add(storageOf(b));
    for (const b of writes) written.add(storageOf(b));
  };
  const walk = (steps: readonly Step[], written: Set<Storage>): Set<Storage> => {
    for (const step of steps) {
      const { before, after } = accessesOf(step);
      note(before, written);
      if (step.kind === "loop") {
        note({ reads: after.reads, writes: [] }, walk(step.body, new Set(written)));
        note({ reads: [], writes: after.writes }, written);
      } else if (step.kind === "if") {
        const [then, otherwise] = [walk(step.then, new Set(written)), walk(step.else, new Set(written))];
        for (const s of then) if (otherwise.has(s)) written.add(s);
      }
    }
    return written;
  };
  const { before, after } = accessesOf(loop);
  note({ reads: after.reads, writes: [] }, walk(loop.body, new Set(before.writes.map(storageOf))));
  return found;
}
