import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import { visitStmt } from "../../kernel/traverse.ts";
import { ConvTranspose } from "../../ops/conv-transpose.ts";
import { convCase, type ConvOptions } from "../../../test/support/conv-case.ts";
import { contextOf, difference, runKernel } from "../../../test/support/kernel-case.ts";
import { scheduleStructure } from "./structures.ts";

function check(o: ConvOptions): void {
  for (const layout of ["rows", "channels-last", "channels-last in"] as const) for (const symbolic of [false, true]) {
    const { c, out } = convCase({ ...o, layout, symbolic });
    const { context, packed } = contextOf(c);
    const scheduled = scheduleStructure(c.kernel, context);
    if (!scheduled && symbolic) continue;
    const expected = present(runKernel(c, c.kernel).get(out), "result"), actual = present(runKernel(c, present(scheduled, "schedule"), packed).get(out), "result");
    expect(difference("float32", expected, actual), `${JSON.stringify(o)} ${layout}${symbolic ? " symbolic" : ""}`).toBe(0);
    const compiled = present(runKernel(c, present(scheduled, "schedule"), packed, "wasm").get(out), "result");
    expect(difference("float32", expected, compiled), `${JSON.stringify(o)} ${layout} compiled`).toBe(0);
  }
}

describe("convolutions", () => {
  it("pointwise", () => {
    check({ x: [2, 5, 3, 7], w: [9, 5, 1, 1], residual: true });
    check({ x: [1, 8, 1, 1], w: [37, 8, 1, 1] });
    check({ x: [1, 6, 5, 1], w: [4, 3, 1, 1], group: 2 });
    check({ x: [2, 4, 9], w: [8, 4, 1] });
  });
  it("3x3 with padding", () => {
    check({ x: [1, 4, 5, 6], w: [8, 4, 3, 3], pads: [1, 1, 1, 1], residual: true });
    check({ x: [2, 5, 7, 11], w: [11, 5, 3, 3], pads: [1, 1, 1, 1] });
    check({ x: [1, 8, 3, 3], w: [3, 8, 3, 3], pads: [1, 1, 1, 1] });
    check({ x: [1, 3, 2, 2], w: [17, 3, 3, 3], pads: [1, 1, 1, 1] });
  });
  it("no padding, strides, dilations, uneven padding", () => {
    check({ x: [1, 4, 6, 9], w: [8, 4, 3, 3] });
    check({ x: [1, 3, 9, 10], w: [6, 3, 3, 3], strides: [2, 2], pads: [0, 0, 1, 1] });
    check({ x: [1, 3, 13, 12], w: [8, 3, 7, 7], strides: [2, 2], pads: [3, 3, 3, 3] });
    check({ x: [1, 2, 9, 9], w: [5, 2, 3, 3], dilations: [2, 3], pads: [2, 3, 2, 3] });
    check({ x: [1, 4, 8, 8], w: [8, 4, 1, 1], strides: [2, 2] });
    check({ x: [1, 4, 5, 8], w: [8, 4, 1, 1], pads: [1, 0, 1, 0] });
    check({ x: [1, 2, 4, 9], w: [4, 2, 1, 5], pads: [0, 2, 0, 2], strides: [1, 2] });
  });
  it("a long dimension and a short one", () => {
    check({ x: [1, 4, 21, 1], w: [8, 4, 5, 1], pads: [2, 0, 2, 0] });
    check({ x: [1, 4, 21, 2], w: [8, 4, 3, 3], pads: [1, 1, 1, 1] });
    check({ x: [1, 1, 16, 12], w: [4, 1, 10, 4], strides: [2, 2], pads: [4, 1, 5, 1] });
  });
  it("one spatial dimension", () => {
    check({ x: [2, 5, 17], w: [9, 5, 3], pads: [1, 1], residual: true });
    check({ x: [1, 4, 30], w: [8, 4, 7], strides: [2], dilations: [2], pads: [3, 0] });
  });
  it("groups", () => {
    check({ x: [1, 8, 5, 6], w: [12, 4, 3, 3], group: 2, pads: [1, 1, 1, 1] });
    check({ x: [1, 6, 5, 6], w: [6, 2, 3, 3], group: 3, pads: [1, 1, 1, 1], strides: [2, 1] });
  });
  it("depthwise", () => {
    check({ x: [1, 8, 5, 9], w: [8, 1, 3, 3], group: 8, pads: [1, 1, 1, 1], residual: true });
    check({ x: [2, 7, 6, 11], w: [7, 1, 3, 3], group: 7, pads: [1, 1, 1, 1] });
    check({ x: [1, 12, 9, 10], w: [12, 1, 5, 5], group: 12, pads: [2, 2, 2, 2], strides: [2, 2] });
    check({ x: [1, 5, 9, 10], w: [5, 1, 3, 3], group: 5, strides: [2, 2], pads: [0, 0, 1, 1] });
    check({ x: [1, 4, 9, 10], w: [4, 1, 3, 3], group: 4, dilations: [2, 2], pads: [2, 2, 2, 2] });
    check({ x: [1, 6, 2, 2], w: [6, 1, 5, 5], group: 6, pads: [2, 2, 2, 2] });
    check({ x: [2, 6, 19], w: [6, 1, 5], group: 6, pads: [4, 0] });
    check({ x: [1, 4, 3, 20], w: [8, 1, 3, 3], group: 4, pads: [1, 1, 1, 1] });
    check({ x: [1, 4, 5, 8], w: [4, 1, 1, 1], group: 4, pads: [0, 0, 1, 1] });
    check({ op: ConvTranspose, x: [1, 8, 4, 5], w: [8, 1, 3, 3], group: 8, strides: [2, 2], pads: [1, 1, 1, 1] });
    check({ x: [1, 4, 9, 1], w: [4, 1, 3, 1], group: 4, pads: [1, 0, 1, 0] });
    check({ x: [1, 4, 2, 7], w: [4, 1, 3, 3], group: 4, pads: [3, 1, 4, 1] });
    check({ x: [1, 32, 17, 17], w: [32, 1, 3, 3], group: 32, pads: [1, 1, 1, 1] });
    check({ x: [1, 32, 3, 40], w: [32, 1, 3, 3], group: 32, pads: [3, 1, 4, 1] });
    check({ x: [1, 4, 8, 9], w: [4, 1, 7, 3], group: 4, pads: [3, 1, 3, 1] });
  });
  it("transposed", () => {
    const op = ConvTranspose;
    check({ op, x: [1, 4, 3, 5], w: [4, 8, 2, 2], strides: [2, 2] });
    check({ op, x: [2, 3, 4, 5], w: [3, 5, 3, 3], strides: [2, 2], pads: [1, 1, 1, 1], outputPadding: [1, 1] });
    check({ op, x: [1, 3, 4, 5], w: [3, 5, 3, 3] });
    check({ op, x: [1, 4, 3, 9], w: [4, 2, 1, 5], strides: [1, 2], pads: [0, 2, 0, 2], group: 2 });
    check({ op, x: [1, 2, 4, 4], w: [2, 3, 4, 4], strides: [3, 2], pads: [1, 0, 0, 1], dilations: [2, 1] });
    check({ op, x: [1, 4, 7], w: [4, 3, 3], strides: [3] });
    check({ op, x: [1, 2, 5, 5], w: [2, 3, 1, 1], strides: [2, 2] });
  });
  it("costly epilogues, along strips", () => {
    const costly = true;
    for (const residual of [false, true]) for (const channels of [16, 20, 18, 12]) {
      check({ x: [2, 3, 7, 11], w: [channels, 3, 3, 3], pads: [1, 1, 1, 1], residual, costly });
      check({ x: [1, 4, 5, 9], w: [channels, 4, 1, 1], residual, costly });
      check({ x: [1, channels, 5, 14], w: [channels, 1, 3, 3], group: channels, pads: [1, 1, 1, 1], residual, costly });
    }
    check({ x: [1, 2, 2, 300], w: [64, 2, 1, 3], pads: [0, 1, 0, 1], costly });
    check({ x: [1, 64, 2, 90], w: [64, 1, 3, 3], group: 64, pads: [1, 1, 1, 1], strides: [1, 1], costly });
    check({ x: [1, 4, 9, 2], w: [16, 4, 3, 3], strides: [2, 2], pads: [1, 1, 1, 1], costly });
    check({ x: [1, 8, 5, 6], w: [32, 4, 3, 3], group: 2, pads: [1, 1, 1, 1], costly });
    check({ op: ConvTranspose, x: [1, 3, 4, 5], w: [3, 16, 3, 3], strides: [2, 2], pads: [1, 1, 1, 1], costly });
    for (const channels of [1, 2, 3]) {
      check({ op: ConvTranspose, x: [1, 5, 4, 7], w: [5, channels, 2, 2], strides: [2, 2], costly });
      check({ x: [2, 3, 5, 9], w: [channels, 3, 3, 3], pads: [1, 1, 1, 1], residual: true, costly });
    }
    check({ x: [1, 2, 1, 1100], w: [1, 2, 1, 3], pads: [0, 1, 0, 1], costly });
    check({ x: [1, 16, 3, 1], w: [16, 1, 3, 3], group: 16, pads: [1, 1, 1, 1], costly });
    check({ x: [0, 3, 4, 4], w: [16, 3, 3, 3], pads: [1, 1, 1, 1], costly });
  }, 120_000);
  it("write four positions of a plane as one vector", () => {
    const lanesOf = (layout: "channels-last" | "channels-last in"): number[] => {
      const { c, out } = convCase({ x: [1, 8, 3, 8], w: [8, 8, 1, 1], layout }), { context, packed } = contextOf(c), kernel = present(scheduleStructure(c.kernel, context), "schedule");
      expect(difference("float32", present(runKernel(c, c.kernel).get(out), "result"), present(runKernel(c, kernel, packed, "wasm").get(out), "result"))).toBe(0);
      const lanes: number[] = [];
      visitStmt(kernel.body, (s) => { if (s.kind === "storeAt") lanes.push(s.value.kind === "shuffle" ? 0 : s.value.type.lanes); });
      return lanes;
    };
    expect(new Set(lanesOf("channels-last in"))).toEqual(new Set([0]));
    expect(new Set(lanesOf("channels-last"))).toEqual(new Set([4]));
  });
  it("empty inputs", () => check({ x: [0, 3, 4, 4], w: [8, 3, 3, 3], pads: [1, 1, 1, 1] }));
});
