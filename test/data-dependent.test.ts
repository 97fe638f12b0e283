/** Sizes that hang on values: in the main graph, in branches and in loops, against the reference and onnxruntime. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import type { DType } from "../src/core/dtype.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { load } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { bool, compareWays, f32, i64, runSession, type Tensors } from "./support/three-ways.ts";

const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, inputs, outputs, attributes });
type Ports = ModelSpec["inputs"];
const port = (dtype: DType, ...dims: (number | string)[]): Ports[string] => ({ dtype, dims });
const f = (...dims: (number | string)[]): Ports[string] => port("float32", ...dims);
const n = (...dims: (number | string)[]): Ports[string] => port("int64", ...dims);

interface Case {
  readonly inputs: Ports;
  /** What `nodes` make of the inputs: y, of this rank. */
  readonly y: Ports[string];
  readonly nodes: readonly NodeSpec[];
  readonly constants?: Readonly<Record<string, Tensor>>;
  readonly feeds: readonly Tensors[];
}
const x6 = f32([6], 1, 0, -2, 0, 3, 1), x4 = f32([4], 0, 0, 5, 0), none = f32([3], 0, 0, 0);

const cases: Readonly<Record<string, Case>> = {
  NonZero: {
    inputs: { x: f("N") }, y: f("K"), feeds: [x6, x4, none].map((x) => ({ x })),
    nodes: [node("NonZero", ["x"], ["at"]), node("Squeeze", ["at", "zero"], ["i"]), node("Gather", ["x", "i"], ["v"]), node("Mul", ["v", "v"], ["y"])], constants: { zero: i64([1], 0) },
  },
  "the count of NonZero alone": {
    inputs: { x: f("N") }, y: n(), feeds: [x6, x4, none].map((x) => ({ x })),
    nodes: [node("NonZero", ["x"], ["at"]), node("Shape", ["at"], ["s"]), node("Gather", ["s", "one"], ["k"]), node("Mul", ["k", "k"], ["y"])], constants: { one: i64([], 1) },
  },
  Unique: { inputs: { x: f("N") }, y: f("K"), feeds: [x6, x4].map((x) => ({ x })), nodes: [node("Unique", ["x"], ["u"]), node("Exp", ["u"], ["y"])] },
  Compress: {
    inputs: { x: f("N", 2) }, y: f("K", 2), feeds: [f32([3, 2], 1, -1, 2, 3, -4, 5), f32([1, 2], -1, -1)].map((x) => ({ x })),
    nodes: [node("ReduceSum", ["x", "one"], ["s"], { keepdims: 0 }), node("Greater", ["s", "zero"], ["m"]), node("Compress", ["x", "m"], ["c"], { axis: 0 }), node("Relu", ["c"], ["y"])],
    constants: { one: i64([1], 1), zero: f32([], 0) },
  },
  "TopK with a k that is fed": {
    inputs: { x: f("N"), k: n(1) }, y: f("K"), feeds: [1, 3, 0].map((k) => ({ x: f32([5], 3, 1, 4, 1.5, 9), k: i64([1], k) })),
    nodes: [node("TopK", ["x", "k"], ["v", "i"]), node("Neg", ["v"], ["y"])],
  },
  Range: {
    inputs: { a: n(), b: n(), s: n() }, y: n("K"), feeds: [[0, 5, 1], [9, 2, -3], [4, 4, 1]].map(([a = 0, b = 0, s = 1]) => ({ a: i64([], a), b: i64([], b), s: i64([], s) })),
    nodes: [node("Range", ["a", "b", "s"], ["r"]), node("Mul", ["r", "r"], ["y"])],
  },
  "Reshape to a computed shape": {
    inputs: { x: f("N"), rows: n() }, y: f("A", "B"), feeds: [[6, 2], [6, 3], [6, 1]].map(([, rows = 1]) => ({ x: x6, rows: i64([], rows) })),
    nodes: [node("Unsqueeze", ["rows", "zero"], ["r"]), node("Concat", ["r", "rest"], ["shape"], { axis: 0 }), node("Reshape", ["x", "shape"], ["m"]), node("Softmax", ["m"], ["y"])],
    constants: { zero: i64([1], 0), rest: i64([1], -1) },
  },
  "ConstantOfShape and Expand": {
    inputs: { x: f(1, 2), s: n(2) }, y: f("A", "B"), feeds: [[3, 2], [1, 1], [0, 2]].map((s) => ({ x: f32([1, 2], 1, 2), s: i64([2], ...s) })),
    nodes: [node("ConstantOfShape", ["s"], ["c"], { value: f32([1], 0.5) }), node("ReduceSum", ["x", "one"], ["t"]), node("Expand", ["t", "s"], ["e"]), node("Add", ["c", "e"], ["y"])], constants: { one: i64([1], 1) },
  },
  "Resize to fed sizes": {
    inputs: { x: f(1, 1, 2, 2), s: n(4) }, y: f("A", "B", "C", "D"), feeds: [[1, 1, 4, 3], [1, 1, 1, 1], [1, 1, 2, 5]].map((s) => ({ x: f32([1, 1, 2, 2], 1, 2, 3, 4), s: i64([4], ...s) })),
    nodes: [node("Resize", ["x", "", "", "s"], ["r"], { mode: "linear" }), node("Add", ["r", "r"], ["y"])],
  },
};

