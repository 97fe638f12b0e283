/**
 * Fusions that today's tools miss for a spelling, and those that they get wrong: here the first fuse, and the second
 * keep their results.
 */
import { describe, expect, test } from "vitest";
import { evaluateDim } from "../src/core/dim.ts";
import { fromNumbers, sizeOf, toNumbers } from "../src/core/tensor.ts";
import { GraphBuilder } from "../src/graph/build.ts";
import type { Graph, Value } from "../src/graph/graph.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import * as op from "../src/ops/index.ts";
import { Ledger } from "../src/passes/ledger.ts";
import { partition } from "../src/passes/partition.ts";
import { simplify } from "../src/passes/simplify.ts";
import { interpret } from "../src/reference/interpret.ts";
import { applyRules } from "../src/rewrite/driver.ts";
import { rules } from "../src/rules/index.ts";
import { randomFrom } from "./support/random.ts";

type Build = (b: GraphBuilder) => Value | readonly Value[];
const isList = (x: Value | readonly Value[]): x is readonly Value[] => Array.isArray(x);
function graphOf(build: Build): Graph {
  const b = new GraphBuilder(), y = build(b);
  return b.build(...(isList(y) ? y : [y]));
}
function optimised(build: Build): Graph {
  const graph = graphOf(build), ledger = new Ledger();
  simplify(graph, ledger);
  applyRules(graph, rules, { verify: verifyGraph });
  simplify(graph, ledger);
  verifyGraph(graph);
  return graph;
}
/** Kernels after partition. */
const kernels = (build: Build): number =>
  partition(optimised(build), { fusion: true, opTypesOf: (n) => n, isEnabled: () => true }).regions.filter((r) => r.execution !== "view").length;

/** Inputs that find most wrong rewrites: ordinary, negative, zero, large, tiny. */
const kinds: readonly ((normal: number) => number)[] = [(x) => x, (x) => -Math.abs(x), () => 0, (x) => Math.sign(x) * 1e4, (x) => x * 1e-40];
function staysEqual(build: Build, bound = 1e-5, rewritten = optimised(build)): void {
  const original = graphOf(build);
  for (const kind of kinds) for (const size of [1, 3]) {
    const random = randomFrom(5);
    const feeds = Object.fromEntries(original.inputs.map((v) => {
      const dims = v.type.shape.map((d) => evaluateDim(d, () => size));
      return [v.name, fromNumbers(v.type.dtype, dims, Array.from({ length: sizeOf(dims) }, () => kind(random.normal())))];
    }));
    const before = interpret(original, feeds), after = interpret(rewritten, feeds);
    for (const [name, t] of Object.entries(before)) {
      const u = after[name];
      expect(u?.dims).toEqual(t.dims);
      const x = Array.from(toNumbers(t)), y = u ? Array.from(toNumbers(u)) : [];
      const most = Math.max(1e-30, ...x.map((v) => (Number.isFinite(v) ? Math.abs(v) : 0)));
      x.forEach((v, i) => expect(Object.is(v, y[i]) || v === y[i] || Math.abs(v - (y[i] ?? NaN)) <= bound * most, `${name}[${i}]: ${v} became ${y[i]}`).toBe(true));
    }
  }
}

const conv = (b: GraphBuilder): Value => b.add(op.Conv, [b.input("x", ["n", 3, 6, 6]), b.random([4, 3, 3, 3]), b.random([4])], { pads: [1, 1, 1, 1] });
const norm = (b: GraphBuilder, y: Value, c = 4): Value => b.add(op.BatchNormalization, [y, b.random([c]), b.random([c]), b.random([c]), b.random([c], { low: 0.5, high: 2 })]);
const perChannel = (b: GraphBuilder): Value => b.random([4, 1, 1], { low: 0.5, high: 2 });
const gelu = (b: GraphBuilder, x: Value, inner: Value): Value => b.add(op.Mul, [b.add(op.Mul, [x, b.add(op.Add, [b.add(op.Erf, [inner]), 1])]), 0.5]);
function rowNorm(b: GraphBuilder, x: Value, centre: boolean, square: (d: Value) => Value): Value {
  const mean = (v: Value): Value => b.add(op.ReduceMean, [v, b.int64(-1)]);
  const d = centre ? b.add(op.Sub, [x, mean(x)]) : x;
  const n = b.add(op.Div, [d, b.add(op.Sqrt, [b.add(op.Add, [mean(square(d)), 1e-5])])]);
  const scaled = b.add(op.Mul, [n, b.random([8])]);
  return centre ? b.add(op.Add, [scaled, b.random([8])]) : scaled;
}
const rows = (b: GraphBuilder): Value => b.input("x", ["n", 5, 8]);
const matmul = (b: GraphBuilder): Value => b.add(op.MatMul, [rows(b), b.random([8, 6])]);

