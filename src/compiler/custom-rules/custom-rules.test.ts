import { describe, expect, it } from "vitest";
import { modelBytes, type ModelSpec } from "../../../test/support/model-spec.ts";
import { DiagnosticError } from "../../core/diagnostic.ts";
import { compileModel } from "../compile.ts";
import { decodeModel } from "../../onnx/decode.ts";
import { proveCustomRules } from "../../verify/prove-rule.ts";
import { readCustomRules } from "./custom-rules.ts";
import { optimiseModel } from "../optimise.ts";

const codesOf = (run: () => unknown): string[] => {
  try { run(); } catch (e) { if (e instanceof DiagnosticError) return e.diagnostics.map((d) => d.code); throw e; }
  return [];
};

describe("the linear form", () => {
  it("reads the article's rules", () => {
    const article = { conv_bn_relu: { pattern: ["Conv", "BatchNormalization", "Relu"], output_op: "ConvBNReLU", conditions: { bn_mode: "inference" } }, matmul_relu: { pattern: ["MatMul", "Relu"], output_op: "MatMulReLU", conditions: {} } };
    expect(readCustomRules(JSON.stringify(article))).toEqual(readCustomRules(article));
    expect(readCustomRules(article).map((r) => r.name)).toEqual(["conv_bn_relu", "matmul_relu"]);
  });
  it("reports all that is wrong, with line, field and fix", () => {
    const text = '{\n  "good": {"pattern": ["Conv", "Relu"], "output_op": "X"},\n  "bad": {"pattern": ["Conv"], "output_op": "X y", "conditons": {}},\n  "worse": {"pattern": ["A", "B"], "output_op": "Y", "conditions": {"bn_mod": "inference", "dtype": "float33"}}\n}';
    const problems = ((): readonly { code: string; message: string; place?: unknown; hint?: string }[] => {
      try { readCustomRules(text, "rules.json"); } catch (e) { if (e instanceof DiagnosticError) return e.diagnostics; }
      return [];
    })();
    expect(problems.map((p) => p.code)).toEqual(["OF4022", "OF4021", "OF4021", "OF4022", "OF4021"]);
    expect(problems[0]).toMatchObject({ place: { file: "rules.json", line: 3, field: "bad.conditons" }, hint: "did you mean 'conditions'?" });
    expect(problems[3]).toMatchObject({ place: { line: 4, field: "worse.conditions.bn_mod" }, hint: "did you mean 'bn_mode'?" });
    expect(codesOf(() => readCustomRules("{"))).toEqual(["OF4020"]);
    expect(codesOf(() => readCustomRules("3"))).toEqual(["OF4021"]);
  });
});

/** Square + ReduceSum in GE's own words, here Mul(x, x) + ReduceSum → ReduceSumSquare. */
const squareSum = (fusion: string): unknown => ({
  RuleName: "SquareSum", OuterInputs: [{ name: "In0" }, { name: "Axes" }], OuterOutputs: [{ name: "Out0" }],
  OriginGraph: {
    Nodes: [{ name: "Square0", type: ["Mul"] }, { name: "Sum0", type: ["ReduceSum"] }],
    Edges: [{ src: "In0", dst: "Square0:0" }, { src: "In0", dst: "Square0:1" }, { src: "Square0:0", dst: "Sum0:0" }, { src: "Axes", dst: "Sum0:1" }, { src: "Sum0:0", dst: "Out0" }],
  },
  FusionGraph: {
    Nodes: [{ name: "New", type: [fusion] }],
    Edges: [{ src: "In0", dst: "New:0" }, { src: "Axes", dst: "New:1" }, { src: "New:0", dst: "Out0" }],
    Attrs: [{ attr: "New.keepdims", value: "Sum0.keepdims", expr: "=" }],
  },
});
const model: ModelSpec = {
  opset: 18, inputs: { x: { dtype: "float32", dims: [2, 3] } }, outputs: { y: { dtype: "float32", dims: [2] } },
  initializers: { axes: { dtype: "int64", dims: [1], data: BigInt64Array.of(1n) } },
  nodes: [{ type: "Mul", name: "square", inputs: ["x", "x"], outputs: ["s"] }, { type: "ReduceSum", name: "sum", inputs: ["s", "axes"], outputs: ["y"], attributes: { keepdims: 0 } }],
};
const siteOf = (fusion: string) => compileModel(modelBytes(model), { customRules: [squareSum(fusion)] }).report.sites.find((s) => s.name === "SquareSum");

