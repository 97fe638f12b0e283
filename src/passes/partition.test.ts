import { describe, expect, test } from "vitest";
import { difference, GraphBuilder } from "../../test/support/graph-builder.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { elementWork } from "../graph/element-loops.ts";
import { interpretProgram } from "../kernel/interpret-program.ts";
import type { Program } from "../kernel/program.ts";
import { verifyKernel } from "../kernel/verify.ts";
import { lowerProgram } from "../lower/program.ts";
import * as ops from "../ops/index.ts";
import { interpret } from "../reference/interpret.ts";
import { partition, type Partition, type PartitionOptions } from "./partition.ts";

const random = randomFrom(11);
const r = (...dims: number[]): Tensor => randomTensor(dims, random);
const options: PartitionOptions = { fusion: true, isEnabled: () => true, opTypesOf: (origin) => origin.replace(/_\d+$/, "") };

/** Partitions, and checks that the program computes what the graph does. */
function run(graph: Graph, feeds: Record<string, Tensor>, changed: Partial<PartitionOptions> = {}): Partition & { readonly program: Program; readonly kinds: readonly string[] } {
  const parts = partition(graph, { ...options, ...changed });
  const program = lowerProgram(graph, parts.regions);
  for (const s of program.steps) if (s.kind === "call") verifyKernel(s.kernel);
  const expected = interpret(graph, feeds), actual = interpretProgram(program, feeds);
  for (const [name, e] of Object.entries(expected)) expect(difference(actual[name], e), name).toBeLessThan(1e-5);
  return { ...parts, program, kinds: program.steps.map((s) => s.origin.label) };
}
const int64 = (v: number): Tensor => ({ dtype: "int64", dims: [1], data: BigInt64Array.of(BigInt(v)) });
const b = (): GraphBuilder => new GraphBuilder();
function conv(g: GraphBuilder, x: Value, channels = 4): Value {
  return g.node(ops.Conv, [x, g.constant(r(channels, 4, 3, 3)), g.constant(r(channels))], { pads: [1, 1, 1, 1] });
}

test("a rotation spelled out by halves is one kernel, which chooses among them", () => {
  const g = b();
  const x = g.input("x", [2, 3, 8]), cos = g.constant(r(3, 8)), sin = g.constant(r(3, 8));
  const half = (from: number): Value => g.node(ops.Slice, [x, g.constant(int64(from)), g.constant(int64(from + 4)), g.constant(int64(2))]);
  const turned = g.node(ops.Concat, [g.node(ops.Neg, [half(4)]), half(0)], { axis: -1 });
  const y = g.node(ops.Add, [g.node(ops.Mul, [x, cos]), g.node(ops.Mul, [turned, sin])]);
  expect(run(g.outputs(y), { x: r(2, 3, 8) }).kinds).toEqual(["FusedElementwise"]);
});

