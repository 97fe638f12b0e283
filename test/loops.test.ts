/** Loop and Scan, compiled, against the reference interpreter and onnxruntime. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { readArtifact } from "../src/artifact/artifact.ts";
import { load } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { bool, compareWays, f32, i64, runSession } from "./support/three-ways.ts";

const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, inputs, outputs, attributes });
type Ports = ModelSpec["inputs"];
const f = (...dims: (number | string)[]): Ports[string] => ({ dtype: "float32", dims });
const n = (...dims: (number | string)[]): Ports[string] => ({ dtype: "int64", dims });
const b: Ports[string] = { dtype: "bool", dims: [] };
const model = (inputs: Ports, outputs: Ports, nodes: readonly NodeSpec[], initializers: ModelSpec["initializers"] = {}): ModelSpec => ({ opset: 18, inputs, outputs, nodes, initializers });
/** A body of a Loop over these carried values. */
const body = (carried: Ports, outputs: Ports, nodes: readonly NodeSpec[], initializers: ModelSpec["initializers"] = {}): ModelSpec => model({ i: n(), go: b, ...carried }, outputs, nodes, initializers);

/** s = s * w + x, M times; every state stacked. */
const recurrence = model({ x: f("N", 3), M: n() }, { s: f("N", 3), all: f("T", "N", 3) }, [
  node("Loop", ["M", "", "x"], ["s", "all"], { body: body({ c: f("N", 3) }, { go2: b, c2: f("N", 3), c3: f("N", 3) }, [
    node("Mul", ["c", "w"], ["m"]), node("Add", ["m", "x"], ["c2"]), node("Identity", ["c2"], ["c3"]), node("Identity", ["go"], ["go2"]),
  ]) }),
], { w: f32([3], 0.5, -1, 2) });

/** The carried value grows by one row an iteration, and is summed into a stacked result. */
const growing = model({ x: f("N", 2), M: n() }, { y: f("K", 2), sums: f("T", 2) }, [
  node("Loop", ["M", "", "x"], ["y", "sums"], { body: body({ c: f("R", 2) }, { go2: b, c2: f("R2", 2), sum: f(2) }, [
    node("Gather", ["c", "zero"], ["row"]), node("Cast", ["i"], ["fi"], { to: 1 }), node("Add", ["row", "fi"], ["next"]), node("Unsqueeze", ["next", "axis"], ["rows"]),
    node("Concat", ["c", "rows"], ["c2"], { axis: 0 }), node("ReduceSum", ["c2", "axis"], ["sum"], { keepdims: 0 }), node("Identity", ["go"], ["go2"]),
  ], { zero: i64([], 0), axis: i64([1], 0) }) }),
]);

/** Doubles until the sum is above the limit: leaves early by its condition. */
const untilLarge = model({ x: f(4), limit: f(), start: b }, { y: f(4), count: n() }, [
  node("Loop", ["", "start", "x", "none"], ["y", "count"], { body: body({ c: f(4), k: n() }, { go2: b, c2: f(4), k2: n() }, [
    node("Add", ["c", "c"], ["c2"]), node("Add", ["k", "one"], ["k2"]), node("ReduceSum", ["c2"], ["sum"], { keepdims: 0 }), node("Less", ["sum", "limit"], ["go2"]),
  ], { one: i64([], 1) }) }),
], { none: i64([], 0) });

/** Carried values that trade places, one of them also as it came in. */
const swapping = model({ p: f(2, 2), q: f(2, 2), M: n() }, { a: f(2, 2), c: f(2, 2), d: f(2, 2) }, [
  node("Loop", ["M", "", "p", "q", "p"], ["a", "c", "d"], { body: body({ u: f(2, 2), v: f(2, 2), w: f(2, 2) }, { go: b, v: f(2, 2), u2: f(2, 2), w2: f(2, 2) }, [
    node("Transpose", ["u"], ["u2"], { perm: [1, 0] }), node("Add", ["w", "u"], ["w2"]),
  ]) }),
]);

/** A loop in a loop; the inner count is the outer number, and the inner one reads both carried values around it. */
const nested = model({ x: f("N"), M: n() }, { y: f("N"), t: f("T", "N") }, [
  node("Loop", ["M", "", "x"], ["y", "t"], { body: body({ c: f("N") }, { go2: b, c3: f("N"), c4: f("N") }, [
    node("Loop", ["i", "", "c"], ["c2"], { body: { ...body({ d: f("N") }, { go3: b, d2: f("N") }, [
      node("Mul", ["d", "half"], ["h"]), node("Add", ["h", "c"], ["d2"]), node("Identity", ["go4"], ["go3"]),
    ], { half: f32([], 0.5) }), inputs: { j: n(), go4: b, d: f("N") } } }),
    node("Add", ["c2", "x"], ["c3"]), node("Identity", ["c3"], ["c4"]), node("Identity", ["go"], ["go2"]),
  ]) }),
]);

