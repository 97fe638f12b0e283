/**
 * Operands whose sizes are symbols that running binds: where one does not fit the others, the run is refused, and does
 * not read past the operand. Each case runs with sizes that fit, and with every one of them taken for another.
 */
import { describe, expect, it } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import type { DType } from "../src/core/dtype.ts";
import type { AttributeValue } from "../src/graph/op.ts";
import { load } from "../src/runtime/load.ts";
import { Tensor } from "../src/runtime/tensor.ts";
import { generateTensor } from "../src/verify/inputs.ts";
import { modelBytes } from "./support/model-spec.ts";

type Given = readonly [dims: readonly number[], dtype?: DType];
interface Case {
  readonly type: string;
  readonly inputs: Readonly<Record<string, Given>>;
  readonly attributes?: Readonly<Record<string, number | string>>;
  /** Input and axis of sizes that nothing else must fit, or not if smaller. */
  readonly free?: readonly string[];
  readonly result?: { readonly rank: number; readonly dtype?: DType };
}
const f = (...dims: readonly number[]): Given => [dims];
const states = { initial_h: f(1, 2, 3) }, gates = (n: number) => ({ X: f(4, 2, 5), W: f(1, n * 3, 5), R: f(1, n * 3, 3), B: f(1, 2 * n * 3), lens: [[2], "int32"] as Given, ...states });
const cases: readonly Case[] = [
  { type: "LSTM", inputs: { ...gates(4), initial_c: f(1, 2, 3), P: f(1, 9) }, free: ["X0"], result: { rank: 4 } },
  { type: "GRU", inputs: gates(3), free: ["X0"], result: { rank: 4 } },
  { type: "RNN", inputs: gates(1), free: ["X0"], result: { rank: 4 } },
  { type: "BatchNormalization", inputs: { x: f(2, 3, 4), scale: f(3), B: f(3), mean: f(3), variance: f(3) }, free: ["x0", "x2"] },
  { type: "InstanceNormalization", inputs: { x: f(2, 3, 4), scale: f(3), B: f(3) }, free: ["x0", "x2"] },
  { type: "LayerNormalization", inputs: { x: f(2, 3, 4), scale: f(4), B: f(4) }, free: ["x0", "x1"] },
  { type: "PRelu", inputs: { x: f(2, 3, 4), slope: f(3, 4) }, free: ["x0"] },
  { type: "DequantizeLinear", inputs: { x: [[2, 3, 4], "uint8"], scale: f(3), zero: [[3], "uint8"] }, free: ["x0", "x2"] },
  { type: "QuantizeLinear", inputs: { x: f(2, 3, 4), scale: f(3), zero: [[3], "uint8"] }, free: ["x0", "x2"], result: { rank: 3, dtype: "uint8" } },
  { type: "DequantizeLinear", inputs: { x: [[2, 8, 4], "uint8"], scale: f(2, 2, 4), zero: [[2, 2, 4], "uint8"] }, attributes: { block_size: 4, axis: 1 }, free: ["x1-1"] },
  { type: "RotaryEmbedding", inputs: { x: f(2, 3, 5, 8), cos: f(2, 5, 4), sin: f(2, 5, 4) }, free: ["x1"] },
  { type: "TensorScatter", inputs: { past: f(2, 3, 6, 4), update: f(2, 3, 2, 4), at: [[2], "int64"] }, free: ["past2", "update2"] },
  { type: "ScatterElements", inputs: { x: f(3, 5), i: [[3, 2], "int64"], u: f(3, 2) }, attributes: { axis: 1 }, free: ["x1", "x0"] },
  { type: "ScatterND", inputs: { x: f(3, 5), i: [[4, 1], "int64"], u: f(4, 5) }, free: ["x0"] },
  { type: "GatherElements", inputs: { x: f(3, 5), i: [[3, 2], "int64"] }, attributes: { axis: 1 }, free: ["x1", "i1", "x0", "i0-1"] },
  { type: "Einsum", inputs: { a: f(2, 3), b: f(3, 4) }, attributes: { equation: "ij,jk->ik" }, free: ["a0", "b1"] },
  { type: "GridSample", inputs: { x: f(2, 3, 4, 5), grid: f(2, 6, 7, 2) }, free: ["x1", "x2", "x3", "grid1", "grid2"] },
  { type: "NegativeLogLikelihoodLoss", inputs: { x: f(2, 3), t: [[2], "int64"], w: f(3) }, result: { rank: 0 } },
];

/** Sizes that are fixed, because operators take no symbol for them. */
const fixed = new Set(["R2", "i1 of ScatterND", "grid3"]);

