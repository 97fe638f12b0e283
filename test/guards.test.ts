/**
 * The guards that hold for every fusion (U1 to U20 of the field's catalogue): each is one shared condition with one
 * code. Where it holds, a fusion fires; where it does not, the fusion is refused with that code. Results stay either way.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { universalGuards } from "../scripts/pages/guards.ts";
import { compileModel } from "../src/compiler/compile.ts";
import { optimiseModel } from "../src/compiler/optimise.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { fromNumbers, tensor, toNumbers } from "../src/core/tensor.ts";
import { GraphBuilder } from "../src/graph/build.ts";
import { Graph, type Value } from "../src/graph/graph.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { decodeModel } from "../src/onnx/decode.ts";
import { countOperators } from "../src/onnx/operator-counts.ts";
import * as op from "../src/ops/index.ts";
import { fold } from "../src/passes/fold.ts";
import { Ledger } from "../src/passes/ledger.ts";
import { partition } from "../src/passes/partition.ts";
import { simplify } from "../src/passes/simplify.ts";
import { interpret } from "../src/reference/interpret.ts";
import { applyRules } from "../src/rewrite/driver.ts";
import { reassociates } from "../src/rewrite/rule.ts";
import type { Site } from "../src/rewrite/site.ts";
import { rules } from "../src/rules/index.ts";
import { compileVerified } from "../src/verify/verify.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { difference, feedsFor } from "./support/rule-check.ts";

type Build = (b: GraphBuilder) => Value | readonly Value[];
const isList = (x: Value | readonly Value[]): x is readonly Value[] => Array.isArray(x);
function graphOf(build: Build): Graph {
  const b = new GraphBuilder(), y = build(b);
  return b.build(...(isList(y) ? y : [y]));
}
/** Every site of rules and regions. What the fused graph computes is checked against the original. */
function sitesOf(build: Build): readonly Site[] {
  const original = graphOf(build), graph = graphOf(build);
  simplify(graph, new Ledger(), { keepQuantized: true });
  const { sites } = applyRules(graph, rules, { verify: verifyGraph });
  simplify(graph, new Ledger());
  if (original.nodes.every((n) => n.op.deterministic !== false)) {
    const feeds = feedsFor(original, "normal", 3), after = interpret(graph, feeds);
    for (const [name, t] of Object.entries(interpret(original, feeds))) expect(after[name] && difference(t, after[name], reassociates(1e-4)), name).toBeUndefined();
  }
  return [...sites, ...partition(graph, { fusion: true, opTypesOf: (n) => original.nodes.find((x) => x.name === n)?.op.type, isEnabled: () => true }).sites];
}

const conv = (b: GraphBuilder, weight = b.random([4, 3, 1, 1])): Value => b.add(op.Conv, [b.input("x", ["n", 3, 5, 5]), weight], {}, "conv");
const norm = (b: GraphBuilder, y: Value, gamma = b.random([4]), attributes = {}): Value => b.add(op.BatchNormalization, [y, gamma, b.random([4]), b.random([4]), b.random([4], { low: 0.5, high: 2 })], attributes, "norm");
const captured = (b: GraphBuilder, v: Value): Value => {
  const branch = (of: typeof op.Neg): Graph => { const inner = new GraphBuilder(new Graph(of.type, b.graph)); return inner.build(inner.add(of, [v], {}, `captured${of.type}`)); };
  return b.add(op.If, [b.input("condition", [], "bool"), ], { then_branch: branch(op.Neg), else_branch: branch(op.Abs) }, "choose");
};
/** Layer normalisation spelled out, of a type. */
const layerNorm = (b: GraphBuilder, dtype: "float32" | "float64"): Value => {
  const x = b.input("x", ["n", 6], dtype), mean = (v: Value): Value => b.add(op.ReduceMean, [v, b.int64(-1)]), number = (v: number): Value => b.scalar(v, dtype);
  const d = b.add(op.Sub, [x, mean(x)]);
  return b.add(op.Div, [d, b.add(op.Sqrt, [b.add(op.Add, [mean(b.add(op.Mul, [d, d])), number(1e-5)])])]);
};
const silu = (b: GraphBuilder, x: Value): Value => b.add(op.Mul, [x, b.add(op.Sigmoid, [x])]);
const pooled = (b: GraphBuilder, outputs: number): Value | readonly Value[] => {
  const padded = b.add(op.Pad, [b.input("x", ["n", 2, 5, 5]), b.int64(0, 0, 1, 1, 0, 0, 1, 1), -Infinity]);
  return b.addAll(op.MaxPool, [padded], { kernel_shape: [3, 3] }, outputs, "pool");
};
const rounded = (b: GraphBuilder, y: Value): Value => {
  const scale = b.scalar(0.1), zero = b.scalar(0, "int8");
  return b.add(op.DequantizeLinear, [b.add(op.QuantizeLinear, [y, scale, zero], {}, "quantise"), scale, zero], {}, "dequantise");
};