/** Branches of different sizes in a loop whose carried value changes its size by what is in it. */
const filtering = model({ x: f("N"), M: n() }, { y: f("K") }, [
  node("Loop", ["M", "", "x"], ["y"], { body: body({ c: f("R") }, { go2: b, c2: f("R2") }, [
    node("Mod", ["i", "two"], ["odd"]), node("Cast", ["odd"], ["isOdd"], { to: 9 }),
    node("If", ["isOdd"], ["c2"], {
      then_branch: model({}, { kept: f("P") }, [node("Greater", ["c", "zero"], ["mask"]), node("Compress", ["c", "mask"], ["kept"], { axis: 0 })]),
      else_branch: model({}, { twice: f("Q") }, [node("Neg", ["c"], ["n"]), node("Concat", ["c", "n"], ["twice"], { axis: 0 })]),
    }),
    node("Identity", ["go"], ["go2"]),
  ], { two: i64([], 2), zero: f32([], 0) }) }),
]);

describe("Loop", () => {
  const x = f32([2, 3], 1, 2, 3, -1, 0.5, 0.25);
  test("counts, carries, stacks; also no iteration at all", async () => {
    expect(await compareWays(recurrence, [1, 5].map((m) => ({ x, M: i64([], m) })))).toBeUndefined();
    // onnxruntime gives 0 for sizes that the file names, although they are known.
    expect(await compareWays(recurrence, [{ x, M: i64([], 0) }], { onnxruntime: false })).toBeUndefined();
    expect(await compareWays(recurrence, [{ x: f32([0, 3]), M: i64([], 2) }])).toBeUndefined();
  });
  test("carries values that grow", async () => {
    expect(await compareWays(growing, [3, 0, 7, 1].map((m) => ({ x: f32([1, 2], 1, 2), M: i64([], m) })))).toBeUndefined();
    expect(await compareWays(growing, [3, 9].map((m) => ({ x: f32([3, 2], 1, 2, 3, 4, 5, 6), M: i64([], m) })))).toBeUndefined();
  });
  test("leaves early, or never starts", async () => {
    expect(await compareWays(untilLarge, [true, false].map((start) => ({ x: f32([4], 1, 2, 3, 4), limit: f32([], 100), start: bool(start) })))).toBeUndefined();
  });
  test("carries values that trade places", async () => {
    expect(await compareWays(swapping, [0, 1, 2, 3].map((m) => ({ p: f32([2, 2], 1, 2, 3, 4), q: f32([2, 2], 5, 6, 7, 8), M: i64([], m) })))).toBeUndefined();
  });
  test("runs in a loop", async () => {
    expect(await compareWays(nested, [1, 4].map((m) => ({ x: f32([3], 1, -2, 0.5), M: i64([], m) })))).toBeUndefined();
    expect(await compareWays(nested, [{ x: f32([3], 1, -2, 0.5), M: i64([], 0) }], { onnxruntime: false })).toBeUndefined();
  });
  test("holds branches of different sizes", async () => {
    expect(await compareWays(filtering, [0, 1, 2, 5].map((m) => ({ x: f32([3], 1, -2, 0.5), M: i64([], m) })))).toBeUndefined();
    expect(await compareWays(filtering, [1, 2].map((m) => ({ x: f32([2], -1, -2), M: i64([], m) })))).toBeUndefined();
  });
  test("a difference would be seen", async () => {
    const wrong = { ...recurrence, nodes: recurrence.nodes.map((l) => ({ ...l, inputs: ["M", "", "y"] })), inputs: { ...recurrence.inputs, y: f("N", 3) } };
    expect(await compareWays(wrong, [{ x, y: f32([2, 3], 9, 9, 9, 9, 9, 9), M: i64([], 2) }])).toBeUndefined();
    const session = await load(compileModel(modelBytes(wrong)).artifact);
    const [a, c] = [await runSession(session, { x, y: x, M: i64([], 2) }), await runSession(session, { x, y: f32([2, 3], 9, 9, 9, 9, 9, 9), M: i64([], 2) })];
    expect(a["s"]?.data).not.toEqual(c["s"]?.data);
  });
  test("10,000 runs with sizes that change do not grow memory", { timeout: 300_000 }, async () => {
    const session = await load(compileModel(modelBytes(growing)).artifact);
    const run = (k: number) => runSession(session, { x: f32([1 + (k % 3), 2], ...new Array<number>(2 + 2 * (k % 3)).fill(1)), M: i64([], k % 5) });
    for (let k = 0; k < 500; k++) await run(k);
    globalThis.gc?.();
    const before = process.memoryUsage(), bytes = session.memoryBytes;
    for (let k = 0; k < 10_000; k++) await run(k);
    globalThis.gc?.();
    const after = process.memoryUsage();
    expect(session.memoryBytes).toBe(bytes);
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 << 20);
    expect(after.heapUsed - before.heapUsed).toBeLessThan(32 << 20);
    session.dispose();
  });
});

