import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { convBnRelu } from "../../test/support/article-models.ts";
import { commandLines } from "../../test/support/command-line.ts";
import type { ModelSpec } from "../../test/support/model-spec.ts";

const { runAtc, write } = commandLines();
const text = (file: string): string => readFileSync(file, "utf8");
const small: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: ["N", 4] } }, outputs: { y: { dtype: "float32", dims: ["N", 4] } },
  initializers: { c: { dtype: "float32", dims: [4], data: Float32Array.of(0.5, -1, 2, 1e-9) } },
  nodes: [{ type: "Mul", name: "m", inputs: ["x", "c"], outputs: ["t"] }, { type: "Relu", name: "r", inputs: ["t"], outputs: ["y"] }],
};

describe("graph dumps", () => {
  it("are files that GE's users know, by stage and level", async () => {
    write("m.onnx", small);
    const stages = async (environment: Record<string, string>): Promise<string[]> => {
      expect(await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "2", DUMP_GRAPH_PATH: `d${environment["DUMP_GRAPH_LEVEL"] ?? ""}`, ...environment })).toMatchObject({ code: 0, error: "" });
      return readdirSync(`d${environment["DUMP_GRAPH_LEVEL"] ?? ""}`).sort();
    };
    expect(await stages({})).toEqual(["ge_onnx_00000001_graph_0_PreRunBegin.pbtxt", "ge_onnx_00000002_graph_0_AfterGraphFusion.pbtxt", "ge_onnx_00000003_graph_0_AfterUbFusion.pbtxt"]);
    expect(await stages({ DUMP_GRAPH_LEVEL: "1" })).toHaveLength(4);
    expect(await stages({ DUMP_GRAPH_LEVEL: "3" })).toEqual(["ge_onnx_00000001_graph_0_AfterUbFusion.pbtxt"]);
    expect(await stages({ DUMP_GRAPH_LEVEL: "4" })).toEqual(["ge_onnx_00000001_graph_0_PreRunBegin.pbtxt"]);
    expect(await stages({ DUMP_GRAPH_LEVEL: "AfterInfershape|PreRunBegin" })).toHaveLength(2);
    expect((await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "1", DUMP_GRAPH_LEVEL: "PreRunBegni" })).error).toMatch(/OF1010.*did you mean 'PreRunBegin'/);
    expect((await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "4" })).error).toMatch(/OF1010/);
    expect((await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "1", DUMP_GRAPH_FORMAT: "json" })).error).toMatch(/OF1010.*ge_proto/);
  });
  it("hold the model in protobuf's text format, with weights, without, or nodes only", async () => {
    write("m.onnx", small);
    const dumped = async (detail: string): Promise<string> => {
      await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: detail, DUMP_GRAPH_LEVEL: "4" });
      return text("ge_onnx_00000001_graph_0_PreRunBegin.pbtxt");
    };
    const whole = await dumped("1");
    expect(whole).toMatch(/^ir_version: \d+\n/);
    expect(whole).toContain('  node {\n    input: "x"\n    input: "c"\n    output: "t"\n    name: "m"\n    op_type: "Mul"\n  }\n');
    expect(whole).toContain('  initializer {\n    dims: 4\n    data_type: 1\n    name: "c"\n    raw_data: "\\000\\000\\000?\\000\\000\\200\\277\\000\\000\\000@_p\\2110"\n  }\n');
    expect(whole).toContain('dim {\n            dim_param: "N"\n          }');
    const light = await dumped("2");
    expect(light).toContain('name: "c"');
    expect(light).not.toContain("raw_data: \"\\000");
    expect(await dumped("3")).not.toContain("initializer");
  });
  it("are readable as SSA text, and as GE's proto", async () => {
    write("m.onnx", convBnRelu("conv").spec);
    await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "1", DUMP_GRAPH_LEVEL: "AfterGraphFusion", DUMP_GRAPH_FORMAT: "readable" });
    const readable = text("ge_readable_00000001_graph_0_AfterGraphFusion.txt");
    expect(readable).toMatch(/ = Node\[type=Conv\] \(inputs = \(X=%\S+, W=%\S+, B=%\S+\), attrs = \{.*_datadump_original_op_names: \[\S+, \S+\]\}\)/);
    expect(readable).toMatch(/Node\[type=Const\] \(attrs = \{dtype: float32, shape: \[128\], value: \[\S+, \S+, \S+ \.\.\. \S+, \S+, \S+\]\}\)/);
    expect(readable).toMatch(/return \(%\S+\)\n$/);
    await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "1", DUMP_GRAPH_LEVEL: "4", DUMP_GRAPH_FORMAT: "ge_proto" });
    expect(text("ge_proto_00000001_graph_0_PreRunBegin.txt")).toMatch(/op \{\n {4}name: "\S+"\n {4}type: "BatchNormalization"\n {4}input: "\S+:0"/);
  });
});