interface Guard {
  /** The fusion that fires. */
  readonly fusion: string;
  readonly fires: Build;
  /** By code. */
  readonly refuses: Readonly<Record<string, Build>>;
}
const foldNorm = { fusion: "fold-batch-norm-into-conv", fires: (b: GraphBuilder) => norm(b, conv(b)) };
const guards: Readonly<Record<string, Guard>> = {
  "U1: nobody else reads an inner value, from a subgraph neither": {
    ...foldNorm,
    refuses: {
      "interior-value-used": (b) => { const y = conv(b); return [norm(b, y), b.add(op.Relu, [y])]; },
      "captured-by-subgraph": (b) => { const y = conv(b); return [norm(b, y), captured(b, y)]; },
    },
  },
  "U2: an inner value is no result": { ...foldNorm, refuses: { "graph-output": (b) => { const y = conv(b); return [norm(b, y), y, y]; } } },
  "U3: a constant is one": {
    ...foldNorm,
    refuses: {
      "overridable-initializer": (b) => norm(b, conv(b), b.overridable("gamma", fromNumbers("float32", [4], [1, 2, 3, 4]))),
      "not-constant": (b) => norm(b, conv(b), b.input("gamma", [4])),
    },
  },
  "U4: a large weight is not stored twice": {
    fusion: "fold-mul-into-matmul",
    fires: (b) => b.add(op.Mul, [b.add(op.MatMul, [b.input("x", [1, 8]), b.random([8, 4])]), b.random([4])]),
    refuses: {
      "shared-weight": (b) => {
        const tied = b.constant(fromNumbers("float32", [64, 70_000], new Float32Array(4_480_000).fill(0.5)));
        return [b.add(op.Mul, [b.add(op.MatMul, [b.input("x", [1, 64]), tied]), 0.1]), b.add(op.Gather, [tied, b.input("i", [1], "int64")])];
      },
    },
  },
  "U6: a folded constant keeps its value": {
    ...foldNorm,
    refuses: {
      "precision-loss": (b) => norm(b, conv(b, b.random([4, 3, 1, 1], { low: 3, high: 4 })), b.numbers([3e38, 3e38, 3e38, 3e38])),
      "scale-range": (b) => { const one = b.numbers([1, 1, 1, 1]); return b.add(op.BatchNormalization, [conv(b), one, one, b.numbers([0, 1e35, 0, 0]), one], {}, "norm"); },
      "not-finite": (b) => norm(b, conv(b, b.numbers(Array.from({ length: 12 }, (_, i) => (i === 5 ? Infinity : i)), [4, 3, 1, 1]))),
    },
  },
  "U7: the result keeps its shape": {
    fusion: "fold-add-into-gemm",
    fires: (b) => b.add(op.Add, [b.add(op.Gemm, [b.input("x", ["n", 3]), b.random([3, 4])]), b.random([4])]),
    refuses: { "shape-grows": (b) => b.add(op.Add, [b.add(op.Gemm, [b.input("x", [1, 3]), b.random([3, 4])]), b.random([5, 4])]) },
  },
  "U8: no further result of a node is in use": { fusion: "pad-into-max-pool", fires: (b) => pooled(b, 1), refuses: { "graph-output": (b) => pooled(b, 2) } },
  "U9: nothing trains, and nothing is random": {
    ...foldNorm,
    refuses: {
      "batch-norm-training": (b) => norm(b, conv(b), undefined, { training_mode: 1 }),
      "non-deterministic-between": (b) => norm(b, b.add(op.RandomNormalLike, [conv(b)])),
    },
  },
  "U10 and U19: the element type is one that the fusion is right for, and has a kernel for": {
    fusion: "recognise-layer-normalization", fires: (b) => layerNorm(b, "float32"), refuses: { dtype: (b) => layerNorm(b, "float64") },
  },
  "U11: NaN, infinities and overflow stay where they were": {
    fusion: "recognise-silu",
    fires: (b) => silu(b, b.input("x", ["n", 4])),
    refuses: { approximate: (b) => b.add(op.Log, [b.add(op.Add, [b.add(op.Exp, [b.input("x", ["n", 4])]), 1])]) },
  },
  "U12: no path leaves a group and comes back": {
    fusion: "ConvAdd",
    fires: (b) => b.add(op.Add, [conv(b), b.input("z", ["n", 4, 5, 5])]),
    refuses: { "residual-cycle": (b) => { const y = conv(b); return b.add(op.Add, [y, b.add(op.MaxPool, [y], { kernel_shape: [3, 3], pads: [1, 1, 1, 1] })]); } },
  },
  "U13: nothing moves into or out of a branch": {
    fusion: "recognise-silu", fires: (b) => silu(b, b.input("x", ["n", 4])),
    refuses: {
      "outside-subgraph": (b) => {
        const x = b.input("x", ["n", 4]), y = b.add(op.Exp, [x]), inner = new GraphBuilder(new Graph("yes", b.graph)), other = new GraphBuilder(new Graph("no", b.graph));
        const attributes = { then_branch: inner.build(inner.add(op.Log, [inner.add(op.Add, [y, 1], {}, "plus")], {}, "log")), else_branch: other.build(other.add(op.Neg, [y], {}, "neg")) };
        return b.add(op.If, [b.input("condition", [], "bool")], attributes, "choose");
      },
    },
  },
  "U15: nothing is quantised in between": { ...foldNorm, refuses: { "quantized-between": (b) => norm(b, rounded(b, conv(b))) } },
};