describe("GE's graph form", () => {
  it("rewrites, carrying attributes over", () => {
    expect(siteOf("ReduceSumSquare")).toMatchObject({ outcome: "fired", nodes: ["square", "sum"], nodesSaved: 1 });
  });
  it("refuses a replacement that computes something else", () => {
    expect(siteOf("ReduceL2")).toMatchObject({ outcome: "refused", code: "not-equal" });
  });
  it("says what is wrong", () => {
    expect(codesOf(() => siteOf("ReduceSumSqare"))).toEqual(["OF4022"]);
    expect(codesOf(() => readCustomRules({ RuleName: "R", OuterInputs: [], OuterOutputs: [{ name: "O" }], OriginGraph: { Nodes: [{ name: "A", type: "Relu" }], Edges: [{ src: "B", dst: "A" }] } }))).toEqual(["OF4022", "OF4021", "OF4021"]);
    expect(codesOf(() => compileModel(modelBytes(model), { customRules: [{ ...(squareSum("ReduceSumSquare") as object), OuterOutputs: [] }] }))).toEqual(["OF4021", "OF4022", "OF4022"]);
  });
});

describe("conditions", () => {
  const withConditions = (...list: unknown[]): unknown => ({ ...(squareSum("ReduceSumSquare") as object), Conditions: list });
  const outcome = (...list: unknown[]): string => {
    const site = compileModel(modelBytes(model), { customRules: [withConditions(...list)] }).report.sites.find((s) => s.name === "SquareSum");
    return site?.outcome === "fired" ? "fired" : `${site?.code}: ${site?.reason}`;
  };
  it("let a rule fire where all hold", () => {
    expect(outcome({ attr: "Sum0.keepdims", in: [0, 1] }, { value: "In0", dtype: ["float32", "float16"], rank: { min: 2, max: 3 }, dims: { "-1": { multipleOf: 3 }, 0: 2 } }, { value: "Axes", constant: true })).toBe("fired");
  });
  it.each([
    [{ attr: "Sum0.keepdims", equals: 1 }, "keepdims of ReduceSum 'sum' is 0, wanted 1"],
    [{ attr: "Sum0.keepdims", min: 1, max: 2 }, "keepdims of ReduceSum 'sum' is 0, wanted at least 1 and at most 2"],
    [{ attr: "Sum0.axis", equals: 1 }, "axis of ReduceSum 'sum' is not given, wanted 1"],
    [{ value: "In0", dtype: "float16" }, "'x' is float32, wanted float16"],
    [{ value: "In0", rank: 4 }, "'x' has rank 2, wanted 4"],
    [{ value: "In0", dims: { 1: { multipleOf: 8 } } }, "'x' has the size 3 on axis 1, wanted a multiple of 8"],
    [{ value: "In0", dims: { 2: 1 } }, "'x' of rank 2 has no axis 2"],
    [{ value: "Square0", dims: { 0: { in: [3, 4] } } }, "'s' has the size 2 on axis 0, wanted one of 3, 4"],
    [{ value: "In0", constant: true }, "'x' is not a constant"],
  ])("refuse with the values they found: %j", (condition, reason) => {
    expect(outcome(condition)).toBe(`condition-failed: ${reason}`);
  });
  it("of sizes that are not known hold only where they hold for every size", () => {
    const open = { ...model, inputs: { x: { dtype: "float32" as const, dims: ["n", 3] } }, outputs: { y: { dtype: "float32" as const, dims: ["n"] } } };
    const codes = (test: object): string | undefined => compileModel(modelBytes(open), { customRules: [withConditions({ value: "In0", dims: { 0: test } })] }).report.sites.find((s) => s.name === "SquareSum")?.code;
    expect([codes({ equals: 2 }), codes({ multipleOf: 1 })]).toEqual(["condition-failed", undefined]);
  });
  it("are checked when they are read", () => {
    const wrong = [{ attr: "Summ0.keepdims", equals: 1 }, { attr: "Sum0.keepdims" }, { value: "In9", rank: 1 }, { value: "In0", rnk: 1, rank: 1 }, { value: "In0", dims: { x: 1 } }, { value: "In0", dtype: "float33" }, { value: "In0" }, {}, { value: "In0", rank: { multipleOf: 0 } }];
    expect(wrong.map((c) => codesOf(() => readCustomRules(withConditions(c))))).toEqual([["OF4022"], ["OF4021"], ["OF4022"], ["OF4022"], ["OF4021"], ["OF4022"], ["OF4021"], ["OF4021"], ["OF4021"]]);
    expect(codesOf(() => readCustomRules(withConditions()))).toEqual([]);
  });
  it("hold in chains too, whose nodes are named by their types", () => {
    const chain = (where: unknown): unknown => ({ square_sum: { pattern: ["Mul", "ReduceSum"], output_op: "SquareSum", conditions: { where } } });
    const code = (where: unknown): string | undefined => compileModel(modelBytes(model), { customRules: chain(where) }).report.sites.find((s) => s.name === "square_sum")?.code;
    expect([code([{ attr: "ReduceSum.keepdims", equals: 0 }]), code([{ attr: "ReduceSum.keepdims", equals: 1 }]), code([{ value: "input", rank: 3 }])]).toEqual([undefined, "condition-failed", "condition-failed"]);
  });
});

