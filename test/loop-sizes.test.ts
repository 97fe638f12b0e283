/**
 * Sizes that operands must have within bodies of loops: where they do not fit, the run is refused with the node's name,
 * in the iteration that shows it, and the session's next runs are right. Loops that are unrolled do the same.
 */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { f32, i64 } from "./support/three-ways.ts";

type Ports = ModelSpec["inputs"];
const f = (...dims: (number | string)[]): Ports[string] => ({ dtype: "float32", dims });
const n: Ports[string] = { dtype: "int64", dims: [] }, b: Ports[string] = { dtype: "bool", dims: [] };
const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, name: outputs[0] ?? type, inputs, outputs, attributes });
const graph = (inputs: Ports, outputs: readonly string[], nodes: readonly NodeSpec[], initializers: ModelSpec["initializers"] = {}): ModelSpec =>
  ({ opset: 18, inputs, outputs: Object.fromEntries(outputs.map((o) => [o, undefined])), nodes, initializers });
/** A Loop over x, M times or three times, whose body makes `next` of `c`; the rest is captured. */
const loop = (given: Ports, nodes: readonly NodeSpec[], trips: "fed" | "constant", initializers: ModelSpec["initializers"] = {}): ModelSpec => graph(
  trips === "fed" ? { ...given, M: n } : given, ["y"],
  [node("Loop", ["M", "", "x"], ["y"], { body: graph({ i: n, go: b, c: f(...(given["x"]?.dims ?? [])) }, ["go", "next"], nodes, initializers) })], trips === "fed" ? {} : { M: i64([], 3) },
);

type Shapes = Readonly<Record<string, readonly number[]>>;
interface Case { readonly model: (trips: "fed" | "constant") => ModelSpec; readonly right: Shapes; readonly wrong: readonly Shapes[]; readonly message: RegExp }
const cases: Readonly<Record<string, Case>> = {
  "operands of a sum": { model: (t) => loop({ x: f("n"), z: f("k") }, [node("Add", ["c", "z"], ["next"])], t), right: { x: [3], z: [3] }, wrong: [{ x: [3], z: [2] }, { x: [2], z: [3] }], message: /OF7005: 'y\/.*next' needs|OF7005: 'next' needs/ },
  "factors of a product": { model: (t) => loop({ x: f("n", "m"), w: f("p", "q") }, [node("MatMul", ["c", "w"], ["next"])], t), right: { x: [2, 3], w: [3, 3] }, wrong: [{ x: [2, 3], w: [2, 3] }, { x: [2, 3], w: [5, 3] }], message: /OF7005/ },
  "parts of a concatenation": { model: (t) => loop({ x: f("n", 2), z: f("k", 2) }, [node("Concat", ["c", "z"], ["both"], { axis: 1 }), node("Slice", ["both", "zero", "two", "one"], ["next"])], t, { zero: i64([1], 0), two: i64([1], 2), one: i64([1], 1) }), right: { x: [3, 2], z: [3, 2] }, wrong: [{ x: [3, 2], z: [2, 2] }, { x: [1, 2], z: [3, 2] }], message: /OF7005/ },
  "a branch in a body": {
    model: (t) => loop({ x: f("n"), z: f("k") }, [node("ReduceSum", ["c"], ["s"], { keepdims: 0 }), node("Less", ["s", "limit"], ["low"]), node("If", ["low"], ["next"], { then_branch: graph({}, ["t"], [node("Add", ["c", "z"], ["t"])]), else_branch: graph({}, ["e"], [node("Neg", ["c"], ["e"])]) })], t, { limit: f32([], 1e6) }),
    right: { x: [3], z: [3] }, wrong: [{ x: [3], z: [2] }, { x: [2], z: [4] }], message: /OF7005/,
  },
  "a loop in a body": {
    model: (t) => loop({ x: f("n"), z: f("k") }, [node("Loop", ["two", "", "c"], ["next"], { body: graph({ j: n, go2: b, d: f("n") }, ["go2", "d2"], [node("Mul", ["d", "z"], ["d2"])]) })], t, { two: i64([], 2) }),
    right: { x: [3], z: [3] }, wrong: [{ x: [3], z: [2] }], message: /OF7005/,
  },
  "a window that slides too far": { model: (t) => loop({ x: f(1, 1, "n") }, [node("AveragePool", ["c"], ["next"], { kernel_shape: [4] })], t), right: { x: [1, 1, 12] }, wrong: [{ x: [1, 1, 8] }, { x: [1, 1, 2] }], message: /OF7005: .*has too little to read: its result would have a size of .*, which is -\d/ },
};

