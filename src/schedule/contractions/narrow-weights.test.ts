import { describe, expect, it } from "vitest";
import { convBnRelu, linearRelu, type ConvForm } from "../../../test/support/article-models.ts";
import { difference } from "../../../test/support/cases.ts";
import { modelBytes, type ModelSpec } from "../../../test/support/model-spec.ts";
import { randomFrom, randomTensor } from "../../../test/support/random.ts";
import { compile, DiagnosticError, optimise } from "../../api/index.ts";
import { readArtifact } from "../../artifact/artifact.ts";
import { fuseModel } from "../../compiler/compile.ts";
import { packageProgram } from "../../compiler/package.ts";
import { build } from "../../compiler/pipeline.ts";
import { present } from "../../core/assert.ts";
import { fromFloat16, toFloat16 } from "../../core/float16.ts";
import type { Tensor as CoreTensor } from "../../core/tensor.ts";
import { toNumbers } from "../../core/tensor.ts";
import { load, Tensor } from "../../runtime/index.ts";
import type { WeightForm } from "./narrow-weights.ts";

const random = randomFrom(5);
const forms: readonly WeightForm[] = ["f16", "int8"];

/** Products of [N, 48] with [48, 40], and of three with [3, 40, 8]; a Gather reads the first matrix too where `shared`. */
const products = (shared = false): ModelSpec => ({
  opset: 17, inputs: { x: { dtype: "float32", dims: [3, "N", 48] }, ...(shared ? { at: { dtype: "int64", dims: [] } } : {}) }, outputs: { y: { dtype: "float32", dims: [3, "N", 8] }, ...(shared ? { row: { dtype: "float32", dims: [40] } } : {}) },
  initializers: { a: randomTensor([48, 40], random), b: randomTensor([3, 40, 8], random) },
  nodes: [
    { type: "MatMul", name: "first", inputs: ["x", "a"], outputs: ["p"] }, { type: "MatMul", name: "second", inputs: ["p", "b"], outputs: ["y"] },
    ...(shared ? [{ type: "Gather", name: "row", inputs: ["a", "at"], outputs: ["row"] }] : []),
  ],
});
const lstm: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: [5, 2, 12] } }, outputs: { y: { dtype: "float32", dims: [5, 1, 2, 20] } },
  initializers: { w: randomTensor([1, 80, 12], random, 0.3), r: randomTensor([1, 80, 20], random, 0.3) },
  nodes: [{ type: "LSTM", name: "cell", inputs: ["x", "w", "r"], outputs: ["y"], attributes: { hidden_size: 20 } }],
};
const convolution = (form: ConvForm): ModelSpec => convBnRelu(form).spec;

const feeds: Record<string, Record<string, Tensor>> = {};
function feedsOf(spec: ModelSpec): Record<string, Tensor> {
  const known = feeds[JSON.stringify(spec.inputs)];
  return known ?? (feeds[JSON.stringify(spec.inputs)] = Object.fromEntries(Object.entries(spec.inputs).map(([name, { dims }]) => [name, Tensor.of(randomTensor(dims.map((d) => (typeof d === "number" ? d : 6)), random))])));
}
async function runOn(artifact: Uint8Array, spec: ModelSpec): Promise<Record<string, CoreTensor>> {
  const results = await (await load(artifact)).run(feedsOf(spec));
  return Object.fromEntries(Object.entries(results).map(([name, t]) => [name, t.unpacked()]));
}

