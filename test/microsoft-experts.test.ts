/** com.microsoft's mixtures of experts, quantised LSTM, biases by position and pools: against onnxruntime where its release runs them, else against a case worked out by their definition. */
import { describe, expect, it } from "vitest";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { differenceOf, runCompiled, runWay, runWays, specOf, type OracleCase } from "./support/operator-oracle.ts";
import { compileModel } from "../src/compiler/compile.ts";
import { modelBytes } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(5), of = (...dims: number[]): Tensor => randomTensor(dims, random);
const bytes = (...dims: number[]): Tensor => fromNumbers("uint8", dims, Array.from({ length: sizeOf(dims) }, () => random.int(256)));
const scales = (...dims: number[]): Tensor => fromNumbers("float32", dims, Array.from({ length: sizeOf(dims) }, () => 0.01 + random() / 50));
const int = (value: number): Tensor => fromNumbers("int64", [1], [value]);
const float = (value: number): { float: number } => ({ float: value });
const domain = "com.microsoft";
const hidden = 32, inner = 16, experts = 5, tokens = 7;

const mixture = (attributes: OracleCase["attributes"], width = inner): OracleCase => ({
  type: "MoE", domain, inputs: [of(tokens, hidden), of(tokens, experts), of(experts, width, hidden), of(experts, width), of(experts, hidden, inner), of(experts, hidden)], attributes: attributes ?? {}, outputs: 1,
});
const packed = (bits: number, attributes: OracleCase["attributes"], rest: readonly (Tensor | undefined)[] = []): OracleCase => ({
  type: "QMoE", domain, outputs: [{ dtype: "float32", rank: 2 }], attributes: { expert_weight_bits: bits, k: 2, weights_prepacked: 0, ...attributes },
  inputs: [of(tokens, hidden), of(tokens, experts), bytes(experts, inner, (hidden * bits) / 8), scales(experts, inner), of(experts, inner), bytes(experts, hidden, (inner * bits) / 8), scales(experts, hidden), of(experts, hidden), ...rest],
});
const swiglu = { activation_type: "swiglu", swiglu_fusion: 1, activation_alpha: float(1.702), activation_beta: float(1), swiglu_limit: float(0.75) };
const image = (dtype: "uint8" | "int8"): Tensor => fromNumbers(dtype, [2, 7, 5, 3], Array.from({ length: 210 }, () => random.int(256) - (dtype === "int8" ? 128 : 0)));
const mask = (...dims: number[]): Tensor => fromNumbers("int32", dims, Array.from({ length: sizeOf(dims) }, () => Number(random() < 0.8)));

/** An LSTM whose weights have 8 bits, [directions, inputs, 4·hidden]. */
function quantizedLstm(direction: string, { dtype = "int8", each = false, lengths = false, rest = false }: { dtype?: "int8" | "uint8"; each?: boolean; lengths?: boolean; rest?: boolean } = {}): OracleCase {
  const directions = direction === "bidirectional" ? 2 : 1, [sequence, batch, input, hidden] = [4, 2, 5, 3], columns = 4 * hidden, zero = dtype === "int8" ? 0 : 128;
  const weights = (rows: number): Tensor => fromNumbers(dtype, [directions, rows, columns], Array.from({ length: directions * rows * columns }, () => random.int(200) + zero - 100));
  const scale = (): Tensor => scales(directions, ...(each ? [columns] : [])), zeros = (): Tensor => fromNumbers(dtype, [directions, ...(each ? [columns] : [])], new Array<number>(directions * (each ? columns : 1)).fill(zero));
  return {
    type: "DynamicQuantizeLSTM", domain, attributes: { direction, hidden_size: hidden }, outputs: [{ dtype: "float32", rank: 4 }, { dtype: "float32", rank: 3 }, { dtype: "float32", rank: 3 }], constants: [1, 2],
    inputs: [
      of(sequence, batch, input), weights(input), weights(hidden), rest ? of(directions, 2 * columns) : undefined, lengths ? fromNumbers("int32", [batch], [sequence, 2]) : undefined,
      rest ? of(directions, batch, hidden) : undefined, rest ? of(directions, batch, hidden) : undefined, rest ? of(directions, 3 * hidden) : undefined, scale(), zeros(), scale(), zeros(),
    ],
  };
}