describe("graph dumps of what no opset can say", () => {
  it.each(["onnx", "ge_proto", "readable"])("stand in its own form, as %s", async (format) => {
    write("m.onnx", {
      opset: 11, inputs: { i: { dtype: "int64", dims: ["N", 2] } }, outputs: { y: { dtype: "float32", dims: ["N", 2, 3] } },
      initializers: { table: { dtype: "float32", dims: [4, 3], data: Float32Array.from({ length: 12 }, (_, i) => i) } },
      nodes: [{ type: "Gather", name: "g", inputs: ["table", "i"], outputs: ["t"] }, { type: "Softmax", name: "s", inputs: ["t"], outputs: ["y"], attributes: { axis: 1 } }],
    });
    expect(await runAtc("--model=m.onnx --output=m", { DUMP_GE_GRAPH: "1", DUMP_GRAPH_LEVEL: "1", DUMP_GRAPH_FORMAT: format, DUMP_GRAPH_PATH: "own" })).toMatchObject({ code: 0, error: "" });
    expect(readdirSync("own").filter((f) => text(`own/${f}`).includes("ValueRange")).length).toBeGreaterThan(0);
  });
});

describe("modes and statistics", () => {
  it("--mode=1 writes an artifact or a model as JSON, with shapes on demand", async () => {
    write("m.onnx", small);
    await runAtc("--model=m.onnx --output=m --export_compile_stat=0");
    expect(await runAtc("--mode=1 --om=m.om --json=om.json")).toMatchObject({ code: 0, error: "" });
    expect(JSON.parse(text("om.json"))).toMatchObject({ manifest: { inputs: [{ name: "x" }] }, report: { nodes: { original: 2, compiled: 1 } } });
    const model = async (options: string): Promise<{ graph: { node: { opType: string }[]; valueInfo?: { name: string }[]; initializer: { rawData?: string }[] } }> => {
      expect(await runAtc(`--mode=1 --model=m.onnx --json=onnx.json ${options}`)).toMatchObject({ code: 0, error: "" });
      return JSON.parse(text("onnx.json")) as Awaited<ReturnType<typeof model>>;
    };
    const plain = await model("--framework=5");
    expect(plain.graph.node.map((n) => n.opType)).toEqual(["Mul", "Relu"]);
    expect(plain.graph.initializer[0]?.rawData).toBeUndefined();
    expect(plain.graph.valueInfo ?? []).toEqual([]);
    expect((await model("--dump_mode=1")).graph.valueInfo?.map((v) => v.name)).toEqual(["t", "y"]);
    expect((await runAtc("--mode=1 --model=m.onnx")).error).toMatch(/OF1002.*--json/);
    expect((await runAtc("--mode=1 --om=m.onnx --json=x.json")).error).toMatch(/OF6001/);
  });
  it("--mode=6 and --display_model_info say what an artifact is", async () => {
    write("m.onnx", small);
    const shown = await runAtc("--model=m.onnx --output=m --soc_version=Ascend310P3 --input_shape=x:2,4 --display_model_info=1");
    const info = await runAtc("--mode=6 --om=m.om");
    expect(info.out).toMatch(/system info: atc_version\[onnxfuse \S+\], soc_version\[Ascend310P3\], framework_type\[5\]\nresource info: memory_size\[\d+\], weight_size\[64\]/);
    expect(info.out).toMatch(/om info: om_size\[\d+\], modeldef_size\[\d+\], weight_data_size\[\d+\], kernels_size\[\d+\]/);
    expect(shown.out).toContain(info.out.split("\n").slice(1, 4).join("\n"));
    expect((await runAtc("--mode=6")).error).toMatch(/OF1002.*--om/);
  });
  it("--export_compile_stat=2 writes fusion_op.csv", async () => {
    write("m.onnx", small);
    await runAtc("--model=m.onnx --output=m --input_shape=x:256,4 --export_compile_stat=2");
    const [head = "", line = ""] = text("fusion_op.csv").split("\n");
    expect(head).toMatch(/^Model Name,Model ID,Fusion Op,Original Ops,Memory Input\(KB\)/);
    expect(line.split(",").slice(1)).toEqual(["0", "FusedElementwise", "m;r", "4", "4", "0.016", "0", "8.016", "16", "8"]);
    await runAtc("--model=m.onnx --output=m --export_compile_stat=2");
    expect(text("fusion_op.csv")).toMatch(/,16·N B,16·N B,0.016,0,\(16 \+ 32·N\) B,64·N B,32·N B/);
  });
});
