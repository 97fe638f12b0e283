/** The catalogue: control flow, constants and memory, and the grouping of what is left. */
import { grouping, wholeGraph } from "../../scripts/pages/catalogue-whole-graph.ts";
import { GraphBuilder } from "../../src/graph/build.ts";
import { Graph, type Value } from "../../src/graph/graph.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, keeps, leaves, testCatalogue } from "../support/catalogue-cases.ts";
import { add, concat, conv3, matmul, mul, part, picture, relu, reshape, rows, slice, split } from "../support/catalogue-parts.ts";

const branch = (b: GraphBuilder, name: string, f: (inner: GraphBuilder) => Value): Graph => { const inner = new GraphBuilder(new Graph(name, b.graph)); return inner.build(f(inner)); };
const either = (b: GraphBuilder, condition: Value, x: Value): Value => b.add(op.If, [condition], { then_branch: branch(b, "yes", (i) => relu(i, x)), else_branch: branch(b, "no", (i) => i.add(op.Neg, [x])) });
/** `state` twice over, and then again, as often as `trips` says. */
const repeated = (b: GraphBuilder, trips: Value, state: Value): Value => {
  const body = new GraphBuilder(new Graph("body", b.graph));
  body.input("i", [], "int64");
  const on = body.input("on", [], "bool"), own = body.input("state", state.type.shape.map((d) => (typeof d === "number" ? d : "n")));
  return b.add(op.Loop, [trips, b.numbers([1], [], "bool"), state], { body: body.build(body.add(op.Identity, [on]), add(body, mul(body, own, 0.5), 1)) });
};
const sigmoid = (b: GraphBuilder, x: Value): Value => b.add(op.Sigmoid, [x]);
const softmax = (b: GraphBuilder, x: Value): Value => b.add(op.Softmax, [x]);
const finite = { without: ["special"] } as const;

testCatalogue(wholeGraph, {
  "If with a known condition, or with a condition on sizes": {
    "known": leaves(1, 1, (b) => either(b, b.numbers([1], [], "bool"), rows(b))),
    "of sizes": leaves(1, 1, (b) => { const x = rows(b); return either(b, b.add(op.Equal, [b.add(op.Gather, [b.add(op.Shape, [x]), b.scalar(1, "int64")]), b.scalar(5, "int64")]), x); }),
  },
  "If as Where": { "a condition that is fed": fuses(3, (b) => either(b, b.input("c", [], "bool"), rows(b))) },
  "Loop with a known number of few iterations": { "three": fuses(1, (b) => repeated(b, b.scalar(3, "int64"), b.input("x", [8]))), },
  "what does not change in a loop, moved out of it": { "a loop that is fed how often": fuses(4, (b) => repeated(b, b.input("trips", [], "int64"), b.input("x", [8]))) },
  "recurrent cells spelled out": {
    "one step of an LSTM": fuses(3, (b) => {
      const gates = add(b, matmul(b, b.input("x", ["n", 8]), [8, 16]), b.add(op.MatMul, [b.input("h", ["n", 4]), b.random([4, 16])])), parts = split(b, gates, 1, 4, 4, 4, 4);
      const c = add(b, mul(b, sigmoid(b, part(parts, 1)), b.input("c", ["n", 4])), mul(b, sigmoid(b, part(parts, 0)), b.add(op.Tanh, [part(parts, 2)])));
      return [mul(b, sigmoid(b, part(parts, 3)), b.add(op.Tanh, [c])), c];
    }),
  },
  "constant folding": {
    "arithmetic of constants": leaves(1, 1, (b) => mul(b, rows(b), b.add(op.Sqrt, [add(b, b.random([8], { low: 0 }), 1)]))),
    "a half of a commuting pair": fuses(1, (b) => add(b, add(b, 1, rows(b)), 2)),
    "the shape of what is random": keeps(1, (b) => b.add(op.Shape, [b.add(op.RandomNormal, [], { shape: [2, 3] })]), [], {}),
  },
  "equal nodes and equal constants": {
    "two Softmaxes of one value": leaves(3, 1, (b) => { const x = rows(b); return relu(b, add(b, softmax(b, x), softmax(b, x))); }, finite),
    "constants with equal bits": leaves(3, 1, (b) => { const x = rows(b); return b.add(op.Div, [mul(b, x, b.numbers([1, 2], [2, 1, 1, 1])), mul(b, x, b.numbers([1, 2], [2, 1, 1, 1]))]).producer ? relu(b, add(b, mul(b, x, b.numbers([2, 3, 4, 5, 6, 7, 8, 9])), mul(b, x, b.numbers([2, 3, 4, 5, 6, 7, 8, 9])))) : x; }),
    "not: 0 and −0": keeps(1, (b) => { const x = rows(b); return add(b, b.add(op.Div, [x, b.scalar(0)]), b.add(op.Div, [x, b.scalar(-0)])); }, [], { without: ["zero"] }),
    "not: attributes that differ": keeps(1, (b) => { const x = rows(b); return add(b, b.add(op.Softmax, [x], { axis: 1 }), softmax(b, x)); }, [], finite),
  },
  "dead nodes, unused outputs and initializers": { "a branch that nothing reads": leaves(1, 1, (b) => { const x = rows(b); softmax(b, matmul(b, x)); return relu(b, x); }) },
  "order of steps, lifetimes, views and in-place results in one arena": {
    "an input that is a result, changed": fuses(1, (b) => { const x = rows(b); return [add(b, reshape(b, x, 0, 5, 8), 1), reshape(b, relu(b, x), 0, 8, 5)]; }),
    "a residual read twice": fuses(3, (b) => { const x = picture(b, 4), y = relu(b, conv3(b, x, [4, 4])), z = add(b, conv3(b, y, [4, 4]), y); return add(b, conv3(b, z, [4, 4]), z); }),
  },
  "recomputing what is cheap instead of keeping it": { "an activation read twice by rows: stored once": fuses(3, (b) => { const y = relu(b, rows(b)); return [softmax(b, y), b.add(op.ReduceMax, [y, b.int64(1)])]; }, [], finite) },
  "operators without a kernel": { "Unique in between": fuses(2, (b) => relu(b, b.add(op.Unique, [rows(b)])), [], finite) },
  "weights packed for their kernels": { "a matrix read by two products": fuses(2, (b) => { const w = b.random([8, 8]); return b.add(op.MatMul, [relu(b, b.add(op.MatMul, [rows(b), w])), w]); }) },
});