const cases: Readonly<Record<string, OracleCase>> = {
  "DynamicQuantizeLSTM": quantizedLstm("forward"),
  "DynamicQuantizeLSTM backwards, with a bias, states and peepholes": quantizedLstm("reverse", { rest: true }),
  "DynamicQuantizeLSTM both ways, scales for each column": quantizedLstm("bidirectional", { each: true, rest: true }),
  "DynamicQuantizeLSTM with lengths": quantizedLstm("bidirectional", { lengths: true }),
  "DynamicQuantizeLSTM of unsigned integers": quantizedLstm("forward", { dtype: "uint8", rest: true }),
  "MoE, one expert": mixture({}),
  "MoE, three of five, silu": mixture({ k: 3, activation_type: "silu" }),
  "MoE, weights that sum to 1, gelu": mixture({ k: 2, activation_type: "gelu", normalize_routing_weights: 1 }),
  "MoE, swiglu": mixture({ k: 2, ...swiglu }, 2 * inner),
  "MoE, of equal scores": { ...mixture({ k: 2, normalize_routing_weights: 1 }), inputs: mixture({}).inputs.map((t, i) => (i === 1 ? fromNumbers("float32", [tokens, experts], Array.from({ length: tokens * experts }, (_, e) => (e % 3 === 0 ? 1 : 0))) : t)) },
  "MoE, one token of a batch": { ...mixture({ k: 3, activation_type: "identity" }), inputs: mixture({}).inputs.map((t, i) => (i === 0 ? of(1, 1, hidden) : i === 1 ? of(1, experts) : t)), outputs: [{ dtype: "float32", rank: 3 }] },
  "QMoE of 8 bits": packed(8, {}),
  "QMoE of 4 bits, silu": packed(4, { activation_type: "silu", normalize_routing_weights: 1 }),
  "QMoE with zero points": packed(4, {}, [undefined, undefined, undefined, bytes(experts, inner / 2), bytes(experts, hidden / 2)]),
  "QMoE in blocks, with weights of their own": {
    type: "QMoE", domain, outputs: [{ dtype: "float32", rank: 2 }], attributes: { expert_weight_bits: 4, k: 2, block_size: 16, weights_prepacked: 0, normalize_routing_weights: 1 },
    inputs: [of(tokens, hidden), of(tokens, experts), bytes(experts, inner, hidden / 2), scales(experts, inner, 2), undefined, bytes(experts, hidden, inner / 2), scales(experts, hidden, 1), undefined, undefined, undefined, undefined, undefined, undefined, undefined, fromNumbers("float32", [tokens, experts], Array.from({ length: tokens * experts }, () => random()))],
  },
  "NhwcMaxPool": { type: "NhwcMaxPool", domain, inputs: [image("uint8")], attributes: { kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1] }, outputs: 1 },
  "NhwcMaxPool of signed integers, dilated": { type: "NhwcMaxPool", domain, inputs: [image("int8")], attributes: { kernel_shape: [2, 2], dilations: [2, 1] }, outputs: 1 },
  "MaxpoolWithMask": { type: "MaxpoolWithMask", domain, inputs: [of(2, 3, 6, 5), mask(1, 1, 6, 5)], attributes: { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] }, outputs: 1 },
  "MaxpoolWithMask along one axis": { type: "MaxpoolWithMask", domain, inputs: [of(2, 3, 9), mask(1, 1, 9)], attributes: { kernel_shape: [3] }, outputs: 1 },
};

describe("as onnxruntime computes it", () => {
  it.each(Object.entries(cases))("%s", async (_, c) => {
    const { onnxruntime, ...ours } = await runWays(c);
    expect(Object.keys(onnxruntime)).not.toEqual([]);
    for (const way of ["reference", "unfused", "fused"] as const) for (const [name, y] of Object.entries(onnxruntime)) expect(differenceOf(ours[way]?.[name], y, 1e-4, 1e-4 * Math.max(1, ...Array.from(toNumbers(y), Math.abs))), `${way}, ${name}`).toBeUndefined();
  });
  it("a wrong result is seen", async () => {
    const { onnxruntime, reference } = await runWays(mixture({}), ["reference"]), y = onnxruntime["y0"], own = reference?.["y0"];
    const moved = own && fromNumbers("float32", own.dims, Array.from(toNumbers(own), (v, i) => v + (i === 3 ? 1 : 0)));
    expect(y && differenceOf(moved, y, 1e-4, 1e-3)).toMatch(/element 3/);
  });
});

