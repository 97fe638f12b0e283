/** The article on GE's operator fusion, section by section: every command line and claim of it, on models of its own shapes. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { compile } from "../src/api/index.ts";
import { flashAttention } from "../src/api/attention.ts";
import { load, Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { sizeOf, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { attention, chain, convBnRelu, float, int64, linearRelu, scalar, type ConvForm } from "./support/article-models.ts";
import { modelBytes, scramble, type ModelSpec } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";
import { dataFolder } from "./support/cases.ts";
import { workplace, type Workplace } from "./support/shell.ts";

let place: Workplace;
beforeAll(() => { place = workplace(); });

const write = (name: string, spec: ModelSpec): void => writeFileSync(join(place.folder, name), modelBytes(spec));
const feedsOf = (spec: ModelSpec, seed = 7): Record<string, Tensor> => {
  const random = randomFrom(seed);
  return Object.fromEntries(Object.entries(spec.inputs).map(([name, v]) => [name, randomTensor(v.dims as number[], random)]));
};
const reference = (spec: ModelSpec, feeds: Readonly<Record<string, Tensor>>): Record<string, Tensor> =>
  interpret(readModel(modelBytes(spec), operators).graph, feeds);

/** Largest difference relative to the largest value of `expected`. */
function difference(actual: Tensor, expected: Tensor): number {
  expect(actual.dims).toEqual(expected.dims);
  expect(actual.dtype).toBe(expected.dtype);
  const a = toNumbers(actual), e = toNumbers(expected);
  let worst = 0, largest = 1e-30;
  for (let i = 0; i < e.length; i++) {
    worst = Math.max(worst, Math.abs((a[i] ?? NaN) - (e[i] ?? NaN)));
    largest = Math.max(largest, Math.abs(e[i] ?? 0));
  }
  return Number.isNaN(worst) ? Infinity : worst / largest;
}
const asTensor = (t: { readonly type: string; readonly dims: readonly number[]; readonly data: unknown }): Tensor => ({ dtype: t.type as Tensor["dtype"], dims: t.dims, data: t.data as Tensor["data"] });

async function outputs(spec: ModelSpec, options: Parameters<typeof compile>[1] = {}, feeds = feedsOf(spec)) {
  const { artifact, report } = await compile(modelBytes(spec), options);
  const session = await load(artifact);
  const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, RuntimeTensor.of(t)])));
  session.dispose();
  return { results: Object.fromEntries(Object.entries(results).map(([k, t]) => [k, asTensor(t as never)])), report };
}
const firedRegions = (report: Awaited<ReturnType<typeof compile>>["report"]): string[] => report.sites.filter((s) => s.kind === "region" && s.outcome === "fired").map((s) => s.name);

async function expectFused(spec: ModelSpec, kind: string, calls = 1): Promise<void> {
  for (let seed = 0; seed < 3; seed++) {
    const model = seed === 0 ? spec : scramble(spec, randomFrom(seed));
    const feeds = feedsOf(model);
    const { results, report } = await outputs(model, {}, feeds);
    expect(firedRegions(report)).toEqual([kind]);
    expect(report.nodes.compiled).toBe(calls);
    const expected = reference(model, feeds);
    for (const [name, t] of Object.entries(expected)) expect(difference(results[name] as Tensor, t)).toBeLessThan(1e-5);
  }
}

describe("一 why fusing helps", () => {
  it("counts 392.0 KB a tensor and 1176.0 KB for three, where the article misprints 235.2 and 705.6", async () => {
    const c = convBnRelu("conv").spec;
    const spec = { ...c, inputs: { x: { dtype: "float16" as const, dims: [1, 64, 56, 56] } }, outputs: { y: { dtype: "float16" as const, dims: [1, 64, 56, 56] } }, initializers: halves(64),
      nodes: c.nodes.map((n) => (n.type === "Conv" ? { ...n, inputs: ["x", "w"] } : n)) };
    const { report } = await compile(modelBytes(spec), {});
    const region = report.traffic[0];
    const tensor = 64 * 56 * 56 * 2;
    expect((tensor / 1024).toFixed(1)).toBe("392.0");
    expect(region?.before.written).toBe(3 * tensor);
    expect(region?.after.written).toBe(tensor);
    expect(region?.before.read).toBe(3 * tensor);
    expect(region?.after.read).toBe(tensor);
  });
});

