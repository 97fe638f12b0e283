import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { convBnRelu } from "../../test/support/article-models.ts";
import { commandLines } from "../../test/support/command-line.ts";
import type { ModelSpec } from "../../test/support/model-spec.ts";
import type { Report } from "../api/index.ts";
import { readArtifact } from "../artifact/artifact.ts";
import { sizeOf, tensor, type Tensor } from "../core/tensor.ts";

const { runAtc, run, write } = commandLines();
const report = (file = "m.om"): Report => readArtifact(readFileSync(file)).report() as Report;
const compiled = async (options: string, environment: Record<string, string> = {}): Promise<number> => {
  expect(await runAtc(`--model=m.onnx --output=m ${options}`, environment)).toMatchObject({ code: 0, error: "" });
  return report().nodes.compiled;
};
const channels = (dims: readonly number[]): Tensor => tensor("float32", dims, Float32Array.from({ length: sizeOf(dims) }, (_, i) => 0.5 + 0.25 * i));
/** Conv, BatchNormalization, Relu; twice. */
const twoBlocks: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: [1, 2, 4, 4] } }, outputs: { y: { dtype: "float32", dims: [1, 2, 4, 4] } },
  initializers: { w: channels([2, 2, 1, 1]), p: channels([2]) },
  nodes: ["first", "second"].flatMap((block, i) => [
    { type: "Conv", name: `/${block}/conv`, inputs: [i === 0 ? "x" : "z", "w"], outputs: [`c${i}`] },
    { type: "BatchNormalization", name: `/${block}/norm`, inputs: [`c${i}`, "p", "p", "p", "p"], outputs: [`n${i}`] },
    { type: "Relu", name: `/${block}/relu`, inputs: [`n${i}`], outputs: [i === 0 ? "z" : "y"] },
  ]),
};
const softplus: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: [8] } }, outputs: { y: { dtype: "float32", dims: [8] } }, initializers: { one: { dtype: "float32", dims: [], data: Float32Array.of(1) } },
  nodes: [{ type: "Exp", name: "e", inputs: ["x"], outputs: ["a"] }, { type: "Add", name: "p", inputs: ["a", "one"], outputs: ["b"] }, { type: "Log", name: "l", inputs: ["b"], outputs: ["y"] }],
};