describe("narrowed weights", () => {
  const models: readonly [string, ModelSpec][] = [
    ["products", products()], ["gemm", linearRelu("gemm")], ["lstm", lstm], ...(["conv", "grouped", "depthwise", "conv1d", "transpose"] as const).map((f): [string, ModelSpec] => [f, convolution(f)]),
  ];
  it.each(models.flatMap(([name, spec]) => forms.map((form) => [name, form, spec] as const)))("%s in %s: what is stored is what the program computes with", async (_, form, spec) => {
    const { graph: { graph }, regions } = fuseModel(modelBytes(spec), {}, true);
    const { program, plan, code, narrowed } = build(graph, regions, { weights: { form, keeps: () => false } });
    expect(narrowed.length).toBeGreaterThan(0);
    expect(narrowed.every((n) => n.error !== undefined && n.error <= (form === "f16" ? 2 ** -11 : 0.5 / 127 + 1e-7))).toBe(true);
    const info = { tool: "test", options: {}, model: "m", metadata: {}, modelChecksum: 0 };
    const of = (p: typeof program): Uint8Array => packageProgram(p, plan, { code: code.code, relaxation: code.relaxation }, info).artifact;
    const whole = { ...program, weights: program.weights.map(({ stored: _stored, ...w }) => w) };
    expect(await runOn(of(program), spec)).toEqual(await runOn(of(whole), spec));
    const bytes = (p: typeof program): number => readArtifact(of(p)).weights.length;
    expect(bytes(whole) / bytes(program)).toBeGreaterThan(form === "f16" ? 1.6 : 2.2);
  });

  it("changes results by the rounding of weights, and by something", async () => {
    const spec = products(), exact = await runOn((await compile(modelBytes(spec))).artifact, spec);
    for (const [form, most] of [["f16", 1e-3], ["int8", 2e-2]] as const) {
      const { artifact, report } = await compile(modelBytes(spec), { weights: form }), { y } = await runOn(artifact, spec);
      expect(report.narrowed?.map((n) => n.nodes)).toEqual([["first"], ["second"]]);
      expect(y && exact["y"] && difference(y, exact["y"], most)).toBeUndefined();
      expect(y && exact["y"] && difference(y, exact["y"], most / 1000)).toBeDefined();
    }
  });

  it("keeps what others read, what may be fed, nodes that keep their type, and what float16 does not hold", async () => {
    const kept = async (spec: ModelSpec, keepDtype: readonly string[] = []): Promise<Record<string, string | undefined>> => {
      const { report } = await compile(modelBytes(spec), { weights: "f16", keepDtype });
      return Object.fromEntries((report.narrowed ?? []).map((n) => [n.nodes.join(), n.kept]));
    };
    expect(await kept(products(true))).toEqual({ first: "shared", second: undefined });
    expect(await kept(products(), ["second"])).toEqual({ first: undefined, second: "keep-dtype" });
    expect(await kept(products(), ["OpType::MatMul"])).toEqual({ first: "keep-dtype", second: "keep-dtype" });
    expect(await kept({ ...products(), overridable: ["b"] })).toEqual({ first: undefined, second: "overridable" });
    const { initializers } = products(), b = randomTensor([3, 40, 8], random);
    (b.data as Float32Array)[7] = 1e5;
    expect(await kept({ ...products(), initializers: { ...initializers, b } })).toEqual({ first: undefined, second: "range" });
  });

  it("lets a large matrix stay in int8 in memory", async () => {
    const spec: ModelSpec = { opset: 17, inputs: { x: { dtype: "float32", dims: [2, 1024] } }, outputs: { y: { dtype: "float32", dims: [2, 2056] } }, initializers: { w: randomTensor([1024, 2056], random) }, nodes: [{ type: "MatMul", name: "p", inputs: ["x", "w"], outputs: ["y"] }] };
    const { artifact, report } = await compile(modelBytes(spec), { weights: "int8" });
    expect(report.narrowed).toMatchObject([{ nodes: ["p"], resident: true }]);
    expect(readArtifact(artifact).manifest.memory.weightBytes).toBeLessThan(1.1 * 1024 * 2056);
    const { y } = await runOn(artifact, spec), w = spec.initializers["w"], x = feedsOf(spec)["x"]?.unpacked();
    if (!y || !w || !x) throw new Error("no result");
    const rounded = quantised(toNumbers(w), 2056), from = toNumbers(x);
    const expected = Float32Array.from({ length: 2 * 2056 }, (_, i) => { let sum = 0; for (let k = 0; k < 1024; k++) sum += (from[Math.floor(i / 2056) * 1024 + k] ?? 0) * (rounded[k * 2056 + (i % 2056)] ?? 0); return sum; });
    expect(difference(y, { dtype: "float32", dims: [2, 2056], data: expected }, 1e-5)).toBeUndefined();
  });

  it("lets a larger matrix stay in float16 in memory", { timeout: 120_000 }, async () => {
    const k = 2048, n = 4104, spec: ModelSpec = { opset: 17, inputs: { x: { dtype: "float32", dims: ["m", k] } }, outputs: { y: { dtype: "float32", dims: ["m", n] } }, initializers: { w: { dtype: "float32", dims: [k, n], data: Float32Array.from({ length: k * n }, (_, i) => ((i * 7919) % 2003) / 2003 - 0.5) } }, nodes: [{ type: "MatMul", name: "p", inputs: ["x", "w"], outputs: ["y"] }] };
    const { artifact, report } = await compile(modelBytes(spec), { weights: "f16" });
    expect(report.narrowed).toMatchObject([{ nodes: ["p"], resident: true }]);
    expect(readArtifact(artifact).manifest.memory.weightBytes).toBeLessThan(2.1 * k * n);
    expect(artifact.length).toBeLessThan(2.1 * k * n);
    const w = Array.from(toNumbers(present(spec.initializers["w"], "w")), (v) => fromFloat16(toFloat16(v))), session = await load(artifact);
    for (const m of [1, 3]) {
      const x = randomTensor([m, k], random), from = toNumbers(x);
      const { y } = await session.run({ x: new Tensor("float32", x.data, x.dims) });
      const expected = Float32Array.from({ length: m * n }, (_, i) => { let sum = 0; for (let j = 0; j < k; j++) sum += (from[Math.floor(i / n) * k + j] ?? 0) * (w[j * n + (i % n)] ?? 0); return sum; });
      expect(difference(present(y, "y").unpacked(), { dtype: "float32", dims: [m, n], data: expected }, 1e-5)).toBeUndefined();
    }
  });

  it("is recorded, said by --verify, and refused for emitted ONNX", async () => {
    const { artifact, verification } = await compile(modelBytes(products()), { weights: "int8", verify: true, verifyBudget: 1 });
    expect(readArtifact(artifact).manifest.options).toMatchObject({ weights: "int8" });
    expect(verification?.narrowed?.worst).toBeGreaterThan(verification?.tolerance ?? Infinity);
    expect(verification?.narrowed?.worst).toBeLessThan(0.1);
    expect(Math.max(...(verification?.runs ?? []).flatMap((r) => Object.values(r.outputs).map((d) => d.maxScaled)))).toBeLessThanOrEqual(verification?.tolerance ?? 0);
    expect(() => optimise(modelBytes(products()), { weights: "f16" })).toThrow(DiagnosticError);
  });
});

/** Each column rounded to multiples of a 127th of its largest magnitude. */
function quantised(values: ArrayLike<number>, columns: number): Float32Array {
  const most = new Float64Array(columns);
  for (let i = 0; i < values.length; i++) most[i % columns] = Math.max(most[i % columns] ?? 0, Math.abs(values[i] ?? 0));
  return Float32Array.from(values, (v, i) => { const scale = Math.fround((most[i % columns] ?? 0) / 127); return Math.round(v / scale) * scale; });
}