describe("guards of every fusion", () => {
  test.each(Object.entries(guards))("%s", (_, { fusion, fires, refuses }) => {
    expect(sitesOf(fires)).toContainEqual(expect.objectContaining({ name: fusion, outcome: "fired" }));
    for (const [code, build] of Object.entries(refuses)) {
      const sites = sitesOf(build);
      const refusal = sites.find((s) => s.code === code);
      expect(refusal, `${code} among ${sites.map((s) => `${s.name} ${s.code ?? s.outcome}`).join(", ")}`).toMatchObject({ outcome: "refused", reason: expect.stringMatching(/./) as string, remedy: expect.stringMatching(/./) as string });
      expect(sites.filter((s) => s.name === refusal?.name && s.outcome === "fired")).toEqual([]);
    }
  });
});

const f32 = (...dims: (number | string)[]) => ({ dtype: "float32" as const, dims });
const numbers = (dims: readonly number[]): ReturnType<typeof tensor> => tensor("float32", dims, Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => 0.5 + (i % 5) / 4));
const convNorm: ModelSpec = {
  opset: 13, inputs: { x: f32("n", 3, 4, 4) }, outputs: { y: f32("n", 4, 4, 4) }, initializers: { w: numbers([4, 3, 1, 1]), p: numbers([4]) },
  nodes: [{ type: "Conv", name: "conv", inputs: ["x", "w"], outputs: ["c"] }, { type: "BatchNormalization", name: "norm", inputs: ["c", "p", "p", "p", "p"], outputs: ["y"] }],
};
const firedIn = (spec: ModelSpec, options = {}): readonly string[] => compileModel(modelBytes(spec), options).report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => s.name);
const codesIn = (spec: ModelSpec, options = {}): readonly (string | undefined)[] => compileModel(modelBytes(spec), options).report.sites.filter((s) => s.outcome === "refused").map((s) => s.code);
const codeOf = (run: () => unknown): string | undefined => {
  try { run(); } catch (e) { if (e instanceof DiagnosticError) return e.diagnostics[0]?.code; throw e; }
  return undefined;
};