/** float16 weights for the traffic example: identity-like values that no rule refuses. */
function halves(channels: number): Record<string, Tensor> {
  const fill = (dims: number[], bits: number): Tensor => ({ dtype: "float16", dims, data: new Uint16Array(sizeOf(dims)).fill(bits) });
  return { w: fill([channels, 64, 3, 3], 0x2000), gamma: fill([channels], 0x3c00), beta: fill([channels], 0), mean: fill([channels], 0), variance: fill([channels], 0x3c00) };
}

describe("二 Conv + BN + ReLU", () => {
  const forms: readonly [ConvForm, string][] = [["conv", "ConvBNReLU"], ["grouped", "ConvBNReLU"], ["depthwise", "ConvBNReLU"], ["conv1d", "ConvBNReLU"], ["transpose", "ConvTransposeBNReLU"]];
  it.each(forms)("%s becomes one call", async (form, kind) => {
    await expectFused(convBnRelu(form).spec, kind);
    await expectFused(convBnRelu(form, 5, false).spec, kind);
  });

  it("folds the weights as the article's fuse_bn_to_conv does in float64", async () => {
    const { spec, weight, bias, norm } = convBnRelu("conv");
    write("fold.onnx", spec);
    expect(place.run("atc --model=fold.onnx --framework=5 --output=folded --emit=onnx").code).toBe(0);
    const graph = readModel(readFileSync(join(place.folder, "folded.onnx")), operators).graph;
    const conv = graph.nodes.find((n) => n.op.type === "Conv");
    const [, w, b] = conv?.inputs ?? [];
    const g = toNumbers(norm.gamma), v = toNumbers(norm.variance), m = toNumbers(norm.mean), beta = toNumbers(norm.beta), b0 = toNumbers(bias), w0 = toNumbers(weight);
    const std = (c: number): number => Math.sqrt((v[c] ?? 0) + Math.fround(norm.epsilon));
    const per = weight.data.length / 128;
    const wf = Float32Array.from(w0, (x, i) => (x * (g[Math.floor(i / per)] ?? 0)) / std(Math.floor(i / per)));
    const bf = Float32Array.from(b0, (x, c) => ((x - (m[c] ?? 0)) * (g[c] ?? 0)) / std(c) + (beta[c] ?? 0));
    expect(w?.constant && difference(w.constant, float(weight.dims, wf))).toBeLessThan(2e-7);
    expect(b?.constant && difference(b.constant, float([128], bf))).toBeLessThan(2e-7);
  });

  it("prints the article's lines", () => {
    write("conv_bn_relu.onnx", convBnRelu("conv").spec);
    expect(place.run("atc --model=conv_bn_relu.onnx \\\n    --framework=5 \\\n    --output=conv_bn_relu \\\n    --enable_fusion=true").code).toBe(0);
    expect(existsSync(join(place.folder, "conv_bn_relu.om"))).toBe(true);
    const { stdout } = place.run("atc --model=conv_bn_relu.onnx \\\n    --framework=5 \\\n    --output=conv_bn_relu \\\n    --log=info 2>&1 | grep -i fusion");
    expect(stdout).toContain("[GE] Fusion: Conv + BatchNorm + ReLU -> ConvBNReLU\n");
    const all = place.run("atc --model=conv_bn_relu.onnx --framework=5 --output=conv_bn_relu --log=info 2>&1").stdout;
    expect(all).toContain("[GE] Fused 3 nodes into 1\n");
  });
});

describe("三 MatMul + Add + ReLU", () => {
  it("is found by data flow", async () => {
    await expectFused(linearRelu("matmul"), "MatMulAddRelu");
    await expectFused(linearRelu("gemm"), "GemmRelu");
  });
  it("compiles by the article's command", () => {
    write("linear_relu.onnx", linearRelu("matmul"));
    const { code, stdout } = place.run("atc --model=linear_relu.onnx \\\n    --framework=5 \\\n    --output=linear_relu \\\n    --enable_fusion=true --log=info");
    expect(code).toBe(0);
    expect(stdout).toContain("[GE] Fusion: MatMul + Add + ReLU -> MatMulAddRelu");
  });
  it("is not fooled by neighbours in the list that are not connected", async () => {
    const spec: ModelSpec = { opset: 13, inputs: { x: { dtype: "float32", dims: [4, 8] }, z: { dtype: "float32", dims: [4, 6] } }, outputs: { y: { dtype: "float32", dims: [4, 6] }, r: { dtype: "float32", dims: [4, 6] } }, initializers: { w: randomTensor([8, 6], randomFrom(1)) },
      nodes: [{ type: "MatMul", inputs: ["x", "w"], outputs: ["y"] }, { type: "Relu", inputs: ["z"], outputs: ["r"] }] };
    const { report } = await outputs(spec);
    expect(firedRegions(report)).toEqual([]);
    expect(report.nodes.compiled).toBe(2);
  });
});