describe("mixtures of experts with constant weights", () => {
  const constant = (c: OracleCase): OracleCase => ({ ...c, constants: c.inputs.flatMap((t, i) => (i > 1 && t && i !== 14 ? [i] : [])) });
  it.each(Object.entries(cases).filter(([name]) => name.includes("MoE")))("%s, on kernels", async (_, c) => {
    const { spec, feeds } = specOf(constant(c)), model = modelBytes(spec), [result] = Object.values(await runWay(model, feeds, "reference"));
    const { report } = compileModel(model), own = [await runCompiled(model, feeds, false), await runCompiled(model, feeds, true)].flatMap((r) => Object.values(r));
    expect(report.nodes.compiled).toBeGreaterThan(experts);
    for (const y of own) expect(result && differenceOf(y, result, 1e-4, 1e-4)).toBeUndefined();
    expect(own).toHaveLength(2);
  });
});

describe("biases by position, which onnxruntime's release runs on GPUs only", () => {
  async function ours(c: OracleCase, expected: Tensor): Promise<void> {
    const { spec, feeds } = specOf(c), model = modelBytes(spec);
    for (const result of [await runWay(model, feeds, "reference"), await runCompiled(model, feeds, false), await runCompiled(model, feeds, true)]) expect(differenceOf(result["y0"], expected, 1e-5)).toBeUndefined();
  }
  const table = fromNumbers("float32", [4, 2], [1, 3, 5, 7, 2, 4, 6, 8]);
  const bias = (queries: number, keys: number, both: number, t = table): OracleCase => ({ type: "RelativePositionBias", domain, inputs: [t, int(queries), int(keys)], attributes: { max_distance: 128, is_bidirectional: both }, outputs: [{ dtype: "float32", rank: 4 }], constants: [1, 2] });
  it("buckets on both sides", () => ours(bias(2, 2, 1), fromNumbers("float32", [1, 2, 2, 2], [1, 7, 3, 1, 2, 8, 4, 2])));
  it("buckets of the past only", () => ours(bias(2, 3, 0), fromNumbers("float32", [1, 2, 2, 3], [1, 1, 1, 3, 1, 1, 2, 2, 2, 4, 2, 2])));
  it("buckets by logarithm: 8 exact ones of 16, then up to the largest distance", async () => {
    const t = fromNumbers("float32", [16, 1], Array.from({ length: 16 }, (_, i) => i)), { spec, feeds } = specOf(bias(200, 1, 0, t));
    const y = Array.from(toNumbers((await runWay(modelBytes(spec), feeds, "reference"))["y0"] ?? t));
    expect([0, 5, 7, 8, 11, 12, 40, 127, 128, 199].map((d) => y[d])).toEqual([0, 5, 7, 8, 8, 9, 12, 15, 15, 15]);
  });
  it("gates", async () => {
    const [batch, heads, length, depth, width] = [2, 2, 3, 4, 8], q = of(batch, length, heads * depth), qb = of(heads * depth), rel = of(1, heads, length, length), w = of(depth, width), b = of(width), a = of(1, heads, 1, 1);
    const [qv, qbv, relv, wv, bv, av] = [q, qb, rel, w, b, a].map((t) => toNumbers(t)), n = (x: ArrayLike<number> | undefined, i: number): number => x?.[i] ?? 0;
    const expected = Array.from({ length: batch * heads * length * length }, (_, i) => {
      const s = Math.floor(i / length) % length, h = Math.floor(i / length ** 2) % heads, from = Math.floor(i / (length ** 2 * heads));
      const column = (j: number): number => n(bv, j) + Array.from({ length: depth }, (_, d) => (n(qv, (from * length + s) * heads * depth + h * depth + d) + n(qbv, h * depth + d)) * n(wv, d * width + j)).reduce((x, y) => x + y, 0);
      const [g = 0, r = 0] = [0, 1].map((half) => 1 / (1 + Math.exp(-[0, 1, 2, 3].reduce((sum, j) => sum + column(half * 4 + j), 0))));
      return (g * (r * n(av, h) - 1) + 2) * n(relv, (h * length + s) * length + (i % length));
    });
    await ours({ type: "GatedRelativePositionBias", domain, inputs: [q, qb, rel, w, b, a], attributes: { num_heads: heads }, outputs: [{ dtype: "float32", rank: 4 }] }, fromNumbers("float32", [batch, heads, length, length], expected));
  });
});