describe("fusion switches by precedence", () => {
  it("inline beats the level, the level beats file and environment", async () => {
    write("m.onnx", convBnRelu("conv").spec);
    writeFileSync("off.cfg", "ConvBatchnormFusionPass:off\nConvBNReLU:off\n");
    writeFileSync("on.cfg", "ALL:on\n");
    expect(await compiled("")).toBe(1);
    expect(await compiled("--fusion_switch_file=off.cfg")).toBe(3);
    expect(await compiled("--fusion_switch_file=off.cfg --optimization_switch=ConvBatchnormFusionPass:on;ConvBNReLU:on")).toBe(1);
    expect(await compiled("--optimization_switch=ConvBNReLU:off")).toBe(3);
    expect(await compiled("--fusion_switch_file=on.cfg --oo_level=O1")).toBe(3);
    expect(await compiled("--oo_level=O3")).toBe(1);
    expect(await compiled("--oo_level=O1 --optimization_switch=ALL:on")).toBe(1);
    expect(await compiled("", { GE_DISABLE_CONV_BN_RELU_FUSION: "1" })).toBe(3);
    expect(await compiled("--optimization_switch=CONV_BN_RELU:on", { GE_DISABLE_CONV_BN_RELU_FUSION: "1" })).toBe(1);
  });
  it("says what a switch decided", async () => {
    write("m.onnx", convBnRelu("conv").spec);
    const { out } = await runAtc("--model=m.onnx --output=m --log=info --optimization_switch=ConvBNReLU:off");
    expect(out).toMatch(/\[GE\] Fusion switch ConvBNReLU:off decided 1 sites/);
    expect(report().switches).toEqual([{ name: "ConvBNReLU", on: false, sites: [expect.any(String)] }]);
    expect((await runAtc("--model=m.onnx --output=m --log=info --optimization_switch=MatMulAddRelu:off")).out).toMatch(/OF4012.*'MatMulAddRelu' concerns nothing/);
  });
  it("warns of passes that only GE has, and refuses names that nobody has", async () => {
    write("m.onnx", convBnRelu("conv").spec);
    const foreign = await runAtc("--model=m.onnx --output=m --log=warning --optimization_switch=TbeConvRequant:off");
    expect(foreign.code).toBe(0);
    expect(foreign.out).toMatch(/OF4015.*'TbeConvRequant' has no counterpart/);
    expect(foreign.out).not.toMatch(/OF4012/);
    expect((await runAtc("--model=m.onnx --output=m --optimization_switch=ConvBatchnromFusionPass:off")).error).toMatch(/OF4011.*did you mean 'ConvBatchnormFusionPass'/);
    expect((await run("compile m.onnx --disable fold-batch-nrom-into-conv")).error).toMatch(/OF4011.*did you mean 'fold-batch-norm-into-conv'/);
    expect((await runAtc("--model=m.onnx --output=m --optimization_switch=ConvBNReLU=off")).error).toMatch(/OF4010/);
    expect((await runAtc("--model=m.onnx --output=m --optimization_switch=A:on;A:off")).error).toMatch(/OF4010.*twice/);
  });
  it("obeys what is said for some nodes only, by name or pattern", async () => {
    write("m.onnx", twoBlocks);
    const kinds = (): string[] => report().traffic.map((t) => t.nodes.join("+"));
    expect(await compiled("")).toBe(2);
    expect(await compiled("--optimization_switch=ConvBNReLU@/first/*:off")).toBe(4);
    expect(kinds()).toEqual(["/first/conv", "/first/norm", "/first/relu", "/second/conv+/second/norm+/second/relu"]);
    expect(await compiled("--optimization_switch=ALL@*/relu:off")).toBe(4);
    expect(kinds()).toEqual(["/first/conv+/first/norm", "/first/relu", "/second/conv+/second/norm", "/second/relu"]);
    expect(await compiled("--optimization_switch=fold-batch-norm-into-conv@/second/norm:off;ALL@/first/conv:off")).toBe(3);
    expect(kinds().slice(0, 2)).toEqual(["/first/conv", "/first/norm+/first/relu"]);
    expect(report().sites).toContainEqual(expect.objectContaining({ kind: "rule", name: "fold-batch-norm-into-conv", at: "/second/norm", code: "switched-off" }));
    expect(await compiled("--oo_level=O1 --optimization_switch=ALL@/second/*:on")).toBe(4);
    writeFileSync("nodes.cfg", "ALL@/first/*:off\n");
    expect(await compiled("--fusion_switch_file=nodes.cfg")).toBe(4);
    expect((await runAtc("--model=m.onnx --output=m --log=info --optimization_switch=ALL@/third/*:off")).out).toMatch(/OF4012.*'ALL@\/third\/\*' concerns nothing/);
    expect((await runAtc("--model=m.onnx --output=m --optimization_switch=ConvBatchnromFusionPass@x:off")).error).toMatch(/OF4011.*did you mean 'ConvBatchnormFusionPass'/);
    expect(await run("compile m.onnx --output m.om --disable ALL@*/relu")).toMatchObject({ code: 0, error: "" });
    expect(report().nodes.compiled).toBe(4);
  });
  it("fires one rule alone, and as many rewrites as are allowed", async () => {
    write("m.onnx", convBnRelu("conv").spec);
    const rules = (): string[] => report().sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => s.name);
    await compiled("--only_rule=fold-batch-norm-into-conv");
    expect(rules()).toEqual(["fold-batch-norm-into-conv"]);
    await compiled("--only_rule=pad-into-conv");
    expect(rules()).toEqual([]);
    await compiled("--max_rewrites=0");
    expect(rules()).toEqual([]);
    expect((await runAtc("--model=m.onnx --output=m --max_rewrites=few")).error).toMatch(/OF1002/);
    expect((await runAtc("--model=m.onnx --output=m --only_rule=pad-into-cnov")).error).toMatch(/OF4011.*pad-into-conv/);
  });
});

describe("the budget of numerics", () => {
  it("refuses approximations unless they are allowed, all or by name, and names those that fired", async () => {
    write("m.onnx", softplus);
    const approximated = async (options: string): Promise<unknown> => { await compiled(options); return report().approximations; };
    const fired = [{ rule: "recognise-softplus", times: 1 }];
    expect(await approximated("")).toEqual([]);
    expect(await approximated("--precision_mode=must_keep_origin_dtype")).toEqual([]);
    expect(await approximated("--allow_approximate")).toEqual(fired);
    expect(await approximated("--allow_approximate=recognise-softplus")).toEqual(fired);
    expect((await runAtc("--model=m.onnx --output=m --log=info --allow_approximate=true")).out).toMatch(/Approximation: recognise-softplus, 1 times/);
    expect((await run("compile m.onnx --approximate recognise-softplus")).out).toMatch(/Approximation: recognise-softplus/);
    expect((await runAtc("--model=m.onnx --output=m --allow_approximate=pad-into-conv")).error).toMatch(/OF4014.*'pad-into-conv'/);
    expect((await runAtc("--model=m.onnx --output=m --allow_approximate --precision_mode=must_keep_origin_dtype")).error).toMatch(/OF4014.*forbids/);
    expect((await runAtc("--model=m.onnx --output=m --precision_mode=force_fp16")).error).toMatch(/OF1002/);
  });
});