describe("contractions take their followers", () => {
  test("activation, residual and a second activation are one call", () => {
    const g = b();
    const x = g.input("x", [1, 4, 5, 5]);
    const y = g.node(ops.Relu, [g.node(ops.Add, [conv(g, g.node(ops.Relu, [conv(g, x)])), x])]);
    expect(run(g.outputs(y), { x: r(1, 4, 5, 5) }).kinds).toEqual(["ConvReLU", "ConvAddReLU"]);
  });
  test("a spelled-out activation that uses the accumulator several times", () => {
    const g = b();
    const c = conv(g, g.input("x", [1, 4, 5, 5]));
    const clip = g.node(ops.Clip, [g.node(ops.Add, [c, g.constant({ dtype: "float32", dims: [], data: Float32Array.of(3) })]), g.constant({ dtype: "float32", dims: [], data: Float32Array.of(0) }), g.constant({ dtype: "float32", dims: [], data: Float32Array.of(6) })]);
    const y = g.node(ops.Div, [g.node(ops.Mul, [c, clip]), g.constant({ dtype: "float32", dims: [], data: Float32Array.of(6) })]);
    expect(run(g.outputs(y), { x: r(1, 4, 5, 5) }).kinds).toEqual(["ConvAddClipMulDiv"]);
  });
  test("an interior value that is used elsewhere is stored as well", () => {
    const g = b();
    const c = conv(g, g.input("x", [1, 4, 5, 5]));
    const { program } = run(g.outputs(g.node(ops.Relu, [c]), c), { x: r(1, 4, 5, 5) });
    expect(program.steps.map((s) => (s.kind === "call" ? s.kernel.outputs.length : 0))).toEqual([2]);
  });
  test("of two convolutions added, the later takes the sum", () => {
    const g = b();
    const x = g.input("x", [1, 4, 5, 5]);
    const c = conv(g, x);
    expect(run(g.outputs(g.node(ops.Add, [c, conv(g, c)])), { x: r(1, 4, 5, 5) }).kinds).toEqual(["Conv", "ConvAdd"]);
  });
  test("a residual that waits for the result does not join", () => {
    const g = b();
    const c = conv(g, g.input("x", [1, 4, 5, 5]));
    const { kinds, sites } = run(g.outputs(g.node(ops.Add, [c, g.node(ops.MaxPool, [c], { kernel_shape: [3, 3], pads: [1, 1, 1, 1] })])), { x: r(1, 4, 5, 5) });
    expect(kinds).toEqual(["Conv", "MaxPoolAdd"]);
    expect(sites).toContainEqual(expect.objectContaining({ outcome: "refused", code: "residual-cycle", name: "ConvAdd" }));
  });
  test("a follower that grows the result is refused with its reason", () => {
    const g = b();
    const m = g.node(ops.MatMul, [g.input("x", [1, 5]), g.constant(r(5, 4))]);
    const { sites, kinds } = run(g.outputs(g.node(ops.Add, [m, g.input("y", [3, 4])])), { x: r(1, 5), y: r(3, 4) });
    expect(kinds).toEqual(["MatMul", "Add"]);
    expect(sites).toContainEqual(expect.objectContaining({ outcome: "refused", code: "shape-grows", name: "MatMulAdd" }));
  });
  test("cheap work on the other side of an addition is computed in the epilogue", () => {
    const g = b();
    const x = g.input("x", [1, 4, 5, 5]), z = g.input("z", [1, 4, 5, 5]);
    const side = g.node(ops.Mul, [z, z]);
    expect(run(g.outputs(g.node(ops.Add, [conv(g, x), side])), { x: r(1, 4, 5, 5), z: r(1, 4, 5, 5) }).program.steps.length).toBe(1);
  });
});

describe("loops over elements and rows", () => {
  test("a chain of 12 is one call that costs no more than its operations", () => {
    const g = b();
    let y = g.input("x", [6, 7]);
    for (let i = 0; i < 6; i++) y = g.node(ops.Mul, [g.node(ops.Add, [y, y]), y]);
    const graph = g.outputs(y);
    expect(run(graph, { x: randomTensor([6, 7], random, 0.1) }).kinds).toEqual(["FusedElementwise"]);
    expect(elementWork(graph.nodes, [y]).cost).toBeLessThanOrEqual(42 * (12 + 4));
  });
  test("a spelled-out layer normalisation is one call of linear cost", () => {
    const g = b();
    const x = g.input("x", [6, 32]);
    const axes = g.ints(-1);
    const centred = g.node(ops.Sub, [x, g.node(ops.ReduceMean, [x, axes])]);
    const variance = g.node(ops.ReduceMean, [g.node(ops.Mul, [centred, centred]), axes]);
    const y = g.node(ops.Div, [centred, g.node(ops.Sqrt, [g.node(ops.Add, [variance, g.constant({ dtype: "float32", dims: [], data: Float32Array.of(1e-5) })])])]);
    const graph = g.outputs(y);
    expect(run(graph, { x: r(6, 32) }).kinds.length).toBe(1);
    expect(elementWork(graph.nodes, [y]).cost).toBeLessThanOrEqual(6 * 32 * 20);
  });
  test("work is not repeated where it is broadcast", () => {
    const g = b();
    const s = g.node(ops.Tanh, [g.node(ops.Exp, [g.input("s", [4, 1, 1])])]);
    expect(run(g.outputs(g.node(ops.Mul, [g.input("x", [4, 9, 9]), s])), { x: r(4, 9, 9), s: r(4, 1, 1) }).kinds).toEqual(["FusedElementwise", "Mul"]);
  });
  test("siblings over the same elements share their loops", () => {
    const g = b();
    const x = g.input("x", [5, 7]);
    const { program } = run(g.outputs(g.node(ops.Sin, [x]), g.node(ops.Cos, [x])), { x: r(5, 7) });
    expect(program.steps.length).toBe(1);
  });
  test("side effects of fusing off: every node stands alone, views still cost nothing", () => {
    const g = b();
    const x = g.input("x", [2, 6]);
    const y = g.node(ops.Relu, [g.node(ops.Transpose, [g.node(ops.Reshape, [g.node(ops.Relu, [x]), g.ints(2, 2, 3)])], { perm: [0, 2, 1] })]);
    expect(run(g.outputs(y), { x: r(2, 6) }, { fusion: false }).kinds).toEqual(["Relu", "Relu"]);
  });
});