const probes: Readonly<Record<string, readonly [kernels: number, build: Build]>> = {
  "Conv BatchNormalization Relu": [1, (b) => b.add(op.Relu, [norm(b, conv(b))])],
  "Conv, Mul, Add, constants second": [1, (b) => b.add(op.Add, [b.add(op.Mul, [conv(b), perChannel(b)]), perChannel(b)])],
  "Conv, Mul, Add, constants first": [1, (b) => b.add(op.Add, [perChannel(b), b.add(op.Mul, [perChannel(b), conv(b)])])],
  "ConvTranspose BatchNormalization": [1, (b) => norm(b, b.add(op.ConvTranspose, [b.input("x", ["n", 3, 4, 4]), b.random([3, 4, 2, 2])], { strides: [2, 2] }))],
  "Gemm BatchNormalization": [1, (b) => norm(b, b.add(op.Gemm, [b.input("x", ["n", 5]), b.random([5, 4])]))],
  "BatchNormalization Conv": [1, (b) => b.add(op.Conv, [norm(b, b.input("x", ["n", 4, 5, 5])), b.random([6, 4, 3, 3])])],
  "GELU dividing by a root": [1, (b) => { const x = rows(b); return gelu(b, x, b.add(op.Div, [x, Math.SQRT2])); }],
  "GELU times 0.7071": [1, (b) => { const x = rows(b); return gelu(b, x, b.add(op.Mul, [x, 0.7071])); }],
  "LayerNorm by power": [1, (b) => rowNorm(b, rows(b), true, (d) => b.add(op.Pow, [d, 2]))],
  "LayerNorm by product": [1, (b) => rowNorm(b, rows(b), true, (d) => b.add(op.Mul, [d, d]))],
  "RMSNorm by product": [1, (b) => rowNorm(b, rows(b), false, (d) => b.add(op.Mul, [d, d]))],
  "attention": [1, (b) => {
    const q = b.input("q", ["n", 2, 5, 8]), k = b.input("k", ["n", 2, 7, 8]), v = b.input("v", ["n", 2, 7, 8]);
    const scores = b.add(op.Div, [b.add(op.MatMul, [q, b.add(op.Transpose, [k], { perm: [0, 1, 3, 2] })]), Math.sqrt(8)]);
    return b.add(op.MatMul, [b.add(op.Softmax, [scores]), v]);
  }],
  "Conv SiLU": [1, (b) => { const y = conv(b); return b.add(op.Mul, [y, b.add(op.Sigmoid, [y])]); }],
  "HardSwish spelled out": [1, (b) => { const x = rows(b); return b.add(op.Div, [b.add(op.Mul, [x, b.add(op.Clip, [b.add(op.Add, [x, 3]), 0, 6])]), 6]); }],
  "Mish": [1, (b) => { const x = rows(b); return b.add(op.Mul, [x, b.add(op.Tanh, [b.add(op.Softplus, [x])])]); }],
  "element-wise chain": [1, (b) => b.add(op.Neg, [b.add(op.Sqrt, [b.add(op.Relu, [b.add(op.Add, [b.add(op.Mul, [rows(b), 2]), 1])])])])],
  "three products of one graph input": [3, (b) => { const x = rows(b); return [0, 1, 2].map(() => b.add(op.MatMul, [x, b.random([8, 6])])); }],
  "three products of one graph input, each read by a softmax": [4, (b) => { const x = rows(b); return [0, 1, 2].map(() => b.add(op.Softmax, [b.add(op.MatMul, [x, b.random([8, 6])])])); }],
  "MatMul Add Relu, rank 3": [1, (b) => b.add(op.Relu, [b.add(op.Add, [matmul(b), b.random([6])])])],
  "MatMul Add Relu, rank 2": [1, (b) => b.add(op.Relu, [b.add(op.Add, [b.add(op.MatMul, [b.input("x", ["n", 8]), b.random([8, 6])]), b.random([6])])])],
  "Relu Relu Clip Relu": [1, (b) => b.add(op.Relu, [b.add(op.Clip, [b.add(op.Relu, [b.add(op.Relu, [rows(b)])]), -1, 6])])],
};
describe("what today's tools miss", () => {
  test.each(Object.entries(probes))("%s", (_, [count, build]) => {
    expect(kernels(build)).toBe(count);
    staysEqual(build, 3e-5);
  });
});

