/**
 * Which steps a program needs: those whose results are read by a later needed step or are outputs, those that tell sizes
 * which a needed step knows things by, and host operators without results.
 */
import { symbolsOf, type Dim } from "../core/dim.ts";
import { present } from "../core/assert.ts";
import { accessesOf, nestedSteps, touchedBy } from "../kernel/accesses.ts";
import type { Buffer } from "../kernel/expr.ts";
import { dimsOfBody } from "../kernel/dims.ts";
import type { LoopStep, Placement, ProgramInput, ProgramOutput, Step, Storage } from "../kernel/program.ts";

/** The steps without those that nothing needs. Memory is followed by storage, so that views and parts count. */
export function liveSteps(steps: readonly Step[], inputs: readonly ProgramInput[], outputs: readonly ProgramOutput[], placements: ReadonlyMap<Buffer, Placement>): Step[] {
  return new Live(placements, inputs.map((i) => i.buffer), outputs.map((o) => o.buffer)).steps(steps);
}

class Live {
  readonly #placements: ReadonlyMap<Buffer, Placement>;
  /** Storages that something needed reads, and symbols of the sizes it uses. */
  readonly #read = new Set<Storage>();
  readonly #symbols = new Set<string>();

  /** Symbols that the program's inputs tell. */
  readonly #given = new Set<string>();

  constructor(placements: ReadonlyMap<Buffer, Placement>, inputs: readonly Buffer[], outputs: readonly Buffer[]) {
    this.#placements = placements;
    for (const b of inputs) for (const d of b.shape) symbolsOf(d, this.#given);
    this.#mark(outputs);
  }
  #storageOf(b: Buffer): Storage { return present(this.#placements.get(b), `placement of ${b.name}`).storage; }
  #mark(buffers: readonly Buffer[]): void {
    for (const b of buffers) this.#read.add(this.#storageOf(b));
    this.#markSizes(buffers.flatMap((b) => b.shape));
  }
  #markSizes(sizes: Iterable<Dim>): void { for (const d of sizes) symbolsOf(d, this.#symbols); }
  #isRead(b: Buffer): boolean { return this.#read.has(this.#storageOf(b)); }
  /** Whether writing a buffer, whose sizes may become known by that, is of use. */
  #isNeeded(b: Buffer): boolean { return this.#isRead(b) || b.shape.some((d) => [...symbolsOf(d)].some((s) => this.#symbols.has(s) && !this.#given.has(s))); }

  steps(list: readonly Step[]): Step[] {
    const kept: Step[] = [];
    for (const step of [...list].reverse()) {
      const live = this.#step(step);
      if (live) kept.unshift(live);
    }
    return kept;
  }

  #step(step: Step): Step | undefined {
    if (step.kind === "loop") return this.#loop(step);
    const { before } = accessesOf(step);
    if (step.kind === "if") {
      const otherwise = this.steps(step.else), then = this.steps(step.then);
      if (then.length + otherwise.length === 0) return undefined;
      this.#mark(before.reads);
      if ("predicate" in step.condition) this.#markSizes([step.condition.predicate]);
      return { ...step, then, else: otherwise };
    }
    const always = step.kind === "check" || (step.kind === "host" && before.writes.length === 0);
    if (!always && !before.writes.some((b) => (step.kind === "call" ? this.#isRead(b) : this.#isNeeded(b)))) return undefined;
    this.#mark(before.reads);
    if (step.kind === "check") this.#markSizes(step.sizes);
    if (step.kind === "call") this.#markSizes([...step.kernel.outputs.flatMap((b) => b.shape), ...dimsOfBody(step.kernel.body).values()]);
    return step;
  }

  /** What an iteration reads may be what the one before has written, so reads are followed until there are no more. */
  #loop(step: LoopStep): LoopStep | undefined {
    const { before, after } = accessesOf({ ...step, carry: [], stack: [] });
    for (;;) {
      const known = this.#read.size + this.#symbols.size;
      const body = this.steps(step.body);
      const carry = step.carry.filter((c) => (c.result && this.#isNeeded(c.result)) || this.#isRead(c.input));
      const stack = step.stack.filter((s) => this.#isNeeded(s.to));
      if (step.count && "size" in step.count) this.#markSizes([step.count.size]);
      if (body.length + carry.length + stack.length === 0) return undefined;
      this.#mark([...before.reads, ...after.reads, ...carry.flatMap((c) => [c.initial, c.next]), ...stack.map((s) => s.from)]);
      if (this.#read.size + this.#symbols.size === known) return { ...step, body, carry, stack };
    }
  }
}

/** Every buffer that the steps, inputs and outputs name. */
export function usedBuffers(steps: readonly Step[], inputs: readonly ProgramInput[], outputs: readonly ProgramOutput[]): Set<Buffer> {
  const used = new Set<Buffer>([...inputs, ...outputs].map((x) => x.buffer));
  const visit = (step: Step): void => {
    for (const b of touchedBy(step)) used.add(b);
    for (const nested of nestedSteps(step)) nested.forEach(visit);
  };
  steps.forEach(visit);
  return used;
}