const ones = (dims: readonly number[]): Tensor => new Tensor("float32", Float32Array.from({ length: dims.reduce((a, d) => a * d, 1) }, (_, i) => 1 + i / 8), dims);
const feedsOf = (shapes: Shapes, trips?: number): Record<string, Tensor> => ({ ...Object.fromEntries(Object.entries(shapes).map(([name, dims]) => [name, ones(dims)])), ...(trips === undefined ? {} : { M: new Tensor("int64", BigInt64Array.of(BigInt(trips)), []) }) });
const y = async (session: Session, feeds: Record<string, Tensor>): Promise<unknown> => (await session.run(feeds))["y"]?.data;

describe.each(Object.entries(cases))("%s", (_, { model, right, wrong, message }) => {
  test.each([["fed", true], ["fed", false], ["constant", true], ["constant", false]] as const)("trips %s, fusion %s", async (trips, enableFusion) => {
    const session = await load(compileModel(modelBytes(model(trips)), { enableFusion }).artifact), fed = trips === "fed" ? 3 : undefined;
    const expected = await y(session, feedsOf(right, fed));
    for (const shapes of wrong) {
      await expect(session.run(feedsOf(shapes, fed))).rejects.toThrow(message);
      expect(await y(session, feedsOf(right, fed))).toEqual(expected);
    }
    if (fed !== undefined) for (const shapes of wrong) expect(await y(session, feedsOf(shapes, 0))).toEqual(ones(shapes["x"] ?? []).data);
  });
});

describe("a Scan", () => {
  const scan = (nodes: readonly NodeSpec[], given: Ports): ModelSpec => graph(given, ["y"], [node("Scan", ["x", "u"], ["last", "y"], { num_scan_inputs: 1, body: graph({ s: f("n"), r: f("m") }, ["s2", "o"], nodes) })]);
  test("whose slices do not fit its state", async () => {
    const session = await load(compileModel(modelBytes(scan([node("Add", ["s", "r"], ["s2"]), node("Tanh", ["s2"], ["o"])], { x: f("n"), u: f("t", "m") }))).artifact);
    const expected = await y(session, feedsOf({ x: [3], u: [4, 3] }));
    await expect(session.run(feedsOf({ x: [3], u: [4, 2] }))).rejects.toThrow(/OF7005/);
    expect(await y(session, feedsOf({ x: [3], u: [4, 3] }))).toEqual(expected);
  });
  test("over inputs of different lengths", async () => {
    const model = graph({ u: f("t", 2), v: f("k", 2) }, ["y"], [node("Scan", ["u", "v"], ["y"], { num_scan_inputs: 2, body: graph({ r: f(2), q: f(2) }, ["o"], [node("Add", ["r", "q"], ["o"])]) })]);
    const session = await load(compileModel(modelBytes(model)).artifact);
    expect(await y(session, feedsOf({ u: [3, 2], v: [3, 2] }))).toHaveLength(6);
    for (const v of [2, 5]) await expect(session.run(feedsOf({ u: [3, 2], v: [v, 2] }))).rejects.toThrow(/OF7005/);
  });
});

test("sizes that data tells in a body are looked at when the iteration has told them", async () => {
  const given: Ports = { x: f("n"), z: f("k") };
  const model = loop(given, [node("Greater", ["c", "limit"], ["large"]), node("Compress", ["c", "large"], ["kept"], { axis: 0 }), node("Add", ["kept", "z"], ["sum"]), node("ReduceSum", ["sum", "zero"], ["s"], { keepdims: 1 }), node("Add", ["c", "s"], ["next"])], "fed", { limit: f32([], 1.2), zero: i64([1], 0) });
  const session = await load(compileModel(modelBytes(model)).artifact), right = feedsOf({ x: [4], z: [2] }, 1), expected = await y(session, right);
  await expect(session.run(feedsOf({ x: [4], z: [3] }, 1))).rejects.toThrow(/OF7005/);
  // All four are kept in the second iteration.
  await expect(session.run(feedsOf({ x: [4], z: [2] }, 2))).rejects.toThrow(/OF7005/);
  expect(await y(session, right)).toEqual(expected);
});
