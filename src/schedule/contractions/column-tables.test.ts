import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { visitExprsOf } from "../../kernel/traverse.ts";
import { load, Tensor } from "../../runtime/index.ts";
import { convCase, type ConvOptions } from "../../../test/support/conv-case.ts";
import { finelySplit } from "../../../test/support/finely-split.ts";
import { contextOf, difference, runKernel, wholeNumbers } from "../../../test/support/kernel-case.ts";
import { modelBytes } from "../../../test/support/model-spec.ts";
import { scheduleStructure } from "./structures.ts";

/** How often a kernel's code takes roots, and whether it has a table. */
function rootsOf(kernel: Kernel): { readonly roots: number; readonly table: boolean } {
  let roots = 0;
  visitExprsOf(kernel.body, (e) => { if (e.kind === "unary" && e.op === "sqrt") roots++; });
  return { roots, table: kernel.scratch.some((b) => b.name.includes("_columns_")) };
}

/** Scheduled, it computes the bits of the naive loops, interpreted and compiled. */
function scheduled(o: ConvOptions): Kernel {
  const { c, out } = convCase({ ...o, normalised: true }), { context, packed } = contextOf(c), kernel = present(scheduleStructure(c.kernel, context), "schedule");
  const expected = present(runKernel(c, c.kernel).get(out), "result");
  for (const engine of ["interpreter", "wasm"] as const) expect(difference("float32", expected, present(runKernel(c, kernel, packed, engine).get(out), "result")), `${JSON.stringify(o)} ${engine}`).toBe(0);
  return kernel;
}

describe("tables of columns", () => {
  it("are filled once, vectors and tail, and read with the same bits", () => {
    for (const layout of ["rows", "channels-last"] as const) for (const symbolic of [false, true]) {
      const how = { layout, symbolic };
      for (const m of [8, 13, 16]) {
        expect(rootsOf(scheduled({ x: [2, 3, 6, 11], w: [m, 3, 3, 3], pads: [1, 1, 1, 1], strides: [2, 2], ...how }))).toEqual({ roots: m % 4 === 0 ? 1 : 2, table: true });
        expect(rootsOf(scheduled({ x: [2, m, 6, 11], w: [m, 1, 3, 3], group: m, pads: [1, 1, 1, 1], residual: true, ...how }))).toMatchObject({ table: true });
      }
      if (!symbolic) expect(rootsOf(scheduled({ x: [1, 6, 5, 7], w: [9, 6, 1, 1], ...how }))).toMatchObject({ table: true });
    }
  });
  it("are not made for a single row, nor where groups and channels both run", () => {
    expect(rootsOf(scheduled({ x: [1, 6, 1, 1], w: [16, 6, 1, 1] })).table).toBe(false);
    expect(rootsOf(scheduled({ x: [1, 6, 5, 7], w: [8, 3, 3, 3], group: 2 })).table).toBe(false);
  });
  it("belong to each thread's part", async () => {
    const dims = [1, 8, 40, 41], values = { x: wholeNumbers(dims, 1), gamma: wholeNumbers([8], 2), beta: wholeNumbers([8], 3), mean: wholeNumbers([8], 4) };
    const artifact = finelySplit(modelBytes({
      opset: 20, initializers: { d: wholeNumbers([8, 1, 3, 3], 5), p: wholeNumbers([8, 8, 1, 1], 6), variance: wholeNumbers([8], 7) }, outputs: { y: undefined },
      inputs: Object.fromEntries(Object.entries(values).map(([name, t]) => [name, { dtype: "float32" as const, dims: t.dims }])),
      nodes: [
        { type: "Mul", inputs: ["variance", "variance"], outputs: ["square"] },
        { type: "Conv", inputs: ["x", "d"], outputs: ["c"], attributes: { group: 8, pads: [1, 1, 1, 1] } }, { type: "BatchNormalization", inputs: ["c", "gamma", "beta", "mean", "square"], outputs: ["n"] },
        { type: "Conv", inputs: ["n", "p"], outputs: ["e"] }, { type: "BatchNormalization", inputs: ["e", "gamma", "beta", "mean", "square"], outputs: ["y"] },
      ],
    }));
    const feeds = Object.fromEntries(Object.entries(values).map(([name, t]) => [name, Tensor.of(t)])), results: unknown[] = [];
    for (const threads of [1, 2]) {
      const session = await load(artifact, { threads });
      results.push((await session.run(feeds))["y"]?.data);
      session.dispose();
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[0]).toBeInstanceOf(Float32Array);
  });
});
