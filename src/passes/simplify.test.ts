import { describe, expect, test } from "vitest";
import { evaluateDim } from "../core/dim.ts";
import { fromNumbers, sizeOf, tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { verifyGraph } from "../graph/verify.ts";
import * as op from "../ops/index.ts";
import { interpret } from "../reference/interpret.ts";
import { allNodes } from "../rewrite/driver.ts";
import { countNodes, Ledger } from "./ledger.ts";
import { simplify, type SimplifyOptions } from "./simplify.ts";

type Build = (b: GraphBuilder) => Value | readonly Value[];
const isList = (x: Value | readonly Value[]): x is readonly Value[] => Array.isArray(x);
function graphOf(build: Build): Graph {
  const b = new GraphBuilder(), y = build(b);
  return b.build(...(isList(y) ? y : [y]));
}
/** Operator types left after simplification, which keeps every bit of the results and accounts for every node. */
function left(build: Build, options: SimplifyOptions = {}): string {
  const original = graphOf(build), graph = graphOf(build), ledger = new Ledger();
  const names = graph.outputs.map((v) => v.name);
  simplify(graph, ledger, options);
  verifyGraph(graph);
  expect(graph.outputs.map((v) => v.name)).toEqual(names);
  expect(countNodes(original) - countNodes(graph)).toBe(ledger.nodes);
  for (const size of [1, 2, 3]) {
    let n = 0;
    const feeds = Object.fromEntries(original.inputs.filter((v) => !v.default).map((v) => {
      const dims = v.type.shape.map((d) => evaluateDim(d, () => size));
      const special = [-0, 0, Infinity, -Infinity, -2.5, 1.5, 7, -1];
      return [v.name, fromNumbers(v.type.dtype, dims, Array.from({ length: sizeOf(dims) }, () => special[n++ % special.length] ?? 0))];
    }));
    const before = interpret(original, feeds), after = interpret(graph, feeds);
    for (const [name, t] of Object.entries(before)) expect([name, after[name]?.data]).toEqual([name, t.data]);
  }
  return allNodes(graph).map((node) => node.op.type).join(" ");
}
const x = (b: GraphBuilder): Value => b.input("x", ["n", 4, 3]);

describe("elimination", () => {
  const cases: Readonly<Record<string, readonly [left: string, build: Build]>> = {
    Identity: ["Relu", (b) => b.add(op.Relu, [b.add(op.Identity, [x(b)])])],
    "Identity as output": ["Relu", (b) => b.add(op.Identity, [b.add(op.Relu, [x(b)])])],
    "Identity from input to output stays": ["Identity", (b) => b.add(op.Identity, [x(b)])],
    "Dropout in inference": ["Relu", (b) => b.add(op.Relu, [b.add(op.Dropout, [x(b), 0.5])])],
    "Dropout told not to train": ["Relu", (b) => b.add(op.Relu, [b.add(op.Dropout, [x(b), 0.5, b.numbers([0], [], "bool")])])],
    "Cast to the same type": ["Relu", (b) => b.add(op.Relu, [b.add(op.Cast, [x(b)], { to: 1 })])],
    "Cast there and back": ["Relu", (b) => b.add(op.Relu, [b.add(op.Cast, [b.add(op.Cast, [x(b)], { to: 11 })], { to: 1 })])],
    "Cast that loses stays": ["Cast Cast Relu", (b) => b.add(op.Relu, [b.add(op.Cast, [b.add(op.Cast, [x(b)], { to: 10 })], { to: 1 })])],
    "Reshape to its own shape": ["Relu", (b) => b.add(op.Relu, [b.add(op.Reshape, [x(b), b.int64(0, -1, 3)])])],
    "Reshape of Reshape": ["Reshape Relu", (b) => b.add(op.Relu, [b.add(op.Reshape, [b.add(op.Reshape, [x(b), b.int64(0, 12)]), b.int64(0, 2, 6)])])],
    "Flatten, Unsqueeze and Squeeze": ["Reshape Relu", (b) => b.add(op.Relu, [b.add(op.Squeeze, [b.add(op.Unsqueeze, [b.add(op.Flatten, [x(b)]), b.int64(0)]), b.int64(0)])])],
    "Transpose of Transpose": ["Transpose Relu", (b) => b.add(op.Relu, [b.add(op.Transpose, [b.add(op.Transpose, [x(b)], { perm: [1, 2, 0] })], { perm: [2, 1, 0] })])],
    "Transpose that undoes Transpose": ["Relu", (b) => b.add(op.Relu, [b.add(op.Transpose, [b.add(op.Transpose, [x(b)])])])],
    "Transpose of axes of size 1": ["Reshape Relu", (b) => b.add(op.Relu, [b.add(op.Transpose, [b.input("x", [1, 4, 1, 3])], { perm: [1, 2, 0, 3] })])],
    "Slice of everything": ["Relu", (b) => b.add(op.Relu, [b.add(op.Slice, [x(b), b.int64(0), b.int64(99), b.int64(1)])])],
    "Slice that reverses stays": ["Slice Relu", (b) => b.add(op.Relu, [b.add(op.Slice, [x(b), b.int64(-1), b.int64(-99), b.int64(1), b.int64(-1)])])],
    "Pad by nothing": ["Relu", (b) => b.add(op.Relu, [b.add(op.Pad, [x(b), b.int64(0, 0, 0, 0, 0, 0)])])],
    "Pad that shifts stays": ["Pad Relu", (b) => b.add(op.Relu, [b.add(op.Pad, [x(b), b.int64(0, 1, 0, 0, -1, 0)])])],
    "Concat of one": ["Relu", (b) => b.add(op.Relu, [b.add(op.Concat, [x(b)], { axis: 1 })])],
    "Concat of all parts of a Split, among others": ["Relu Concat Exp", (b) => { const v = x(b); return b.add(op.Exp, [b.add(op.Concat, [b.add(op.Relu, [v]), ...b.addAll(op.Split, [v, b.int64(1, 3)], { axis: -2 }, 2)], { axis: 1 })]); }],
    "Concat of such parts in another order stays": ["Split Concat Exp", (b) => b.add(op.Exp, [b.add(op.Concat, [...b.addAll(op.Split, [x(b), b.int64(1, 3)], { axis: 1 }, 2)].reverse(), { axis: 1 })])],
    "Split into one": ["Relu", (b) => b.add(op.Relu, [b.add(op.Split, [x(b)], { axis: 1, num_outputs: 1 })])],
    "Expand to its own shape": ["Relu", (b) => b.add(op.Relu, [b.add(op.Expand, [x(b), b.int64(1, 4, 1)])])],
    "Tile by 1": ["Relu", (b) => b.add(op.Relu, [b.add(op.Tile, [x(b), b.int64(1, 1, 1)])])],
    "Resize by 1": ["Relu", (b) => b.add(op.Relu, [b.add(op.Resize, [x(b), undefined, b.numbers([1, 1, 1])])])],
    "a scale that rounds to the same size stays": ["Resize Relu", (b) => b.add(op.Relu, [b.add(op.Resize, [b.input("x", [1, 4, 3]), undefined, b.numbers([1, 1.2, 1.3])], { mode: "nearest", coordinate_transformation_mode: "asymmetric", nearest_mode: "ceil" })])],
    "times 1, over 1, to the power 1": ["Relu", (b) => b.add(op.Relu, [b.add(op.Pow, [b.add(op.Div, [b.add(op.Mul, [1, x(b)]), 1]), 1])])],
    "plus −0 and minus 0": ["Relu", (b) => b.add(op.Relu, [b.add(op.Sub, [b.add(op.Add, [x(b), -0]), 0])])],
    "plus 0 stays, for −0": ["Add Exp", (b) => b.add(op.Exp, [b.add(op.Add, [x(b), 0])])],
    "a neutral element that enlarges stays": ["Mul Relu", (b) => b.add(op.Relu, [b.add(op.Mul, [x(b), b.numbers([1, 1], [2, 1, 1, 1])])])],
    "Relu of Relu": ["Relu", (b) => b.add(op.Relu, [b.add(op.Relu, [x(b)])])],
    "Neg of Neg": ["Exp", (b) => b.add(op.Exp, [b.add(op.Neg, [b.add(op.Neg, [x(b)])])])],
    "Where of a negation": ["Greater Where", (b) => { const v = x(b); return b.add(op.Where, [b.add(op.Not, [b.add(op.Greater, [v, 0])]), v, b.add(op.Identity, [b.scalar(2)])]); }],
    "an unused branch": ["Relu", (b) => { const v = x(b); b.add(op.Exp, [v]); return b.add(op.Relu, [v]); }],
  };
  test.each(Object.entries(cases))("%s", (_, [expected, build]) => expect(left(build)).toBe(expected));
});

describe("canonical form", () => {
  const cases: Readonly<Record<string, readonly [left: string, build: Build]>> = {
    "subtraction of a constant": ["Add", (b) => b.add(op.Sub, [x(b), 3])],
    "subtraction from a constant stays": ["Sub", (b) => b.add(op.Sub, [3, x(b)])],
    "the square as a product": ["Mul", (b) => b.add(op.Pow, [x(b), 2])],
    "the square root as a power stays": ["Pow", (b) => b.add(op.Pow, [x(b), 0.5])],
    "a sum of two": ["Add", (b) => { const v = x(b); return b.add(op.Sum, [v, b.input("y", [3])]); }],
    "Max and Min with numbers": ["Clip Clip", (b) => b.add(op.Min, [b.add(op.Max, [-1, x(b)]), 6])],
    "Max with 0 stays, for −0": ["Max", (b) => b.add(op.Max, [x(b), 0])],
    "division by a power of two": ["Mul", (b) => b.add(op.Div, [x(b), 8])],
    "division by three stays": ["Div", (b) => b.add(op.Div, [x(b), 3])],
  };
  test.each(Object.entries(cases))("%s", (_, [expected, build]) => expect(left(build)).toBe(expected));
});

describe("folding", () => {
  test("constants", () => {
    expect(left((b) => b.add(op.Add, [x(b), b.add(op.Mul, [b.numbers([1, 2, 3]), 2])]))).toBe("Add");
  });
  test("an output that is constant keeps its name", () => {
    expect(left((b) => [b.add(op.Exp, [b.numbers([1, 2])]), b.add(op.Relu, [x(b)])])).toBe("Relu");
  });
  test("shape arithmetic of fixed sizes", () => {
    expect(left((b) => { const v = b.input("x", [2, 6]); return b.add(op.Reshape, [v, b.add(op.Concat, [b.add(op.Gather, [b.add(op.Shape, [v]), b.int64(1)]), b.int64(2)], { axis: 0 })]); })).toBe("Reshape");
  });
  const merged: Build = (b) => {
    const v = x(b), n = b.add(op.Gather, [b.add(op.Shape, [v]), b.int64(0)]);
    return b.add(op.Reshape, [v, b.add(op.Concat, [b.add(op.Mul, [n, b.int64(4)]), b.int64(3)], { axis: 0 })]);
  };
  test("shape arithmetic of symbolic sizes, as a constant target where one size is open", () => {
    expect(left(merged)).toBe("Reshape");
    expect(left(merged, { symbolic: false })).toBe("Reshape");
  });
  const outer: Build = (b) => {
    const v = b.input("x", ["n", "m", 4]), shape = b.add(op.Shape, [v]);
    const part = (i: number): Value => b.add(op.Gather, [shape, b.int64(i)]);
    return b.add(op.Reshape, [v, b.add(op.Concat, [b.add(op.Mul, [part(1), b.int64(2)]), b.add(op.Mul, [part(0), b.int64(2)])], { axis: 0 })]);
  };
  test("shape arithmetic of two open sizes, as known elements", () => {
    expect(left(outer)).toBe("KnownElements Reshape");
    expect(left(outer, { symbolic: false })).not.toContain("KnownElements");
  });
  test("a size read as data", () => {
    expect(left((b) => b.add(op.Cast, [b.add(op.Shape, [x(b)])], { to: 1 }))).toBe("KnownElements Cast");
  });
  test("never what an overridable initializer computes", () => {
    expect(left((b) => b.add(op.Add, [x(b), b.add(op.Exp, [b.overridable("w", tensor("float32", [3], new Float32Array(3)))])]))).toBe("Exp Add");
  });
  test("never what would become large", () => {
    expect(left((b) => b.add(op.Add, [b.input("x", [3]), b.add(op.Expand, [b.numbers([1, 2, 3]), b.int64(40, 3)])]), { maxBytes: 100 })).toBe("Expand Add");
    expect(left((b) => { const c = b.numbers(Array.from({ length: 20 }, (_, i) => i + 0.5)); return b.add(op.Exp, [b.add(op.Concat, [c, c], { axis: 0 })]); }, { maxBytes: 100 })).toBe("Concat Exp");
  });
});

describe("common subexpressions", () => {
  test("equal nodes and equal constants merge, to a fixpoint", () => {
    expect(left((b) => { const v = x(b), f = (): Value => b.add(op.Exp, [b.add(op.Add, [v, b.numbers([1, 2, 3])])]); return b.add(op.Mul, [f(), f()]); })).toBe("Add Exp Mul");
  });
  test("two equal outputs keep both names", () => {
    expect(left((b) => { const v = x(b); return [b.add(op.Relu, [v]), b.add(op.Relu, [v])]; })).toBe("Relu Identity");
  });
  test("attributes and defaults count", () => {
    expect(left((b) => { const v = x(b); return b.add(op.Add, [b.add(op.LeakyRelu, [v], { alpha: 0.01 }), b.add(op.LeakyRelu, [v])]); })).toBe("LeakyRelu Add");
    expect(left((b) => { const v = x(b); return b.add(op.Add, [b.add(op.LeakyRelu, [v], { alpha: 0.02 }), b.add(op.LeakyRelu, [v])]); })).toBe("LeakyRelu LeakyRelu Add");
  });
  test("0 and −0 are two constants", () => {
    expect(left((b) => { const v = x(b); return b.add(op.Add, [b.add(op.Max, [v, 0]), b.add(op.Min, [v, -0])]); })).toBe("Max Min Add");
  });
  test("random results are never merged", () => {
    const graph = graphOf((b) => { const v = x(b); return b.add(op.Add, [b.add(op.RandomNormalLike, [v]), b.add(op.RandomNormalLike, [v])]); });
    simplify(graph, new Ledger());
    expect(graph.nodes.map((n) => n.op.type)).toEqual(["RandomNormalLike", "RandomNormalLike", "Add"]);
  });
});

describe("branches", () => {
  const branching = (condition: (b: GraphBuilder, v: Value) => Value): Build => (b) => {
    const v = b.add(op.Relu, [x(b)]);
    const branch = (name: string, body: (inner: GraphBuilder) => Value): Graph => { const inner = new GraphBuilder(new Graph(name, b.graph)); return inner.build(body(inner)); };
    return b.add(op.If, [condition(b, v)], {
      then_branch: branch("yes", (inner) => inner.add(op.Add, [inner.add(op.Exp, [v]), inner.scalar(1)], {}, "sum")),
      else_branch: branch("no", (inner) => inner.add(op.Neg, [v], {}, "negative")),
    }, "choice");
  };
  test("a known condition inlines its branch", () => {
    expect(left(branching((b) => b.numbers([1], [], "bool")))).toBe("Relu Exp Add");
    expect(left(branching((b) => b.numbers([0], [], "bool")))).toBe("Relu Neg");
  });
  test("a condition on fixed sizes is known", () => {
    expect(left(branching((b, v) => b.add(op.Equal, [b.add(op.Gather, [b.add(op.Shape, [v]), b.scalar(1, "int64")]), b.scalar(4, "int64")])))).toBe("Relu Exp Add");
  });
  test("a condition on data stays", () => {
    expect(left(branching((b) => b.input("c", [], "bool")))).toBe("Relu If Exp Add Neg");
  });
});

test("the comparison sees the sign of a zero", () => {
  expect(() => expect(Float32Array.of(0)).toEqual(Float32Array.of(-0))).toThrow();
});
