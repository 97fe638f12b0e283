import { describe, expect, it } from "vitest";
import { convBnRelu } from "../../test/support/article-models.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "../../test/support/model-spec.ts";
import { compileModel } from "../compiler/compile.ts";
import { fromNumbers, tensor } from "../core/tensor.ts";
import { load, Tensor } from "../runtime/index.ts";
import { generateTensor, inputKinds } from "./inputs.ts";
import { differenceOf, isWithin } from "./metrics.ts";
import { compileVerified } from "./verify.ts";

const x = { dtype: "float32" as const, dims: ["N", 8] };
const twice: ModelSpec = {
  opset: 13, inputs: { x }, outputs: { y: x }, initializers: {},
  nodes: [
    { type: "Exp", name: "exp0", inputs: ["x"], outputs: ["a"] }, { type: "Log", name: "log0", inputs: ["a"], outputs: ["b"] },
    { type: "Sigmoid", name: "middle", inputs: ["b"], outputs: ["c"] },
    { type: "Exp", name: "exp1", inputs: ["c"], outputs: ["d"] }, { type: "Log", name: "log1", inputs: ["d"], outputs: ["y"] },
  ],
};
/** log(exp(x)) → asin(sin(x)): right within ±π/2 only, so right at the second place and wrong at the first. */
const wrongBeyondPi = {
  RuleName: "LogExp", OuterInputs: [{ name: "In0" }], OuterOutputs: [{ name: "Out0" }],
  OriginGraph: { Nodes: [{ name: "E", type: ["Exp"] }, { name: "L", type: ["Log"] }], Edges: [{ src: "In0", dst: "E" }, { src: "E", dst: "L" }, { src: "L", dst: "Out0" }] },
  FusionGraph: { Nodes: [{ name: "S", type: ["Sin"] }, { name: "A", type: ["Asin"] }], Edges: [{ src: "In0", dst: "S" }, { src: "S", dst: "A" }, { src: "A", dst: "Out0" }] },
};
const fired = (report: ReturnType<typeof compileModel>["report"]): string[] => report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => s.at).sort();

describe("compileVerified", () => {
  it("finds the one rewrite at the one site that changes a result, and drops it", async () => {
    const options = { customRules: [wrongBeyondPi] };
    expect(fired(compileModel(modelBytes(twice), options).report)).toEqual(["log0", "log1"]);
    const { artifact, report, verification } = await compileVerified(modelBytes(twice), options, 30);
    expect(verification.dropped).toMatchObject([{ rule: "LogExp", at: "log0" }]);
    expect(verification.dropped[0]?.difference).toBeGreaterThan(0.01);
    expect(fired(report)).toEqual(["log1"]);
    expect(report.sites.find((s) => s.at === "log0" && s.kind === "rule")).toMatchObject({ outcome: "refused", code: "verification-failed" });
    const session = await load(artifact);
    const { y } = await session.run({ x: new Tensor("float32", Float32Array.of(3, -3, 2, 0, 1, -1, 5, -5), [1, 8]) });
    expect(Number(y?.data[0])).toBeCloseTo(1 / (1 + Math.exp(-3)), 6);
  });
  it("runs every kind of input at two sizes, the first against the reference interpreter, and says what was not run", async () => {
    const { verification } = await compileVerified(modelBytes(twice), {}, 30);
    expect(verification.runs.map((r) => r.inputs)).toEqual([...inputKinds, ...inputKinds]);
    expect(verification.runs[0]?.against).toBe("reference");
    expect(verification.runs[6]?.sizes).not.toEqual(verification.runs[0]?.sizes);
    expect(verification.notRun).toEqual([]);
    const hurried = await compileVerified(modelBytes(twice), {}, 0);
    expect(hurried.verification.runs).toHaveLength(1);
    expect(hurried.verification.notRun).toHaveLength(11);
  });
  it("allows what rounding comes to without any rewrite, where the model magnifies it, up to a bound", async () => {
    const magnified = (by: number): Uint8Array => modelBytes({
      opset: 13, inputs: { x }, outputs: { y: undefined }, initializers: { w: generateTensor("float32", [8, 8], "normal", 3), by: fromNumbers("float32", [], [by]) },
      nodes: [{ type: "MatMul", inputs: ["x", "w"], outputs: ["p"] }, { type: "Mul", inputs: ["p", "by"], outputs: ["q"] }, { type: "Sin", inputs: ["q"], outputs: ["y"] }],
    });
    const { verification } = await compileVerified(magnified(100), {}, 30), worst = Math.max(...verification.runs.map((r) => r.outputs["y"]?.maxScaled ?? 0));
    expect(worst).toBeGreaterThan(1e-5);
    expect(verification.tolerance).toBeGreaterThanOrEqual(worst);
    expect(verification.tolerance).toBeLessThanOrEqual(1e-4);
    await expect(compileVerified(magnified(10_000), {}, 30)).rejects.toThrow(/^OF5201/);
    expect((await compileVerified(magnified(1), {}, 30)).verification.tolerance).toBeLessThan(2e-5);
  });
  it("drops it in every variant of a model that is another graph for other sizes", async () => {
    const i64 = (value: number) => tensor("int64", [1], BigInt64Array.of(BigInt(value)));
    const branch = (node: NodeSpec, initializers = {}): ModelSpec => ({ opset: 13, inputs: {}, outputs: { r: undefined }, initializers, nodes: [node] });
    const model = modelBytes({
      ...twice, inputs: { q: { dtype: "float32", dims: ["a", "b"] } }, outputs: { y: undefined }, initializers: { zero: i64(0), one: i64(1) },
      nodes: [
        { type: "Shape", inputs: ["q"], outputs: ["shape"] }, { type: "Gather", inputs: ["shape", "zero"], outputs: ["size"] }, { type: "Equal", inputs: ["size", "one"], outputs: ["single"] },
        {
          type: "If", name: "choose", inputs: ["single"], outputs: ["x"],
          attributes: { then_branch: branch({ type: "Squeeze", inputs: ["q", "axes"], outputs: ["r"] }, { axes: i64(0) }), else_branch: branch({ type: "Identity", inputs: ["q"], outputs: ["r"] }) },
        },
        ...twice.nodes,
      ],
    });
    const options = { customRules: [wrongBeyondPi] };
    expect(compileModel(model, options).report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => [s.at, s.times]).sort()).toEqual([["log0", 2], ["log1", 2]]);
    const { report, verification } = await compileVerified(model, options, 30);
    expect(verification.dropped).toMatchObject([{ rule: "LogExp", at: "log0" }]);
    expect(fired(report)).toEqual(["log1"]);
  });
  it("passes what is right", async () => {
    const { verification, report } = await compileVerified(modelBytes(convBnRelu("conv1d").spec), {}, 30);
    expect(verification.dropped).toEqual([]);
    expect(report.nodes.compiled).toBe(1);
  });
});