describe("四 FlashAttention", () => {
  const cases = (["BNSD", "BSND"] as const).flatMap((layout) => [true, false].flatMap((scale) => [true, false].map((mask) => [layout, scale, mask] as const)));
  it.each(cases)("%s, scale %s, mask %s", async (layout, scale, mask) => {
    await expectFused(attention(layout, scale, mask), "FlashAttention");
  });
  it("says what it found, with the block size", () => {
    write("bert.onnx", attention("BNSD", true, true));
    const { stdout } = place.run("atc --model=bert.onnx \\\n    --framework=5 \\\n    --output=bert \\\n    --enable_fusion=true \\\n    --log=info 2>&1 | grep -i attention");
    expect(stdout).toContain("[GE] Detected Attention pattern: MatMul + Softmax + MatMul\n");
    expect(stdout).toContain("[GE] Fusion: Apply FlashAttention\n");
    expect(stdout).toMatch(/\[GE\] FlashAttention block size: \d+x\d+\n/);
  });
  it("can be called by itself, in both layouts", async () => {
    for (const layout of ["BNSD", "BSND"] as const) {
      const spec = attention(layout, true, false);
      const feeds = feedsOf(spec);
      const give = (name: string): RuntimeTensor => new RuntimeTensor("float32", (feeds[name] as Tensor).data, (feeds[name] as Tensor).dims);
      const result = await flashAttention({ query: give("q"), key: give("k"), value: give("v"), headNum: 4, inputLayout: layout });
      expect(difference(asTensor(result as never), reference(spec, feeds)["y"] as Tensor)).toBeLessThan(1e-5);
    }
  });
});

describe("五 element-wise chains", () => {
  it.each([["add-mul-relu"], ["mul-add-relu"], ["twelve"]] as const)("%s becomes one call", async (form) => {
    await expectFused(chain(form), "FusedElementwise");
  });
  it("saves the graphs before and after", () => {
    write("chain.onnx", chain("mul-add-relu"));
    expect(place.run("atc --model=chain.onnx --framework=5 --output=chain", { GE_GRAPH_SAVE_PATH: "./graph" }).code).toBe(0);
    const saved = readdirSync(join(place.folder, "graph")).sort();
    const nodes = (part: string): number => {
      const file = saved.find((f) => f.includes(part) && f.endsWith(".onnx"));
      return readModel(readFileSync(join(place.folder, "graph", file ?? "missing")), operators, { inlineFunctions: false } as never).graph.nodes.length;
    };
    expect(nodes("before")).toBe(3);
    expect(saved.some((f) => f.includes("after") && f.endsWith(".onnx"))).toBe(true);
  });
});

