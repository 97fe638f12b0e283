/**
 * Wrong rules, planted through the `rules` option: verification finds each one at the one site where it changes a result,
 * on the inputs that bring it out, drops it there and nowhere else, and the artifact is right.
 */
import { describe, expect, it } from "vitest";
import { compile, defineRule, exact, GraphBuilder, operator, pattern, reassociates, type CompileResult, type Rule, type RuleSpec } from "../src/api/index.ts";
import { verificationLines } from "../src/cli/evidence/verification-lines.ts";
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { load, Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { differenceOf, isWithin } from "../src/verify/metrics.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const { op, commuted, value, literal } = pattern;
const of = (type: string) => operator(type);
const planted = <B extends object>(rule: Pick<RuleSpec<B>, "name" | "match" | "rewrite"> & Partial<RuleSpec<B>>): Rule =>
  defineRule({ doc: "Planted.", numerics: exact, example: () => new GraphBuilder().build(), refuses: {}, ...rule });

const float = (...values: number[]) => ({ dtype: "float32" as const, dims: values.length === 1 ? [] : [values.length], data: Float32Array.from(values) });
const x = { dtype: "float32" as const, dims: ["n", 4] };
const model = (nodes: ModelSpec["nodes"], initializers: ModelSpec["initializers"] = {}): ModelSpec => ({ opset: 18, inputs: { x }, outputs: { y: x }, initializers, nodes });

interface Plant { readonly rule: Rule; readonly spec: ModelSpec; readonly wrongAt: string; readonly rightAt?: string; readonly inputs: string }
const plants: readonly Plant[] = [
  {
    rule: planted({ name: "relu-is-nothing", match: op(of("Relu"), [value("x")]), rewrite: ({ x }) => x }), wrongAt: "second", rightAt: "first", inputs: "normal",
    spec: model([{ type: "Sigmoid", name: "s", inputs: ["x"], outputs: ["a"] }, { type: "Relu", name: "first", inputs: ["a"], outputs: ["b"] }, { type: "Sub", name: "m", inputs: ["b", "half"], outputs: ["c"] }, { type: "Relu", name: "second", inputs: ["c"], outputs: ["d"] }, { type: "Tanh", name: "t", inputs: ["d"], outputs: ["y"] }], { half: float(0.5) }),
  },
  {
    rule: planted({ name: "softmax-of-columns", match: op(of("Softmax"), [value("x")], { attributes: { wants: "another axis", holds: (a) => a["axis"] !== 0 } }), rewrite: ({ x }, edit) => edit.insert(of("Softmax"), [x], { axis: 0 }) }), wrongAt: "soft", inputs: "normal",
    spec: model([{ type: "Softmax", name: "soft", inputs: ["x"], outputs: ["a"], attributes: { axis: 1 } }, { type: "Neg", name: "n", inputs: ["a"], outputs: ["y"] }]),
  },
  {
    rule: planted({ name: "log-of-exp", match: op(of("Log"), [op(of("Exp"), [value("x")])]), rewrite: ({ x }) => x, numerics: reassociates() }), wrongAt: "log1", rightAt: "log2", inputs: "large",
    spec: model([{ type: "Exp", name: "exp1", inputs: ["x"], outputs: ["a"] }, { type: "Log", name: "log1", inputs: ["a"], outputs: ["b"] }, { type: "Sigmoid", name: "s", inputs: ["b"], outputs: ["c"] }, { type: "Exp", name: "exp2", inputs: ["c"], outputs: ["d"] }, { type: "Log", name: "log2", inputs: ["d"], outputs: ["e"] }, { type: "Add", name: "sum", inputs: ["b", "e"], outputs: ["y"] }]),
  },
  {
    rule: planted({ name: "quotient-of-product", match: op(of("Div"), [commuted(of("Mul"), [value("x"), value("y")]), value("y")]), rewrite: ({ x }) => x, numerics: reassociates() }), wrongAt: "over", inputs: "zeros",
    spec: model([{ type: "Cos", name: "c", inputs: ["x"], outputs: ["a"] }, { type: "Mul", name: "by", inputs: ["a", "x"], outputs: ["b"] }, { type: "Div", name: "over", inputs: ["b", "x"], outputs: ["e"] }, { type: "Abs", name: "abs", inputs: ["e"], outputs: ["y"] }]),
  },
  {
    rule: planted({ name: "there-and-back", match: op(of("Mul"), [op(of("Mul"), [value("x"), literal(1e-6)]), literal(1e6)]), rewrite: ({ x }) => x, numerics: reassociates() }), wrongAt: "up", inputs: "denormal",
    spec: model([{ type: "Mul", name: "down", inputs: ["x", "little"], outputs: ["a"] }, { type: "Mul", name: "up", inputs: ["a", "much"], outputs: ["b"] }, { type: "Neg", name: "n", inputs: ["b"], outputs: ["y"] }], { little: float(1e-6), much: float(1e6) }),
  },
  {
    rule: planted({ name: "nothing-is-nan", match: op(of("Where"), [op(of("IsNaN"), [value("x")]), value("other"), value("x")]), rewrite: ({ x }) => x }), wrongAt: "pick", inputs: "special",
    spec: model([{ type: "IsNaN", name: "nan", inputs: ["x"], outputs: ["a"] }, { type: "Where", name: "pick", inputs: ["a", "zero", "x"], outputs: ["b"] }, { type: "Neg", name: "n", inputs: ["b"], outputs: ["y"] }], { zero: float(0) }),
  },
];

/** Plain elements, denormal ones, and all that is special. */
const feeds = [[3, -3, 0.5, -0.25, 1, 2, -1, 0.125], [1e-40, -1e-40, 1e-41, 0, 1e-42, -0, 2e-40, 3e-40], [3, -3, 0, -0, 1e4, -1e4, NaN, Infinity]].map((values) => fromNumbers("float32", [2, 4], values));
const expectRight = async ({ artifact }: Pick<CompileResult, "artifact">, spec: ModelSpec): Promise<void> => expect(await isRight(artifact, spec)).toBe(true);
async function isRight(artifact: Uint8Array, spec: ModelSpec): Promise<boolean> {
  const { graph } = readModel(modelBytes(spec), operators), session = await load(artifact);
  let right = true;
  for (const x of feeds) {
    const expected = interpret(graph, { x })["y"] as Tensor;
    const { y } = await session.run({ x: new RuntimeTensor("float32", x.data as Float32Array, [2, 4]) });
    const difference = differenceOf(fromNumbers("float32", [2, 4], y?.data as Float32Array), expected);
    right &&= difference !== undefined && isWithin(difference, 1e-5);
  }
  session.dispose();
  return right;
}

describe.each(plants.map((p) => [p.rule.name, p] as const))("%s", (_, { rule, spec, wrongAt, rightAt, inputs }) => {
  it(`is dropped at ${wrongAt}, for ${inputs} inputs`, async () => {
    const result = await compile(modelBytes(spec), { rules: [rule], verify: true, verifyBudget: 120 });
    const { verification, report } = result;
    expect(verification?.dropped.map((d) => [d.rule, d.at, d.inputs])).toEqual([[rule.name, wrongAt, inputs]]);
    expect(verification?.sites.filter((s) => s.rule === rule.name)).toEqual([
      ...(rightAt === undefined ? [] : [expect.objectContaining({ rule: rule.name, at: rightAt, outcome: "kept" })]), { rule: rule.name, at: wrongAt, outcome: "dropped", bound: 0 },
    ]);
    expect(report.sites.find((s) => s.kind === "rule" && s.at === wrongAt && s.name === rule.name)).toMatchObject({ outcome: "refused", code: "verification-failed", reason: expect.stringContaining(`on ${inputs} inputs`) as string, remedy: expect.stringContaining("rule check") as string });
    await expectRight(result, spec);
    const lines = verificationLines(verification ?? expect.fail("no verification"));
    expect(lines.filter((l) => l.startsWith("Dropped"))).toEqual([expect.stringMatching(new RegExp(`^Dropped ${rule.name} at ${wrongAt}: on ${inputs} inputs it (moves|puts)`))]);
    if (rightAt !== undefined) expect(lines).toContain(`Verified ${rule.name} at ${rightAt}`);
  });
});

describe("without verification", () => {
  it("the artifacts are wrong, so the faults are real", async () => {
    for (const { rule, spec } of plants) {
      const { artifact } = await compile(modelBytes(spec), { rules: [rule] });
      expect([rule.name, await isRight(artifact, spec)]).toEqual([rule.name, false]);
    }
  });
});

describe("several at once", () => {
  it("are all dropped", async () => {
    const [relu, , log] = plants;
    if (!relu || !log) return expect.fail("plants");
    const spec = { ...log.spec, nodes: [...log.spec.nodes.slice(0, -1), { type: "Add", name: "sum", inputs: ["b", "e"], outputs: ["f"] }, { type: "Relu", name: "last", inputs: ["f"], outputs: ["y"] }] };
    const result = await compile(modelBytes(spec), { rules: [relu.rule, log.rule], verify: true, verifyBudget: 120 });
    expect(result.verification?.dropped.map((d) => `${d.rule} ${d.at}`).sort()).toEqual(["log-of-exp log1", "relu-is-nothing last"]);
    await expectRight(result, spec);
  });
});
