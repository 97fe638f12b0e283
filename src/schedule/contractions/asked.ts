/**
 * What the schedule of a kernel has asked about the weights that it reads, and had packed: the schedule serves a kernel that
 * is like it where its weights give the same answers, and theirs are packed in the same ways.
 */
import { present } from "../../core/assert.ts";
import { dimEqual } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import type { Tensor } from "../../core/tensor.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import type { PackSpec, Weight } from "../../kernel/program.ts";
import type { Answer, ScheduleContext, ScheduleTarget } from "../builder.ts";

interface Packed { readonly weight: Weight; readonly spec: PackSpec; readonly dtype: DType; readonly length: number; readonly buffer: Buffer }

/** A context for one kernel that takes note of what it is asked. */
export class Asked implements ScheduleContext {
  readonly target: ScheduleTarget;
  readonly #context: ScheduleContext;
  readonly #weights = new Map<Buffer, Weight | undefined>();
  readonly #contents: { readonly weight: Weight; readonly ask: (contents: Tensor) => Answer; readonly answer: Answer | undefined }[] = [];
  readonly #packed: Packed[] = [];

  constructor(context: ScheduleContext) {
    this.target = context.target;
    this.#context = context;
  }

  layout(buffer: Buffer): Layout { return this.#context.layout(buffer); }
  weight(buffer: Buffer): Weight | undefined {
    const weight = this.#context.weight(buffer);
    this.#weights.set(buffer, weight);
    return weight;
  }
  contents<T extends Answer>(weight: Weight, ask: (contents: Tensor) => T): T | undefined {
    const answer = this.#context.contents(weight, ask);
    this.#contents.push({ weight, ask, answer });
    return answer;
  }
  packed(weight: Weight, spec: PackSpec, dtype: DType, length: number): Buffer {
    const buffer = this.#context.packed(weight, spec, dtype, length);
    this.#packed.push({ weight, spec, dtype, length, buffer });
    return buffer;
  }

  /** Asks the same about other buffers: the packed weights that stand for those here; undefined where an answer differs. Types, shapes and strides have been compared. */
  again(to: (b: Buffer) => Buffer): ReadonlyMap<Buffer, Buffer> | undefined {
    const weights = this.#pairs(to);
    if (!weights) return undefined;
    const own = (weight: Weight): Weight => present(weights.get(weight), "a weight that was asked for");
    if (!this.#contents.every(({ weight, ask, answer }) => sameAnswers(this.#context.contents(own(weight), ask), answer))) return undefined;
    return new Map(this.#packed.map(({ weight, spec, dtype, length, buffer }) => [buffer, this.#context.packed(own(weight), spec, dtype, length)]));
  }

  /** Which weight stands for which: as many, of the same form, as far into their memory. */
  #pairs(to: (b: Buffer) => Buffer): ReadonlyMap<Weight, Weight> | undefined {
    const pairs = new Map<Weight, Weight>(), taken = new Map<Weight, Weight>();
    for (const [buffer, weight] of this.#weights) {
      const own = this.#context.weight(to(buffer));
      if (!weight && !own) continue;
      if (!weight || !own || !sameForm(weight, own) || !dimEqual(this.layout(buffer).offset, this.layout(to(buffer)).offset)) return undefined;
      if ((pairs.get(weight) ?? own) !== own || (taken.get(own) ?? weight) !== weight) return undefined;
      pairs.set(weight, own);
      taken.set(own, weight);
    }
    return pairs;
  }
}

/** Whether what is known of two weights without looking at their contents is the same. */
function sameForm(a: Weight, b: Weight): boolean {
  const resident = ({ stored }: Weight): boolean => stored?.as === "float16" && stored.resident === true;
  return "input" in a.source === "input" in b.source && a.stored?.as === b.stored?.as && resident(a) === resident(b);
}
const sameAnswers = (a: Answer | undefined, b: Answer | undefined): boolean =>
  (typeof a === "object" && typeof b === "object" ? a.length === b.length && a.every((x, i) => Object.is(x, b[i])) : Object.is(a, b));
