/**
 * What bad input gets: one clear diagnostic with a stable code on standard error, exit code 1, no stack trace, and
 * nothing written. Command lines run through a shell as a person would type them.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compile, optimise, DiagnosticError, type CompileOptions } from "../src/api/index.ts";
import { readContainer, writeContainer } from "../src/artifact/container.ts";
import { ModelProtoSchema, SparseTensorProtoSchema, StringStringEntryProtoSchema, TensorProto_DataLocation, type ModelProto } from "../src/onnx/schema/onnx_pb.ts";
import { load, Tensor, type Feeds } from "../src/runtime/index.ts";
import { float, int64 } from "./support/article-models.ts";
import { modelBytes, type ModelSpec, type ValueSpec } from "./support/model-spec.ts";
import { randomFrom } from "./support/random.ts";
import { workplace, type Workplace } from "./support/shell.ts";

/** y = relu(x + c), for any N. */
const small: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: ["N", 4] } }, outputs: { y: { dtype: "float32", dims: ["N", 4] } }, initializers: { c: float([4], [1, 2, 3, 4]) },
  nodes: [{ type: "Add", name: "add", inputs: ["x", "c"], outputs: ["a"] }, { type: "Relu", name: "relu", inputs: ["a"], outputs: ["y"] }],
};
const ok = modelBytes(small);

function changed(change: (model: ModelProto) => void, spec: ModelSpec = small): Uint8Array {
  const model = fromBinary(ModelProtoSchema, modelBytes(spec));
  change(model);
  return toBinary(ModelProtoSchema, model);
}
const graphOf = (m: ModelProto) => { if (!m.graph) throw new Error("no graph"); return m.graph; };
const external = (location: string, more: Readonly<Record<string, string>> = {}): Uint8Array => changed((m) => {
  const [c] = graphOf(m).initializer;
  if (!c) throw new Error("no initializer");
  c.rawData = new Uint8Array(0);
  c.dataLocation = TensorProto_DataLocation.EXTERNAL;
  c.externalData = Object.entries({ location, ...more }).map(([key, value]) => create(StringStringEntryProtoSchema, { key, value }));
});
const lying = (dims: readonly bigint[]): Uint8Array => changed((m) => { const [c] = graphOf(m).initializer; if (c) c.dims = [...dims]; });
/** Makes a large value from a known size, and reads it. */
const grown = (type: "ConstantOfShape" | "Expand" | "Tile", size: number): ModelSpec => ({
  opset: 13, inputs: { x: { dtype: "float32", dims: [1] } }, outputs: { y: { dtype: "float32", dims: ["a"] } }, initializers: { s: int64([size]), one: float([1], [1]) },
  nodes: [{ type, name: "big", inputs: type === "ConstantOfShape" ? ["s"] : ["one", "s"], outputs: ["b"] }, { type: "Add", name: "add", inputs: ["x", "b"], outputs: ["y"] }],
});

/** The diagnostics that something is refused with. */
async function refusal(run: () => unknown): Promise<DiagnosticError> {
  try {
    await run();
  } catch (e) {
    if (e instanceof DiagnosticError) return e;
    throw e;
  }
  throw new Error("it was accepted");
}