testCatalogue(grouping, {
  "kinds of operators and convexity": {
    "a path that leaves and comes back": keeps(4, (b) => { const y = relu(b, rows(b)); return add(b, b.add(op.CumSum, [softmax(b, y), b.scalar(1, "int64")]), y); }, [], finite),
  },
  "loops over elements and rows, with broadcasting": {
    "a chain": fuses(1, (b) => b.add(op.Neg, [b.add(op.Sqrt, [relu(b, add(b, mul(b, rows(b), 2), b.input("z", [5, 1])))])])),
    "other element types inside": fuses(1, (b) => b.add(op.Cast, [b.add(op.Greater, [b.add(op.Cast, [b.input("x", ["n", 8], "int32")], { to: 1 }), b.input("z", ["n", 1])])], { to: 6 }), [], finite),
    "not: a costly producer for many readers": keeps(2, (b) => mul(b, b.input("x", ["n", 64, 64]), b.add(op.Tanh, [b.add(op.Exp, [b.input("z", ["n", 64, 1])])]))),
  },
  "reductions with what comes before and after": {
    "a variance": fuses(1, (b) => { const x = b.input("x", ["n", 5, 32]), d = b.add(op.Sub, [x, b.add(op.ReduceMean, [x, b.int64(-1)])]); return b.add(op.ReduceMean, [mul(b, d, d), b.int64(-1)]); }, [], finite),
    "the logarithm of a sum": fuses(1, (b) => b.add(op.Log, [add(b, b.add(op.ReduceSum, [mul(b, rows(b), rows(b, "z")), b.int64(-1)]), 1)]), [], finite),
  },
  "several results of one loop": { "sine and cosine": fuses(1, (b) => { const x = mul(b, rows(b), 0.1); return [b.add(op.Sin, [x]), b.add(op.Cos, [x])]; }, [], { without: ["special", "large"] }) },
  "whole rows in one kernel (Softmax, normalisations, attention)": { "a softmax of masked scores, scaled": fuses(1, (b) => mul(b, softmax(b, add(b, b.input("x", ["n", 5, 32]), b.input("m", ["n", 1, 32]))), 2), [], finite) },
  "gathers and concatenations in the kernel that reads them": {
    "an embedding and its position": fuses(1, (b) => add(b, b.add(op.Gather, [b.random([9, 32]), b.input("i", ["n", 5], "int64")]), b.random([5, 32]))),
    "a join before elements": fuses(1, (b) => relu(b, concat(b, 2, rows(b), slice(b, rows(b, "z"), 2, 0, 3)))),
  },
}, ["independent small kernels in one call", "element-wise work before a product, in the product's kernel", "limits of size", "patterns of the user"]);
