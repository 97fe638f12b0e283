import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { operator, pattern, ruleKit } from "../api/rules.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import { exact, reassociates, type Numerics, type Rule, type RuleSpec } from "../rewrite/rule.ts";
import { rules } from "../rules/index.ts";
import { disagreement } from "./disagreement.ts";
import { proveCustomRules, proveRules } from "./prove-rule.ts";

/** One operator after another, replaced by a third, in GE's form. */
const graphRule = (name: string, first: string, second: string, by: string, more: object = {}): object => ({
  RuleName: name, OuterInputs: [{ name: "In0" }], OuterOutputs: [{ name: "Out0" }],
  OriginGraph: { Nodes: [{ name: "A", type: first }, { name: "B", type: second }], Edges: [{ src: "In0", dst: "A" }, { src: "A", dst: "B" }, { src: "B", dst: "Out0" }] },
  FusionGraph: { Nodes: [{ name: "N", type: by }], Edges: [{ src: "In0", dst: "N" }, { src: "N", dst: "Out0" }] },
  ...more,
});
const proof = async (rule: object) => (await proveCustomRules(rule))[0];

describe("rules in GE's graph form", () => {
  it("hold where they are right", async () => {
    const p = await proof(graphRule("TwiceRelu", "Relu", "Relu", "Relu"));
    expect(p).toMatchObject({ outcome: "proved" });
    expect(p?.graphs).toBeGreaterThan(5);
    expect(p?.runs).toBeGreaterThan(30);
  });
  it.each([
    ["negative inputs", graphRule("ReluGone", "Relu", "Relu", "Identity"), /normal|negative/],
    ["large inputs", graphRule("LogExp", "Exp", "Log", "Identity"), /large|special/],
    ["infinities", graphRule("AtanTan", "Tanh", "Relu", "Softsign"), /./],
  ])("are refuted by %s", async (_, rule, kind) => {
    const p = await proof(rule);
    expect(p?.outcome).toBe("wrong");
    expect(p?.reason).toMatch(/became/);
    expect(p?.counterExample?.kind).toMatch(kind);
    expect(p?.counterExample?.original).toBeDefined();
    expect(p?.counterExample?.rewritten).not.toEqual(p?.counterExample?.original);
  });
  it("are refuted by attributes that they do not look at, and hold under a condition on them", async () => {
    const softmax = (more: object = {}): object => ({ ...graphRule("LogSoftmax", "Softmax", "Log", "LogSoftmax", more) });
    expect(await proof(softmax())).toMatchObject({ outcome: "wrong", reason: expect.stringMatching(/became/) as string });
  });
  it("see only the shapes that their conditions allow", async () => {
    const flat = graphRule("FlattenOfRank2", "Flatten", "Relu", "Relu", { Conditions: [{ value: "In0", rank: 2 }, { attr: "A.axis", equals: 1 }] });
    expect(await proof(flat)).toMatchObject({ outcome: "proved" });
    expect(await proof(graphRule("FlattenAlways", "Flatten", "Relu", "Relu"))).toMatchObject({ outcome: "wrong" });
  });
  it("say when there is nothing to try", async () => {
    expect(await proof(graphRule("None", "Relu", "Relu", "Relu", { Conditions: [{ value: "In0", rank: 2 }, { value: "A", rank: 3 }] }))).toMatchObject({ outcome: "unproved", graphs: 0 });
  });
});

