/** Models that are another graph for other sizes: every variant runs from one artifact and agrees with onnxruntime. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { optimiseModel } from "../src/compiler/optimise.ts";
import { present } from "../src/core/assert.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { sizeOf, tensor, type Tensor } from "../src/core/tensor.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { load, Tensor as RunTensor } from "../src/runtime/index.ts";
import { difference } from "./support/cases.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const i64 = (...values: number[]): Tensor => tensor("int64", [values.length], BigInt64Array.from(values, BigInt));
const wave = (dims: readonly number[]): Tensor => tensor("float32", dims, Float32Array.from({ length: sizeOf(dims) }, (_, i) => Math.sin(i * 1.7 + 0.3)));

type Comparison = "Equal" | "Less" | "Greater";
/** `condition`: whether a size of x compares so with a number. */
const sizeIs = (condition: string, axis: number, comparison: Comparison, value: number): { readonly nodes: NodeSpec[]; readonly initializers: Record<string, Tensor> } => ({
  nodes: [
    { type: "Shape", inputs: ["x"], outputs: [`${condition}_shape`] }, { type: "Gather", inputs: [`${condition}_shape`, `${condition}_axis`], outputs: [`${condition}_size`] },
    { type: comparison, inputs: [`${condition}_size`, `${condition}_value`], outputs: [condition] },
  ],
  initializers: { [`${condition}_axis`]: i64(axis), [`${condition}_value`]: i64(value) },
});
const branch = (nodes: NodeSpec[], initializers: Record<string, Tensor> = {}): ModelSpec => ({ opset: 17, inputs: {}, outputs: { r: undefined }, initializers, nodes });

interface Choice { readonly axis: number; readonly comparison?: Comparison; readonly value?: number; readonly then?: NodeSpec["type"]; readonly at?: number }
/** Squeezes (or unsqueezes) x once for each choice, then computes something. */
function model(rank: number, choices: readonly Choice[], last: NodeSpec[] = [{ type: "Mul", inputs: ["z", "two"], outputs: ["d"], name: "double" }, { type: "Relu", inputs: ["d"], outputs: ["y"], name: "relu" }]): Uint8Array {
  const initializers: Record<string, Tensor> = { two: tensor("float32", [], Float32Array.of(2)) };
  const nodes: NodeSpec[] = [];
  choices.forEach(({ axis, comparison = "Equal", value = 1, then = "Squeeze", at = axis }, i) => {
    const from = i === 0 ? "x" : `v${i}`, to = i === choices.length - 1 ? "z" : `v${i + 1}`;
    const asked = sizeIs(`c${i}`, axis, comparison, value);
    nodes.push(...asked.nodes, {
      type: "If", name: `choose${i}`, inputs: [`c${i}`], outputs: [to],
      attributes: { then_branch: branch([{ type: then, inputs: [from, "axes"], outputs: ["r"], name: `change${i}` }], { axes: i64(at) }), else_branch: branch([{ type: "Identity", inputs: [from], outputs: ["r"] }]) },
    });
    Object.assign(initializers, asked.initializers);
  });
  return modelBytes({ opset: 17, inputs: { x: { dtype: "float32", dims: ["a", "b", "c", "d", "e"].slice(0, rank) } }, outputs: { y: undefined }, initializers, nodes: [...nodes, ...last] });
}

/** Session, reference, exported model and onnxruntime on the model itself give the same, of the same shape. */
async function agree(bytes: Uint8Array, shapes: readonly (readonly number[])[]): Promise<number[]> {
  const session = await load(compileModel(bytes).artifact);
  const unfused = await load(compileModel(bytes, { enableFusion: false }).artifact);
  const { graph } = readModel(bytes, operators);
  verifyGraph(graph);
  const written = optimiseModel(bytes).model;
  const ranks: number[] = [];
  for (const dims of shapes) {
    const x = wave(dims);
    const expected = present((await runOnnxruntime(bytes, { x }))["y"], "y");
    const results: Record<string, Tensor> = { interpreted: present(interpret(graph, { x })["y"], "y"), exported: present((await runOnnxruntime(written, { x }))["y"], "y") };
    for (const [name, s] of Object.entries({ session, unfused })) results[name] = present((await s.run({ x: RunTensor.of(x) }))["y"], "y").unpacked();
    for (const [name, t] of Object.entries(results)) {
      expect([name, t.dims]).toEqual([name, expected.dims]);
      expect(difference(t, expected, 1e-6), `${name} at [${dims.join()}]`).toBeUndefined();
    }
    ranks.push(expected.dims.length);
  }
  session.dispose();
  unfused.dispose();
  return ranks;
}
const variantsOf = (bytes: Uint8Array): number => readModel(bytes, operators).info.variants;
function refusal(compile: () => unknown): string {
  try { compile(); } catch (error) { if (error instanceof DiagnosticError) return error.code; throw error; }
  return "accepted";
}

