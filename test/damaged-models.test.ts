/** Ways to be damaged that `npm run fuzz` found to be answered with a fault, each as a small model or artifact. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { compile, DiagnosticError, type CompileOptions } from "../src/api/index.ts";
import { readContainer, writeContainer } from "../src/artifact/container.ts";
import type { Manifest } from "../src/artifact/manifest.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { AttributeProto_AttributeType, ModelProtoSchema } from "../src/onnx/schema/onnx_pb.ts";
import { load, Tensor as Fed, type Feeds } from "../src/runtime/index.ts";
import { float, int64 } from "./support/article-models.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";

const x = { dtype: "float32", dims: ["N", 4] } as const;
const model = (nodes: readonly NodeSpec[], more: Partial<ModelSpec> = {}): ModelSpec => ({ opset: 17, inputs: { x }, outputs: { y: undefined }, initializers: {}, nodes, ...more });

async function refusal(run: () => unknown): Promise<DiagnosticError> {
  try {
    await run();
  } catch (e) {
    if (e instanceof DiagnosticError) return e;
    throw e;
  }
  throw new Error("it was accepted");
}
const refusedModel = (spec: ModelSpec, options: CompileOptions = {}): Promise<DiagnosticError> => refusal(() => compile(modelBytes(spec), options));

describe("models", () => {
  it("that use outputs an operator does not have", async () => {
    expect((await refusedModel(model([{ type: "Relu", name: "r", inputs: ["x"], outputs: ["y", "z", "w"] }]))).message).toMatch(/^OF3019: Relu has 1 outputs here, 3 are used \(node 'r'\)/);
  });
  it("that reduce one axis ten thousand times", async () => {
    const nodes: NodeSpec[] = [{ type: "ReduceMean", inputs: ["x"], outputs: ["y"], attributes: { axes: Array.from({ length: 10_000 }, () => 1) } }];
    const { message } = await refusedModel(model(nodes));
    expect(message).toMatch(/^OF3012: ReduceMean: axes \[1, 1.*repeat one/);
    expect(message.length).toBeLessThan(3000);
    expect((await refusedModel(model([{ type: "ReduceMean", inputs: ["x"], outputs: ["y"], attributes: { axes: [2 ** 31] } }]))).code).toBe("OF3012");
  });
  const weights = (...dims: readonly number[]): Tensor => ({ dtype: "float32", dims, data: new Float32Array(dims.reduce((a, b) => a * b, 1)) });
  it.each<readonly [string, ModelSpec, RegExp]>([
    ["a bias of another rank", model([{ type: "LSTM", inputs: ["x", "w", "r", "b"], outputs: ["y"] }], { inputs: { x: { dtype: "float32", dims: ["T", 1, 4] } }, initializers: { w: weights(1, 16, 4), r: weights(1, 16, 4), b: weights(32) } }), /^OF3010: LSTM: B needs rank 2/],
    ["integers for scales", model([{ type: "QLinearMatMul", inputs: ["q", "z", "z", "q", "z", "z", "z", "z"], outputs: ["y"] }], { inputs: { q: { dtype: "uint8", dims: [4, 4] } }, initializers: { z: { dtype: "uint8", dims: [], data: Uint8Array.of(1) } } }), /^OF3013: QLinearMatMul: input 'a_scale' is uint8, must be float/],
    ["a matrix for the values of OneHot", model([{ type: "OneHot", inputs: ["i", "d", "v"], outputs: ["y"] }], { inputs: { i: { dtype: "int64", dims: [3] } }, initializers: { d: int64([4]), v: weights(2, 2) } }), /^OF3011: OneHot: values must have 2 elements/],
    ["integers for attention", model([{ type: "Attention", inputs: ["x", "k", "x"], outputs: ["y"], attributes: { q_num_heads: 1, kv_num_heads: 1 } }], { opset: 23, inputs: { x: { dtype: "float32", dims: [1, 2, 4] }, k: { dtype: "uint64", dims: [1, 2, 4] } } }), /^OF3013: Attention: inputs Q, K, past_key have different types, float32 and uint64/],
    ["integer weights for ConvTranspose", model([{ type: "ConvTranspose", inputs: ["x", "w"], outputs: ["y"] }], { inputs: { x: { dtype: "float32", dims: [1, 2, 4] } }, initializers: { w: { dtype: "int64", dims: [2, 1, 3], data: new BigInt64Array(6) } } }), /^OF3013: ConvTranspose: inputs X, W, B have different types, float32 and int64/],
    ["a Constant without output", model([{ type: "Constant", inputs: [], outputs: [], attributes: { value: int64([1]) } }, { type: "Relu", inputs: ["x"], outputs: ["y"] }]), /^OF3019: Constant has an output, none is used/],
    ["a stride beyond every image", model([{ type: "ConvTranspose", inputs: ["x", "w"], outputs: ["y"], attributes: { strides: [2 ** 62], output_shape: [4] } }], { inputs: { x: { dtype: "float32", dims: [1, 2, 4] } }, initializers: { w: weights(2, 1, 3) } }), /^OF3012: ConvTranspose: attribute 'strides' has a value of more than 31 bits/],
    ["a stage of attention that there is not", model([{ type: "Attention", inputs: ["q", "q", "q"], outputs: ["", "", "", "y"], attributes: { qk_matmul_output_mode: 4 } }], { opset: 23, inputs: { q: { dtype: "float32", dims: [1, 2, 3, 4] } } }), /^OF3012: Attention: qk_matmul_output_mode must be 0 to 3, got 4/],
    ["a zero point of five axes", model([{ type: "QuantizeLinear", inputs: ["x", "s", "z"], outputs: ["y"] }], { opset: 21, initializers: { s: float([1], [2]), z: { dtype: "int8", dims: [1, 1, 1, 1, 1], data: Int8Array.of(1) } } }), /^OF3011: QuantizeLinear: zero points of \[1, 1, 1, 1, 1\] do not fit/],
    ["blocks of a scale that is single", model([{ type: "QuantizeLinear", inputs: ["x", "s"], outputs: ["y"], attributes: { block_size: 2 } }], { opset: 21, initializers: { s: float([1], [2]) } }), /^OF3011: QuantizeLinear: scales of \[1\] do not fit/],
    ["more blocks than the axis has", model([{ type: "QuantizeLinear", inputs: ["x", "s"], outputs: ["y"], attributes: { block_size: 2 } }], { opset: 21, inputs: { x: { dtype: "float32", dims: [1, 4] } }, initializers: { s: float([1, 3], [2, 2, 2]) } }), /^OF3011: QuantizeLinear: scales of \[1, 3\] do not fit/],
    ["a tensor of less than nothing", model([{ type: "ConstantOfShape", inputs: ["s"], outputs: ["y"], attributes: { value: int64([1]) } }], { initializers: { s: int64([-1]) } }), /^OF3016: ConstantOfShape: its result would have the size -1/],
    ["rates of linear attention for no token", model([{ type: "LinearAttention", inputs: ["q", "q", "q", "", "", "r"], outputs: ["y"], attributes: { q_num_heads: 1, kv_num_heads: 1, update_rule: "delta" } }], { opset: 27, inputs: { q: { dtype: "float32", dims: [1, 2, 4] }, r: { dtype: "float32", dims: [1, 1] } } }), /^OF3011: LinearAttention: beta must be \[1, 2, 1\] or \[1, 2, 1\], got \[1, 1\]/],
    ["a shape of more axes than a tensor has", model([{ type: "Reshape", inputs: ["x", "s"], outputs: ["y"] }], { inputs: { x, s: { dtype: "int64", dims: [2 ** 40] } } }), /^OF3020: Reshape: its result would have 1099511627776 axes/],
    ["a Split into parts without number", model([{ type: "Split", inputs: ["x"], outputs: ["y"], attributes: { num_outputs: 2 ** 40 } }], { opset: 18 }), /^OF3012: Split: splits into 1099511627776 parts/],
    ["an image of more axes than a tensor has", model([{ type: "Col2Im", inputs: ["c", "s", "s"], outputs: ["y"] }], { opset: 18, inputs: { c: { dtype: "float32", dims: [1, 4, 9] }, s: { dtype: "int64", dims: [2 ** 40] } } }), /^OF3020: Col2Im: its result would have 1099511627778 axes/],
    ["floats for a shape", model([{ type: "Reshape", inputs: ["x", "s"], outputs: ["y"] }], { initializers: { s: float([2], [4, -1]) } }), /^OF3013: Reshape: input 'shape' is float32, must be int64 or int32/],
    ["a range from a float by integers", model([{ type: "Range", inputs: ["f", "i", "i"], outputs: ["y"] }], { initializers: { f: float([], [0]), i: { dtype: "int64", dims: [], data: BigInt64Array.of(3n) } } }), /^OF3013: Range: inputs start, limit, delta have different types/],
    ["a size that no memory has beside one that is open", model([{ type: "Unsqueeze", inputs: ["x"], outputs: ["u"], attributes: { axes: [1] } }, { type: "Expand", inputs: ["u", "s"], outputs: ["e"] }, { type: "Exp", inputs: ["e"], outputs: ["y"] }], { opset: 11, initializers: { s: int64([1, 2 ** 40, 1]) } }), /^OF5101.*WebAssembly has 4096 MiB/],
    ["a size beyond every number, times one that is open", model([{ type: "Resize", inputs: ["x", "", "s"], outputs: ["y"], attributes: { mode: "nearest" } }], { initializers: { s: float([2], [1e30, 1]) } }), /^OF3016: Resize: its result would have the size 1\.0000000150474662e\+30\*N/],
    ["three hundred thousand axes", model([{ type: "Unsqueeze", inputs: ["x"], outputs: ["y"], attributes: { axes: Array.from({ length: 300_000 }, () => 1) } }], { opset: 11 }), /^OF3020: Unsqueeze: 300000 axes are named.*at most 64/],
    ["an input of seventy axes", model([{ type: "Relu", inputs: ["x"], outputs: ["y"] }], { inputs: { x: { dtype: "float32", dims: Array.from({ length: 70 }, () => 1) } } }), /^OF3020: 'x' has 70 axes/],
  ])("%s", async (_, spec, error) => expect((await refusedModel(spec)).message).toMatch(error));
  it.each(["Softmax", "LogSoftmax", "Hardmax"])("%s of a scalar, which has no axis to go along", async (type) => {
    const session = await load((await compile(modelBytes(model([{ type, inputs: ["s"], outputs: ["y"] }], { inputs: { s: { dtype: "float32", dims: [] } } })))).artifact);
    expect((await session.run({ s: new Fed("float32", [3], []) }))["y"]?.data).toEqual(Float32Array.of(type === "LogSoftmax" ? 0 : 1));
  });
  it("that double a value fifty times behind a product", async () => {
    const doubled = Array.from({ length: 50 }, (_, i): NodeSpec => ({ type: "Add", inputs: [`v${i}`, `v${i}`], outputs: [i === 49 ? "y" : `v${i + 1}`] }));
    const identity = float([4, 4], Array.from({ length: 16 }, (_, i) => (i % 5 === 0 ? 1 : 0)));
    const session = await load((await compile(modelBytes(model([{ type: "MatMul", inputs: ["x", "w"], outputs: ["v0"] }, ...doubled], { initializers: { w: identity } })))).artifact);
    expect((await session.run({ x: new Fed("float32", [1, -1, 0, 2], [1, 4]) }))["y"]?.data).toEqual(Float32Array.of(2 ** 50, -(2 ** 50), 0, 2 ** 51));
  }, 60_000);
  it.each<readonly [string, readonly NodeSpec[], readonly string[]]>([
    ["alone", [], ["x"]],
    ["behind a product", [{ type: "MatMul", inputs: ["x", "w"], outputs: ["p"] }], ["p"]],
  ])("that chain three hundred elementary functions, %s", async (_, before, from) => {
    const chained = Array.from({ length: 300 }, (_, i): NodeSpec => ({ type: i % 2 ? "Exp" : "Tanh", inputs: i === 0 ? [...from] : [`v${i}`], outputs: [i === 299 ? "y" : `v${i + 1}`] }));
    const identity = float([4, 4], Array.from({ length: 16 }, (_, i) => (i % 5 === 0 ? 1 : 0)));
    const session = await load((await compile(modelBytes(model([...before, ...chained], { initializers: before.length ? { w: identity } : {} })))).artifact);
    const y = (await session.run({ x: new Fed("float32", [1, -1, 0, 2], [1, 4]) }))["y"]?.data ?? [], expected = [1, -1, 0, 2].map((v) => Array.from({ length: 300 }).reduce<number>((x, _, i) => (i % 2 ? Math.exp(x) : Math.tanh(x)), v));
    expected.forEach((v, i) => expect(y[i]).toBeCloseTo(v, 5));
  }, 60_000);
  it("that double a loss fifty times, of a size that no memory has", async () => {
    const doubled = Array.from({ length: 50 }, (_, i): NodeSpec => ({ type: "Add", inputs: [`v${i}`, `v${i}`], outputs: [i === 49 ? "y" : `v${i + 1}`] }));
    const loss: NodeSpec = { type: "SoftmaxCrossEntropyLoss", inputs: ["s", "t", "c"], outputs: ["v0"], attributes: { reduction: "sum", ignore_index: 0 } };
    const inputs = { s: { dtype: "float32", dims: [3, 5, 2 ** 32] }, t: { dtype: "int64", dims: [3, 2 ** 32] }, c: { dtype: "float32", dims: [5] } } as const;
    expect((await refusedModel(model([loss, ...doubled], { inputs }))).code).toBe("OF5101");
  }, 60_000);
  it("that choose by a list of millions of known indices", async () => {
    const nodes: NodeSpec[] = [{ type: "Range", inputs: ["from", "to", "by"], outputs: ["r"] }, { type: "Mod", inputs: ["r", "four"], outputs: ["i"] }, { type: "Gather", inputs: ["x", "i"], outputs: ["g"], attributes: { axis: 1 } }, { type: "ReduceMax", inputs: ["g"], outputs: ["y"], attributes: { keepdims: 0 } }];
    const scalar = (v: bigint): Tensor => ({ dtype: "int64", dims: [], data: BigInt64Array.of(v) });
    const session = await load((await compile(modelBytes(model(nodes, { initializers: { from: scalar(0n), to: scalar(2n ** 22n), by: scalar(1n), four: scalar(4n) } })))).artifact);
    expect((await session.run({ x: new Fed("float32", [1, 7, 0, 2], [1, 4]) }))["y"]?.data).toEqual(Float32Array.of(7));
  }, 60_000);
  it("attributes of kind graph that hold none", async () => {
    const bytes = modelBytes(model([{ type: "Relu", inputs: ["x"], outputs: ["y"], attributes: { alpha: 1 } }])), m = fromBinary(ModelProtoSchema, bytes);
    for (const n of m.graph?.node ?? []) for (const a of n.attribute) a.type = AttributeProto_AttributeType.GRAPH;
    expect((await refusal(() => compile(toBinary(ModelProtoSchema, m)))).message).toMatch(/^OF2050: attribute 'alpha' has no graph/);
  });
  it("whose attribute is given twice: the last one counts, and a warning says so", async () => {
    const branch = (type: string, y: string): ModelSpec => ({ opset: 17, inputs: {}, outputs: { [y]: undefined }, initializers: {}, nodes: [{ type, inputs: ["x"], outputs: [y] }] });
    const bytes = modelBytes(model([{ type: "If", name: "if", inputs: ["c"], outputs: ["y"], attributes: { then_branch: branch("Neg", "n"), else_branch: branch("Relu", "r") } }], { inputs: { x, c: { dtype: "bool", dims: [] } } }));
    const m = fromBinary(ModelProtoSchema, bytes), own = m.graph?.node[0]?.attribute ?? [], [first] = own;
    if (first) own.unshift({ ...first, g: own.find((a) => a.name === "else_branch")?.g });
    const { artifact, report } = await compile(toBinary(ModelProtoSchema, m));
    expect(report.warnings).toEqual([expect.objectContaining({ code: "OF2053", place: { node: "if", field: "then_branch" } })]);
    const session = await load(artifact), run = async (c: number) => (await session.run({ x: new Fed("float32", [1, -2, 3, -4], [1, 4]), c: new Fed("bool", Uint8Array.of(c), []) }))["y"]?.data;
    expect([await run(1), await run(0)]).toEqual([Float32Array.of(-1, 2, -3, 4), Float32Array.of(1, 0, 3, 0)]);
  });
  it("whose names are longer than a page", async () => {
    const long = "n".repeat(200_000), { message, diagnostics } = await refusedModel(model([{ type: "Add", name: long, inputs: ["x", long], outputs: ["y"] }]));
    expect(message).toMatch(/^OF2022/);
    expect(message.length).toBeLessThan(3000);
    expect(diagnostics[0]?.message).toContain(long);
  });
  it("with thousands of faults", async () => {
    const nodes = Array.from({ length: 2000 }, (_, i) => ({ type: `Foo${i}`, inputs: [i ? `v${i - 1}` : "x"], outputs: [i === 1999 ? "y" : `v${i}`] }));
    const { message, diagnostics } = await refusedModel(model(nodes));
    expect(diagnostics).toHaveLength(2000);
    expect(message.split("\n").at(-1)).toBe("and 1900 more");
  });
});

describe("runs", () => {
  const s = { dtype: "int64", dims: ["R"] } as const;
  const resized = model([{ type: "Resize", inputs: ["x", "", "s"], outputs: ["y"], attributes: { mode: "nearest" } }], { opset: 19, inputs: { x, s: { dtype: "float32", dims: [2] } } });
  it.each<readonly [string, ModelSpec, Feeds, RegExp]>([
    ["a shape that the value does not broadcast to", model([{ type: "Expand", inputs: ["x", "s"], outputs: ["y"] }], { inputs: { x, s: { dtype: "int64", dims: [2] } } }), { x: new Fed("float32", [1, 2, 3, 4], [1, 4]), s: new Fed("int64", [2, 3], [2]) }, /^OF7014: shapes \[1, 4\] and \[2, 3\] do not broadcast/],
    ["an axis that there is not", model([{ type: "CumSum", inputs: ["x", "s"], outputs: ["y"] }], { inputs: { x, s: { dtype: "int64", dims: [] } } }), { x: new Fed("float32", [1, 2, 3, 4], [1, 4]), s: new Fed("int64", [2], []) }, /^OF7014: there is no axis 2 in a tensor of rank 2/],
    ["a position without a number", model([{ type: "SplitToSequence", inputs: ["x"], outputs: ["q"], attributes: { axis: 1 } }, { type: "SequenceAt", inputs: ["q", "s"], outputs: ["y"] }], { inputs: { x, s } }), { x: new Fed("float32", [1, 2, 3, 4], [1, 4]), s: new Fed("int64", [], [0]) }, /^OF7014: position NaN lies outside a sequence of 4/],
    ["scales by which a result is larger than any memory", resized, { x: new Fed("float32", [1, 2, 3, 4], [1, 4]), s: new Fed("float32", [3e6, 3e6], [2]) }, /^OF7010: .*too large for this engine/],
    ["scales by which a result is less than nothing", resized, { x: new Fed("float32", [1, 2, 3, 4], [1, 4]), s: new Fed("float32", [1, -2], [2]) }, /^OF7014: Resize: its result would have the size -8/],
  ])("%s", async (_, spec, feeds, error) => {
    const session = await load((await compile(modelBytes(spec))).artifact);
    expect((await refusal(() => session.run(feeds))).message).toMatch(error);
  });
  const forever = model([{ type: "Loop", inputs: ["", "", "x"], outputs: ["y"], attributes: { body: {
    opset: 17, inputs: { i: { dtype: "int64", dims: [] }, going: { dtype: "bool", dims: [] }, carried: x }, outputs: { more: undefined, next: undefined }, initializers: {},
    nodes: [{ type: "Add", inputs: ["carried", "x"], outputs: ["next"] }, { type: "ReduceSum", inputs: ["x"], outputs: ["s"], attributes: { keepdims: 0 } }, { type: "Equal", inputs: ["s", "s"], outputs: ["more"] }],
  } } }]);
  it("are given up when their time is over, and the session goes on", async () => {
    const session = await load((await compile(modelBytes(forever))).artifact);
    const feed = (value: number): Feeds => ({ x: new Fed("float32", [value, 0, 0, 0], [1, 4]) });
    expect((await refusal(() => session.run(feed(1), { timeLimit: 50 }))).message).toMatch(/^OF7017: the run took longer than its time limit/);
    // NaN is not equal to itself: the loop ends after its first iteration.
    expect((await session.run(feed(NaN), { timeLimit: 60_000 }))["y"]?.data[1]).toBe(0);
    expect((await refusal(() => session.run(feed(NaN), { timeLimit: NaN }))).code).toBe("OF7022");
  });
});

describe("artifacts with valid checksums", () => {
  /** An artifact whose manifest was changed. */
  const altered = async (change: (manifest: { -readonly [K in keyof Manifest]: Manifest[K] }) => void): Promise<Uint8Array> => {
    const sections = readContainer((await compile(modelBytes(model([{ type: "Add", inputs: ["x", "c"], outputs: ["a"] }, { type: "NonZero", inputs: ["a"], outputs: ["y"] }], { initializers: { c: float([4], [1, 2, 3, 4]) } })))).artifact);
    return writeContainer(sections.map((s) => {
      if (s.kind !== "manifest") return s;
      const manifest = JSON.parse(new TextDecoder().decode(s.bytes)) as Manifest;
      change(manifest);
      return { ...s, bytes: new TextEncoder().encode(JSON.stringify(manifest)) };
    }));
  };
  const spoiled = (json: string): never => JSON.parse(json) as never;
  it.each<readonly [string, Parameters<typeof altered>[0]]>([
    ["names that are no text", (m) => { m.inputs = m.inputs.map((i) => ({ ...i, name: spoiled('{"slot":1}') })); }],
    ["slots fewer than none", (m) => { m.memory = { ...m.memory, slots: -60 }; }],
    ["slots past the table", (m) => { m.buffers = m.buffers.map((b) => ({ ...b, at: { slot: 1e9 } })); }],
    ["sizes that are fractions", (m) => { m.memory = { ...m.memory, sizes: [0.5] }; }],
    ["sizes by an unknown operation", (m) => { m.memory = { ...m.memory, sizes: [spoiled('["pow","N",2]')] }; }],
    ["a port of another type than its buffer", (m) => { m.outputs = m.outputs.map((o) => ({ ...o, dtype: "int8" })); }],
    ["weights longer than memory", (m) => { m.weights = m.weights.map((w) => ("input" in w.source ? w : { ...w, source: { ...w.source, dims: [2 ** 40] } })); }],
  ])("%s", async (_, change) => {
    const bytes = await altered(change);
    expect((await refusal(() => load(bytes))).code).toBe("OF6004");
  });
  it("parts that are well-formed and do not fit together", async () => {
    const bytes = await altered((m) => { m.buffers = m.buffers.map((b) => ({ ...b, at: 2 ** 32 - 8 })); });
    const refused = await refusal(async () => (await load(bytes)).run({ x: new Fed("float32", [1, 2, 3, 4], [1, 4]) }));
    expect(refused.code).toBe("OF6008");
    expect(refused.cause).toBeInstanceOf(RangeError);
  });
  it.each<readonly [string, readonly number[], RegExp]>([
    ["stops at once", [0x00], /^OF7015: the program cannot compute this: unreachable/], ["calls itself without end", [0x10, 0x00], /^OF6008: the artifact's program does not hold together: Maximum call stack size exceeded/],
  ])("code that %s", async (_, body, error) => {
    // A module with a memory and run_0, of type () → ().
    const code = [
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], ...[1, 4, 1, 0x60, 0, 0], ...[3, 2, 1, 0], ...[5, 3, 1, 0, 1],
      ...[7, 18, 2, 6, ...new TextEncoder().encode("memory"), 2, 0, 5, ...new TextEncoder().encode("run_0"), 0, 0], ...[10, body.length + 4, 1, body.length + 2, 0, ...body, 0x0b],
    ];
    const sections = readContainer(await altered(() => undefined)).map((s) => (s.kind === "code" ? { ...s, bytes: Uint8Array.from(code) } : s));
    const session = await load(writeContainer(sections), { engine: "simd" });
    expect((await refusal(() => session.run({ x: new Fed("float32", [1, 2, 3, 4], [1, 4]) }))).message).toMatch(error);
  });
  it("the one that was not changed runs", async () => {
    const session = await load(await altered(() => undefined));
    expect((await session.run({ x: new Fed("float32", [-1, 0, 0, 0], [1, 4]) }))["y"]?.dims).toEqual([2, 3]);
  });
});