describe("六 switches and custom rules", () => {
  const three = (report: Awaited<ReturnType<typeof compile>>["report"]): void => { expect(firedRegions(report)).toEqual([]); expect(report.nodes.compiled).toBe(3); };
  it("turns everything off", async () => {
    three((await outputs(convBnRelu("conv").spec, { enableFusion: false })).report);
    write("model.onnx", convBnRelu("conv").spec);
    const { stdout } = place.run("atc --model=model.onnx \\\n    --framework=5 \\\n    --output=model \\\n    --enable_fusion=false --log=info");
    expect(stdout).toContain("[GE] After optimization: 3 nodes");
  });
  it("turns one kind off by environment, and touches no other site", () => {
    write("model.onnx", convBnRelu("conv").spec);
    const off = place.run("atc --model=model.onnx --framework=5 --output=model --log=info", { GE_DISABLE_CONV_BN_RELU_FUSION: "1", GE_DISABLE_FLASH_ATTENTION_FUSION: "1" });
    expect(off.stdout).toContain("[GE] After optimization: 3 nodes");
    write("other.onnx", linearRelu("matmul"));
    expect(place.run("atc --model=other.onnx --framework=5 --output=other --log=info", { GE_DISABLE_CONV_BN_RELU_FUSION: "1" }).stdout).toContain("[GE] After optimization: 1 nodes");
  });
  it.each([["json", '{"Switch":{"GraphFusion":{"ConvBatchnormFusionPass":"off"},"UBFusion":{"ConvBNReLU":"off"}}}'], ["text", "ConvBNReLU:off\n"]])("turns one kind off by switch file (%s)", (form, text) => {
    write("model.onnx", convBnRelu("conv").spec);
    writeFileSync(join(place.folder, `switch-${form}.cfg`), text);
    const { code, stdout, stderr } = place.run(`atc --model=model.onnx --framework=5 --output=model --log=info --fusion_switch_file=switch-${form}.cfg`);
    expect(stderr + String(code)).toBe("0");
    expect(stdout).not.toContain("-> ConvBNReLU");
  });
  it("takes the article's fusion_rules, and refuses one whose condition fails", () => {
    const article = { conv_bn_relu: { pattern: ["Conv", "BatchNormalization", "Relu"], output_op: "ConvBNReLU", conditions: { bn_mode: "inference" } }, matmul_relu: { pattern: ["MatMul", "Relu"], output_op: "MatMulReLU", conditions: {} } };
    writeFileSync(join(place.folder, "fusion_rules.json"), JSON.stringify(article));
    write("model.onnx", convBnRelu("conv").spec);
    expect(place.run("atc --model=model.onnx --framework=5 --output=model --log=info --fusion_rules=fusion_rules.json").stdout).toContain("[GE] Fused 3 nodes into 1");
    const linear = linearRelu("matmul");
    write("mm.onnx", { ...linear, initializers: { w: linear.initializers["w"] as Tensor }, nodes: [{ type: "MatMul", name: "matmul", inputs: ["x", "w"], outputs: ["a"] }, { type: "Relu", name: "relu", inputs: ["a"], outputs: ["y"] }] });
    expect(place.run("atc --model=mm.onnx --framework=5 --output=mm --log=info --fusion_rules=fusion_rules.json").stdout).toContain("-> MatMulReLU");
    writeFileSync(join(place.folder, "training.json"), JSON.stringify({ conv_bn_relu: { ...article.conv_bn_relu, conditions: { bn_mode: "training" } } }));
    const explained = place.run("onnxfuse explain model.onnx --fusion-rules training.json").stdout;
    expect(explained).toContain("conv_bn_relu");
    expect(explained).toContain("bn_mode");
  });
});

describe("七 the effect", () => {
  it.skipIf(!dataFolder)("sums ResNet-50's statistics exactly and times fused against unfused", async () => {
    const model = readFileSync(join(dataFolder as string, "models", "light-resnet50.onnx"));
    writeFileSync(join(place.folder, "resnet50.onnx"), model);
    const { stdout } = place.run("atc --model=resnet50.onnx \\\n    --framework=5 \\\n    --output=resnet50 \\\n    --log=info 2>&1 | grep -E \"nodes|Fused\"");
    const original = Number(/Original graph: (\d+) nodes/.exec(stdout)?.[1]), after = Number(/After optimization: (\d+) nodes/.exec(stdout)?.[1]), fused = Number(/Fused (\d+) nodes\n/.exec(stdout)?.[1]);
    expect(original).toBe(415);
    expect(original - after).toBe(fused);
    const { report } = await compile(model, {});
    const { details, eliminated, folded, added } = report.counts;
    expect(details.reduce((n, d) => n + d.nodesSaved, 0) + eliminated + folded - added).toBe(fused);
    place.run("atc --model=resnet50.onnx --framework=5 --output=unfused --enable_fusion=false");
    const bench = place.run("onnxfuse bench unfused.om resnet50.om --iterations 3 --warmup 1 --json");
    expect(bench.code, bench.stderr).toBe(0);
    const rows = JSON.parse(bench.stdout) as { artifacts: { median: number }[] };
    expect(rows.artifacts).toHaveLength(2);
    const [a, b] = rows.artifacts;
    console.log(`ResNet-50: ${((100 * fused) / original).toFixed(1)} % fewer nodes (the article: 30-50 %), ${(100 * ((a?.median ?? 0) / (b?.median ?? 1) - 1)).toFixed(1)} % faster (the article: 20-40 %)`);
  });
});