describe("variants", () => {
  test("one predicate: both ranks, in turn", async () => {
    const bytes = model(2, [{ axis: 1 }]);
    expect(variantsOf(bytes)).toBe(2);
    expect(await agree(bytes, [[3, 1], [3, 4], [1, 1], [5, 1], [0, 2], [1, 7]])).toEqual([1, 2, 1, 1, 2, 2]);
  });
  test("two predicates", async () => {
    const bytes = model(3, [{ axis: 2 }, { axis: 0 }]);
    expect(variantsOf(bytes)).toBe(4);
    expect(await agree(bytes, [[2, 3, 1], [1, 3, 4], [1, 3, 1], [2, 3, 4]])).toEqual([2, 2, 1, 3]);
  });
  test("three predicates", async () => {
    const bytes = model(3, [{ axis: 2 }, { axis: 1 }, { axis: 0 }]);
    expect(variantsOf(bytes)).toBe(8);
    expect(await agree(bytes, [[1, 1, 1], [1, 1, 2], [1, 3, 1], [1, 3, 2], [5, 1, 1], [5, 1, 2], [5, 3, 1], [5, 3, 2]])).toEqual([0, 1, 1, 2, 1, 2, 2, 3]);
  });
  test("results of one type in all variants; what follows hangs on the rank", async () => {
    const bytes = model(2, [{ axis: 1 }], [{ type: "Softmax", inputs: ["z"], outputs: ["p"], attributes: { axis: -1 } }, { type: "ReduceSum", inputs: ["p"], outputs: ["y"], attributes: { keepdims: 0 } }]);
    expect(await agree(bytes, [[3, 1], [3, 4]])).toEqual([0, 0]);
    const session = await load(compileModel(bytes).artifact);
    expect(session.outputs).toEqual([{ name: "y", dtype: "float32", dims: [] }]);
    session.dispose();
  });
  test("more than 16 are refused", () => {
    const axes = [4, 3, 2, 1, 0].map((axis) => ({ axis }));
    expect(variantsOf(model(5, axes.slice(0, 4)))).toBe(16);
    expect(refusal(() => compileModel(model(5, axes)))).toBe("OF2090");
    expect(refusal(() => compileModel(model(5, axes), { inputShapes: { x: [2, 1, 2, 1, 2] } }))).toBe("accepted");
  });
  test("combinations that no size gives are left out", async () => {
    const either = (second: Choice): Uint8Array => model(2, [{ axis: 1, then: "Unsqueeze", at: 0 }, { then: "Unsqueeze", at: 0, ...second }]);
    expect(variantsOf(either({ axis: 1, value: 2 }))).toBe(3);
    expect(variantsOf(either({ axis: 1, comparison: "Less", value: 4 }))).toBe(3);
    expect(variantsOf(either({ axis: 0, value: 2 }))).toBe(4);
    expect(await agree(either({ axis: 1, value: 2 }), [[3, 1], [3, 2], [3, 3]])).toEqual([3, 3, 2]);
    expect(await agree(either({ axis: 1, comparison: "Greater", value: 4 }), [[3, 1], [3, 4], [3, 5]])).toEqual([3, 2, 3]);
  });
  test("an answer under which types do not fit is required, beside another that chooses", async () => {
    const bytes = model(3, [{ axis: 2 }, { axis: 0 }], [{ type: "Concat", inputs: ["z", "z"], outputs: ["w"], attributes: { axis: 1 } }, { type: "Relu", inputs: ["w"], outputs: ["y"] }]);
    expect(variantsOf(bytes)).toBe(3);
    expect(await agree(bytes, [[2, 3, 1], [1, 3, 4], [2, 3, 4]])).toEqual([2, 2, 3]);
    const session = await load(compileModel(bytes).artifact);
    await expect(session.run({ x: RunTensor.of(wave([1, 3, 1])) })).rejects.toThrow(/OF3204/);
    session.dispose();
  });
});