describe("guards of whole models", () => {
  test("U3: initializers that are inputs may be replaced since IR version 4, unless the user says no", () => {
    const listed = (ir: number): ModelSpec => ({ ...convNorm, opset: 9, ir, overridable: ["w", "p"] });
    expect(firedIn(listed(3))).toEqual(["fold-batch-norm-into-conv"]);
    expect(codesIn(listed(4))).toContain("overridable-initializer");
    expect(firedIn(listed(4), { freezeInitializers: true })).toEqual(["fold-batch-norm-into-conv"]);
  });
  test("U4: a weight that others read is never changed", () => {
    const weight = fromNumbers("float32", [4, 3, 1, 1], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    const b = new GraphBuilder(), w = b.constant(weight), graph = b.build(norm(b, conv(b, w)), b.add(op.Relu, [w]));
    expect(applyRules(graph, rules).sites).toContainEqual(expect.objectContaining({ name: "fold-batch-norm-into-conv", outcome: "fired" }));
    expect(Array.from(toNumbers(w.constant ?? weight))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(graph.nodes.find((n) => n.op === op.Relu)?.inputs[0]).toBe(w);
  });
  test("U5: what the opset does not have is not written", () => {
    const silu = (opset: number): ModelSpec => ({ opset, inputs: { x: f32(2, 3) }, outputs: { y: f32(2, 3) }, initializers: {}, nodes: [{ type: "Sigmoid", inputs: ["x"], outputs: ["s"] }, { type: "Mul", inputs: ["x", "s"], outputs: ["y"] }] });
    const written = (opset: number) => countOperators(decodeModel(optimiseModel(modelBytes(silu(opset)), { level: "standard" }).model), false);
    expect(firedIn(silu(13))).toEqual(firedIn(silu(24)));
    expect(written(24)).toEqual({ Swish: 1 });
    expect(written(13)).toEqual({ Sigmoid: 1, Mul: 1 });
  });
  test("U14: what an attribute left out means depends on the opset", () => {
    const attention = (opset: number): ModelSpec => ({
      opset, inputs: { q: f32(1, 4, 4), k: f32(1, 4, 4), v: f32(1, 4, 4) }, outputs: { y: f32(1, 4, 4) }, initializers: {},
      nodes: [
        { type: "Transpose", name: "t", inputs: ["k"], outputs: ["kt"], attributes: { perm: [0, 2, 1] } }, { type: "MatMul", name: "qk", inputs: ["q", "kt"], outputs: ["s"] },
        { type: "Softmax", name: "softmax", inputs: ["s"], outputs: ["p"] }, { type: "MatMul", name: "pv", inputs: ["p", "v"], outputs: ["y"] },
      ],
    });
    expect(firedIn(attention(13))).toContain("recognise-attention");
    expect(firedIn(attention(11))).not.toContain("recognise-attention");
    expect(codesIn(attention(11))).toContain("softmax-axis");
  });
  test("U16: results keep names, order and types, and every node is accounted for", () => {
    const two: ModelSpec = { ...convNorm, outputs: { r: f32("n", 4, 4, 4), y: f32("n", 4, 4, 4) }, nodes: [...convNorm.nodes, { type: "Relu", name: "relu", inputs: ["y"], outputs: ["r"] }] };
    const { graph } = optimisedGraph(two);
    expect(graph.outputs.map((v) => [v.name, v.type.dtype])).toEqual([["r", "float32"], ["y", "float32"]]);
    const { report } = compileModel(modelBytes(two));
    expect(new Set([...report.traffic.flatMap((t) => t.nodes), ...report.fates.flatMap((f) => f.nodes)])).toEqual(new Set(["conv", "norm", "relu"]));
  });
  test("U17: a rewrite that changes results is found on adversarial inputs, and left out", async () => {
    // Right within half a turn only.
    const rule = {
      RuleName: "LogExp", OuterInputs: [{ name: "In0" }], OuterOutputs: [{ name: "Out0" }],
      OriginGraph: { Nodes: [{ name: "E", type: ["Exp"] }, { name: "L", type: ["Log"] }], Edges: [{ src: "In0", dst: "E" }, { src: "E", dst: "L" }, { src: "L", dst: "Out0" }] },
      FusionGraph: { Nodes: [{ name: "S", type: ["Sin"] }, { name: "A", type: ["Asin"] }], Edges: [{ src: "In0", dst: "S" }, { src: "S", dst: "A" }, { src: "A", dst: "Out0" }] },
    };
    const spec: ModelSpec = { opset: 13, inputs: { x: f32(8) }, outputs: { y: f32(8) }, initializers: {}, nodes: [{ type: "Exp", name: "e", inputs: ["x"], outputs: ["a"] }, { type: "Log", name: "l", inputs: ["a"], outputs: ["y"] }] };
    const { report, verification } = await compileVerified(modelBytes(spec), { customRules: [rule] }, 10);
    expect(verification.dropped).toMatchObject([{ rule: "LogExp", at: "l" }]);
    expect(report.sites).toContainEqual(expect.objectContaining({ name: "LogExp", outcome: "refused", code: "verification-failed" }));
  });
  test("U18: a constant does not grow past what it is worth", () => {
    const expanded = (size: number): number => {
      const graph = graphOf((b) => b.add(op.Add, [b.input("x", [1]), b.add(op.Expand, [b.random([1]), b.int64(size)])]));
      fold(graph, new Ledger(), { maxBytes: 4096 });
      return graph.nodes.filter((n) => n.op === op.Expand).length;
    };
    expect([expanded(1024), expanded(1025)]).toEqual([0, 1]);
  });
  test("U20: an operator of another domain is not the one of that name", () => {
    const spec = (node: NodeSpec): ModelSpec => ({ ...convNorm, nodes: [...convNorm.nodes.slice(0, 1), node] });
    const own: NodeSpec = { type: "BatchNormalization", name: "norm", inputs: ["c", "p", "p", "p", "p"], outputs: ["y"] };
    expect(firedIn(spec(own))).toEqual(["fold-batch-norm-into-conv"]);
    expect(codeOf(() => compileModel(modelBytes(spec({ ...own, domain: "com.example" }))))).toMatch(/^OF20/);
    expect(compileModel(modelBytes(spec({ ...own, attributes: { unheard_of: 1 } }))).report.warnings).toMatchObject([{ code: "OF2052" }]);
  });
});

test("every guard is listed with the codes that are tested here", () => {
  const own = readFileSync(new URL(import.meta.url), "utf8");
  expect(universalGuards.map((g) => g.id)).toEqual(Array.from({ length: 20 }, (_, i) => `U${i + 1}`));
  for (const { id, codes } of universalGuards) {
    expect(own).toMatch(new RegExp(`"[^"]*\\b${id}\\b[^"]*"`));
    for (const code of codes) expect(own, code).toContain(code);
  }
});

function optimisedGraph(spec: ModelSpec): { readonly graph: Graph } {
  let graph: Graph | undefined;
  compileModel(modelBytes(spec), { onStage: (s) => { if (s.name === "partitioned") graph = s.graph; } });
  if (!graph) throw new Error("nothing was partitioned");
  return { graph };
}