const wrong: Readonly<Record<string, Build>> = {
  "Pad with zeros before MaxPool": (b) => b.add(op.MaxPool, [b.add(op.Pad, [b.input("x", ["n", 2, 5, 5]), b.int64(0, 0, 1, 1, 0, 0, 1, 1)])], { kernel_shape: [3, 3] }),
  "MatMul, Reshape, BatchNormalization": (b) => norm(b, b.add(op.Reshape, [b.add(op.MatMul, [b.input("x", [4, 8]), b.random([8, 4])]), b.int64(2, 4, 2)])),
  "MatMul, Transpose, BatchNormalization, square": (b) => norm(b, b.add(op.Transpose, [b.add(op.MatMul, [b.input("x", [4, 8]), b.random([8, 4])])], { perm: [1, 0] })),
  "MatMul of rank 3, BatchNormalization": (b) => norm(b, b.add(op.MatMul, [b.input("x", [2, 4, 8]), b.random([8, 4])])),
  "LayerNorm with keepdims 0": (b) => {
    const x = b.input("x", [6, 6]), mean = (v: Value): Value => b.add(op.ReduceMean, [v, b.int64(-1)], { keepdims: 0 });
    const d = b.add(op.Sub, [x, mean(x)]);
    return b.add(op.Div, [d, b.add(op.Sqrt, [b.add(op.Add, [mean(b.add(op.Pow, [d, 2])), 1e-5])])]);
  },
  "a reciprocal whose 1 has a higher rank": (b) => b.add(op.Mul, [b.add(op.Div, [b.numbers([1], [1, 1, 1]), b.input("x", [4])]), b.input("z", [4])]),
  "Cast to the same type, then a factor that folds to 1": (b) => b.add(op.Mul, [b.add(op.Cast, [b.input("x", ["n", 3])], { to: 1 }, "mid"), b.add(op.Sub, [3, 2])]),
  "a scale before a product that would overflow after": (b) => b.add(op.MatMul, [b.add(op.Mul, [b.add(op.Mul, [b.input("x", ["n", 8]), 1e34]), 1e-30]), b.add(op.Mul, [b.random([8, 4]), 1e30])]),
  "Reshape after Reshape with a size that is copied": (b) => b.add(op.Reshape, [b.add(op.Reshape, [b.input("x", [2, 12]), b.int64(4, 6)]), b.int64(0, 2, 3)]),
  "a reciprocal of tiny numbers": (b) => b.add(op.Mul, [b.add(op.Div, [1, b.input("x", [4])]), b.input("z", [4])]),
  "products of one input that is a graph output": (b) => { const x = b.add(op.Relu, [rows(b)]); return [x, ...[0, 1, 2].map(() => b.add(op.MatMul, [x, b.random([8, 6])]))]; },
  "two outputs that are equal": (b) => { const x = rows(b); return [b.add(op.Relu, [x]), b.add(op.Relu, [x])]; },
  "an output that is an input": (b) => { const x = rows(b); return [b.add(op.Identity, [x]), b.add(op.Reshape, [x, b.int64(0, 5, 8)])]; },
  "zero times and plus": (b) => b.add(op.Add, [b.add(op.Mul, [rows(b), 0]), b.add(op.Add, [b.input("z", [1]), 0])]),
};
describe("what today's tools get wrong", () => {
  test.each(Object.entries(wrong))("%s", (_, build) => staysEqual(build));
});

test("a wrong rewrite is seen", () => {
  const pooled = (fill: number): Build => (b) => b.add(op.MaxPool, [b.add(op.Pad, [b.input("x", ["n", 2, 5, 5]), b.int64(0, 0, 1, 1, 0, 0, 1, 1), fill], {}, "pad")], { kernel_shape: [3, 3] }, "pool");
  staysEqual(pooled(-Infinity));
  expect(() => staysEqual(pooled(0), 1e-5, optimised(pooled(-Infinity)))).toThrow(/became/);
});
