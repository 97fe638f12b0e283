import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import { symbolsOf } from "../../core/dim.ts";
import { tensor, type Tensor } from "../../core/tensor.ts";
import type { Value } from "../../graph/graph.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import { verifyKernel } from "../../kernel/verify.ts";
import { lowerRegion } from "../../lower/region.ts";
import { regionOf } from "../../passes/region-of.ts";
import { fuseModel } from "../../compiler/compile.ts";
import { contextOf, difference, runKernel, wholeNumbers, type KernelCase } from "../../../test/support/kernel-case.ts";
import { modelBytes, type NodeSpec } from "../../../test/support/model-spec.ts";
import { denseLayout } from "../builder.ts";
import { scheduleStructure } from "./structures.ts";

interface Options {
  /** [N, C, H, W] */
  readonly x: readonly [number, number, number, number];
  readonly kernel: readonly [number, number];
  readonly outputs: number;
  readonly strides?: readonly number[]; readonly pads?: readonly number[]; readonly dilations?: readonly number[];
  readonly symbolic?: boolean;
  readonly layout?: "rows" | "channels-last" | "channels-last in";
  /** What follows each convolution. */
  readonly above?: readonly Step[]; readonly below?: readonly Step[];
}
/** `residual` reads the input itself, where the sizes are equal; `row` a term for each column. */
type Step = "relu" | "costly" | "residual" | "row";

function follow(steps: readonly Step[], from: string, to: string, width: number, out: Record<string, Tensor>): NodeSpec[] {
  const names = [from, ...steps.map((_, i) => (i === steps.length - 1 ? to : `${to}${i}`))];
  return steps.flatMap((step, i): NodeSpec[] => {
    const [input, output] = [names[i] ?? from, names[i + 1] ?? to];
    if (step === "relu") return [{ type: "Relu", inputs: [input], outputs: [output] }];
    if (step === "residual") return [{ type: "Add", inputs: [input, "x"], outputs: [output] }];
    if (step === "row") {
      out[`${output}_row`] = wholeNumbers([1, 1, 1, width], 9);
      return [{ type: "Add", inputs: [input, `${output}_row`], outputs: [output] }];
    }
    out.low = tensor("float32", [], Float32Array.of(-3));
    const parts = Array.from({ length: 9 }, (_, n) => `${output}_${n}`);
    return parts.flatMap((part, n): NodeSpec[] => {
      out[`${part}_most`] = tensor("float32", [], Float32Array.of(-60 - n));
      return [
        { type: "Add", inputs: [parts[n - 1] ?? input, "low"], outputs: [`${part}_sum`] },
        { type: "Max", inputs: [`${part}_sum`, `${part}_most`], outputs: [n === 8 ? output : part] },
      ];
    });
  });
}

function channelsLast(b: Buffer): Layout {
  const [n = 1, c = 1, h = 1, w = 1] = b.shape, [image = 1, row = 1, position = 1] = denseLayout([n, h, w, c]).strides;
  return { strides: [image, 1, row, position], offset: 0 };
}

/** Both convolutions as one kernel, lowered as its region is. */
function stripCase(o: Options): KernelCase {
  const { x: [n, c, h, w], kernel: [kh, kw], outputs, strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], above = [], below = [] } = o;
  const initializers: Record<string, Tensor> = {
    depthwise: wholeNumbers([c, 1, kh, kw], 2, "float32", 3), pointwise: wholeNumbers([outputs, c, 1, 1], 3, "float32", 3), bias: wholeNumbers([c], 4), last: wholeNumbers([outputs], 5),
  };
  const width = Math.floor((w + (pads[1] ?? 0) + (pads[3] ?? 0) - ((kw - 1) * (dilations[1] ?? 1) + 1)) / (strides[1] ?? 1)) + 1;
  const t = above.length ? "t" : "d", y = below.length ? "p" : "y";
  const bytes = modelBytes({
    opset: 20, initializers, inputs: { x: { dtype: "float32", dims: o.symbolic ? ["n", c, "h", "w"] : [n, c, h, w] } }, outputs: { y: undefined },
    nodes: [
      { type: "Conv", inputs: ["x", "depthwise", "bias"], outputs: ["d"], attributes: { group: c, strides, pads, dilations } }, ...follow(above, "d", "t", width, initializers),
      { type: "Conv", inputs: [t, "pointwise", "last"], outputs: [y] }, ...follow(below, "p", "y", width, initializers),
    ],
  });
  const { graph: { graph }, regions: [first, second] } = fuseModel(bytes, {}, true);
  const top = present(first, "region");
  const region = top.above ? top : regionOf("Both", [...top.nodes, ...present(second, "second region").nodes], "kernel", present(second?.anchor, "anchor"), top);
  expect(region.nodes).toHaveLength(graph.nodes.length);
  const buffers = new Map<Value, Buffer>();
  const bufferOf = (v: Value): Buffer => {
    const known = buffers.get(v) ?? { name: v.name, dtype: v.type.dtype, shape: v.type.shape };
    buffers.set(v, known);
    return known;
  };
  const kernel = lowerRegion(region, "both", bufferOf), result = bufferOf(present(region.outputs[0], "result"));
  verifyKernel(kernel);
  const input = bufferOf(present(graph.inputs[0], "input"));
  const data = new Map<Buffer, Tensor>([[input, wholeNumbers([n, c, h, w], 1)]]), weights = new Set<Buffer>();
  for (const [v, b] of buffers) if (v.constant) { data.set(b, v.constant); weights.add(b); }
  const layouts = new Map<Buffer, Layout>();
  if (o.layout !== undefined && o.layout !== "rows") layouts.set(input, channelsLast(input));
  if (o.layout === "channels-last") layouts.set(result, channelsLast(result));
  const known: Record<string, number> = { n, h, w };
  return { kernel, data, weights, layouts, dims: (name) => present(known[name], `size ${name} of ${[...symbolsOf(result.shape[2] ?? 0)].join()}`) };
}

