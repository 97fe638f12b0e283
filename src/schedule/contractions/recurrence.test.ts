import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import { symbol, type Dim } from "../../core/dim.ts";
import type { Tensor } from "../../core/tensor.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Activation, RecurrenceStructure } from "../../kernel/structure.ts";
import { recurrenceLoops } from "../../lower/recurrence.ts";
import { randomFrom, randomTensor } from "../../../test/support/random.ts";
import { contextOf, difference, runKernel, structuredKernel, type KernelCase } from "../../../test/support/kernel-case.ts";
import { scheduleStructure } from "./structures.ts";

interface Options {
  readonly cell: "lstm" | "gru" | "rnn";
  readonly steps: number; readonly batch: number; readonly input: number; readonly hidden: number;
  readonly directions?: RecurrenceStructure["directions"];
  readonly bias?: boolean; readonly initial?: boolean; readonly peepholes?: boolean; readonly lengths?: readonly number[];
  readonly linearBeforeReset?: boolean; readonly inputForget?: boolean; readonly clip?: number;
  readonly activations?: readonly Activation[];
  readonly symbolic?: boolean;
  readonly weights?: boolean;
}

const gates = { lstm: 4, gru: 3, rnn: 1 } as const;
const usual: Record<Options["cell"], readonly Activation[]> = {
  lstm: [{ kind: "sigmoid" }, { kind: "tanh" }, { kind: "tanh" }], gru: [{ kind: "sigmoid" }, { kind: "tanh" }], rnn: [{ kind: "tanh" }],
};

function recurrenceCase(o: Options): KernelCase {
  const directions = o.directions ?? ["forward"], d = directions.length, g = gates[o.cell];
  const size = (name: string, value: number): Dim => (o.symbolic ? symbol(name) : value);
  const [t, n] = [size("t", o.steps), size("n", o.batch)];
  const random = randomFrom(o.steps * 7 + o.hidden);
  const data = new Map<Buffer, Tensor>();
  const buffer = (name: string, shape: readonly Dim[], dims: readonly number[], scale = 0.5): Buffer => {
    const b: Buffer = { name, dtype: "float32", shape };
    data.set(b, randomTensor(dims, random, scale));
    return b;
  };
  const fixed = (name: string, dims: readonly number[]): Buffer => buffer(name, dims, dims);
  const x = buffer("X", [t, n, o.input], [o.steps, o.batch, o.input], 1);
  const w = fixed("W", [d, g * o.hidden, o.input]), r = fixed("R", [d, g * o.hidden, o.hidden]);
  const result = (name: string, shape: readonly Dim[]): Buffer => ({ name, dtype: "float32", shape });
  const lengths: Buffer | undefined = o.lengths && { name: "L", dtype: "int32", shape: [n] };
  if (lengths && o.lengths) data.set(lengths, { dtype: "int32", dims: [o.batch], data: Int32Array.from(o.lengths) });
  const y = result("Y", [t, d, n, o.hidden]), yH = result("Yh", [d, n, o.hidden]), yC = result("Yc", [d, n, o.hidden]);
  const state = (name: string): Buffer => buffer(name, [d, n, o.hidden], [d, o.batch, o.hidden]);
  const structure: RecurrenceStructure = {
    kind: "recurrence", cell: o.cell, directions, sequence: t, batch: n, inputSize: o.input, hidden: o.hidden,
    activations: directions.map(() => o.activations ?? usual[o.cell]), ...(o.clip === undefined ? {} : { clip: o.clip }),
    linearBeforeReset: o.linearBeforeReset ?? false, inputForget: o.inputForget ?? false, x, w, r,
    ...(o.bias ? { b: fixed("B", [d, 2 * g * o.hidden]) } : {}), ...(lengths ? { sequenceLengths: lengths } : {}),
    ...(o.initial ? { initialH: state("H0"), ...(o.cell === "lstm" ? { initialC: state("C0") } : {}) } : {}),
    ...(o.peepholes ? { peepholes: fixed("P", [d, 3 * o.hidden]) } : {}), y, yH, ...(o.cell === "lstm" ? { yC } : {}),
  };
  const { body, scratch } = recurrenceLoops(structure);
  const kernel = { ...structuredKernel("rec", structure, [...data.keys()], [y, yH, ...(o.cell === "lstm" ? [yC] : [])], body), scratch };
  const sizes: Record<string, number> = { t: o.steps, n: o.batch };
  return { kernel, data, weights: o.weights === false ? new Set() : new Set([w, r]), dims: (s) => present(sizes[s], s) };
}

function check(o: Options): void {
  for (const symbolic of [false, true]) {
    const c = recurrenceCase({ ...o, symbolic });
    const { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule");
    const expected = runKernel(c, c.kernel), runs = [runKernel(c, scheduled, packed), runKernel(c, scheduled, packed, "wasm")];
    for (const actual of runs) for (const [out, bytes] of expected) expect(difference("float32", bytes, present(actual.get(out), out.name)), `${JSON.stringify(o)} ${out.name} ${symbolic}`).toBeLessThan(3e-6);
  }
}

describe("recurrences", () => {
  for (const cell of ["lstm", "gru", "rnn"] as const) {
    it(`${cell}: sizes, directions, bias, initial state`, () => {
      for (const [steps, batch, input, hidden] of [[1, 1, 3, 4], [4, 1, 5, 9], [3, 2, 4, 8], [2, 5, 1, 3], [0, 1, 2, 4]] as const) check({ cell, steps, batch, input, hidden, bias: true });
      check({ cell, steps: 3, batch: 2, input: 4, hidden: 8, directions: ["reverse"], initial: true });
      check({ cell, steps: 3, batch: 2, input: 4, hidden: 6, directions: ["forward", "reverse"], bias: true, initial: true });
      check({ cell, steps: 3, batch: 1, input: 4, hidden: 5, weights: false });
    });
    it(`${cell}: rows of their own lengths`, () => {
      check({ cell, steps: 5, batch: 3, input: 3, hidden: 4, lengths: [2, 5, 0], directions: ["forward", "reverse"], bias: true });
    });
    it(`${cell}: clip and other activations`, () => {
      const activations = usual[cell].map((_, i): Activation => (i === 0 ? { kind: "hard-sigmoid", alpha: 0.2, beta: 0.5 } : { kind: "softsign" }));
      check({ cell, steps: 3, batch: 2, input: 3, hidden: 5, clip: 0.3, activations, bias: true });
    });
  }
  it("lstm: peepholes, coupled gates", () => {
    check({ cell: "lstm", steps: 4, batch: 2, input: 3, hidden: 6, peepholes: true, bias: true });
    check({ cell: "lstm", steps: 4, batch: 2, input: 3, hidden: 6, peepholes: true, inputForget: true });
  });
  it("gru: linear before reset", () => check({ cell: "gru", steps: 4, batch: 2, input: 3, hidden: 6, linearBeforeReset: true, bias: true, directions: ["forward", "reverse"] }));
  it("a wrong step order is noticed", () => {
    const c = recurrenceCase({ cell: "gru", steps: 3, batch: 1, input: 3, hidden: 4 }), other = recurrenceCase({ cell: "gru", steps: 3, batch: 1, input: 3, hidden: 4, directions: ["reverse"] });
    const [a, b] = [runKernel(c, c.kernel), runKernel(other, other.kernel)].map((m) => present([...m.values()][0], "result"));
    expect(a && b && difference("float32", a, b)).toBeGreaterThan(1e-3);
  });
});