describe("a Loop whose number of iterations is known", () => {
  const fixed = (spec: ModelSpec, m: number): ModelSpec => {
    const { M: _, ...inputs } = spec.inputs;
    return { ...spec, inputs, initializers: { ...spec.initializers, M: i64([], m) } };
  };
  const steps = (spec: ModelSpec): string => JSON.stringify(readArtifact(compileModel(modelBytes(spec)).artifact).manifest.steps);
  test.for([0, 1, 3])("is unrolled: %i iterations", async (m) => {
    const x = f32([2, 3], 1, 2, 3, -1, 0.5, 0.25), onnxruntime = m > 0;
    expect(await compareWays(fixed(recurrence, m), [{ x }], { onnxruntime })).toBeUndefined();
    expect(await compareWays(fixed(growing, m), [{ x: f32([2, 2], 1, 2, 3, 4) }, { x: f32([1, 2], 1, 2) }], { onnxruntime })).toBeUndefined();
    expect(await compareWays(fixed(swapping, m), [{ p: f32([2, 2], 1, 2, 3, 4), q: f32([2, 2], 5, 6, 7, 8) }], { onnxruntime })).toBeUndefined();
    expect(await compareWays(fixed(nested, m), [{ x: f32([2], 1, 2) }], { onnxruntime })).toBeUndefined();
    expect(await compareWays(fixed(filtering, m), [{ x: f32([3], 1, -2, 0.5) }, { x: f32([1], -2) }], { onnxruntime })).toBeUndefined();
    // Without an iteration, a stacked result of unknown sizes still needs the loop.
    for (const spec of [growing, swapping, filtering, ...(m > 0 ? [recurrence, nested] : [])]) expect(steps(fixed(spec, m))).not.toContain('"loop":');
  });
  test("stays a loop where there are many", async () => {
    expect(steps(fixed(recurrence, 100))).toContain('"loop":');
    expect(await compareWays(fixed(recurrence, 100), [{ x: f32([2, 3], 1, 2, 3, -1, 0.5, 0.25) }])).toBeUndefined();
  });
});

describe("Scan", () => {
  /** A state, two scanned inputs along different axes and in different directions, two stacked results likewise. */
  const scan = (attributes: NodeSpec["attributes"]): ModelSpec => model({ s: f(2), p: f("T", 2), q: f(2, "T") }, { last: f(2), a: f("A", "B"), c: f("C", "D") }, [
    node("Scan", ["s", "p", "q"], ["last", "a", "c"], { num_scan_inputs: 2, ...attributes, body: model({ st: f(2), u: f(2), v: f(2) }, { st2: f(2), o1: f(2), o2: f(2) }, [
      node("Mul", ["st", "v"], ["m"]), node("Add", ["m", "u"], ["st2"]), node("Sub", ["st2", "u"], ["o1"]), node("Neg", ["st"], ["o2"]),
    ]) }),
  ]);
  const feeds = [{ s: f32([2], 1, 2), p: f32([3, 2], 1, 2, 3, 4, 5, 6), q: f32([2, 3], 0.5, 1, -1, 2, 0, 3) }, { s: f32([2], 1, 2), p: f32([1, 2], 1, 2), q: f32([2, 1], 3, 4) }];
  test.for<NodeSpec["attributes"]>([
    { scan_input_axes: [0, 1] },
    { scan_input_axes: [0, -1], scan_input_directions: [1, 0], scan_output_directions: [0, 1] },
    { scan_input_axes: [0, 1], scan_input_directions: [0, 1], scan_output_axes: [1, -1], scan_output_directions: [1, 0] },
  ])("%j", async (attributes) => {
    expect(await compareWays(scan(attributes), feeds)).toBeUndefined();
  });

  /** The form of opset 8: a batch axis in front of everything, and lengths of the sequences. */
  const batched = (lengths: readonly number[] | undefined, directions: readonly number[]): ModelSpec => ({
    ...model({ s: f("B", 2), p: f("B", "T", 2), q: f("B", "T", 2), ...(lengths ? { lengths: n("B") } : {}) }, { last: f("B", 2), a: f("B", "T", 2), k: n("B", "T", 2) }, [
      node("Scan", [lengths ? "lengths" : "", "s", "p", "q"], ["last", "a", "k"], { num_scan_inputs: 2, directions, body: model({ st: f(2), u: f(2), v: f(2) }, { st2: f(2), o: f(2), w: n(2) }, [
        node("Mul", ["st", "v"], ["m"]), node("Add", ["m", "u"], ["st2"]), node("Sub", ["u", "v"], ["o"]), node("Cast", ["u"], ["w"], { to: 7 }),
      ]) }),
    ]), opset: 8,
  });
  const batch = { s: f32([3, 2], 1, 2, 3, 4, 5, 6), p: f32([3, 3, 2], ...Array.from({ length: 18 }, (_, i) => i - 7)), q: f32([3, 3, 2], ...Array.from({ length: 18 }, (_, i) => ((i * 5) % 7) / 2)) };
  test.for([{ directions: [0, 0] }, { directions: [1, 0] }, { directions: [1, 1] }])("of opset 8, %j", async ({ directions }) => {
    expect(await compareWays(batched(undefined, directions), [batch])).toBeUndefined();
    expect(await compareWays(batched([], directions), [[3, 1, 2], [2, 3, 1], [3, 3, 3]].map((lengths) => ({ ...batch, lengths: i64([3], ...lengths) })))).toBeUndefined();
  });
});