describe("memory shared instead of copied", () => {
  test("concatenation writes its inputs in place", () => {
    const g = b();
    const x = g.input("x", [1, 4, 5, 5]);
    const y = g.node(ops.Concat, [conv(g, x), g.node(ops.Exp, [x])], { axis: 1 });
    expect(run(g.outputs(g.node(ops.MaxPool, [y], { kernel_shape: [2, 2] })), { x: r(1, 4, 5, 5) }).kinds).toEqual(["Conv", "Exp", "MaxPool"]);
  });
  test("a product is stored in the order that the transposition behind it wants", () => {
    const g = b();
    const m = g.node(ops.MatMul, [g.input("x", ["n", 3, 5, 4]), g.constant(r(4, 6))]);
    const t = g.node(ops.Reshape, [g.node(ops.Transpose, [m], { perm: [0, 2, 1, 3] }), g.ints(0, 5, 18)]);
    expect(run(g.outputs(g.node(ops.MatMul, [t, g.constant(r(18, 2))])), { x: r(2, 3, 5, 4) }).kinds).toEqual(["MatMul", "MatMul"]);
  });
  test("a graph input in a concatenation is copied", () => {
    const g = b();
    const x = g.input("x", [2, 3]), z = g.input("z", [2, 5]);
    expect(run(g.outputs(g.node(ops.Concat, [x, z], { axis: 1 })), { x: r(2, 3), z: r(2, 5) }).kinds).toEqual(["Concat"]);
  });
});

describe("switches", () => {
  const build = (): Graph => {
    const g = b();
    const x = g.input("x", [1, 4, 5, 5]);
    return g.outputs(g.node(ops.Relu, [conv(g, g.node(ops.Sigmoid, [conv(g, x)]))]));
  };
  test("a kind that is off forbids that region and touches no other", () => {
    const feeds = { x: r(1, 4, 5, 5) };
    expect(run(build(), feeds).kinds).toEqual(["ConvSigmoid", "ConvReLU"]);
    const off = run(build(), feeds, { isEnabled: (kind) => kind !== "ConvReLU" });
    expect(off.kinds).toEqual(["ConvSigmoid", "Conv", "Relu"]);
    expect(off.sites).toContainEqual(expect.objectContaining({ outcome: "refused", code: "switched-off", name: "ConvReLU" }));
  });
});

test("random operations between are refused", () => {
  const g = b();
  const m = g.node(ops.MatMul, [g.input("x", [3, 5]), g.constant(r(5, 4))]);
  const y = g.node(ops.Relu, [g.node(ops.RandomNormalLike, [m])]);
  const { sites } = partition(g.outputs(y), options);
  expect(sites).toContainEqual(expect.objectContaining({ outcome: "refused", code: "non-deterministic-between" }));
});
