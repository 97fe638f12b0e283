import { describe, expect, it } from "vitest";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { compileModel } from "./compile.ts";
import { readCustomRules } from "./custom-rules.ts";

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
    expect(codesOf(() => compileModel(modelBytes(model), { customRules: [{ ...(squareSum("ReduceSumSquare") as object), OuterOutputs: [] }] }))).toEqual(["OF4022", "OF4022"]);
  });
});