describe("differences", () => {
  const t = (...values: number[]) => fromNumbers("float32", [values.length], values);
  it("are msit's measures", () => {
    expect(differenceOf(t(1, 2), t(1, 2))).toEqual({ cosine: 1, relativeEuclidean: 0, maxAbsolute: 0, maxScaled: 0, unequal: 0, nonFinite: 0 });
    expect(differenceOf(t(3, 4), t(4, 3))).toMatchObject({ cosine: 24 / 25, relativeEuclidean: Math.sqrt(2) / 5, maxAbsolute: 1, maxScaled: 0.25 });
    expect(differenceOf(t(0, 0), t(0, 0))).toMatchObject({ cosine: 1, relativeEuclidean: 0 });
    expect(differenceOf(t(NaN, Infinity), t(NaN, Infinity))).toMatchObject({ nonFinite: 0 });
    expect(differenceOf(t(NaN, 1), t(1, Infinity))).toMatchObject({ nonFinite: 2 });
    expect(differenceOf(t(1), t(1, 2))).toBeUndefined();
  });
  it("of integers are differences in bits", () => {
    const d = differenceOf(fromNumbers("int32", [2], [1, 2]), fromNumbers("int32", [2], [1, 3]));
    expect(d).toMatchObject({ unequal: 1 });
    expect(d && isWithin(d, 1)).toBe(false);
  });
});

describe("generated inputs", () => {
  it("are what their kind says, and the same for the same seed", () => {
    const data = (kind: (typeof inputKinds)[number]): number[] => [...(generateTensor("float32", [200], kind, 1).data as Float32Array)];
    expect(data("negative").every((v) => v <= 0)).toBe(true);
    expect(data("zeros").every((v) => v === 0)).toBe(true);
    expect(data("zeros").some((v) => Object.is(v, -0))).toBe(true);
    expect(Math.max(...data("large"))).toBeGreaterThan(1000);
    expect(data("denormal").every((v) => Math.abs(v) < 1e-38)).toBe(true);
    expect(data("normal")).toEqual(data("normal"));
    expect([...(generateTensor("bool", [50], "normal", 1).data as Uint8Array)].every((v) => v <= 1)).toBe(true);
  });
});
