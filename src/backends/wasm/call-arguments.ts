/** What a call of a phase is given: addresses and sizes, constants where the plan fixes them, else read from its table. */
import { invariant, present } from "../../core/assert.ts";
import { dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Program } from "../../kernel/program.ts";
import type { MemoryPlan } from "../../memory/plan.ts";
import type { FunctionBuilder } from "./assembler.ts";

export class CallArguments {
  readonly #program: Program;
  readonly #plan: MemoryPlan;
  readonly #slots: ReadonlyMap<string, number>;

  constructor(program: Program, plan: MemoryPlan) {
    this.#program = program;
    this.#plan = plan;
    this.#slots = new Map(plan.dims.map((d, slot) => [d.key, slot]));
  }

  /** Pushes the value of a size. */
  size(f: FunctionBuilder, d: Dim): void {
    if (isSymbolic(d)) this.#slot(f, present(this.#slots.get(d.key), `slot of size ${d.key} that ${f.name} reads`));
    else f.constant("i32", d);
  }

  /** Pushes the address of a buffer's first element. */
  address(f: FunctionBuilder, buffer: Buffer): void {
    const { storage, layout } = present(this.#program.placements.get(buffer), `placement of ${buffer.name}`);
    const address = present(this.#plan.addresses.get(storage), `address of ${storage.name}`);
    const size = byteSize(buffer.dtype);
    invariant(size > 0, `${buffer.name} has no bytes`);
    if (address.kind === "fixed" && !isSymbolic(layout.offset)) {
      f.constant("i32", address.address + layout.offset * size);
      return;
    }
    if (address.kind === "fixed") f.constant("i32", address.address);
    else this.#slot(f, address.slot);
    if (layout.offset === 0) return;
    if (isSymbolic(layout.offset)) {
      this.size(f, layout.offset);
      f.constant("i32", size);
      f.op("i32.mul");
    } else f.constant("i32", Number(dimMul(layout.offset, size)));
    f.op("i32.add");
  }

  #slot(f: FunctionBuilder, slot: number): void {
    f.constant("i32", this.#plan.tableAddress);
    f.memory("i32.load", 4 * slot);
  }
}