describe("rules whose result is one kernel", () => {
  it("are compiled and run", async () => {
    const [chain] = await proveCustomRules({ biased: { pattern: ["MatMul", "Add", "Relu"], output_op: "Biased" } });
    expect(chain).toMatchObject({ rule: "biased", outcome: "proved" });
    expect(chain?.runs).toBeGreaterThan(10);
    const { FusionGraph: _, ...gate } = graphRule("Gate", "Sigmoid", "Neg", "Neg") as { FusionGraph: unknown };
    expect((await proveCustomRules({ ...gate, OutputOp: "NegGate" }))[0]).toMatchObject({ rule: "Gate", outcome: "proved" });
  });
  it.each([
    ["a convolution with its normalisation", ["Conv", "BatchNormalization", "Relu"]],
    ["a chain without weights", ["Neg", "Abs", "Relu"]],
    ["sums that cancel before a function", ["Conv", "Sigmoid", "Mul"]],
    ["a normalisation", ["LayerNormalization", "Gelu"]],
    ["a choice by booleans", ["Where", "Relu"]],
    ["a product of bytes", ["MatMulInteger", "Cast", "Mul"]],
  ])("are proved for %s, whose shapes are drawn operator by operator", async (_, pattern) => {
    const [found] = await proveCustomRules({ chain: { pattern, output_op: "Chain" } });
    expect(found).toMatchObject({ outcome: "proved" });
    expect(found?.graphs).toBeGreaterThan(5);
  });
  it("in the guide are proved", async () => {
    const examples = [...readFileSync(new URL("../../docs/custom-rules.md", import.meta.url), "utf8").matchAll(/```json\n([^`]*)```/g)].map((m) => m[1] ?? "");
    expect(examples).toHaveLength(2);
    for (const text of examples) expect(await proveCustomRules(text)).toMatchObject([{ outcome: "proved" }]);
  });
  it("are tried on other graphs where the engine refuses one", async () => {
    expect((await proveCustomRules({ views: { pattern: ["Reshape", "Transpose"], output_op: "Views" } }))[0]).toMatchObject({ outcome: "unproved", reason: expect.stringContaining("not-one-kernel") as string });
  });
  it("are not proved where they never become one", async () => {
    expect((await proveCustomRules({ far: { pattern: ["MatMul", "MatMul"], output_op: "Far" } }))[0]).toMatchObject({ outcome: "unproved", reason: expect.stringMatching(/\w/) as string });
  });
});

const Relu = operator("Relu"), Abs = operator("Abs"), Neg = operator("Neg");
const absOfNeg = (more: Partial<RuleSpec<object>> = {}): Rule => ruleKit.defineRule({
  name: "abs-of-neg", doc: "The sign does not matter to the absolute value.", numerics: exact,
  match: pattern.op(Abs, [pattern.op(Neg, [pattern.value("x")])]),
  rewrite: (m, edit) => edit.insert(Abs, [(m as { x: Parameters<typeof edit.insert>[1][number] }).x]),
  example: () => { const b = new GraphBuilder(); return b.build(b.add(Abs, [b.add(Neg, [b.input("x", ["n", 3])])])); },
  refuses: {}, ...more,
});

describe("rules made by defineRule", () => {
  it("are proved on their examples", () => {
    expect(proveRules([absOfNeg()])).toEqual([{ rule: "abs-of-neg", outcome: "proved", graphs: 1, runs: 21 }]);
  });
  it("are refuted with the inputs and both results", () => {
    const [wrong] = proveRules([absOfNeg({ rewrite: (m, edit) => edit.insert(Relu, [(m as { x: Parameters<typeof edit.insert>[1][number] }).x]) })]);
    expect(wrong).toMatchObject({ outcome: "wrong", counterExample: { kind: "normal", nodes: ["neg0_out = Neg(x)", "abs1_out = Abs(neg0_out)"] } });
    expect(Object.keys(wrong?.counterExample?.inputs ?? {})).toEqual(["x"]);
  });
  it("have to fire on their example, and to refuse where they say", () => {
    const b = new GraphBuilder(), other = b.build(b.add(Relu, [b.input("x", [3])]));
    expect(proveRules([absOfNeg({ example: () => other })])[0]).toMatchObject({ outcome: "unproved" });
    expect(proveRules([absOfNeg({ refuses: { never: absOfNeg().example } })])[0]).toMatchObject({ outcome: "wrong", reason: expect.stringMatching(/fires on the graph/) as string });
  });
  it("built-in ones pass the same proof", () => {
    const some = rules.filter((_, i) => i % 6 === 0);
    expect(proveRules(some).filter((p) => p.outcome !== "proved").map((p) => `${p.rule}: ${p.reason}`)).toEqual([]);
  });
});

describe("disagreement", () => {
  const t = (...values: number[]) => fromNumbers("float32", [values.length], values);
  const see = (a: readonly number[], b: readonly number[], numerics: Numerics) => disagreement(t(...a), t(...b), numerics)?.element;
  it("is any bit for exact rules, and more than the bound for others", () => {
    expect(see([0, 1], [-0, 1], exact)).toBe(0);
    expect(see([NaN, 1], [NaN, 1], exact)).toBeUndefined();
    expect(see([1, 2], [1, 2.00001], reassociates())).toBeUndefined();
    expect(see([1, 2], [1, 2.0001], reassociates())).toBe(1);
    expect(see([1e-40, 0], [0, 0], reassociates())).toBe(0);
  });
  it("keeps NaN and infinities in their places", () => {
    expect(see([NaN, 1], [1, 1], reassociates())).toBe(0);
    expect(see([Infinity, 1], [-Infinity, 1], reassociates())).toBe(0);
    expect(see([1, 1], [NaN, 1], reassociates())).toBe(0);
    expect(see([Infinity, NaN], [Infinity, NaN], reassociates())).toBeUndefined();
  });
});
