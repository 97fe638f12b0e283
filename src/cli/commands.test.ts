import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chain, convBnRelu } from "../../test/support/article-models.ts";
import { commandLines } from "../../test/support/command-line.ts";
import type { Container } from "../core/container.ts";
import { held, modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { readArtifact } from "../artifact/artifact.ts";
import { readModel } from "../onnx/read.ts";
import { operators } from "../ops/index.ts";
import { atcOptions, refusedOptions } from "./options/atc-options.ts";
import { writeNpy } from "./npy.ts";

const { runAtc, run, write, folder } = commandLines();

const small: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: ["N", 4] } }, outputs: { y: { dtype: "float32", dims: ["N", 4] } }, initializers: {},
  nodes: [{ type: "Exp", name: "e", inputs: ["x"], outputs: ["t"] }, { type: "Relu", name: "r", inputs: ["t"], outputs: ["y"] }],
};

describe("atc", () => {
  it("compiles, with GE's console lines and fusion_result.json", async () => {
    write("m.onnx", small);
    const done = await runAtc("--model=m.onnx --framework=5 --output=m --soc_version=Ascend310P3 --log=info");
    expect(done).toMatchObject({ code: 0, error: "" });
    expect(done.out.split("\n")).toEqual([
      "ATC start working now, please wait for a moment.", "[GE] Fusion: Exp + ReLU -> FusedElementwise", "[GE] Fused 2 nodes into 1", "[GE] Original graph: 2 nodes",
      "[GE] After optimization: 1 nodes", "[GE] Fused 1 nodes", "[GE] Fusion details:", "[GE]   ElementWise: 1 times", "ATC run success, welcome to the next use.",
    ]);
    expect(JSON.parse(readFileSync("fusion_result.json", "utf8"))).toEqual({ session_and_graph_id_0_0: { graph_fusion: {}, ub_fusion: { FusedElementwise: { match_times: "1", effect_times: "1", repository_hit_times: "0" } } } });
    expect(readdirSync(folder()).sort()).toEqual(["fusion_result.json", "m.om", "m.onnx"]);
    expect((await runAtc("--model m.onnx --output quiet --export_compile_stat=0")).out.split("\n")).toHaveLength(2);
  });
  it("records options without paths, and gives the same bytes under any output name", async () => {
    write("m.onnx", small);
    await runAtc("--model=m.onnx --output=a --log=info --input_shape=x:2,4");
    await runAtc(`--model=${join(folder(), "m.onnx")} --output=sub/b --input_shape=x:2,4`);
    expect(readFileSync("a.om")).toEqual(readFileSync("sub/b.om"));
    const { manifest } = readArtifact(readFileSync("a.om"));
    expect(manifest.options).toEqual({ inputShapes: { x: [2, 4] }, target: "wasm" });
    expect(manifest.inputs[0]?.dims).toEqual([2, 4]);
    await runAtc("--model=m.onnx --output=c --dim=N=3 --strip=true");
    expect(readArtifact(readFileSync("c.om")).manifest.inputs[0]?.dims).toEqual([3, 4]);
    expect(readArtifact(readFileSync("c.om")).report()).toBeUndefined();
  });
  it("holds weights in fewer bits, by both commands, and says what that changes", async () => {
    write("m.onnx", convBnRelu("conv1d").spec);
    await runAtc("--model=m.onnx --output=all");
    const weights = (file: string): number => readArtifact(readFileSync(file)).weights.length;
    for (const [form, times] of [["f16", 1.9], ["int8", 3]] as const) {
      const done = await runAtc(`--model=m.onnx --output=${form} --weights=${form} --log=info --verify=true --verify_budget=1`);
      expect(done).toMatchObject({ code: 0, error: "" });
      expect(done.out).toMatch(/Weights in fewer bits: 1 of 1, each element changed by at most \d/);
      expect(done.out).toMatch(/Weights in fewer bits change results by \d/);
      expect(weights("all.om") / weights(`${form}.om`)).toBeGreaterThan(times);
      expect((await run(`compile m.onnx --weights ${form} --output again.om`)).code).toBe(0);
      expect(readFileSync("again.om")).toEqual(readFileSync(`${form}.om`));
    }
    expect((await runAtc("--model=m.onnx --output=x --weights=int4")).error).toMatch(/OF1002/);
    expect((await run("compile m.onnx --weights int4")).error).toMatch(/OF1002/);
    expect((await run("compile m.onnx --weights f16 --emit onnx")).error).toMatch(/OF5004/);
  });
  it("selects outputs", async () => {
    write("m.onnx", small);
    expect((await runAtc("--model=m.onnx --output=m --out_nodes=t")).code).toBe(0);
    expect(readArtifact(readFileSync("m.om")).manifest.outputs.map((o) => o.name)).toEqual(["t"]);
    expect((await runAtc("--model=m.onnx --output=n --out_nodes=nothing")).error).toMatch(/OF5001/);
  });
  it("keeps weights in files beside the artifact or the ONNX model, and finds them again", async () => {
    write("m.onnx", convBnRelu("conv1d").spec);
    await runAtc("--model=m.onnx --output=inside");
    const expected = JSON.parse((await run("run inside.om --json")).out) as unknown;
    for (const [form, files] of [["1", 2], ["2", 1]] as const) {
      expect(await runAtc(`--model=m.onnx --output=out${form}/m --external_weight=${form}`)).toMatchObject({ code: 0, error: "" });
      expect(readdirSync(`out${form}/weight`)).toHaveLength(files);
      expect(readFileSync(`out${form}/m.om`).length).toBeLessThan(readFileSync("inside.om").length / 2);
      expect(JSON.parse((await run(`run out${form}/m.om --json`)).out)).toEqual(expected);
    }
    const [only = ""] = readdirSync("out2/weight");
    writeFileSync(`out2/weight/${only}`, "something else");
    expect((await run("run out2/m.om")).error).toMatch(/OF6007/);
    rmSync(`out2/weight/${only}`);
    expect((await run("run out2/m.om")).error).toMatch(/OF6006/);
    expect((await runAtc("--model=m.onnx --output=o/m --emit=onnx --external_weight=2")).code).toBe(0);
    expect(readdirSync("o").sort()).toEqual(["m.onnx", "m.onnx.data"]);
    expect(JSON.parse((await run("run o/m.onnx --json")).out)).toEqual(expected);
  });
  it("writes every stage into --debug_dir, and changes nothing by it", async () => {
    write("m.onnx", small);
    await runAtc("--model=m.onnx --output=a");
    expect((await runAtc("--model=m.onnx --output=b --debug_dir=stages")).code).toBe(0);
    expect(readFileSync("a.om")).toEqual(readFileSync("b.om"));
    expect(readdirSync("stages").sort()).toEqual(["01-read.txt", "02-simplified.txt", "03-rewritten.txt", "04-partitioned.txt", "05-lowered.txt", "06-laid-out.txt", "07-scheduled.txt", "08-legal.txt", "09-planned.txt", "10-emitted.txt"]);
    expect(readFileSync("stages/01-read.txt", "utf8")).toMatch(/t = Exp \(x\)/);
    expect(readFileSync("stages/04-partitioned.txt", "utf8")).toBe("FusedElementwise (kernel): e, r\n");
    expect(readFileSync("stages/10-emitted.txt", "utf8")).toMatch(/^\(module/);
  });
  it("keeps the element type of nodes named by --keep_dtype, also inside fusions", async () => {
    const half: ModelSpec = { ...small, inputs: { x: { dtype: "float16", dims: ["N", 4] } }, outputs: { y: { dtype: "float16", dims: ["N", 4] } } };
    write("m.onnx", half);
    writeFileSync("keep.txt", "# nodes\ne\n");
    writeFileSync("types.txt", "OpType::Exp\nOpType::Tanh\nnobody\n");
    expect((await runAtc("--model=m.onnx --output=m --log=info")).out).toMatch(/After optimization: 1 nodes/);
    expect((await runAtc("--model=m.onnx --output=m --log=debug --keep_dtype=keep.txt")).out).toMatch(/After optimization: 2 nodes[^]*keeps-dtype/);
    expect((await runAtc("--model=m.onnx --output=m --log=info --keep_dtype=types.txt")).out).toMatch(/OF4013.*'nobody'[^]*OF4013.*'OpType::Tanh'[^]*After optimization: 2 nodes/);
    write("f.onnx", small);
    expect((await runAtc("--model=f.onnx --output=m --log=info --keep_dtype=keep.txt")).out).toMatch(/After optimization: 1 nodes/);
    expect((await runAtc("--model=m.onnx --output=m --keep_dtype=missing.txt")).error).toMatch(/OF1004/);
  });
  it("writes ONNX, and graphs before and after", async () => {
    write("m.onnx", convBnRelu("conv1d").spec);
    expect((await runAtc("--model=m.onnx --output=emitted --emit=onnx")).code).toBe(0);
    expect(readModel(readFileSync("emitted.onnx"), operators).graph.nodes.map((n) => n.op.type)).toEqual(["Conv", "Relu"]);
    write("chain.onnx", chain("mul-add-relu"));
    const saved = await runAtc("--model=chain.onnx --output=c", { GE_GRAPH_SAVE_PATH: "graphs" });
    expect(saved.out).toMatch(/before\.onnx: 3 nodes\n.*after\.onnx: 1 nodes/);
    expect(readdirSync("graphs").sort()).toEqual(["after.onnx", "before.onnx"]);
  });
  it("checks a model without compiling", async () => {
    write("m.onnx", small);
    expect((await runAtc("--mode=3 --model=m.onnx --framework=5 --check_report=r.json")).code).toBe(0);
    expect(JSON.parse(readFileSync("r.json", "utf8"))).toMatchObject({ result: "success", total: 2, pass: 2, fail: 0, op: [{ name: "e", type: "Exp", result: "success", cause: [] }, { name: "r" }] });
    write("bad.onnx", { ...small, nodes: [{ type: "Ex", name: "e", inputs: ["x"], outputs: ["t"] }, { type: "Abs", name: "a", inputs: ["t"], outputs: ["u"] }, { type: "Foo", name: "f", inputs: ["u"], outputs: ["y"] }] });
    const bad = await runAtc("--mode=3 --model=bad.onnx");
    expect(bad.code).toBe(1);
    expect(bad.error.split("\n")).toHaveLength(2);
    expect(JSON.parse(readFileSync("check_result.json", "utf8"))).toMatchObject({ result: "failed", total: 3, pass: 1, fail: 2, op: [{ name: "e", type: "Ex", result: "failed" }, { name: "a", result: "success" }, { name: "f", cause: [{ message: expect.stringContaining("Foo") as string }] }] });
  });
  it("takes a shape that is declared otherwise as asked, and says so", async () => {
    write("m.onnx", small);
    const done = await runAtc("--model=m.onnx --output=m --log=warning --input_shape=x:2,5");
    expect(done).toMatchObject({ code: 0, error: "" });
    expect(done.out).toMatch(/Warning: OF2036: input 'x' is declared \[N, 4\], and taken as \[2, 5\], as asked/);
    expect((await run("inspect m.om")).out).toMatch(/x: float32 \[2, 5\]/);
  });
  it("refuses what is wrong, with a code, and writes nothing", async () => {
    write("m.onnx", small);
    writeFileSync("cut.onnx", modelBytes(small).subarray(0, 40));
    writeFileSync("switch.cfg", "A:onn\n");
    writeFileSync("rules.json", '{"r": {"pattern": []}}');
    const cases: readonly [string, RegExp][] = [
      ["--modell=m.onnx", /OF1001.*--model\?/], ["m.onnx", /OF1001/], ["--model=m.onnx", /OF1002.*--output/], ["--output=m", /OF1002.*--model/], ["--model", /OF1002/],
      ["--model=none.onnx --output=m", /OF1004/], ["--model=cut.onnx --output=m", /OF20/], ["--model=m.onnx --output=m --framework=3", /OF1002/],
      ["--model=m.onnx --output=m --target=c", /OF1008/], ["--model=m.onnx --output=m --oo_constant_folding=false", /OF1002.*true/], ["--model=m.onnx --output=m --precision_mode_v2=fp16", /OF1002.*origin/], ["--model=m.onnx --output=m --precision_mode_v2=origin --precision_mode=must_keep_origin_dtype", /OF1002.*exclude each other/], ["--model=m.onnx --output=m --log=loud", /OF1002.*debug/], ["--model=m.onnx --output=m --input_shape=x:a", /OF1006/],
      ["--model=m.onnx --output=m --input_shape=z:1", /OF2070/], ["--model=m.onnx --output=m --input_shape=x:1,-1,4", /OF2071.*rank 2, not 3/], ["--model=m.onnx --output=m --fusion_switch_file=switch.cfg", /OF4010.*switch\.cfg:1/],
      ["--model=m.onnx --output=m --fusion_rules=rules.json", /OF4021/], ["--model=m.onnx --output=/proc/m", /OF1005/],
    ];
    for (const [line, error] of cases) {
      const done = await runAtc(line);
      expect(done.code, line).toBe(1);
      expect(done.error, line).toMatch(error);
      expect(done.out, line).toContain("ATC run failed, Please check the detail log");
      expect(done.error, line).not.toMatch(/\n\s+at /);
    }
    expect(existsSync("m.om")).toBe(false);
  });
  it("knows Huawei's options that have no meaning here, and what to do instead", async () => {
    for (const name of Object.keys(refusedOptions)) expect((await runAtc(`--${name}=1`)).error, name).toMatch(/OF1007.*Hint: /);
    const names = [...atcOptions.map((o) => o.name), ...Object.keys(refusedOptions)];
    expect(new Set(names).size).toBe(names.length);
    const help = await runAtc("--help");
    expect(help.code).toBe(0);
    for (const o of atcOptions) expect(help.out).toContain(`--${o.name}`);
  });
  it("verifies when asked to", async () => {
    write("m.onnx", convBnRelu("conv1d").spec);
    const done = await runAtc("--model=m.onnx --output=m --verify=true --verify_budget=20");
    expect(done).toMatchObject({ code: 0, error: "" });
    expect(done.out).toMatch(/\[GE\] Verified in 6 runs/);
    expect(existsSync("m.om")).toBe(true);
  });
});

describe("onnxfuse", () => {
  it("says what a command line gets wrong in its own words, and never writes over the model", async () => {
    write("m.onnx", small);
    const before = readFileSync("m.onnx");
    for (const line of ["compile m.onnx --output m.onnx", "compile m.onnx --emit onnx --output ./m.onnx", "report m.onnx --output m.onnx"]) expect((await run(line)).error, line).toMatch(/OF1005: the result would replace the model/);
    expect((await runAtc("--model=m.onnx --output=m --emit=onnx")).error).toMatch(/OF1005: the result would replace the model/);
    expect(readFileSync("m.onnx").equals(before)).toBe(true);
    expect((await run("compile m.onnx --output m.om")).code).toBe(0);
    expect((await run("compile m.om --output n.om")).error).toMatch(/OF2001: this is an artifact, not a model/);
    expect((await run("compile m.onnx -o m.om")).error).toMatch(/OF1001: there is no option -o\. Hint: did you mean --output\?/);
    expect((await run("compile m.onnx n.onnx")).error).toMatch(/got 2\. Hint/);
    writeFileSync("x.json", '{"values": [1, 2, 3, 4]}');
    expect((await run("run m.om --input x=x.json")).error).toMatch(/OF1014: it has no data/);
    expect((await run("run m.om --input x=x.json --input x=x.json")).error).toMatch(/OF1013: an input is given two files/);
  });
  it("compiles and runs on files", async () => {
    write("m.onnx", small);
    const compiled = await run("compile m.onnx --dim N=2");
    expect(compiled).toMatchObject({ code: 0, error: "" });
    writeFileSync("x.npy", writeNpy({ dtype: "float32", dims: [2, 4], data: Float32Array.of(0, 0, 0, 0, -Infinity, 0, 0, 0) }));
    const done = await run("run m.om --input x=x.npy --json --output-dir out");
    expect(JSON.parse(done.out)).toEqual({ outputs: { y: { type: "float32", dims: [2, 4], data: [1, 1, 1, 1, 0, 1, 1, 1] } } });
    expect(readdirSync("out")).toEqual(["y.npy"]);
    writeFileSync("x.json", "[[0,0,0,0],[0,0,0,0]]");
    expect((await run("run m.onnx --input x=x.json")).out).toMatch(/^y: float32 \[2, 4\] min 1/);
    writeFileSync("x.bin", new Uint8Array(16));
    expect((await run("run m.onnx --input x=x.bin --dim N=1")).out).toMatch(/\[1, 4\]/);
    expect((await run("run m.onnx --input x=x.bin --dim N=2")).error).toMatch(/OF1014.*16 bytes.*32/);
    const random = await run("run m.onnx");
    expect(random.error).toMatch(/N was not given/);
    write("d.onnx", { ...small, initializers: { by: { dtype: "float32", dims: [], data: Float32Array.of(3) } }, overridable: ["by"], nodes: [{ type: "Mul", inputs: ["x", "by"], outputs: ["y"] }] });
    writeFileSync("ones.json", "[[1,1,1,1]]");
    expect((await run("run d.onnx --input x=ones.json")).out).toMatch(/: 3, 3, 3, 3$/m);
  });
  it("reads and prints strings, sequences, optionals and maps", async () => {
    const container: Container = { kind: "sequence", item: { dtype: "float32", shape: [null] } };
    write("m.onnx", {
      opset: 18, initializers: {}, outputs: { all: undefined, o_out: undefined, zipped: undefined, s_out: undefined },
      inputs: { xs: held(container), o: held({ kind: "optional", item: { dtype: "string", shape: [null] } }), p: { dtype: "float32", dims: [1, 2] }, s: { dtype: "string", dims: [2] } },
      nodes: [
        { type: "SequenceErase", inputs: ["xs"], outputs: ["all"] }, { type: "Identity", inputs: ["o"], outputs: ["o_out"] }, { type: "Identity", inputs: ["s"], outputs: ["s_out"] },
        { type: "ZipMap", domain: "ai.onnx.ml", inputs: ["p"], outputs: ["zipped"], attributes: { classlabels_int64s: [3, 4] } },
      ],
    });
    for (const [name, text] of [["xs", "[[1,2],[3],[4]]"], ["o", "null"], ["p", "[[0.5,0.25]]"], ["s", '["a","b"]']]) writeFileSync(`${name}.json`, text ?? "");
    const inputs = "--input xs=xs.json --input o=o.json --input p=p.json --input s=s.json";
    const done = await run(`run m.onnx ${inputs} --json --output-dir out`);
    const expected = { all: [{ type: "float32", dims: [2], data: [1, 2] }, { type: "float32", dims: [1], data: [3] }], o_out: null, zipped: [{ 3: 0.5, 4: 0.25 }], s_out: { type: "string", dims: [2], data: ["a", "b"] } };
    expect(JSON.parse(done.out)).toEqual({ outputs: expected });
    expect(readdirSync("out").sort()).toEqual(["all.json", "o_out.json", "s_out.json", "zipped.json"]);
    expect((await run(`run m.onnx ${inputs}`)).out).toMatch(/all: a sequence of 2\n {2}all\[0\]: float32 \[2\] min 1.*\n.*\no_out: nothing\nzipped: a sequence of 1\n {2}zipped\[0\]: a map of 2: 3 → 0.5, 4 → 0.25\ns_out: string \[2\] a, b/);
    expect((await run("run m.onnx")).out).toMatch(/all: a sequence of 1/);
    expect((await run("compare m.onnx m.onnx")).code).toBe(0);
    expect((await run("compile m.onnx --output m.om")).code).toBe(0);
    expect((await run("inspect m.om")).out).toMatch(/xs: sequence of float32\[\?\]/);
    writeFileSync("xs.json", "3");
    expect((await run("run m.onnx --input xs=xs.json")).error).toMatch(/OF1014.*write a list/);
    expect((await run("run m.onnx --input s=x.npy")).code).toBe(1);
  });
  it("times artifacts side by side", async () => {
    write("m.onnx", small);
    await run("compile m.onnx --output a.om");
    await run("compile m.onnx --output b.om --no-fusion");
    const done = await run("bench b.om a.om --iterations 3 --warmup 1 --dim N=5 --json");
    const result = JSON.parse(done.out) as { artifacts: { artifact: string; min: number; median: number; p99: number }[] };
    expect(result.artifacts.map((a) => a.artifact)).toEqual(["b.om", "a.om"]);
    for (const a of result.artifacts) expect(a.min <= a.median && a.median <= a.p99).toBe(true);
    expect((await run("bench a.om --iterations 2")).out).toMatch(/speed-up\na\.om/);
  });
  it("explains models and artifacts", async () => {
    write("m.onnx", convBnRelu("conv1d").spec);
    await run("compile m.onnx");
    const [model, artifact] = [await run("explain m.onnx"), await run("explain m.om")];
    expect(model.out).toContain("ConvBNReLU");
    expect(artifact.out).toBe(model.out);
    expect(JSON.parse((await run("explain m.onnx --json")).out)).toMatchObject({ nodes: { original: 3, compiled: 1 } });
    expect((await run("explain m.onnx --disable ConvBNReLU")).out).toContain("[switched-off]");
    await run("compile m.onnx --strip");
    expect((await run("explain m.om")).error).toMatch(/OF6006/);
  });
  it("inspects artifacts", async () => {
    write("m.onnx", { ...small, outputs: { y: { dtype: "int64", dims: [2, "M"] } }, nodes: [small.nodes[0] as ModelSpec["nodes"][0], { type: "NonZero", name: "n", inputs: ["t"], outputs: ["y"] }] });
    await run("compile m.onnx");
    const text = (await run("inspect m.om --steps --time --dim N=2")).out;
    for (const part of ["manifest", "weights", "x: float32 [N, 4]", "Host operators: NonZero", "share", "(Exp)"]) expect(text).toContain(part);
    expect(JSON.parse((await run("inspect m.om --json")).out)).toMatchObject({ hostOperators: ["NonZero"], manifest: { model: expect.any(String) as string } });
    expect((await run("inspect m.onnx")).error).toMatch(/OF1012/);
    writeFileSync("m.om", readFileSync("m.om").subarray(0, 100));
    expect((await run("inspect m.om")).error).toMatch(/OF6002/);
  });
  it("inspects the memory of artifacts whose sizes are told", async () => {
    write("m.onnx", small);
    await run("compile m.onnx");
    expect((await run("inspect m.om")).out).toMatch(/placed when sizes are known .*--dim N=…/);
    const at = async (n: number): Promise<{ bytes: number; lowerBound: number }> => (JSON.parse((await run(`inspect m.om --json --dim N=${n}`)).out) as { arena: { bytes: number; lowerBound: number } }).arena;
    expect((await run("inspect m.om --dim N=100")).out).toMatch(/arena [\d.]+ KiB for \d+ blocks \(at least/);
    const [few, many] = [await at(1), await at(1000)];
    expect(few.bytes).toBeGreaterThanOrEqual(few.lowerBound);
    expect(many.bytes).toBeGreaterThanOrEqual(16_000);
    expect(many.bytes).toBeLessThanOrEqual(1.1 * many.lowerBound);
  });
  it("compares results", async () => {
    write("a.onnx", small);
    write("b.onnx", { ...small, nodes: [small.nodes[0] as ModelSpec["nodes"][0], { type: "Neg", name: "n", inputs: ["t"], outputs: ["y"] }] });
    expect(await run("compare a.onnx a.onnx --dim N=3")).toMatchObject({ code: 0, error: "" });
    const different = await run("compare a.onnx b.onnx --dim N=3 --json");
    expect(different.code).toBe(1);
    expect(JSON.parse(different.out)).toMatchObject({ outputs: [{ name: "y", within: false, cosine: -1 }] });
  });
  it("refuses what is wrong, with the nearest name", async () => {
    expect((await run("explian m.onnx")).error).toMatch(/OF1001.*'explain'/);
    expect((await run("run m.onnx --imput x=y")).error).toMatch(/OF1001.*--input/);
    expect((await run("run")).error).toMatch(/OF1001/);
    expect((await run("bench m.om --iterations many")).error).toMatch(/OF1002|OF1004/);
    expect((await run("")).code).toBe(1);
    expect((await run("--help")).out).toContain("compile");
    expect((await run("bench --help")).out).toContain("--iterations");
  });
});