describe("a variant among others", () => {
  const float = (dims: readonly (number | string)[]) => ({ dtype: "float32" as const, dims });
  const positive = (n: number): Tensor => tensor("float32", [n], Float32Array.from({ length: n }, (_, i) => 1 + i / 10));
  const squeezeIfOne = (from: string, axis: number): { readonly nodes: NodeSpec[]; readonly initializers: Record<string, Tensor> } => {
    const asked = sizeIs("one", axis, "Equal", 1);
    return { initializers: asked.initializers, nodes: [...asked.nodes, { type: "If", name: "choose", inputs: ["one"], outputs: ["z"], attributes: {
      then_branch: branch([{ type: "Squeeze", inputs: [from, "axes"], outputs: ["r"] }], { axes: i64(axis) }), else_branch: branch([{ type: "Identity", inputs: [from], outputs: ["r"] }]),
    } }] };
  };
  test("shares weights that were folded apart, has sites once, and counts that sum", async () => {
    const asked = squeezeIfOne("activated", 0);
    const bytes = modelBytes({
      opset: 17, inputs: { x: float(["n", 3, "h", "w"]) }, outputs: { y: undefined },
      initializers: { ...asked.initializers, weight: wave([8, 3, 3, 3]), scale: positive(8), shift: positive(8), mean: positive(8), variance: positive(8) },
      nodes: [
        { type: "Conv", name: "conv", inputs: ["x", "weight"], outputs: ["c"], attributes: { pads: [1, 1, 1, 1] } },
        { type: "BatchNormalization", name: "bn", inputs: ["c", "scale", "shift", "mean", "variance"], outputs: ["normal"] },
        { type: "Relu", name: "relu", inputs: ["normal"], outputs: ["activated"] }, ...asked.nodes, { type: "Sigmoid", name: "sigmoid", inputs: ["z"], outputs: ["y"] },
      ],
    });
    expect(await agree(bytes, [[1, 3, 5, 7], [2, 3, 5, 7], [1, 3, 1, 1]])).toEqual([3, 4, 3]);
    const both = compileModel(bytes).report, one = compileModel(bytes, { dims: { n: 2 } }).report;
    expect(both.memory.weights).toBe(one.memory.weights);
    const fired = both.sites.filter((s) => s.outcome === "fired");
    expect(fired.filter((s) => s.name === "fold-batch-norm-into-conv").map((s) => [s.at, s.nodes])).toEqual([["bn", ["conv", "bn"]]]);
    const { details, eliminated, folded, added } = both.counts;
    expect(details.reduce((n, d) => n + d.nodesSaved, 0) + eliminated + folded - added).toBe(both.nodes.original - both.nodes.compiled);
    expect(eliminated).toBeGreaterThanOrEqual(0);
  });
  test("sizes need to agree only where they meet", async () => {
    const asked = squeezeIfOne("x", 1);
    const bytes = modelBytes({ opset: 17, inputs: { x: float(["n", "m"]), b: float(["k"]) }, outputs: { y: undefined }, initializers: asked.initializers, nodes: [...asked.nodes, { type: "Add", inputs: ["z", "b"], outputs: ["y"], name: "add" }] });
    const session = await load(compileModel(bytes).artifact);
    const dims = async (x: number[], b: number[]): Promise<readonly number[]> => present((await session.run({ x: RunTensor.of(wave(x)), b: RunTensor.of(wave(b)) }))["y"], "y").dims;
    expect(await dims([3, 1], [3])).toEqual([3]);
    expect(await dims([2, 3], [3])).toEqual([2, 3]);
    await expect(dims([3, 1], [2])).rejects.toThrow(/OF7005/);
    await expect(dims([3, 2], [3])).rejects.toThrow(/OF7005/);
    session.dispose();
  });
  test("says how many sizes its results have, also those that are kept", async () => {
    const session = await load(compileModel(model(2, [{ axis: 1 }])).artifact);
    const [y] = session.outputs;
    expect([y?.dims.length, y?.rank]).toEqual([2, expect.stringContaining("b")]);
    const { y: kept } = await session.run({ x: RunTensor.of(wave([3, 1])) }, { keep: ["y"] });
    expect(kept?.dims).toEqual([3]);
    kept?.dispose();
    session.dispose();
  });
  test("memory is for the variant that runs", async () => {
    const cube: NodeSpec[] = [{ type: "Unsqueeze", inputs: ["x", "at"], outputs: ["u"] }, { type: "Mul", inputs: ["u", "column"], outputs: ["m"] }, { type: "ReduceMax", inputs: ["m"], outputs: ["f"], attributes: { axes: [0], keepdims: 0 } }, { type: "CumSum", inputs: ["m", "first"], outputs: ["s"] }, { type: "Add", inputs: ["s", "f"], outputs: ["r"] }];
    const asked = sizeIs("small", 0, "Less", 3);
    const bytes = modelBytes({ opset: 17, inputs: { x: float(["n"]) }, outputs: { y: undefined }, initializers: { ...asked.initializers, column: wave([1000, 1]), first: i64(0) }, nodes: [
      ...asked.nodes, { type: "If", name: "choose", inputs: ["small"], outputs: ["z"], attributes: { then_branch: branch(cube, { at: i64(0) }), else_branch: branch([{ type: "Identity", inputs: ["x"], outputs: ["r"] }]) } }, { type: "Relu", inputs: ["z"], outputs: ["y"] },
    ] });
    const session = await load(compileModel(bytes).artifact);
    expect((await session.run({ x: RunTensor.of(wave([2])) }))["y"]?.dims).toEqual([1000, 2]);
    expect((await session.run({ x: RunTensor.of(wave([100000])) }))["y"]?.dims).toEqual([100000]);
    expect(session.memoryBytes).toBeLessThan(2 ** 23);
    session.dispose();
  });
  test("conditions inside a branch that hangs on data", async () => {
    const asked = squeezeIfOne("x", 1);
    const inner: ModelSpec = { ...branch([...asked.nodes, { type: "Shape", inputs: ["z"], outputs: ["dims"] }, { type: "Size", inputs: ["dims"], outputs: ["r"] }], asked.initializers) };
    const otherwise: ModelSpec = { ...branch([{ type: "Size", inputs: ["x"], outputs: ["r"] }]) };
    const bytes = modelBytes({ opset: 17, inputs: { x: float(["n", "m"]), flag: { dtype: "bool", dims: [] } }, outputs: { y: undefined }, initializers: {}, nodes: [{ type: "If", inputs: ["flag"], outputs: ["y"], name: "outer", attributes: { then_branch: inner, else_branch: otherwise } }] });
    const session = await load(compileModel(bytes).artifact);
    for (const [dims, flag] of [[[3, 1], 1], [[3, 4], 1], [[3, 1], 0], [[3, 4], 0]] as const) {
      const feeds = { x: wave(dims), flag: tensor("bool", [], Uint8Array.of(flag)) };
      const results = await session.run({ x: RunTensor.of(feeds.x), flag: RunTensor.of(feeds.flag) });
      expect(Array.from(present(results["y"], "y").unpacked().data as BigInt64Array)).toEqual(Array.from(present((await runOnnxruntime(bytes, feeds))["y"], "y").data as BigInt64Array));
    }
    session.dispose();
  });
  test("sizes that only running tells choose none", () => {
    const asked = sizeIs("one", 1, "Equal", 1);
    const nodes = asked.nodes.map((n) => (n.type === "Shape" ? { ...n, inputs: ["found"] } : n));
    const bytes = modelBytes({ opset: 17, inputs: { x: float(["n"]) }, outputs: { y: undefined }, initializers: asked.initializers, nodes: [
      { type: "NonZero", inputs: ["x"], outputs: ["found"] }, ...nodes,
      { type: "If", name: "choose", inputs: ["one"], outputs: ["y"], attributes: { then_branch: branch([{ type: "Squeeze", inputs: ["found", "axes"], outputs: ["r"] }], { axes: i64(1) }), else_branch: branch([{ type: "Identity", inputs: ["found"], outputs: ["r"] }]) } },
    ] });
    expect(refusal(() => compileModel(bytes))).toBe("OF2090");
  });
});
