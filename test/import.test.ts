/** Reading models: what is accepted, and the one clear diagnostic that each kind of bad input gets. */
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { present } from "../src/core/assert.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { formatShape } from "../src/core/dim.ts";
import { tensor, type Tensor } from "../src/core/tensor.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { ExternalFiles } from "../src/onnx/external-data.ts";
import { readModel, type ModelSource, type ReadOptions } from "../src/onnx/read.ts";
import {
  AttributeProto_AttributeType as Kind, AttributeProtoSchema, FunctionProtoSchema, ModelProtoSchema, NodeProtoSchema, OperatorSetIdProtoSchema, SparseTensorProtoSchema,
  TensorProto_DataLocation, TensorProto_DataType, TensorProtoSchema, TypeProtoSchema, ValueInfoProtoSchema, type GraphProto, type ModelProto,
} from "../src/onnx/schema/onnx_pb.ts";
import { readTensor, writeTensor } from "../src/onnx/tensor-proto.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { randomFrom } from "./support/random.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const i64 = (...values: number[]): Tensor => tensor("int64", [values.length], BigInt64Array.from(values, BigInt));
const f32 = (dims: readonly number[], values: readonly number[]): Tensor => tensor("float32", dims, Float32Array.from(values));

const spec: ModelSpec = {
  opset: 17,
  inputs: { x: { dtype: "float32", dims: ["n", 3] } },
  outputs: { y: { dtype: "float32", dims: ["n", 3] } },
  initializers: { b: f32([3], [1, 2, 3]) },
  nodes: [
    { type: "Add", inputs: ["x", "b"], outputs: ["s"], name: "add" },
    { type: "Relu", inputs: ["s"], outputs: ["y"], name: "relu" },
  ],
};
const declaredTwo: ModelSpec = { ...spec, inputs: { x: { dtype: "float32", dims: [2, 3] } }, outputs: { y: { dtype: "float32", dims: [2, 3] } } };
const x = f32([2, 3], [-1, -2, -3, -4, -5, 6]);

/** The model after a change to its protobuf. */
function changed(change: (graph: GraphProto, model: ModelProto) => void, from: ModelSpec = spec): Uint8Array {
  const model = fromBinary(ModelProtoSchema, modelBytes(from));
  change(present(model.graph, "the graph"), model);
  return toBinary(ModelProtoSchema, model);
}

function refusal(source: ModelSource, options: ReadOptions = {}): DiagnosticError {
  try {
    readModel(source, operators, options);
  } catch (error) {
    if (error instanceof DiagnosticError) return error;
    throw error;
  }
  throw new Error("the model was accepted");
}
function run(source: ModelSource, feeds: Record<string, Tensor> = { x }, options: ReadOptions = {}): Record<string, number[]> {
  const { graph } = readModel(source, operators, options);
  verifyGraph(graph);
  return Object.fromEntries(Object.entries(interpret(graph, feeds)).map(([name, t]) => [name, Array.from(t.data as ArrayLike<unknown>, Number)]));
}
type NodeInit = MessageInitShape<typeof NodeProtoSchema>;
const node = (opType: string, input: string[], output: string[], more: NodeInit & object = {}): NodeInit => ({ opType, input, output, ...more });
/** The model with these nodes and model-local functions. */
const withNodes = (nodes: NodeInit[], over: Partial<ModelSpec> = {}, functions: MessageInitShape<typeof FunctionProtoSchema>[] = []): Uint8Array => changed((g, m) => {
  g.node = nodes.map((n) => create(NodeProtoSchema, n));
  m.functions = functions.map((f) => create(FunctionProtoSchema, f));
  m.opsetImport.push(create(OperatorSetIdProtoSchema, { domain: "local", version: 1n }));
}, { ...spec, ...over });

