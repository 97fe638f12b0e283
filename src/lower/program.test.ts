import { describe, expect, test } from "vitest";
import { difference, GraphBuilder } from "../../test/support/graph-builder.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import type { Tensor } from "../core/tensor.ts";
import { Graph } from "../graph/graph.ts";
import { interpretProgram } from "../kernel/interpret-program.ts";
import { printKernel } from "../kernel/print.ts";
import type { Program } from "../kernel/program.ts";
import * as ops from "../ops/index.ts";
import { partition } from "../passes/partition.ts";
import { interpret } from "../reference/interpret.ts";
import { lowerProgram } from "./program.ts";

const unfused = (graph: Graph): Program =>
  lowerProgram(graph, partition(graph, { fusion: false, isEnabled: () => true, opTypesOf: () => undefined }).regions);

function check(graph: Graph, feeds: Record<string, Tensor>, tolerance = 1e-5): Program {
  const program = unfused(graph);
  const expected = interpret(graph, feeds);
  const actual = interpretProgram(program, feeds);
  for (const [name, e] of Object.entries(expected)) {
    const d = difference(actual[name], e);
    if (!(d <= tolerance)) throw new Error(`${name} differs by ${d}\n${program.steps.map((s) => (s.kind === "call" ? printKernel(s.kernel) : s.kind)).join("\n")}`);
  }
  return program;
}
const random = randomFrom(7);
const r = (...dims: number[]): Tensor => randomTensor(dims, random);

describe("a graph, node by node", () => {
  test("matrix products", () => {
    for (const [a, b] of [[[3, 5], [5, 4]], [[2, 3, 5], [5, 4]], [[2, 1, 3, 5], [7, 5, 4]], [[5], [5, 4]], [[3, 5], [5]]] as const) {
      const g = new GraphBuilder();
      check(g.outputs(g.node(ops.MatMul, [g.input("a", a), g.constant(r(...b))])), { a: r(...a) });
    }
  });
  test("Gemm with scales and a transposed weight", () => {
    const g = new GraphBuilder();
    check(g.outputs(g.node(ops.Gemm, [g.input("a", [3, 5]), g.constant(r(4, 5)), g.constant(r(4))], { transB: 1, alpha: 0.5, beta: 2 })), { a: r(3, 5) });
  });
  test("convolutions: plain, grouped, depthwise, strided, dilated, padded", () => {
    for (const { groups, attributes } of [
      { groups: 1, attributes: { pads: [1, 1, 1, 1] } }, { groups: 2, attributes: { strides: [2, 2], pads: [1, 0, 1, 0] } }, { groups: 4, attributes: { dilations: [2, 1] } },
    ]) {
      const g = new GraphBuilder();
      const x = g.input("x", ["n", 4, "h", 9]);
      check(g.outputs(g.node(ops.Conv, [x, g.constant(r(8, 4 / groups, 3, 3)), g.constant(r(8))], { group: groups, ...attributes })), { x: r(2, 4, 7, 9) });
    }
  });
  test("a softmax row is three passes", () => {
    const g = new GraphBuilder();
    const program = check(g.outputs(g.node(ops.Softmax, [g.input("x", ["n", 17])], { axis: -1 })), { x: r(5, 17) });
    const step = program.steps[0];
    const text = step?.kind === "call" ? printKernel(step.kernel) : "";
    expect(text.match(/for \(/g)?.length).toBe(4);
    expect(step?.kind === "call" && step.kernel.inPlace?.length).toBe(1);
  });
  test("layer normalisation is one kernel whose mean and variance are per row", () => {
    const g = new GraphBuilder();
    const x = g.input("x", ["n", "s", 8]);
    const program = check(g.outputs(g.node(ops.LayerNormalization, [x, g.constant(r(8)), g.constant(r(8))], { axis: -1 })), { x: r(2, 3, 8) });
    const step = program.steps[0];
    const text = step?.kind === "call" ? printKernel(step.kernel) : "";
    expect(text.match(/for \(/g)?.length).toBe(5);
  });
  test("pooling", () => {
    for (const op of [ops.MaxPool, ops.AveragePool]) {
      const g = new GraphBuilder();
      check(g.outputs(g.node(op, [g.input("x", [1, 3, "h", "w"])], { kernel_shape: [3, 2], pads: [1, 1, 1, 0], strides: [2, 1] })), { x: r(1, 3, 6, 5) });
    }
  });
  test("an output that is an input, and one returned twice", () => {
    const g = new GraphBuilder();
    const x = g.input("x", [2, 3]);
    const y = g.node(ops.Relu, [x]);
    const program = check(g.outputs(x, y, y), { x: r(2, 3) });
    expect(program.steps.length).toBe(3);
  });

  test("an If writes both branches' results to one place, reads values around it, and copies what it only passes on", () => {
    const build = (): Graph => {
      const g = new GraphBuilder();
      const cond = g.input("cond", [], "bool"), x = g.input("x", [2, 3]);
      const y = g.node(ops.Exp, [x]);
      const then = new GraphBuilder(new Graph("then", g.graph)), otherwise = new GraphBuilder(new Graph("else", g.graph));
      const then_branch = then.outputs(then.node(ops.Neg, [y]), then.node(ops.Add, [x, y]));
      const else_branch = otherwise.outputs(otherwise.node(ops.Sqrt, [y]), x);
      const [a, b] = g.nodes(ops.If, [cond], { then_branch, else_branch }, 2);
      if (!a || !b) throw new Error("results");
      return g.outputs(g.node(ops.Mul, [a, b]), a);
    };
    for (const taken of [0, 1]) {
      const program = check(build(), { cond: { dtype: "bool", dims: [], data: Uint8Array.of(taken) }, x: r(2, 3) });
      expect(program.steps.map((s) => (s.kind === "if" ? [s.then.length, s.else.length] : s.kind))).toEqual(["call", [2, 2], "call"]);
    }
  });
  test("an initializer that a caller may replace is a weight and an input", () => {
    const g = new GraphBuilder();
    const w = r(3, 2);
    const graph = g.outputs(g.node(ops.MatMul, [g.input("x", [4, 3]), g.input("w", [3, 2], "float32", w)]));
    const program = check(graph, { x: r(4, 3) });
    expect(program.inputs.map((i) => i.default)).toEqual([undefined, w]);
    expect(program.weights.map((x) => x.source)).toEqual([{ input: "w" }]);
  });
  test("steps whose results nothing reads are left out", () => {
    const g = new GraphBuilder();
    const x = g.input("x", [2, 3]);
    g.node(ops.Exp, [x]);
    expect(check(g.outputs(g.node(ops.Neg, [x])), { x: r(2, 3) }).steps.length).toBe(1);
  });
  test("recurrences, in both directions and with sequence lengths", () => {
    for (const [op, gates] of [[ops.LSTM, 4], [ops.GRU, 3], [ops.RNN, 1]] as const) {
      const b = new GraphBuilder();
      const input = b.input("x", [5, 2, 3]);
      const outputs = b.nodes(op, [input, b.constant(r(2, gates * 4, 3)), b.constant(r(2, gates * 4, 4)), b.constant(r(2, gates * 8)), b.constant({ dtype: "int32", dims: [2], data: Int32Array.of(5, 3) })], { hidden_size: 4, direction: "bidirectional" }, 2);
      check(b.outputs(...outputs), { x: r(5, 2, 3) });
    }
  });
});