describe.each(cases.map((c) => [c.type, c] as const))("%s of operands whose sizes only running tells", (type, { inputs, attributes, free = [], result }) => {
  const named = Object.entries(inputs).map(([name, [dims, dtype = "float32"]]) => ({ name, dims, dtype }));
  const isFixed = (name: string, axis: number): boolean => fixed.has(`${name}${axis}`) || fixed.has(`${name}${axis} of ${type}`);
  const rank = result?.rank ?? named[0]?.dims.length ?? 0;
  const model = modelBytes({
    opset: 24,
    inputs: Object.fromEntries(named.map(({ name, dims, dtype }) => [name, { dtype, dims: dims.map((d, axis) => (isFixed(name, axis) ? d : `${name}${axis}`)) }])),
    outputs: { y: { dtype: result?.dtype ?? "float32", dims: Array.from({ length: rank }, (_, i) => `y${i}`) } }, initializers: {},
    nodes: [{ type, inputs: named.map((n) => n.name), outputs: ["y"], attributes: { ...attributes, ...("R" in inputs ? { hidden_size: 3 } : {}) } satisfies Record<string, AttributeValue> }],
  });
  const feeds = (changed?: string, by = 0): Record<string, Tensor> => Object.fromEntries(named.map(({ name, dims, dtype }) => [name, Tensor.of(generateTensor(dtype, dims.map((d, axis) => (`${name}${axis}` === changed ? d + by : d)), "normal", 1))]));
  const session = load(compileModel(model).artifact);

  it("runs where they fit", async () => {
    expect((await (await session).run(feeds()))["y"]?.dims).toHaveLength(rank);
  });
  const changes = named.flatMap(({ name, dims }) => dims.flatMap((d, axis) => (isFixed(name, axis) || free.includes(`${name}${axis}`) ? [] : [-1, 1].filter((by) => d + by > 0 && !free.includes(`${name}${axis}${by}`)).map((by) => [`${name}${axis}`, by] as const))));
  it.each(changes)("is refused with %s changed by %i", async (changed, by) => {
    await expect((await session).run(feeds(changed, by))).rejects.toThrow(/OF7005/);
  });
});

describe("sizes that must agree beyond what inputs bind", () => {
  const branch = (type: string, ...inputs: readonly string[]) => ({ opset: 17, inputs: {}, outputs: { r: { dtype: "float32" as const, dims: ["m"] } }, initializers: {}, nodes: [{ type, inputs, outputs: ["r"] }] });
  it("are checked in the branch that runs, and not in the other", async () => {
    const model = modelBytes({
      opset: 17, inputs: { x: { dtype: "float32", dims: ["n"] }, z: { dtype: "float32", dims: ["k"] }, c: { dtype: "bool", dims: [] } }, outputs: { y: { dtype: "float32", dims: ["m"] } }, initializers: {},
      nodes: [{ type: "If", inputs: ["c"], outputs: ["y"], attributes: { then_branch: branch("Add", "x", "z"), else_branch: branch("Relu", "x") } }],
    });
    const session = await load(compileModel(model).artifact), x = new Tensor("float32", Float32Array.of(1, -2, 3), [3]), z = new Tensor("float32", Float32Array.of(5, 6), [2]);
    const run = async (given: Tensor, c: boolean): Promise<unknown> => Array.from((await session.run({ x, z: given, c: new Tensor("bool", [c], []) }))["y"]?.data as Float32Array);
    expect(await run(x, true)).toEqual([2, -4, 6]);
    expect(await run(z, false)).toEqual([1, 0, 3]);
    await expect(run(z, true)).rejects.toThrow(/OF7005/);
  });
  it("are checked where data tells them", async () => {
    const model = modelBytes({
      opset: 17, inputs: { x: { dtype: "float32", dims: ["n"] }, keep: { dtype: "bool", dims: ["n"] }, z: { dtype: "float32", dims: ["k"] } }, outputs: { y: { dtype: "float32", dims: ["m"] } }, initializers: {},
      nodes: [{ type: "Compress", inputs: ["x", "keep"], outputs: ["kept"] }, { type: "Add", inputs: ["kept", "z"], outputs: ["y"] }],
    });
    const session = await load(compileModel(model).artifact), x = new Tensor("float32", Float32Array.of(1, 2, 3), [3]), z = new Tensor("float32", Float32Array.of(5, 6), [2]);
    const run = async (...keep: readonly boolean[]): Promise<unknown> => Array.from((await session.run({ x, z, keep: new Tensor("bool", [...keep], [3]) }))["y"]?.data as Float32Array);
    expect(await run(true, false, true)).toEqual([6, 9]);
    await expect(run(true, true, true)).rejects.toThrow(/OF7005/);
  });
});

it("a list of parts that is shorter than the parts", async () => {
  const bytes = modelBytes({ opset: 17, nodes: [{ type: "Split", inputs: ["x", "s"], outputs: ["a", "b"] }], inputs: { x: { dtype: "float32", dims: ["n"] }, s: { dtype: "int64", dims: ["parts"] } }, outputs: { a: undefined, b: undefined }, initializers: {} });
  const session = await load(compileModel(bytes).artifact), x = new Tensor("float32", Float32Array.of(1, 2, 3), [3]);
  await expect(session.run({ x, s: new Tensor("int64", BigInt64Array.of(3n), [1]) })).rejects.toThrow(/OF7005: 'Split_0' needs parts and 2 to agree, not 1 and 2/);
  expect((await session.run({ x, s: new Tensor("int64", BigInt64Array.of(1n, 2n), [2]) }))["b"]?.data).toEqual(Float32Array.of(2, 3));
});
