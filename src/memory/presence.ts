/**
 * Under which sizes a storage is used at all. What only one branch of an If by sizes touches needs no memory when the
 * other one runs, where its sizes may be huge, or make no sense.
 */
import { present } from "../core/assert.ts";
import { dimEqual, dimSub, type Dim } from "../core/dim.ts";
import { nestedSteps, touchedBy } from "../kernel/accesses.ts";
import type { Program, Step, Storage } from "../kernel/program.ts";

/** Predicates that all hold where a step runs, outermost first; each is 1 or 0. */
export type Presence = readonly Dim[];

/** For each storage that a step, input or output touches, what holds wherever it is touched. */
export function presences(program: Program): ReadonlyMap<Storage, Presence> {
  const found = new Map<Storage, Presence>();
  const touch = (storage: Storage, here: Presence): void => { found.set(storage, joinPresences(found.get(storage) ?? here, here)); };
  const walk = (steps: readonly Step[], here: Presence): void => {
    for (const step of steps) {
      for (const b of touchedBy(step)) touch(present(program.placements.get(b), `placement of ${b.name}`).storage, here);
      const predicate = step.kind === "if" && "predicate" in step.condition ? step.condition.predicate : undefined;
      nestedSteps(step).forEach((nested, i) => walk(nested, predicate === undefined ? here : [...here, i === 0 ? predicate : dimSub(1, predicate)]));
    }
  };
  for (const { buffer } of [...program.inputs, ...program.outputs]) touch(present(program.placements.get(buffer), `placement of ${buffer.name}`).storage, []);
  walk(program.steps, []);
  return found;
}

/** What holds in both cases. */
export function joinPresences(a: Presence, b: Presence): Presence {
  const length = a.findIndex((d, i) => !dimEqual(d, b[i] ?? -1));
  return length < 0 ? a : a.slice(0, length);
}