/** Whether a term has a size of its own. */
const fixed = ({ above = [], below = [] }: Options): boolean => [...above, ...below].some((s) => s === "row" || s === "residual");

function check(o: Options): void {
  for (const layout of ["rows", "channels-last", "channels-last in"] as const) for (const symbolic of fixed(o) ? [false] : [false, true]) {
    const c = stripCase({ ...o, layout, symbolic }), [out] = c.kernel.outputs, { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule"), result = present(out, "output");
    expect([...scheduled.scratch, ...scheduled.inputs].map((b) => b.name)).not.toContain("between");
    const expected = present(runKernel(c, c.kernel).get(result), "result"), where = `${JSON.stringify(o)} ${layout}${symbolic ? " symbolic" : ""}`;
    for (const engine of ["interpreter", "wasm"] as const)
      expect(difference("float32", expected, present(runKernel(c, scheduled, packed, engine).get(result), "result")), `${where} ${engine}`).toBe(0);
  }
}

describe("a depthwise and a 1x1 convolution along strips", () => {
  it("sizes of every kind", () => {
    check({ x: [1, 8, 5, 9], kernel: [3, 3], outputs: 12, pads: [1, 1, 1, 1], above: ["relu"] });
    check({ x: [2, 7, 6, 11], kernel: [3, 3], outputs: 3, pads: [1, 1, 1, 1] });
    check({ x: [3, 5, 1, 1], kernel: [1, 1], outputs: 9 });
    check({ x: [2, 4, 2, 3], kernel: [5, 5], outputs: 17, pads: [2, 2, 2, 2], below: ["relu"] });
    check({ x: [1, 6, 13, 2], kernel: [3, 1], outputs: 8, pads: [1, 0, 1, 0] });
  });
  it("strides, dilations, uneven padding, none", () => {
    check({ x: [1, 8, 9, 10], kernel: [3, 3], outputs: 8, strides: [2, 2], pads: [0, 0, 1, 1], above: ["relu"] });
    check({ x: [1, 4, 9, 10], kernel: [3, 3], outputs: 5, dilations: [2, 2], pads: [2, 2, 2, 2] });
    check({ x: [2, 5, 8, 7], kernel: [3, 3], outputs: 8, strides: [1, 2] });
    check({ x: [1, 4, 2, 7], kernel: [3, 3], outputs: 4, pads: [3, 1, 4, 1] });
  });
  it("several strips, the last of them short", () => {
    check({ x: [1, 64, 35, 30], kernel: [3, 1], outputs: 3, pads: [1, 0, 1, 0], above: ["relu"], below: ["relu"] });
    check({ x: [2, 48, 23, 31], kernel: [1, 3], outputs: 3, pads: [0, 1, 0, 1], above: ["relu"] });
  });
  it("costly epilogues, residuals, terms of a row", () => {
    check({ x: [1, 16, 9, 20], kernel: [3, 3], outputs: 16, pads: [1, 1, 1, 1], above: ["costly"], below: ["costly"] });
    check({ x: [1, 20, 23, 22], kernel: [3, 3], outputs: 20, pads: [1, 1, 1, 1], above: ["relu", "residual"], below: ["residual", "costly"] });
    check({ x: [2, 8, 5, 9], kernel: [3, 3], outputs: 8, pads: [1, 1, 1, 1], above: ["row"], below: ["row", "relu"] });
  });
  it("an input that goes in by every neighbour is not overwritten", () => {
    const c = stripCase({ x: [2, 8, 9, 9], kernel: [3, 3], outputs: 8, pads: [1, 1, 1, 1], below: ["residual"] });
    expect(c.kernel.inPlace?.map((p) => p.input.name)).toEqual(["x"]);
    expect(scheduleStructure(c.kernel, contextOf(c).context)?.inPlace).toBeUndefined();
  });
  it("is told when a result is wrong", () => {
    const c = stripCase({ x: [1, 8, 5, 9], kernel: [3, 3], outputs: 12, pads: [1, 1, 1, 1] }), { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule"), out = present(c.kernel.outputs[0], "output");
    const wrong = new Map([...packed].map(([b, t]) => [b, { ...t, data: Float32Array.from(t.data as Float32Array, (v) => v + 1) }]));
    expect(difference("float32", present(runKernel(c, c.kernel).get(out), "result"), present(runKernel(c, scheduled, wrong).get(out), "result"))).toBeGreaterThan(0);
  });
});
