import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import type { Tensor } from "../../core/tensor.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { convCase, type ConvOptions } from "../../../test/support/conv-case.ts";
import { contextOf, difference, runKernel } from "../../../test/support/kernel-case.ts";
import { randomFrom, randomTensor } from "../../../test/support/random.ts";
import { scheduleStructure } from "./structures.ts";
import { winogradError } from "./winograd-error.ts";

const random = (dims: readonly number[], seed: number) => randomTensor(dims, randomFrom(seed));

function check(o: ConvOptions): void {
  for (const [layout, symbolic] of [["channels-last", false], ["rows", true]] as const) {
    const { c, out } = convCase({ ...o, layout, symbolic }, random);
    const { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule");
    expect(scheduled.scratch.some((b) => b.name.includes("transformed"))).toBe(true);
    const expected = present(runKernel(c, c.kernel).get(out), "result"), actual = present(runKernel(c, scheduled, packed).get(out), "result");
    const error = difference("float32", expected, actual);
    expect(error, `${JSON.stringify(o)} ${layout} ${symbolic}`).toBeLessThan(1e-5);
    expect(error).toBeGreaterThan(0);
    const compiled = present(runKernel(c, scheduled, packed, "wasm").get(out), "result");
    expect(difference("float32", expected, compiled)).toBeLessThan(1e-5);
  }
}

describe("F(4x4,3x3)", () => {
  it("sizes that fill tiles and sizes that do not", () => {
    check({ x: [1, 8, 12, 12], w: [8, 8, 3, 3], pads: [1, 1, 1, 1], residual: true });
    check({ x: [1, 8, 9, 13], w: [12, 8, 3, 3], pads: [1, 1, 1, 1] });
    check({ x: [2, 12, 12, 13], w: [8, 12, 3, 3] });
    check({ x: [1, 8, 3, 142], w: [8, 8, 3, 3], pads: [1, 1, 1, 1] });
  }, 120_000);
  it("costly epilogues, along strips", () => {
    check({ x: [1, 8, 9, 13], w: [16, 8, 3, 3], pads: [1, 1, 1, 1], residual: true, costly: true });
    check({ x: [2, 8, 8, 12], w: [20, 8, 3, 3], costly: true });
    check({ x: [1, 8, 3, 142], w: [16, 8, 3, 3], pads: [1, 1, 1, 1], costly: true });
  }, 120_000);
  it("gives what the direct convolution gives when switched off", () => {
    const { c, out } = convCase({ x: [1, 8, 12, 12], w: [8, 8, 3, 3], pads: [1, 1, 1, 1] });
    const { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, { ...context, target: { relaxedSimd: false, winograd: false } }), "schedule");
    expect(scheduled.scratch.some((b) => b.name.includes("transformed"))).toBe(false);
    expect(difference("float32", present(runKernel(c, c.kernel).get(out), "result"), present(runKernel(c, scheduled, packed).get(out), "result"))).toBe(0);
  });
  it("weights it would lose too much of are left to the direct convolution", () => {
    const usual = random([8, 8, 3, 3], 1);
    expect(winogradError(usual)).toBeLessThan(1e-5);
    const tiny = { ...usual, data: Float32Array.from(usual.data as Float32Array, (x) => x * 1e-42) };
    const infinite = { ...usual, data: Float32Array.from(usual.data as Float32Array, (x, i) => (i === 5 ? Infinity : x)) };
    const scheduledWith = (weights: Tensor): Kernel | undefined => {
      const { c } = convCase({ x: [1, 8, 12, 12], w: [8, 8, 3, 3], pads: [1, 1, 1, 1] }, (dims, seed) => (seed === 2 ? weights : random(dims, seed)));
      return scheduleStructure(c.kernel, contextOf(c).context);
    };
    expect(scheduledWith(tiny)?.scratch.some((b) => b.name.includes("transformed"))).toBe(false);
    expect(scheduledWith(infinite), "left to the plain loops").toBeUndefined();
  });
});
