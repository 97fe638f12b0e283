/**
 * Values of any kind where the API, switch files and rule files take something: options, feeds, tensors, artifacts,
 * files of weights, rules. Each is accepted, or refused with a diagnostic; no other error comes out.
 */
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { mutateJson, type Json } from "../fuzz/bad-input/artifact-mutations.ts";
import { featureModels } from "../fuzz/bad-input/feature-models.ts";
import { compile, optimise, simplify, type CompileOptions } from "../src/api/index.ts";
import { parseSwitchFile } from "../src/cli/options/fusion-switch-file.ts";
import { dtypes, type DType } from "../src/core/dtype.ts";
import { sizeOf } from "../src/core/tensor.ts";
import { load, Tensor, type Feeds, type RunOptions, type Session } from "../src/runtime/index.ts";
import { outcomeOf } from "./support/outcome.ts";
import { randomFrom } from "./support/random.ts";

const seed = Number(process.env["ONNXFUSE_FUZZ_SEED"] ?? 1), numRuns = Number(process.env["ONNXFUSE_FUZZ_CASES"] ?? 100);
const timeout = 3_600_000, settings = { seed, numRuns };

const models = featureModels();
const modelOf = (name: string): Uint8Array => { const m = models.get(name); if (!m) throw new Error(`no model ${name}`); return m; };

/** How often each outcome was had. */
class Tally {
  readonly #counts = new Map<string, number>();
  async of(work: () => unknown): Promise<void> { const code = await outcomeOf(work); this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1); }
  get done(): number { return this.#counts.get("done") ?? 0; }
  get refused(): number { return [...this.#counts].reduce((n, [code, m]) => n + (code === "done" ? 0 : m), 0); }
}

const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withTypedArray: true, withSparseArray: true, maxDepth: 2 });
const sizes = fc.oneof(fc.constantFrom(0, 1, 2, 4, -1, 1.5, NaN, Infinity, 2 ** 31, 2 ** 32, 2 ** 53, -0), anything);

const options = fc.record({
  target: fc.oneof(fc.constant("wasm"), anything), enableFusion: fc.oneof(fc.boolean(), anything), inputShapes: fc.oneof(fc.record({ x: fc.array(sizes, { maxLength: 3 }) }), anything), dims: fc.oneof(fc.dictionary(fc.constantFrom("N", "M", "__proto__", "constructor"), sizes), anything),
  fusionSwitches: fc.oneof(fc.record({ named: fc.dictionary(fc.constantFrom("ConvBNReLU", "constructor", "toString", "fold-batch-norm-into-conv", "nothing"), fc.boolean()), allRules: fc.oneof(fc.boolean(), anything) }), anything), customRules: anything, keepDtype: fc.oneof(fc.array(fc.string()), anything),
  outputs: fc.oneof(fc.array(fc.constantFrom("y", "z", "constructor", "Conv_0:0", "y")), anything), outputTypes: fc.oneof(fc.constantFrom("float16", "constructor", "string"), fc.dictionary(fc.constantFrom("y", "constructor"), fc.constantFrom("float16", "bool", "constructor")), anything),
  fuel: sizes, skip: anything, externalWeights: fc.oneof(fc.constantFrom("each", "combined"), anything), allowApproximate: anything, precisionMode: anything, socVersion: anything, strip: anything, winograd: anything, verifyBudget: sizes, level: anything, check: fc.oneof(fc.constantFrom(0, 1, -1, 1.5, NaN, Infinity), anything), onStage: anything, nonsense: anything, constructor: anything,
}, { requiredKeys: [] }).chain((all) => fc.subarray(Object.keys(all), { minLength: 0, maxLength: 2 }).map((kept) => Object.fromEntries(Object.entries(all).filter(([key]) => kept.includes(key)))));