describe("八 why a fusion did not happen", () => {
  const explain = (name: string, spec: ModelSpec): string => { write(name, spec); const done = place.run(`onnxfuse explain ${name}`); expect(done.code, done.stderr).toBe(0); return done.stdout; };
  const c = convBnRelu("conv1d").spec;

  it("BN in training mode", () => {
    const spec = { ...c, opset: 15, nodes: c.nodes.map((n) => (n.type === "BatchNormalization" ? { ...n, attributes: { ...n.attributes, training_mode: 1 } } : n)) };
    const text = explain("training.onnx", spec);
    expect(text).toContain("batch-norm-training");
    expect(text).toContain("bn");
    expect(text).toMatch(/inference|eval/);
  });
  it("an intermediate with a second consumer, as graph output, or captured by a subgraph", () => {
    const second = { ...c, outputs: { ...c.outputs, side: { dtype: "float32" as const, dims: [1, 128, 56] } }, nodes: [...c.nodes, { type: "Sigmoid", name: "other_op", inputs: ["c"], outputs: ["side"] }] };
    expect(explain("second.onnx", second)).toMatch(/interior-value-used[\s\S]*other_op/);
    const output = { ...c, outputs: { ...c.outputs, c: { dtype: "float32" as const, dims: [1, 128, 56] } } };
    expect(explain("output.onnx", output)).toContain("graph-output");
    const branch = (type: string): ModelSpec => ({ opset: 11, inputs: {}, outputs: { [`${type}_out`]: { dtype: "float32", dims: [1, 128, 56] } }, initializers: {}, nodes: [{ type, name: `${type}_inside`, inputs: ["c"], outputs: [`${type}_out`] }] });
    const captured: ModelSpec = { ...c, inputs: { ...c.inputs, flag: { dtype: "bool", dims: [] } }, outputs: { ...c.outputs, picked: { dtype: "float32", dims: [1, 128, 56] } }, nodes: [...c.nodes, { type: "If", name: "choice", inputs: ["flag"], outputs: ["picked"], attributes: { then_branch: branch("Abs"), else_branch: branch("Neg") } }] };
    expect(explain("captured.onnx", captured)).toMatch(/captured-by-subgraph|interior-value-used/);
  });
  it("a precision mismatch", () => {
    const h = halves(128);
    const fill = (bits: number): Tensor => ({ dtype: "float16", dims: [128], data: new Uint16Array(128).fill(bits) });
    const type = { dtype: "float16" as const, dims: [1, 64, 8, 8] }, out = { dtype: "float16" as const, dims: [1, 128, 8, 8] };
    const spec: ModelSpec = { ...convBnRelu("conv", 1, false).spec, inputs: { x: type }, outputs: { y: out }, initializers: { ...h, w: { dtype: "float16", dims: [128, 64, 3, 3], data: new Uint16Array(128 * 64 * 9).fill(0x7000) }, gamma: fill(0x7000), variance: fill(0x0010), beta: fill(0), mean: fill(0) } };
    expect(explain("precision.onnx", spec)).toMatch(/precision-loss/);
  });
  it("names its three conditions by code: data flow, side effects, precision", () => {
    const random = { ...c, nodes: [c.nodes[0], { type: "RandomNormalLike", name: "noise", inputs: ["c"], outputs: ["r"] }, { type: "BatchNormalization", name: "bn", inputs: ["r", "gamma", "beta", "mean", "variance"], outputs: ["n"] }, c.nodes[2]] } as ModelSpec;
    expect(explain("random.onnx", random)).toContain("non-deterministic-between");
    const dropout: ModelSpec = { ...c, opset: 13, initializers: { ...c.initializers, ratio: scalar(0.5), training: { dtype: "bool", dims: [], data: Uint8Array.of(1) } },
      nodes: [c.nodes[0], { type: "Dropout", name: "dropout", inputs: ["c", "ratio", "training"], outputs: ["d"] }, { type: "BatchNormalization", name: "bn", inputs: ["d", "gamma", "beta", "mean", "variance"], outputs: ["n"] }, c.nodes[2]] as ModelSpec["nodes"] };
    expect(explain("dropout.onnx", dropout)).toMatch(/non-deterministic-between|side-effect-between/);
    const sequence: ModelSpec = { ...c, opset: 13, inputs: { ...c.inputs, z: { dtype: "float32", dims: [1, 128, 56] } }, initializers: { ...c.initializers, at: { dtype: "int64", dims: [], data: BigInt64Array.of(0n) }, one: int64([1]) },
      nodes: [c.nodes[0], { type: "SequenceConstruct", name: "start", inputs: ["z"], outputs: ["seq0"] }, { type: "SequenceInsert", name: "insert", inputs: ["seq0", "c"], outputs: ["seq"] }, { type: "SequenceAt", name: "at0", inputs: ["seq", "one_scalar"], outputs: ["d"] }, { type: "BatchNormalization", name: "bn", inputs: ["d", "gamma", "beta", "mean", "variance"], outputs: ["n"] }, c.nodes[2]] as ModelSpec["nodes"] };
    const withIndex: ModelSpec = { ...sequence, initializers: { ...sequence.initializers, one_scalar: { dtype: "int64", dims: [], data: BigInt64Array.of(1n) } } };
    expect(explain("sequence.onnx", withIndex)).toContain("side-effect-between");
  });
});