const models: Readonly<Record<string, { readonly bytes: Uint8Array; readonly error: RegExp }>> = {
  "an empty file": { bytes: new Uint8Array(0), error: /^OF2001: the model is empty/ },
  "a foreign file": { bytes: new TextEncoder().encode("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), error: /^OF2001/ },
  "a file that is cut off": { bytes: ok.subarray(0, ok.length - 20), error: /^OF2001/ },
  "IR version 2": { bytes: changed((m) => { m.irVersion = 2n; }), error: /^OF2002/ },
  "opset 6": { bytes: modelBytes({ ...small, opset: 6 }), error: /^OF2003.*opset 6.*Add.*7 to 27/ },
  "opset 99": { bytes: modelBytes({ ...small, opset: 99 }), error: /^OF2003.*7 to 27/ },
  "sizes that lie": { bytes: lying([2n ** 31n, 4n]), error: /^OF2011.*needs 34359738368 bytes, the file has 16/ },
  "sizes past what numbers hold": { bytes: lying([2n ** 62n]), error: /^OF2011.*makes no sense/ },
  "a sparse initializer": { bytes: changed((m) => { graphOf(m).sparseInitializer.push(create(SparseTensorProtoSchema, { values: { name: "w" } })); }), error: /^OF2012.*'w'/ },
  "external data that is missing": { bytes: external("w.bin"), error: /^OF2013.*'w\.bin'/ },
  "external data above the folder": { bytes: external("../w.bin"), error: /^OF2014.*outside the model's folder/ },
  "external data at an absolute path": { bytes: external("/etc/passwd"), error: /^OF2014/ },
  "a cycle": { bytes: modelBytes({ ...small, nodes: [{ type: "Add", name: "add", inputs: ["y", "c"], outputs: ["a"] }, { type: "Relu", name: "relu", inputs: ["a"], outputs: ["y"] }] }), error: /^OF2020.*'add' needs 'relu' needs 'add'/ },
  "a value computed twice": { bytes: modelBytes({ ...small, nodes: [...small.nodes, { type: "Relu", name: "again", inputs: ["x"], outputs: ["a"] }] }), error: /^OF2021.*'add'.*'again'/ },
  "a value that nothing computes": { bytes: modelBytes({ ...small, nodes: [{ type: "Relu", name: "relu", inputs: ["nowhere"], outputs: ["y"] }] }), error: /^OF2022.*'nowhere'/ },
  "an output of another type": { bytes: modelBytes({ ...small, outputs: { y: { dtype: "int64", dims: ["N", 4] } } }), error: /^OF2033.*int64.*float32/ },
  "shapes that do not fit": { bytes: modelBytes({ ...small, inputs: { x: { dtype: "float32", dims: ["N", 5] } } }), error: /^OF3011.*\[N, 5\] and \[4\] \(node 'add'\)/ },
  "types that do not fit": { bytes: modelBytes({ ...small, nodes: [{ type: "And", name: "and", inputs: ["x", "c"], outputs: ["y"] }] }), error: /^OF3013/ },
  "an attribute that is missing": { bytes: modelBytes({ ...small, nodes: [{ type: "Concat", name: "cat", inputs: ["x", "x"], outputs: ["y"] }] }), error: /^OF3003.*'axis'/ },
  "a negative size": { bytes: modelBytes(grown("ConstantOfShape", -3)), error: /^OF3016.*-3 \(node 'big'\)/ },
  "a constant of 16 TiB": { bytes: modelBytes(grown("ConstantOfShape", 2 ** 42)), error: /^OF5101.*WebAssembly has 4096 MiB/ },
  "an expansion of 16 TiB": { bytes: modelBytes(grown("Expand", 2 ** 42)), error: /^OF5101/ },
  "a tiling of 16 TiB": { bytes: modelBytes(grown("Tile", 2 ** 42)), error: /^OF5101/ },
  "a model that needs 32 GiB": { bytes: modelBytes({ ...small, inputs: { x: { dtype: "float32", dims: [2 ** 30, 4] } }, outputs: { y: { dtype: "float32", dims: [2 ** 30, 4] } } }), error: /^OF5101/ },
};

describe("models", () => {
  it.each(Object.entries(models))("%s", async (_, { bytes, error }) => {
    const before = process.resourceUsage().maxRSS;
    const refused = await refusal(() => compile({ model: bytes, externalData: () => undefined }));
    expect(refused.message).toMatch(error);
    expect(refused.diagnostics).toHaveLength(1);
    expect(process.resourceUsage().maxRSS - before, "KiB").toBeLessThan(200 * 1024);
  });
  it("all unknown operators at once, with the nearest name", async () => {
    const bytes = modelBytes({ ...small, nodes: [{ type: "Addd", name: "one", inputs: ["x", "c"], outputs: ["a"] }, { type: "Foo", domain: "my", name: "two", inputs: ["a"], outputs: ["y"] }] });
    expect((await refusal(() => compile(bytes))).message.split("\n")).toEqual([
      "OF2004: operator Addd (opset 13) is not supported (node 'one'). Hint: did you mean Add?", "OF2004: operator my.Foo (opset 1) is not supported (node 'two')",
    ]);
  });
  it("external data that is shorter than it says", async () => {
    const model = external("w.bin", { offset: "8", length: "16" });
    expect((await refusal(() => compile({ model, externalData: () => new Uint8Array(16) }))).message).toMatch(/^OF2015.*has 16 bytes.*8 to 24/);
    await compile({ model, externalData: () => new Uint8Array(24) });
  });
  it("any byte changed, or any end cut off, gives a diagnostic or a model", async () => {
    const random = randomFrom(7);
    let refused = 0;
    for (let i = 0; i < 300; i++) {
      const bytes = ok.slice(0, random() < 0.3 ? random.int(ok.length) : ok.length);
      for (let n = 0; n < 2 && bytes.length; n++) bytes[random.int(bytes.length)] = random.int(256);
      try { await compile(bytes); } catch (e) { expect(e, String(e)).toBeInstanceOf(DiagnosticError); refused++; }
    }
    expect(refused).toBeGreaterThan(50);
  }, 120_000);
  it("chains far longer than any stack", async () => {
    const nodes = Array.from({ length: 1000 }, (_, i) => ({ type: i % 2 ? "Tanh" : "Erf", name: `n${i}`, inputs: [i ? `v${i - 1}` : "x"], outputs: [i === 999 ? "y" : `v${i}`] }));
    const session = await load((await compile(modelBytes({ ...small, nodes }))).artifact);
    expect((await session.run({ x: new Tensor("float32", [0, 0, 0, 0], [1, 4]) }))["y"]?.data).toEqual(new Float32Array(4));
  }, 120_000);
  it("names that JavaScript's objects have", async () => {
    const value: ValueSpec = { dtype: "float32", dims: ["toString", 4] };
    const spec: ModelSpec = { ...small, inputs: { constructor: value }, outputs: { valueOf: value }, nodes: [{ type: "Add", name: "hasOwnProperty", inputs: ["constructor", "c"], outputs: ["valueOf"] }] };
    const session = await load((await compile(modelBytes(spec))).artifact);
    expect(Object.hasOwn(await session.run({ constructor: new Tensor("float32", new Float32Array(8), [2, 4]) } as Feeds), "valueOf")).toBe(true);
    expect((await refusal(() => session.run({} as Feeds))).code).toBe("OF7001");
  });
});

describe("options of the API", () => {
  it.each<readonly [string, unknown, RegExp]>([
    ["an unknown one", { enableFusions: false }, /^OF5003.*'enableFusions'.*did you mean 'enableFusion'/], ["one of the wrong kind", { strip: "yes" }, /^OF5003.*'strip' is not true or false/],
    ["another target", { target: "cuda" }, /^OF5003/], ["a dimension that is not there", { dims: { M: 1 } }, /^OF2072.*did you mean 'N'/], ["a negative size", { dims: { N: -1 } }, /^OF2071/],
    ["an input that is not there", { inputShapes: { z: [1] } }, /^OF2070.*its inputs are x/], ["another rank", { inputShapes: { x: [1, undefined, 4] } }, /^OF2071.*rank 2, not 3/], ["a size that the nodes cannot take", { inputShapes: { x: [1, 5] } }, /^OF30.*\nOF2036.*as asked/],
    ["an output that is not there", { outputs: ["z"] }, /^OF5001/], ["no outputs", { outputs: [] }, /^OF5001/], ["an output type that is none", { outputTypes: { y: "floaty" } }, /^OF5002/],
    ["rules that are not JSON", { customRules: '{\n"r": ]' }, /^OF4020.*line 2/], ["no object", null, /^OF5003/],
  ])("%s", async (_, options, error) => {
    expect((await refusal(() => compile(ok, options as CompileOptions))).message).toMatch(error);
    expect((await refusal(() => optimise(ok, options as CompileOptions))).message).toMatch(error);
  });
  it("a model that is not bytes", async () => {
    for (const source of [undefined, "model.onnx", {}, { model: "x" }, ok.buffer]) expect((await refusal(() => compile(source as Uint8Array))).code).toBe("OF2001");
  });
});

describe("artifacts", () => {
  it("cut off, changed or extended anywhere are refused before anything runs", async () => {
    const { artifact } = await compile(ok);
    for (let length = 0; length < artifact.length; length += 37) expect((await refusal(() => load(artifact.slice(0, length)))).code).toMatch(/^OF600[12]$/);
    for (let at = 0; at < artifact.length; at += 29) {
      const bytes = artifact.slice();
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
      expect((await refusal(() => load(bytes))).code, `byte ${at}`).toMatch(/^OF600[123]$/);
    }
    expect((await refusal(() => load(new Uint8Array([...artifact, 0])))).code).toBe("OF6002");
    expect((await refusal(() => load(ok))).message).toMatch(/^OF6001.*looks like an ONNX model/);
    await load(artifact);
  });
  it("with valid checksums around nonsense are refused too", async () => {
    const sections = readContainer((await compile(ok)).artifact);
    const rewritten = (kind: string, bytes: Uint8Array): Uint8Array => writeContainer(sections.map((s) => (s.kind === kind ? { ...s, bytes } : s)));
    const manifest: unknown = JSON.parse(new TextDecoder().decode(sections.find((s) => s.kind === "manifest")?.bytes));
    expect((await refusal(() => load(rewritten("manifest", new TextEncoder().encode("{"))))).code).toBe("OF6004");
    expect((await refusal(() => load(rewritten("code", Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 9))))).code).toBe("OF6004");
    for (const key of Object.keys(manifest as object)) for (const value of [null, 3, "x", [null], [[]]]) {
      const bytes = rewritten("manifest", new TextEncoder().encode(JSON.stringify({ ...(manifest as object), [key]: value })));
      if (!["inputs", "outputs", "code", "buffers", "steps", "weights", "memory"].includes(key)) continue;
      expect((await refusal(() => load(bytes))).code, `${key}: ${JSON.stringify(value)}`).toBe("OF6004");
    }
  });
  it("that cannot be had", async () => {
    for (const source of ["model.om", "file:///nowhere/model.om", "http://127.0.0.1:9/model.om", new Response("", { status: 404 }), 5, null]) expect((await refusal(() => load(source as string))).code).toBe("OF7011");
  });
});

describe("feeds", () => {
  const x = (dims: readonly number[], type: "float32" | "float64" = "float32"): Tensor => new Tensor(type, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => 0), dims);
  it.each<readonly [string, unknown, RegExp]>([
    ["nothing", undefined, /^OF7001/], ["no inputs", {}, /^OF7001.*'x' is not fed.*float32 of \[N, 4\]/], ["a wrong name", { X: x([1, 4]) }, /^OF7002.*did you mean 'x'/], ["no tensor", { x: [1, 2, 3, 4] }, /^OF7003/],
    ["a wrong type", { x: x([1, 4], "float64") }, /^OF7003.*takes float32, not float64/], ["a wrong size", { x: x([1, 5]) }, /^OF7004.*\[N, 4\], not \[1, 5\]/], ["a wrong rank", { x: x([4]) }, /^OF7004/],
    ["too few elements", { x: { type: "float32", data: new Float32Array(3), dims: [1, 4] } }, /^OF7006/], ["negative sizes", { x: { type: "float32", data: new Float32Array(4), dims: [-1, -4] } }, /^OF7004/],
    ["sizes past 32 bits", { x: { type: "float32", data: new Float32Array(0), dims: [2 ** 40, 4] } }, /^OF7004/],
  ])("%s", async (_, feeds, error) => {
    const session = await load((await compile(ok)).artifact);
    expect((await refusal(() => session.run(feeds as Feeds))).message).toMatch(error);
    expect((await session.run({ x: x([2, 4]) }))["y"]?.dims).toEqual([2, 4]);
  });

  const two = (nodes: ModelSpec["nodes"], dimsX: readonly (number | string)[], dimsZ: readonly (number | string)[], initializers: ModelSpec["initializers"] = {}): ModelSpec =>
    ({ opset: 13, inputs: { x: { dtype: "float32", dims: dimsX }, z: { dtype: "float32", dims: dimsZ } }, outputs: { y: { dtype: "float32", dims: [] } }, initializers, nodes });
  it.each<readonly [string, ModelSpec, readonly (readonly [readonly number[], readonly number[]])[], readonly (readonly [readonly number[], readonly number[]])[]]>([
    ["one symbol of two sizes", two([{ type: "Add", inputs: ["x", "z"], outputs: ["y"] }], ["N"], ["N"]), [[[2], [3]], [[1], [3]]], [[[3], [3]]]],
    ["two symbols that must broadcast", two([{ type: "Add", inputs: ["x", "z"], outputs: ["y"] }], ["N"], ["M"]), [[[2], [3]]], [[[3], [3]], [[1], [3]], [[3], [1]]]],
    ["two symbols that must be equal", two([{ type: "MatMul", inputs: ["x", "z"], outputs: ["y"] }], [2, "K"], ["L", 2]), [[[2, 3], [4, 2]], [[2, 1], [3, 2]]], [[[2, 3], [3, 2]]]],
    ["a symbol that must be a number", two([{ type: "Concat", inputs: ["x", "z"], outputs: ["y"], attributes: { axis: 1 } }], [2, "K"], ["L", 2]), [[[2, 3], [4, 2]]], [[[2, 3], [2, 2]]]],
    ["a size that does not divide", two([{ type: "Reshape", inputs: ["x", "s"], outputs: ["r"] }, { type: "Add", inputs: ["r", "z"], outputs: ["y"] }], ["N"], [1], { s: int64([-1, 4]) }), [[[7], [1]]], [[[8], [1]]]],
  ])("%s", async (_, spec, wrong, right) => {
    const bytes = changed((m) => { for (const o of graphOf(m).output) if (o.type?.value.case === "tensorType") delete o.type.value.value.shape; }, spec);
    const session = await load((await compile(bytes)).artifact);
    for (const [dx, dz] of wrong) expect((await refusal(() => session.run({ x: x(dx), z: x(dz) }))).code, `${dx} and ${dz}`).toBe("OF7005");
    for (const [dx, dz] of right) await session.run({ x: x(dx), z: x(dz) });
  });
  it("values that an operator does not take", async () => {
    const spec = (node: ModelSpec["nodes"][number], dims: readonly (number | string)[]): ModelSpec => ({ opset: 13, inputs: { x: { dtype: "float32", dims: ["N"] }, s: { dtype: "int64", dims: [dims.length] } }, outputs: { y: { dtype: "float32", dims } }, initializers: {}, nodes: [node] });
    const run = async (node: ModelSpec["nodes"][number], dims: readonly (number | string)[], s: readonly number[]): Promise<string> => {
      const session = await load((await compile(modelBytes(spec(node, dims)))).artifact);
      return (await refusal(() => session.run({ x: x([1]), s: new Tensor("int64", [...s], [s.length]) }))).code;
    };
    expect(await run({ type: "Expand", name: "e", inputs: ["x", "s"], outputs: ["y"] }, ["a"], [2 ** 40])).toBe("OF3016");
    expect(await run({ type: "Reshape", name: "r", inputs: ["x", "s"], outputs: ["y"] }, ["a", "b"], [3, -1])).toBe("OF7014");
  });
  it("NaN and infinities run", async () => {
    const session = await load((await compile(ok)).artifact);
    const { y } = await session.run({ x: new Tensor("float32", [NaN, Infinity, -Infinity, -9], [1, 4]) });
    expect(y?.data).toEqual(Float32Array.of(NaN, Infinity, 0, 0));
  });
});

describe("command lines", () => {
  let place: Workplace;
  const put = (name: string, content: Uint8Array | string): void => writeFileSync(join(place.folder, name), content);
  beforeAll(() => {
    place = workplace();
    put("m.onnx", ok);
    put("cut.onnx", ok.subarray(0, 40));
    put("unknown.onnx", modelBytes({ ...small, nodes: [{ type: "Addd", name: "one", inputs: ["x", "c"], outputs: ["a"] }, { type: "Relu", name: "two", inputs: ["a"], outputs: ["y"] }] }));
    put("linked.onnx", external("w.bin"));
    const outside = mkdtempSync(join(tmpdir(), "onnxfuse-outside-"));
    writeFileSync(join(outside, "w.bin"), new Uint8Array(16));
    symlinkSync(join(outside, "w.bin"), join(place.folder, "w.bin"));
    put("lines.cfg", "ConvBNReLU:off\nMatMulAdd:of\n");
    put("switch.json", '{"Switch":{"GraphFusion":{\n"A":"off",\n}}}');
    put("field.json", '{"Switch":{"UBFusion":{"A":"maybe"}}}');
    put("rules.json", '{\n  "good": {"pattern": ["Add", "Relu"], "output_op": "A"},\n  "bad": {"pattern": ["Add", "Relu"], "output": "A"}\n}');
    put("broken.json", '{\n"r": {"pattern": ["Add" "Relu"]}}');
    put("ragged.json", "[[1, 2, 3, 4], [1, 2, 3]]");
    put("short.npy", new Uint8Array(20));
    mkdirSync(join(place.folder, "taken.om"));
    expect(place.run("onnxfuse compile m.onnx --output good.om").code).toBe(0);
    put("cut.om", readFileSync(join(place.folder, "good.om")).subarray(0, 900));
  });
  afterAll(() => rmSync(join(place.folder, ".."), { recursive: true, force: true }));

  const refused: readonly (readonly [string, RegExp])[] = [
    ["atc --modle=m.onnx --output=o", /OF1001.*--modle.*did you mean --model\?/], ["atc --model=m.onnx --output=o --insert_op_conf=a.cfg", /OF1007.*preprocessing into the model/], ["atc --model=m.onnx --output=o --precision_mode_v2=fp16", /OF1002.*origin/],
    ["atc --model=m.onnx --output=o --mode=6", /OF1002.*--om/], ["atc --model=m.onnx --output=o --framework=3", /OF1002/], ["atc --model=m.onnx", /OF1002.*--output/], ["atc --model=m.onnx --output=o/", /OF1002.*folder/],
    ["atc --model=none.onnx --output=o", /OF1004.*does not exist/], ["atc --model=cut.onnx --output=o", /OF2001/], ["atc --model=unknown.onnx --output=o", /OF2004.*Addd/], ["atc --model=linked.onnx --output=o", /OF2014.*link that leads outside/],
    ["atc --model=m.onnx --output=o --fusion_switch_file=lines.cfg", /OF4010.*lines\.cfg:2/], ["atc --model=m.onnx --output=o --fusion_switch_file=switch.json", /OF4010.*switch\.json:3/],
    ["atc --model=m.onnx --output=o --fusion_switch_file=field.json", /OF4010.*Switch\.UBFusion\.A/], ["atc --model=m.onnx --output=o --fusion_rules=broken.json", /OF4020.*broken\.json:2/],
    ["atc --model=m.onnx --output=o --input_shape=x:1,-1,4", /OF2071/], ["atc --model=m.onnx --output=o --dim=M=2", /OF2072.*did you mean 'N'/], ["atc --model=m.onnx --output=o --out_nodes=add:7", /OF5001/],
    ["atc --model=m.onnx --output=o --output_type=FP12", /OF1015.*FP16/], ["atc --model=m.onnx --output=o --dynamic_batch_size=1,2", /OF1011.*input_shape/], ["atc --model=m.onnx --output=o --verify_budget=long --verify=true", /OF1002/],
    ["atc --model=m.onnx --output=m.onnx/o", /OF1005.*leads through a file|OF1005/], ["atc --model=m.onnx --output=taken", /OF1005.*is a folder/], ["atc --model=m.onnx --output=/proc/nowhere/o", /OF1005/],
    ["ulimit -f 1; atc --model=m.onnx --output=deep/er/o", /OF1005.*too large/], ["onnxfuse compil m.onnx", /OF1001.*did you mean 'compile'/], ["onnxfuse compile m.onnx --outptu o", /OF1001.*--output/],
    ["onnxfuse compile m.onnx --emit=elf", /OF1002/], ["onnxfuse run cut.om", /OF6002/], ["onnxfuse run m.onnx --input z=good.om", /OF7002/], ["onnxfuse run m.onnx --input x=ragged.json", /OF1014.*differ in length/],
    ["onnxfuse run m.onnx --input x=short.npy", /OF1010/], ["onnxfuse bench good.om --iterations=0", /OF1002/], ["onnxfuse inspect m.onnx", /OF1012/], ["onnxfuse explain none.om", /OF1004/], ["onnxfuse compare good.om cut.om", /OF6002/],
  ];
  it.each(refused)("%s", (command, error) => {
    const before = readdirSync(place.folder, { recursive: true });
    const done = place.run(command);
    expect(done.code).toBe(1);
    expect(done.stderr).toMatch(error);
    expect(done.stderr.trimEnd().split("\n"), done.stderr).toHaveLength(1);
    expect(done.stderr + done.stdout).not.toMatch(/\n\s+at |OF0000/);
    expect(readdirSync(place.folder, { recursive: true })).toEqual(before);
  });

  it("rules: every field that is wrong, with its line", () => {
    const { code, stderr } = place.run("onnxfuse compile m.onnx --fusion-rules rules.json");
    expect(code).toBe(1);
    expect(stderr).toMatch(/OF4022.*rule 'bad'.*'bad\.output'.*rules\.json:3.*there are pattern, output_op, conditions/);
    expect(stderr).toMatch(/OF4021.*rule 'bad'.*'bad\.output_op'.*rules\.json:3/);
  });
  it("--mode=3 writes check_result.json in GE's form, also for a model that fails", () => {
    expect(place.run("atc --model=unknown.onnx --mode=3 --check_report=checked.json").code).toBe(1);
    expect(JSON.parse(readFileSync(join(place.folder, "checked.json"), "utf8"))).toEqual({
      name: "unknown.onnx", result: "failed", total: 2, pass: 1, fail: 1,
      op: [{ name: "one", type: "Addd", result: "failed", cause: [{ code: "OF2004", message: "operator Addd (opset 13) is not supported" }] }, { name: "two", type: "Relu", result: "success", cause: [] }],
    });
    expect(place.run("atc --model=m.onnx --mode=3 --check_report=checked.json").code).toBe(0);
    expect(JSON.parse(readFileSync(join(place.folder, "checked.json"), "utf8"))).toMatchObject({ result: "success", total: 2, pass: 2, fail: 0 });
  });
  it("accepts what is right: outputs by node, their types, gears", () => {
    const done = place.run('atc --model=m.onnx --output=right --out_nodes="add:0;y" --output_type="y:FP16" --input_shape="x:-1,4" --dynamic_batch_size="1,2,4" --soc_version=Ascend310P3 --export_compile_stat=0');
    expect(done).toMatchObject({ code: 0, stderr: "" });
    const shown: unknown = JSON.parse(place.run("onnxfuse run right.om --dim N=2 --json").stdout);
    expect(shown).toMatchObject({ outputs: { a: { type: "float32", dims: [2, 4] }, y: { type: "float16", dims: [2, 4] } } });
    expect(place.run("onnxfuse inspect right.om --json").stdout).toContain('"socVersion":"Ascend310P3"');
    expect(existsSync(join(place.folder, "fusion_result.json"))).toBe(false);
  });
  it("external data through links that stay beside the real model", () => {
    const cache = join(place.folder, "cache");
    mkdirSync(join(cache, "blobs"), { recursive: true });
    mkdirSync(join(cache, "snapshot"));
    writeFileSync(join(cache, "blobs", "1"), external("w.bin"));
    writeFileSync(join(cache, "blobs", "2"), new Uint8Array(16));
    symlinkSync("../blobs/1", join(cache, "snapshot", "m.onnx"));
    symlinkSync("../blobs/2", join(cache, "snapshot", "w.bin"));
    expect(place.run("onnxfuse compile cache/snapshot/m.onnx")).toMatchObject({ code: 0 });
  });
});