describe("options and sources", () => {
  it("of compile, optimise and simplify", { timeout }, async () => {
    const tally = new Tally();
    await fc.assert(fc.asyncProperty(fc.constantFrom("conv-bn-relu", "matmul", "shape-arithmetic", "loop", "strings"), fc.oneof({ weight: 5, arbitrary: options }, { weight: 1, arbitrary: anything }), fc.integer({ min: 0, max: 9 }), async (name, given, which) => {
      const model = modelOf(name), asked = given as CompileOptions;
      await tally.of(() => (which === 0 ? optimise(model, asked) : which === 1 ? simplify(model, asked) : compile(model, asked)));
    }), settings);
    expect(tally.done).toBeGreaterThan(numRuns / 50);
    expect(tally.refused).toBeGreaterThan(numRuns / 4);
  });
  it("of load, and what it is given", { timeout }, async () => {
    const tally = new Tally(), { artifact } = await compile(modelOf("matmul")), outside = (await compile(modelOf("matmul"), { externalWeights: "each" })).artifact;
    const sources = fc.oneof(fc.constant(artifact), fc.constant(outside), fc.constant(artifact.buffer), anything);
    const given = fc.oneof(fc.record({ engine: fc.oneof(fc.constantFrom("simd", "relaxed-simd"), anything), externalData: fc.oneof(anything, anything.map((v) => () => v), anything.map((v) => async () => v)) }, { requiredKeys: [] }), anything);
    await fc.assert(fc.asyncProperty(sources, given, async (source, more) => tally.of(() => load(source as Uint8Array, more as object))), settings);
    expect(tally.done).toBeGreaterThan(0);
    expect(tally.refused).toBeGreaterThan(numRuns / 4);
  });
  it("files of external weights", { timeout }, async () => {
    const tally = new Tally(), file = new Uint8Array(32);
    const files = fc.oneof(fc.constant(file), fc.constant(file.subarray(0, 20)), fc.constant(file.buffer), anything);
    await fc.assert(fc.asyncProperty(fc.oneof(files.map((f) => () => f), anything), async (externalData) => tally.of(() => compile({ model: modelOf("external-weights"), externalData: externalData as () => Uint8Array }))), settings);
    expect(tally.done).toBeGreaterThan(0);
    expect(tally.refused).toBeGreaterThan(numRuns / 4);
  });
});

const dtypeNames = fc.constantFrom(...(Object.keys(dtypes) as DType[]));
/** Memory that has been given away has no bytes left. */
function detached(): Float32Array {
  const data = new Float32Array(8);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return data;
}
const data = fc.oneof(fc.constantFrom<unknown>(new Float32Array(8), new Float32Array(4), new Float64Array(8), new BigInt64Array(1), new Uint8Array(8), ["a", "b"], [1, 2, 3, 4], [], new Float32Array(new SharedArrayBuffer(32)), new DataView(new ArrayBuffer(32))), fc.constant(0).map(detached), anything);
const dims = fc.oneof(fc.constantFrom<unknown>([2, 4], [1, 4], [0, 4], [4], [], [2], [-1, 4], [NaN, 4], [2 ** 40, 4], [1.5, 4], [2n, 4], [undefined, 4], "24"), fc.array(sizes, { maxLength: 4 }), anything);
const tensorLike = fc.record({ type: fc.oneof(dtypeNames, fc.constantFrom("constructor", "float33"), anything), data, dims }, { requiredKeys: [] });
const made = fc.tuple(dtypeNames, fc.constantFrom([2, 4], [0, 4], [1, 4], [2], []), fc.integer({ min: 0, max: 3 })).map(([type, shape, n]) => {
  const count = sizeOf(shape);
  return new Tensor(type, Array.from({ length: count }, () => (type === "string" ? "s" : type === "int64" || type === "uint64" ? BigInt(n % 2) : n % 2)), shape);
});
/** What an input takes, of sizes that may not fit the others'. */
const right = (port: Session["inputs"][number], value: unknown, sizesFrom: number): unknown => {
  if (port.container) return value;
  const shape = port.dims.map((d, i) => (typeof d === "number" ? d : 1 + ((sizesFrom + i) % 2))), count = sizeOf(shape);
  return new Tensor(port.dtype, Array.from({ length: count }, (_, i) => (port.dtype === "string" ? "s" : port.dtype === "int64" ? BigInt(i % 2) : i % 2)), shape);
};
const feed: fc.Arbitrary<unknown> = fc.oneof({ weight: 3, arbitrary: made }, { weight: 3, arbitrary: tensorLike }, { weight: 1, arbitrary: fc.array(fc.oneof(made, anything), { maxLength: 3 }) }, { weight: 1, arbitrary: fc.constant(new Map<unknown, unknown>([["a", 1], [1n, "b"]])) }, { weight: 1, arbitrary: anything });