describe("an output op", () => {
  const { FusionGraph: _, ...rest } = squareSum("ReduceSumSquare") as { FusionGraph: unknown };
  it("names the kernel of the graph, and the function in emitted ONNX", () => {
    const rule = { ...rest, OutputOp: "SquareSum" };
    const { report } = compileModel(modelBytes(model), { customRules: rule });
    expect(report.traffic.map((t) => [t.region, t.nodes])).toEqual([["SquareSum", ["square", "sum"]]]);
    const emitted = decodeModel(optimiseModel(modelBytes(model), { customRules: rule }).model);
    expect(emitted.functions.map((f) => f.name)).toEqual(["SquareSum_0"]);
    expect(emitted.graph?.node.map((n) => [n.domain, n.opType])).toEqual([["onnxfuse", "SquareSum_0"]]);
  });
  it("is said why where it is no kernel", () => {
    const site = compileModel(modelBytes({ ...model, outputs: { ...model.outputs, s: { dtype: "float32", dims: [2, 3] } } }), { customRules: { ...rest, OutputOp: "SquareSum" } }).report.sites.find((s) => s.name === "SquareSum" && s.kind === "rule");
    expect(site).toMatchObject({ outcome: "refused", code: "graph-output" });
  });
  it("excludes a FusionGraph", () => {
    expect(codesOf(() => readCustomRules({ ...(squareSum("ReduceSumSquare") as object), OutputOp: "X" }))).toEqual(["OF4021"]);
  });
});

describe("constants and literal attributes", () => {
  it("stand in both graphs", async () => {
    const scalar = (x: number) => ({ dtype: "float32" as const, dims: [], data: Float32Array.of(x) });
    const vector = { dtype: "float32" as const, dims: [2] };
    const doubled: ModelSpec = { opset: 18, inputs: { x: vector }, outputs: { y: vector }, initializers: { one: scalar(1), two: scalar(2) }, nodes: [{ type: "Add", name: "add", inputs: ["x", "one"], outputs: ["h"] }, { type: "Mul", name: "mul", inputs: ["h", "two"], outputs: ["y"] }] };
    const rule = (added: number): unknown => ({
      RuleName: "Spread", OuterInputs: [{ name: "X" }], OuterOutputs: [{ name: "Y" }],
      OriginGraph: { Nodes: [{ name: "A", type: "Add" }, { name: "M", type: "Mul" }], Constants: [{ name: "One", value: 1 }, { name: "Two", value: 2 }], Edges: [{ src: "X", dst: "A:0" }, { src: "One", dst: "A:1" }, { src: "A", dst: "M:0" }, { src: "Two", dst: "M:1" }, { src: "M", dst: "Y" }] },
      FusionGraph: { Nodes: [{ name: "M", type: "Mul" }, { name: "A", type: "Add" }], Constants: [{ name: "Two", value: 2 }, { name: "More", value: added }], Edges: [{ src: "X", dst: "M:0" }, { src: "Two", dst: "M:1" }, { src: "M", dst: "A:0" }, { src: "More", dst: "A:1" }, { src: "A", dst: "Y" }] },
    });
    const site = (added: number) => compileModel(modelBytes(doubled), { customRules: rule(added) }).report.sites.find((s) => s.name === "Spread");
    expect([site(2)?.outcome, site(3)?.code]).toEqual(["fired", "not-equal"]);
    expect((await proveCustomRules(rule(2)))[0]).toMatchObject({ outcome: "proved" });
    expect((await proveCustomRules(rule(3)))[0]).toMatchObject({ outcome: "wrong" });
  });
  it("say attributes of the replacement", () => {
    const rule = { ...(squareSum("ReduceSumSquare") as object), Attrs: [{ attr: "New.keepdims", literal: 0 }] };
    expect(compileModel(modelBytes(model), { customRules: rule }).report.sites.find((s) => s.name === "SquareSum")?.outcome).toBe("fired");
  });
});