describe("files that are not whole models", () => {
  test("empty, foreign and cut off", () => {
    const bytes = modelBytes(spec);
    expect(refusal(new Uint8Array()).code).toBe("OF2001");
    expect(refusal(new TextEncoder().encode("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")).code).toBe("OF2001");
    expect(refusal(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)).code).toBe("OF2001");
    for (let length = 1; length < bytes.length; length++) expect(refusal(bytes.subarray(0, length)).code, `cut to ${length}`).toMatch(/^OF20/);
    expect(run(bytes)).toEqual({ y: [0, 0, 0, 0, 0, 9] });
  });
  test("an IR version before 3", () => expect(refusal(changed((_, m) => { m.irVersion = 2n; })).code).toBe("OF2002"));
});

describe("damaged files", () => {
  test("are refused with a diagnostic, or read; nothing else happens", () => {
    const models = [modelBytes(spec), modelBytes({ ...spec, initializers: {}, nodes: [{ type: "Constant", inputs: [], outputs: ["b"], attributes: { value: f32([3], [1, 2, 3]) } }, ...spec.nodes] })];
    let refused = 0;
    for (let seed = 0; seed < 2000; seed++) {
      const random = randomFrom(seed);
      const bytes = random.pick(models).slice();
      for (let n = random.int(4); n >= 0; n--) bytes[random.int(bytes.length)] = random.pick([0, 1, 127, 128, 255, random.int(256)]);
      try {
        readModel(bytes, operators);
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(DiagnosticError);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(500);
  });
});

describe("operators", () => {
  test("all unknown ones are listed at once, with the nearest name", () => {
    const error = refusal(modelBytes({ ...spec, nodes: [
      { type: "Relux", inputs: ["x"], outputs: ["a"], name: "first" },
      { type: "Nonsense", domain: "my.domain", inputs: ["a"], outputs: ["y"], name: "second" },
    ] }));
    expect(error.diagnostics.map((d) => [d.code, d.place?.node])).toEqual([["OF2004", "first"], ["OF2004", "second"]]);
    expect(error.diagnostics[0]?.hint).toMatch(/Relu/);
  });
  test("those that are no inference over tensors are refused with what to do instead", () => {
    const [image, gradient] = refusal(modelBytes({ ...spec, nodes: [
      { type: "ImageDecoder", inputs: ["x"], outputs: ["a"], name: "first" },
      { type: "Gradient", domain: "ai.onnx.preview.training", inputs: ["a"], outputs: ["y"], name: "second" },
    ] })).diagnostics;
    expect([image?.message, image?.hint]).toEqual([expect.stringMatching(/ImageDecoder .* not supported: image files/), expect.stringMatching(/feed its pixels/)]);
    expect([gradient?.code, gradient?.hint]).toEqual(["OF2004", expect.stringMatching(/gradients as operators/)]);
  });
  test("opsets before 7 and after 27", () => {
    expect(refusal(modelBytes({ ...spec, opset: 6 })).code).toBe("OF2003");
    expect(refusal(modelBytes({ ...spec, opset: 28 })).code).toBe("OF2003");
    for (const opset of [7, 13, 27]) expect(run(modelBytes({ ...spec, opset }))).toEqual({ y: [0, 0, 0, 0, 0, 9] });
  });
  test("attributes the operator does not know are ignored with a warning", () => {
    const bytes = changed((g) => { g.node[1]?.attribute.push(create(AttributeProtoSchema, { name: "colour", type: Kind.INT, i: 1n })); });
    const { info } = readModel(bytes, operators);
    expect(info.warnings.map((w) => [w.code, w.place?.field])).toEqual([["OF2052", "colour"]]);
  });
  test("an attribute of the wrong kind", () => {
    const bytes = modelBytes({ ...spec, nodes: [{ type: "Flatten", inputs: ["x"], outputs: ["y"], attributes: { axis: "one" } }] });
    expect(refusal(bytes).code).toBe("OF3004");
  });
});

describe("the order of nodes and their names", () => {
  test("any order of nodes is accepted", () => {
    expect(run(modelBytes({ ...spec, nodes: [...spec.nodes].reverse() }))).toEqual({ y: [0, 0, 0, 0, 0, 9] });
  });
  test("a cycle is refused with its nodes", () => {
    const error = refusal(modelBytes({ ...spec, nodes: [
      { type: "Add", inputs: ["x", "t"], outputs: ["s"], name: "add" }, { type: "Relu", inputs: ["s"], outputs: ["t"], name: "relu" }, { type: "Relu", inputs: ["s"], outputs: ["y"], name: "last" },
    ] }));
    expect(error.code).toBe("OF2020");
    expect(error.message).toMatch(/'add' needs 'relu' needs 'add'/);
  });
  test("a value computed twice, and one that nothing computes", () => {
    const twice = refusal(modelBytes({ ...spec, nodes: [...spec.nodes, { type: "Relu", inputs: ["x"], outputs: ["s"], name: "again" }] }));
    expect(twice.code).toBe("OF2021");
    expect(twice.message).toMatch(/'s'.*'add'.*'again'/);
    expect(refusal(modelBytes({ ...spec, nodes: [...spec.nodes, { type: "Relu", inputs: ["x"], outputs: ["b"], name: "again" }] })).code).toBe("OF2021");
    expect(refusal(modelBytes({ ...spec, nodes: spec.nodes.slice(1) })).code).toBe("OF2022");
    expect(refusal(modelBytes({ ...spec, nodes: spec.nodes.slice(0, 1) })).code).toBe("OF2022");
  });
  test("a result listed twice is given once, with a warning", () => {
    const bytes = changed((g) => { g.output.push(...g.output); });
    expect(run(bytes)).toEqual({ y: [0, 0, 0, 0, 0, 9] });
    expect(readModel(bytes, operators).info.warnings.map((w) => w.code)).toEqual(["OF2035"]);
  });
  test("unnamed nodes get names from their operator and place; equal names are kept apart", () => {
    const unnamed = changed((g) => g.node.forEach((n) => { n.name = ""; }));
    expect(readModel(unnamed, operators).graph.nodes.map((n) => n.name)).toEqual(["Add_0", "Relu_1"]);
    const same = readModel(changed((g) => g.node.forEach((n) => { n.name = "same"; })), operators);
    expect(same.graph.nodes.map((n) => [n.name, n.origins])).toEqual([["same", ["same"]], ["same_1", ["same_1"]]]);
    expect([...same.info.nodeTypes]).toEqual([["same", "Add"], ["same_1", "Relu"]]);
  });
  test("an input passed straight through keeps its output name", () => {
    const bytes = changed((g) => { g.output.push(create(ValueInfoProtoSchema, { name: "x" })); });
    expect(readModel(bytes, operators).graph.outputs.map((v) => v.name)).toEqual(["y", "x"]);
  });
});

describe("tensors", () => {
  const withB = (over: Record<string, unknown>): Uint8Array => changed((g) => { Object.assign(present(g.initializer[0], "b"), over); });
  test("sizes that lie", () => {
    expect(refusal(withB({ dims: [4n] })).code).toBe("OF2011");
    expect(refusal(withB({ dims: [-3n] })).code).toBe("OF2011");
    expect(refusal(withB({ dims: [2n ** 40n, 2n ** 40n] })).code).toBe("OF2011");
    expect(refusal(withB({ dims: [1_000_000_000n], rawData: new Uint8Array() })).code).toBe("OF2011");
    expect(refusal(withB({ rawData: new Uint8Array(), floatData: [1, 2] })).code).toBe("OF2011");
  });
  test("typed fields", () => {
    expect(run(withB({ rawData: new Uint8Array(), floatData: [1, 2, 3] }))).toEqual({ y: [0, 0, 0, 0, 0, 9] });
  });
  test("dtypes that are not supported are named", () => {
    const error = refusal(withB({ dataType: TensorProto_DataType.COMPLEX64, rawData: new Uint8Array(24) }));
    expect([error.code, error.message]).toEqual(["OF2010", expect.stringContaining("COMPLEX64")]);
  });
  test("elements of fewer than 8 bits, in bytes and in int32_data", () => {
    const read = (init: MessageInitShape<typeof TensorProtoSchema>): unknown[] => [...readTensor(create(TensorProtoSchema, { dims: [3n], ...init }), new ExternalFiles(undefined)).data];
    expect(read({ dataType: TensorProto_DataType.INT4, rawData: Uint8Array.of(0x8f, 0x07) })).toEqual([-1, -8, 7]);
    expect(read({ dataType: TensorProto_DataType.UINT4, int32Data: [0x8f, 0x07] })).toEqual([15, 8, 7]);
    expect(read({ dataType: TensorProto_DataType.INT2, rawData: Uint8Array.of(0b100111) })).toEqual([-1, 1, -2]);
    expect(read({ dataType: TensorProto_DataType.FLOAT8E5M2, int32Data: [1, 128, 255] })).toEqual([1, 128, 255]);
    expect(() => read({ dataType: TensorProto_DataType.INT4, rawData: new Uint8Array(3) })).toThrow(/OF2011.*needs 2 bytes/);
    const t: Tensor = { dtype: "float4e2m1", dims: [3], data: Uint8Array.of(1, 15, 7) }, written = writeTensor(t);
    expect([[...written.rawData], readTensor(written, new ExternalFiles(undefined))]).toEqual([[0xf1, 7], t]);
  });
  test("sparse initializers", () => {
    expect(refusal(changed((g) => { g.sparseInitializer.push(create(SparseTensorProtoSchema, { values: { name: "b" } })); })).code).toBe("OF2012");
  });
  test("external data", () => {
    const external = (entries: Record<string, string>): Uint8Array => changed((g) => {
      const b = present(g.initializer[0], "b");
      Object.assign(b, { rawData: new Uint8Array(), dataLocation: TensorProto_DataLocation.EXTERNAL });
      b.externalData = Object.entries(entries).map(([key, value]) => ({ $typeName: "onnx.StringStringEntryProto" as const, key, value }));
    });
    const file = new Uint8Array(20);
    file.set(new Uint8Array(Float32Array.of(1, 2, 3).buffer), 8);
    const externalData = (location: string): Uint8Array | undefined => (location === "w/data.bin" ? file : undefined);
    const place = { location: "w/data.bin", offset: "8", length: "12" };
    expect(run({ model: external(place), externalData })).toEqual({ y: [0, 0, 0, 0, 0, 9] });
    expect(refusal(external(place)).code).toBe("OF2013");
    expect(refusal({ model: external({ ...place, location: "other" }), externalData }).code).toBe("OF2013");
    for (const location of ["../w", "w/../../x", "/etc/passwd", "C:\\w", "\\\\host\\w", "w\\..\\..\\x", "https://host/w"])
      expect(refusal({ model: external({ ...place, location }), externalData }).code, location).toBe("OF2014");
    for (const wrong of [{ offset: "12" }, { offset: "-1" }, { offset: "1e3" }, { length: "8" }, { offset: "99999999999999999999" }])
      expect(refusal({ model: external({ ...place, ...wrong }), externalData }).code, JSON.stringify(wrong)).toBe("OF2015");
  });
});

describe("inputs", () => {
  test("sizes that are missing or make no sense become symbols", () => {
    const bytes = modelBytes({ ...spec, nodes: [{ type: "Relu", inputs: ["x"], outputs: ["y"] }], inputs: { x: { dtype: "float32", dims: [0, "a b*2", ""] } } });
    expect(formatShape(readModel(bytes, operators).graph.inputs[0]!.type.shape)).toBe("[x_0, a_b_2, x_2]");
  });
  test("shapes and named sizes may be given", () => {
    const shapeOfY = (options: ReadOptions): string => formatShape(readModel(modelBytes(spec), operators, options).graph.outputs[0]!.type.shape);
    expect(shapeOfY({})).toBe("[n, 3]");
    expect(shapeOfY({ dims: { n: 5 } })).toBe("[5, 3]");
    expect(shapeOfY({ inputShapes: { x: [7, 3] } })).toBe("[7, 3]");
    expect(refusal(modelBytes(spec), { inputShapes: { z: [7, 3] } }).code).toBe("OF2070");
    expect(refusal(modelBytes(spec), { inputShapes: { x: [7, 3] }, dims: { n: 5 } }).code).toBe("OF2071");
    expect(refusal(modelBytes(spec), { inputShapes: { x: [7, -3] } }).code).toBe("OF2071");
    expect(refusal(modelBytes(spec), { dims: { n: -1 } }).code).toBe("OF2071");
  });
  test("shapes that are declared otherwise give way to those that are asked for, with a warning", () => {
    const bytes = modelBytes(declaredTwo), given = (shape: readonly (number | undefined)[]): ReadOptions => ({ inputShapes: { x: shape } });
    const codes = (options: ReadOptions): string[] => readModel(bytes, operators, options).info.warnings.map((w) => w.code);
    const shapeOfY = (options: ReadOptions): string => formatShape(readModel(bytes, operators, options).graph.outputs[0]!.type.shape);
    expect([codes({}), codes(given([2, 3])), codes(given([undefined, 3]))]).toEqual([[], [], []]);
    expect([codes(given([5, 3])), shapeOfY(given([5, 3]))]).toEqual([["OF2036", "OF2034"], "[5, 3]"]);
    expect([codes(given([4, 2, 3])), shapeOfY(given([4, 2, 3]))]).toEqual([["OF2036", "OF2034"], "[4, 2, 3]"]);
    expect(refusal(bytes, given([7, undefined, 3]))).toMatchObject({ code: "OF2071", message: expect.stringContaining("rank 2, not 3") as string });
  });
  test("a shape that the nodes cannot take is refused where it does not fit, and as asked for", () => {
    const refused = refusal(modelBytes(declaredTwo), { inputShapes: { x: [2, 4] } });
    expect(refused.diagnostics.map((d) => [d.code, d.place?.node ?? d.place?.value])).toEqual([[expect.stringMatching(/^OF30/) as string, "add"], ["OF2036", "x"]]);
    expect(refusal(modelBytes({ ...spec, overridable: ["b"] }), { inputShapes: { b: [4] } }).code).toBe("OF2071");
  });
  test("initializers that are inputs too: defaults since IR 4, constants before or when frozen", () => {
    const overridable = { ...spec, overridable: ["b"] };
    const b = f32([3], [10, 10, 10]);
    expect(run(modelBytes(overridable))).toEqual({ y: [0, 0, 0, 0, 0, 9] });
    expect(run(modelBytes(overridable), { x, b })).toEqual({ y: [9, 8, 7, 6, 5, 16] });
    expect(readModel(modelBytes({ ...overridable, ir: 3 }), operators).graph.inputs.map((v) => v.name)).toEqual(["x"]);
    expect(readModel(modelBytes(overridable), operators, { freezeInitializers: true }).graph.inputs.map((v) => v.name)).toEqual(["x"]);
  });
  test("sequences are refused", () => {
    expect(refusal(changed((g) => { present(g.input[0], "x").type = create(TypeProtoSchema, { value: { case: "sequenceType", value: {} } }); })).code).toBe("OF2030");
  });
});

describe("constants", () => {
  test("every form of a Constant node", () => {
    const forms = [
      { name: "value_float", type: Kind.FLOAT, f: 1.5 }, { name: "value_floats", type: Kind.FLOATS, floats: [1.5, 1.5, 1.5] },
      { name: "value", type: Kind.TENSOR, t: { dims: [1n], dataType: TensorProto_DataType.FLOAT, floatData: [1.5] } },
    ];
    for (const form of forms) {
      const bytes = withNodes([node("Constant", [], ["b"], { attribute: [form] }), node("Add", ["x", "b"], ["s"]), node("Relu", ["s"], ["y"])], { initializers: {} });
      expect(run(bytes), form.name).toEqual({ y: [0.5, 0, 0, 0, 0, 7.5] });
      const { graph, info } = readModel(bytes, operators);
      expect([graph.nodeCount, info.originalNodes]).toEqual([2, 3]);
    }
    const ints = modelBytes({ ...spec, inputs: { x: { dtype: "float32", dims: [2, 3] } }, nodes: [
      { type: "Constant", inputs: [], outputs: ["shape"], attributes: { value_ints: [3, 2] } }, { type: "Reshape", inputs: ["x", "shape"], outputs: ["y"] },
    ] });
    expect(formatShape(readModel(ints, operators).graph.outputs[0]!.type.shape)).toBe("[3, 2]");
  });
});

describe("model-local functions", () => {
  const call = (functions: MessageInitShape<typeof FunctionProtoSchema>[], nodes: NodeInit[], over: Partial<ModelSpec> = {}): Uint8Array => withNodes(nodes, over, functions);
  const opsetImport = [{ domain: "", version: 17n }, { domain: "local", version: 1n }];
  const leaky = { name: "Leaky", domain: "local", input: ["v"], output: ["r"], attribute: ["slope"], opsetImport,
    node: [node("LeakyRelu", ["v"], ["r"], { name: "leak", attribute: [{ name: "alpha", type: Kind.FLOAT, refAttrName: "slope" }] })] };

  test("are inlined, nested, with attributes passed on, and each call has names of its own", () => {
    const twice = { name: "Twice", domain: "local", input: ["a"], output: ["c"], opsetImport, node: [
      node("Leaky", ["a"], ["b"], { domain: "local", name: "one", attribute: [{ name: "slope", type: Kind.FLOAT, f: 0.5 }] }),
      node("Leaky", ["b"], ["c"], { domain: "local", name: "two" }),
    ] };
    const bytes = call([twice, leaky], [node("Twice", ["x"], ["s"], { domain: "local", name: "outer" }), node("Twice", ["s"], ["y"], { domain: "local", name: "again" })]);
    const { graph, info } = readModel(bytes, operators);
    verifyGraph(graph);
    expect(graph.nodes.map((n) => n.name)).toEqual(["outer/one/leak", "outer/two/leak", "again/one/leak", "again/two/leak"]);
    expect(info.originalNodes).toBe(4);
    expect(graph.outputs.map((v) => v.name)).toEqual(["y"]);
    const { y } = run(bytes, { x: f32([1, 3], [-100, 0, 1]) });
    expect(y?.[0]).toBeCloseTo(-100 * 0.5 * 0.01 * 0.5 * 0.01, 6);
  });
  test("may have optional inputs that a call leaves out", () => {
    const clip = { name: "Limit", domain: "local", input: ["v", "low", "high"], output: ["r"], opsetImport, node: [node("Clip", ["v", "low", "high"], ["r"])] };
    expect(run(call([clip], [node("Limit", ["x", "b"], ["y"], { domain: "local" })], { initializers: { b: f32([], [-2]) } }))).toEqual({ y: [-1, -2, -2, -2, -2, 6] });
  });
  test("that call each other without end are refused", () => {
    const loop = { name: "Loop", domain: "local", input: ["v"], output: ["r"], opsetImport, node: [node("Back", ["v"], ["r"], { domain: "local" })] };
    const back = { name: "Back", domain: "local", input: ["v"], output: ["r"], opsetImport, node: [node("Loop", ["v"], ["r"], { domain: "local" })] };
    expect(refusal(call([loop, back], [node("Loop", ["x"], ["y"], { domain: "local" })])).code).toBe("OF2040");
  });
  test("a result that is the function's own input keeps the caller's name", () => {
    const same = { name: "Same", domain: "local", input: ["v"], output: ["v"], opsetImport, node: [] };
    const { graph } = readModel(call([same], [node("Same", ["x"], ["y"], { domain: "local" })]), operators);
    expect(graph.outputs.map((v) => v.name)).toEqual(["y"]);
  });
});

describe("control flow", () => {
  const branch = (type: string, name: string): ModelSpec => ({ opset: 17, inputs: {}, outputs: { r: { dtype: "float32", dims: ["n", 3] } }, initializers: {}, nodes: [{ type, name, inputs: ["x"], outputs: ["r"] }] });
  test("If takes one branch, which captures values around it", () => {
    const bytes = modelBytes({ ...spec, inputs: { ...spec.inputs, c: { dtype: "bool", dims: [] } }, nodes: [
      { type: "If", name: "choose", inputs: ["c"], outputs: ["y"], attributes: { then_branch: branch("Relu", "a"), else_branch: branch("Neg", "b") } },
    ] });
    const c = (value: number): Tensor => tensor("bool", [], Uint8Array.of(value));
    expect(run(bytes, { x, c: c(1) })).toEqual({ y: [0, 0, 0, 0, 0, 6] });
    expect(run(bytes, { x, c: c(0) })).toEqual({ y: [1, 2, 3, 4, 5, -6] });
    expect(readModel(bytes, operators).info.originalNodes).toBe(3);
  });
  test("Loop carries a value whose size grows, and stacks another", () => {
    const body: ModelSpec = {
      opset: 17, initializers: {},
      inputs: { i: { dtype: "int64", dims: [] }, going: { dtype: "bool", dims: [] }, grown: { dtype: "float32", dims: [""] } },
      outputs: { on: { dtype: "bool", dims: [] }, next: { dtype: "float32", dims: [""] }, last: { dtype: "float32", dims: [1] } },
      nodes: [
        { type: "Identity", inputs: ["going"], outputs: ["on"] },
        { type: "Concat", inputs: ["grown", "b"], outputs: ["next"], attributes: { axis: 0 } },
        { type: "ReduceSum", inputs: ["next"], outputs: ["last"], attributes: { keepdims: 0 } },
      ],
    };
    const bytes = modelBytes({ opset: 17, inputs: { m: { dtype: "int64", dims: [] } }, outputs: { y: { dtype: "float32", dims: [""] }, sums: { dtype: "float32", dims: ["", ""] } },
      initializers: { b: f32([3], [1, 2, 3]), start: f32([1], [5]) },
      nodes: [{ type: "Loop", inputs: ["m", "", "start"], outputs: ["y", "sums"], attributes: { body } }] });
    const m = (value: number): Tensor => tensor("int64", [], BigInt64Array.of(BigInt(value)));
    expect(run(bytes, { m: m(2) })).toEqual({ y: [5, 1, 2, 3, 1, 2, 3], sums: [11, 17] });
    expect(run(bytes, { m: m(0) })).toEqual({ y: [5], sums: [] });
  });
  test("Scan walks along an axis, backwards too", () => {
    const body: ModelSpec = {
      opset: 17, initializers: {}, inputs: { state: { dtype: "float32", dims: [] }, slice: { dtype: "float32", dims: [] } }, outputs: { sum: { dtype: "float32", dims: [] }, out: { dtype: "float32", dims: [] } },
      nodes: [{ type: "Add", inputs: ["state", "slice"], outputs: ["sum"] }, { type: "Identity", inputs: ["sum"], outputs: ["out"] }],
    };
    const bytes = (directions: number[]): Uint8Array => modelBytes({ opset: 17, inputs: { v: { dtype: "float32", dims: ["n"] } }, outputs: { total: { dtype: "float32", dims: [] }, sums: { dtype: "float32", dims: ["n"] } },
      initializers: { zero: f32([], [0]) }, nodes: [{ type: "Scan", inputs: ["zero", "v"], outputs: ["total", "sums"], attributes: { body, num_scan_inputs: 1, scan_input_directions: directions } }] });
    const v = f32([3], [1, 2, 4]);
    expect(run(bytes([0]), { v })).toEqual({ total: [7], sums: [1, 3, 7] });
    expect(run(bytes([1]), { v })).toEqual({ total: [7], sums: [4, 6, 7] });
  });
  test("a branch whose rank hangs on a size is read for the one answer whose types fit, and the run requires it", () => {
    const squeeze: ModelSpec = { opset: 13, inputs: {}, initializers: { axes: i64(1) }, outputs: { r: { dtype: "float32", dims: ["n"] } }, nodes: [{ type: "Squeeze", inputs: ["x", "axes"], outputs: ["r"] }] };
    const same: ModelSpec = { ...squeeze, initializers: {}, outputs: { r: { dtype: "float32", dims: ["n", "m"] } }, nodes: [{ type: "Identity", inputs: ["x"], outputs: ["r"] }] };
    const model = (last: ModelSpec["nodes"][number]): ModelSpec => ({
      opset: 13, inputs: { x: { dtype: "float32", dims: ["n", "m"] } }, outputs: { y: { dtype: "float32", dims: ["n"] } }, initializers: { one: i64(1), at: i64(1) },
      nodes: [
        { type: "Shape", inputs: ["x"], outputs: ["s"] }, { type: "Gather", inputs: ["s", "at"], outputs: ["m"] }, { type: "Equal", inputs: ["m", "one"], outputs: ["c"] },
        { type: "If", inputs: ["c"], outputs: ["z"], name: "flat", attributes: { then_branch: squeeze, else_branch: same } }, last,
      ],
    });
    const flat = model({ type: "Transpose", inputs: ["z"], outputs: ["y"], attributes: { perm: [0] } });
    const bytes = modelBytes(flat);
    expect(run(bytes, { x: f32([3, 1], [1, 2, 3]) })).toEqual({ y: [1, 2, 3] });
    expect(() => run(bytes, { x: f32([1, 3], [1, 2, 3]) })).toThrow(/OF3204/);
    expect(readModel(bytes, operators, { dims: { m: 1 } }).graph.nodes.map((n) => n.op.type)).not.toContain("Require");
    expect(() => readModel(bytes, operators, { dims: { m: 2 } })).toThrow(/OF3/);
    const either = modelBytes(model({ type: "Relu", inputs: ["z"], outputs: ["y"] }));
    expect(readModel(either, operators).info.variants).toBe(2);
    expect(run(either, { x: f32([1, 3], [1, 2, 3]) })).toEqual({ y: [1, 2, 3] });
    expect(run(either, { x: f32([3, 1], [1, 2, -3]) })).toEqual({ y: [1, 2, 0] });
    expect(run(either, { x: f32([1, 3], [1, 2, 3]) }, { dims: { m: 3 } })).toEqual({ y: [1, 2, 3] });
  });
  test("a branch whose types do not fit stops the run when it is taken", () => {
    const bad = { ...branch("Relu", "a"), nodes: [{ type: "Reshape", name: "wrong", inputs: ["x", "three"], outputs: ["r"] }], initializers: { three: i64(5, 5) } };
    const bytes = modelBytes({ ...spec, inputs: { x: { dtype: "float32", dims: [2, 3] }, c: { dtype: "bool", dims: [] } }, nodes: [
      { type: "If", name: "choose", inputs: ["c"], outputs: ["y"], attributes: { then_branch: branch("Relu", "b"), else_branch: bad } },
    ] });
    expect(run(bytes, { x, c: tensor("bool", [], Uint8Array.of(1)) })).toEqual({ y: [0, 0, 0, 0, 0, 6] });
    expect(() => run(bytes, { x, c: tensor("bool", [], Uint8Array.of(0)) })).toThrow(/OF3204.*Reshape/);
  });
  test("a body that takes another number of inputs than the node feeds", () => {
    const body: ModelSpec = { opset: 17, initializers: {}, inputs: { i: { dtype: "int64", dims: [] } }, outputs: {}, nodes: [] };
    expect(refusal(modelBytes({ ...spec, nodes: [{ type: "Loop", inputs: ["", "", "x"], outputs: ["y"], attributes: { body } }] })).code).toBe("OF2060");
  });
});