describe("what is fed", () => {
  const sessions = new Map<string, Session>();
  beforeAll(async () => {
    for (const name of ["matmul", "sequence", "strings", "optional", "loop-fed", "range", "lstm", "quantised", "suppression", "sizes-from-data"]) sessions.set(name, await load((await compile(modelOf(name))).artifact));
  }, 300_000);
  it("to new Tensor", { timeout }, async () => {
    const tally = new Tally();
    await fc.assert(fc.asyncProperty(fc.oneof(dtypeNames, anything), data, fc.oneof(dims, fc.constant(undefined)), async (type, elements, shape) => tally.of(() => new Tensor(type as DType, elements as number[], shape as number[]))), settings);
    expect(tally.refused).toBeGreaterThan(numRuns / 4);
  });
  it("to run, with its options", { timeout }, async () => {
    const tally = new Tally();
    const asked = fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.record({ outputs: fc.oneof(fc.constant(["y"]), anything), keep: fc.oneof(fc.constant(["y"]), anything), onStep: anything, timeLimit: sizes }, { requiredKeys: [] }) }, { weight: 1, arbitrary: anything });
    await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: sessions.size - 1 }), fc.array(feed, { minLength: 4, maxLength: 4 }), anything, fc.integer({ min: 0, max: 9 }), asked, async (which, values, stranger, form, more) => {
      const session = [...sessions.values()][which];
      if (!session) throw new Error("no session");
      const feeds = form === 0 ? stranger : { ...Object.fromEntries(session.inputs.map((p, i) => [p.name, form > 5 ? right(p, values[i], form) : values[i]])), ...(form === 1 ? { nowhere: values[3] } : {}) };
      await tally.of(() => session.run(feeds as Feeds, { timeLimit: 2000, ...(more as RunOptions) }));
      if (form === 2) await tally.of(() => session.run(feeds as Feeds, more as RunOptions));
    }), settings);
    expect(tally.done).toBeGreaterThan(numRuns / 100);
    expect(tally.refused).toBeGreaterThan(numRuns / 4);
    for (const session of sessions.values()) expect(session.memoryBytes).toBeLessThan(2 ** 28);
  });
});

const ruleFiles: readonly Json[] = [
  { conv_bn_relu: { pattern: ["Conv", "BatchNormalization", "Relu"], output_op: "ConvBNReLU", conditions: { bn_mode: "inference" } }, second: { pattern: ["MatMul", "Relu"], output_op: "MatMulReLU", conditions: {} } },
  {
    RuleName: "Leaky", OuterInputs: [{ name: "In0" }], OuterOutputs: [{ name: "Out0" }], Conditions: [{ value: "In0", rank: { min: 2 } }], Attrs: [{ attr: "New.alpha", literal: 0 }],
    OriginGraph: { Nodes: [{ name: "Relu0", type: ["Relu"] }], Constants: [{ name: "Half", value: 0.5 }], Edges: [{ src: "In0", dst: "Relu0:0" }, { src: "Relu0:0", dst: "Out0" }] },
    FusionGraph: { Nodes: [{ name: "New", type: ["LeakyRelu"] }], Edges: [{ src: "In0", dst: "New:0" }, { src: "New:0", dst: "Out0" }] },
  },
];
const switchFile: Json = { Switch: { GraphFusion: { ALL: "on", ConvBatchnormFusionPass: "off" }, UBFusion: { ALL: "off", ConvBNReLU: "on", TbeEltwiseFusionPass: "off" } } };
const damage = (file: Json, random: number, times: number): Json => {
  const copy = structuredClone(file), r = randomFrom(random);
  for (let i = 0; i < times; i++) mutateJson(copy, r);
  return copy;
};
const damagedText = (json: Json, at: number, how: number): string => { const text = JSON.stringify(json, undefined, 1), cut = at % text.length; return how === 0 ? text.slice(0, cut) : how === 1 ? `${text.slice(0, cut)}\u0000"${text.slice(cut + 1)}` : text; };

describe("files of rules and switches", () => {
  it("rules", { timeout }, async () => {
    const tally = new Tally();
    await fc.assert(fc.asyncProperty(fc.constantFrom(...ruleFiles), fc.nat(), fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 8 }), async (file, random, times, how) => {
      const customRules = how === 3 ? damage(file, random, times) : damagedText(damage(file, random, times), random, how);
      await tally.of(() => compile(modelOf("conv-bn-relu"), { customRules }));
    }), settings);
    expect(tally.done).toBeGreaterThan(numRuns / 10);
    expect(tally.refused).toBeGreaterThan(numRuns / 10);
  });
  it("switches", { timeout }, async () => {
    const tally = new Tally();
    const text = fc.oneof(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 8 })).map(([random, times, how]) => damagedText(damage(switchFile, random, times), random, how)), fc.array(fc.oneof(fc.constantFrom("ConvBNReLU:off", "ALL:off", "constructor:on", "__proto__:off", "toString:on", "A B:on", "# x", ""), fc.string()), { maxLength: 4 }).map((l) => l.join("\n")));
    await fc.assert(fc.asyncProperty(text, async (content) => tally.of(() => compile(modelOf("conv-bn-relu"), { fusionSwitches: parseSwitchFile(content, "s") }))), settings);
    expect(tally.done).toBeGreaterThan(numRuns / 50);
    expect(tally.refused).toBeGreaterThan(numRuns / 4);
  });
  it("an error that is no diagnostic is seen", async () => {
    await expect(outcomeOf(() => { throw new TypeError("no"); })).rejects.toThrow(TypeError);
    expect(await outcomeOf(() => parseSwitchFile("{", "s"))).toBe("OF4010");
  });
});
