/**
 * Where threads must wait for each other: a phase must not start while one is running that writes what it touches, or
 * touches what it writes. Memory counts by storages, those that the plan may put in one place as one.
 */
import { present } from "../../core/assert.ts";
import { isSymbolic } from "../../core/dim.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Kernel, Phase } from "../../kernel/kernel.ts";
import type { Program, Storage } from "../../kernel/program.ts";
import type { ArenaBlock, MemoryPlan } from "../../memory/plan.ts";

interface Access { readonly storage: Storage; readonly written: boolean }

export class Hazards {
  readonly #program: Program;
  readonly #plan: MemoryPlan;
  readonly #blocks = new Map<number, ArenaBlock>();
  #running: Access[] = [];

  constructor(program: Program, plan: MemoryPlan) {
    this.#program = program;
    this.#plan = plan;
    for (const block of plan.arena) {
      const address = plan.addresses.get(block.storage);
      if (address?.kind === "slot") this.#blocks.set(address.slot, block);
    }
  }

  /** Notes that a phase starts; true where what was noted before must have ended, which then counts as done. */
  starts(kernel: Kernel, phase: Phase): boolean {
    const written = new Set<Buffer>([...kernel.outputs, ...kernel.scratch]);
    const accesses = [...phase.touched].map((b): Access => ({ storage: present(this.#program.placements.get(b), `placement of ${b.name}`).storage, written: written.has(b) })).filter((a) => a.storage.kind !== "weight");
    const waits = accesses.some((a) => this.#running.some((r) => (a.written || r.written) && this.#overlap(a.storage, r.storage)));
    this.#running = waits ? accesses : [...this.#running, ...accesses];
    return waits;
  }

  #overlap(a: Storage, b: Storage): boolean {
    if (a === b) return true;
    if (a.kind === "state" || b.kind === "state") return false;
    const x = present(this.#plan.addresses.get(a), `address of ${a.name}`), y = present(this.#plan.addresses.get(b), `address of ${b.name}`);
    if (x.kind === "slot" && y.kind === "slot") {
      const p = this.#blocks.get(x.slot), q = this.#blocks.get(y.slot);
      return x.slot === y.slot || !p || !q || p.last < q.first || q.last < p.first;
    }
    if (x.kind === "slot" || y.kind === "slot") return false;
    return x.address < y.address + sizeOf(b) && y.address < x.address + sizeOf(a);
  }
}

const sizeOf = ({ bytes }: Storage): number => (isSymbolic(bytes) ? Infinity : bytes);