const main = ({ inputs, y, nodes, constants = {} }: Case): ModelSpec => ({ opset: 18, inputs, outputs: { y }, nodes, initializers: constants });
const isTrue = bool(true), isFalse = bool(false);
/** The case in a branch whose other one gives a single element. */
const branch = ({ inputs, y, nodes, constants = {} }: Case): ModelSpec => ({
  opset: 18, inputs: { ...inputs, which: port("bool") }, outputs: { y }, initializers: constants,
  nodes: [node("If", ["which"], ["y"], {
    then_branch: { opset: 18, inputs: {}, outputs: { y1: y }, nodes: nodes.map((m) => ({ ...m, outputs: m.outputs.map((o) => (o === "y" ? "y1" : o)) })), initializers: {} },
    else_branch: { opset: 18, inputs: {}, outputs: { y2: y }, nodes: [], initializers: { y2: { dtype: y.dtype, dims: y.dims.map(() => 1), data: y.dtype === "int64" ? BigInt64Array.of(7n) : Float32Array.of(7) } } },
  })],
});
/** The case twice in a loop, joined with what came before. */
const looped = ({ inputs, y, nodes, constants = {} }: Case): ModelSpec => ({
  opset: 18, inputs: { ...inputs, M: n() }, outputs: { out: { dtype: y.dtype, dims: ["L"] } }, initializers: { ...constants, flat: i64([1], -1) },
  nodes: [node("Cast", ["empty"], ["start"], { to: y.dtype === "int64" ? 7 : 1 }), node("Loop", ["M", "", "start"], ["out"], { body: {
    opset: 18, inputs: { iter: n(), go: port("bool"), carried: { dtype: y.dtype, dims: ["C"] } }, outputs: { go2: port("bool"), c2: { dtype: y.dtype, dims: ["C2"] } },
    nodes: [...nodes, node("Reshape", ["y", "flat"], ["yf"]), node("Concat", ["carried", "yf"], ["c2"], { axis: 0 }), node("Identity", ["go"], ["go2"])], initializers: {},
  } })],
});
const withEmpty = (spec: ModelSpec): ModelSpec => ({ ...spec, initializers: { ...spec.initializers, empty: f32([1], 1) } });

describe.each(Object.entries(cases))("%s", (_, c) => {
  test("in the main graph", async () => expect(await compareWays(main(c), c.feeds)).toBeUndefined());
  test("in a branch", async () => {
    expect(await compareWays(branch(c), c.feeds.flatMap((feed) => [isTrue, isFalse].map((which) => ({ ...feed, which }))))).toBeUndefined();
  });
  test("in a loop", async () => {
    expect(await compareWays(withEmpty(looped(c)), c.feeds.flatMap((feed) => [1, 3, 0].map((m) => ({ ...feed, M: i64([], m) }))))).toBeUndefined();
  });
});

test("10,000 runs with other values do not grow memory", { timeout: 300_000 }, async () => {
  const session = await load(compileModel(modelBytes(main(cases["NonZero"] ?? expect.fail()))).artifact);
  const feeds = Array.from({ length: 40 }, (_, k) => ({ x: f32([64], ...Array.from({ length: 64 }, (__, i) => (i * 7 + k) % (1 + (k % 11)))) }));
  for (let k = 0; k < 500; k++) await runSession(session, feeds[k % 40] ?? {});
  globalThis.gc?.();
  const before = process.memoryUsage(), bytes = session.memoryBytes;
  for (let k = 0; k < 10_000; k++) await runSession(session, feeds[k % 40] ?? {});
  globalThis.gc?.();
  const after = process.memoryUsage();
  expect(session.memoryBytes).toBe(bytes);
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 << 20);
  expect(after.heapUsed - before.heapUsed).toBeLessThan(32 << 20);
  session.dispose();
});
