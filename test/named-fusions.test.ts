/**
 * Every fusion that is promised by name, written in both operand orders and in the spellings exporters use: compiled
 * into one call that gives what the model means, by the reference interpreter.
 */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { sizeOf, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { mismatch, runCompiled } from "./support/differential.ts";
import { modelBytes, type AttributeSpec, type ModelSpec, type NodeSpec, type ValueSpec } from "./support/model-spec.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

type Attributes = Readonly<Record<string, AttributeSpec>>;
const float = (x: number): AttributeSpec => ({ float: x });

/** A model under construction; values are their names. */
class Model {
  readonly #random = randomFrom(7);
  readonly #inputs: Record<string, ValueSpec> = {};
  readonly #initializers: Record<string, Tensor> = {};
  readonly #nodes: NodeSpec[] = [];
  readonly feeds: Record<string, Tensor> = {};

  /** A float32 input whose first size is symbolic. */
  input(...dims: readonly number[]): string {
    const name = `x${Object.keys(this.#inputs).length}`;
    this.#inputs[name] = { dtype: "float32", dims: dims.map((d, i) => (i === 0 ? `n${d}` : d)) };
    this.feeds[name] = randomTensor(dims, this.#random);
    return name;
  }
  fixed(...dims: readonly number[]): string {
    const name = this.input(...dims);
    this.#inputs[name] = { dtype: "float32", dims };
    return name;
  }
  weight(...dims: readonly number[]): string { return this.#keep(randomTensor(dims, this.#random, 0.5)); }
  /** Values in [0.5, 1.5). */
  positive(...dims: readonly number[]): string { return this.#keep({ dtype: "float32", dims, data: Float32Array.from({ length: sizeOf(dims) }, () => 0.5 + this.#random()) }); }
  number(x: number): string { return this.#keep({ dtype: "float32", dims: [], data: Float32Array.of(x) }); }
  ints(...values: readonly number[]): string { return this.#keep({ dtype: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) }); }
  bools(dims: readonly number[], of: (i: number) => boolean): string { return this.#keep({ dtype: "bool", dims, data: Uint8Array.from({ length: sizeOf(dims) }, (_, i) => Number(of(i))) }); }
  #keep(t: Tensor): string {
    const name = `c${Object.keys(this.#initializers).length}`;
    this.#initializers[name] = t;
    return name;
  }
  add(type: string, inputs: readonly (string | number)[], attributes: Attributes = {}): string {
    const out = `t${this.#nodes.length}`;
    this.#nodes.push({ type, inputs: inputs.map((v) => (typeof v === "number" ? this.number(v) : v)), outputs: [out], name: `${type}_${this.#nodes.length}`, attributes });
    return out;
  }
  /** Two halves along axis 1. */
  split(x: string): readonly [string, string] {
    const outputs = [`t${this.#nodes.length}a`, `t${this.#nodes.length}b`] as const;
    this.#nodes.push({ type: "Split", inputs: [x], outputs, name: `Split_${this.#nodes.length}`, attributes: { axis: 1, num_outputs: 2 } });
    return outputs;
  }
  spec(outputs: readonly string[], opset: number): ModelSpec {
    return { opset, inputs: this.#inputs, outputs: Object.fromEntries(outputs.map((y) => [y, { dtype: "float32" as const, dims: [] }])), initializers: this.#initializers, nodes: this.#nodes };
  }
}
type Build = (m: Model) => string;

/** The model's bytes; output shapes are what the reference gives. */
function bytesOf(build: Build, opset: number): { readonly bytes: Uint8Array; readonly feeds: Record<string, Tensor> } {
  const m = new Model(), y = build(m), spec = m.spec([y], opset);
  return { bytes: modelBytes({ ...spec, outputs: { [y]: { dtype: "float32", dims: rankOf(spec, m.feeds, y) } } }), feeds: m.feeds };
}
function rankOf(spec: ModelSpec, feeds: Readonly<Record<string, Tensor>>, y: string): string[] {
  for (let rank = 0; rank < 6; rank++) {
    const dims = Array.from({ length: rank }, (_, d) => `y_${d}`);
    try {
      interpret(readModel(modelBytes({ ...spec, outputs: { [y]: { dtype: "float32", dims } } }), operators).graph, feeds);
      return dims;
    } catch { continue; }
  }
  throw new Error(`the model of '${y}' does not run`);
}
async function becomesOneCall(build: Build, opset = 17, calls = 1): Promise<void> {
  const { bytes, feeds } = bytesOf(build, opset);
  const { report } = compileModel(bytes);
  expect(report.nodes.compiled, report.sites.filter((s) => s.outcome === "refused").map((s) => `${s.name}: ${s.code} ${s.reason}`).join("; ")).toBe(calls);
  const expected = interpret(readModel(bytes, operators).graph, feeds);
  for (const fusion of [true, false]) expect(mismatch(await runCompiled(bytes, feeds, fusion), expected)).toBeUndefined();
}

// Contractions, with the shape of one constant a channel.
interface Target { readonly build: Build; readonly channel: readonly number[]; readonly batchNorm?: false; readonly fixedSize?: true }
const targets: Readonly<Record<string, Target>> = {
  Conv: { build: (m) => m.add("Conv", [m.input(2, 3, 6, 5), m.weight(4, 3, 3, 3), m.weight(4)], { pads: [1, 1, 1, 1] }), channel: [4, 1, 1] },
  "grouped Conv": { build: (m) => m.add("Conv", [m.input(1, 4, 6, 6), m.weight(6, 2, 3, 3)], { group: 2 }), channel: [6, 1, 1] },
  "depthwise Conv": { build: (m) => m.add("Conv", [m.input(1, 8, 5, 5), m.weight(8, 1, 3, 3)], { group: 8, pads: [1, 1, 1, 1] }), channel: [8, 1, 1] },
  "Conv 1-D": { build: (m) => m.add("Conv", [m.input(2, 3, 9), m.weight(4, 3, 3)]), channel: [4, 1] },
  ConvTranspose: { build: (m) => m.add("ConvTranspose", [m.input(1, 3, 4, 4), m.weight(3, 4, 2, 2)], { strides: [2, 2] }), channel: [4, 1, 1] },
  "grouped ConvTranspose": { build: (m) => m.add("ConvTranspose", [m.input(1, 4, 4, 4), m.weight(4, 3, 2, 2), m.weight(6)], { group: 2 }), channel: [6, 1, 1] },
  Gemm: { build: (m) => m.add("Gemm", [m.input(3, 5), m.weight(5, 4), m.weight(4)]), channel: [4] },
  "transposed Gemm": { build: (m) => m.add("Gemm", [m.fixed(5, 3), m.weight(4, 5)], { transA: 1, transB: 1, alpha: float(0.5) }), channel: [4], fixedSize: true },
  MatMul: { build: (m) => m.add("MatMul", [m.input(3, 5), m.weight(5, 4)]), channel: [4] },
  "MatMul of rank 3": { build: (m) => m.add("MatMul", [m.input(2, 3, 5), m.weight(5, 4)]), channel: [4], batchNorm: false },
};
const batchNorm = (m: Model, y: string, c: number): string => m.add("BatchNormalization", [y, m.positive(c), m.weight(c), m.weight(c), m.positive(c)]);
const affine: Readonly<Record<string, (m: Model, y: string, c: string) => string>> = {
  "y * c": (m, y, c) => m.add("Mul", [y, c]), "c * y": (m, y, c) => m.add("Mul", [c, y]),
  "y + c": (m, y, c) => m.add("Add", [y, c]), "c + y": (m, y, c) => m.add("Add", [c, y]),
  "y - c": (m, y, c) => m.add("Sub", [y, c]), "c - y": (m, y, c) => m.add("Sub", [c, y]), "y / c": (m, y, c) => m.add("Div", [y, c]),
};
describe.each(Object.entries(targets))("%s and", (_, target) => {
  test.skipIf(target.batchNorm === false)("BatchNormalization", () => becomesOneCall((m) => batchNorm(m, target.build(m), target.channel[0] ?? 1)));
  test.each(Object.entries(affine))("%s, a constant a channel and one for all", async (_, apply) => {
    await becomesOneCall((m) => apply(m, target.build(m), m.positive(...target.channel)));
    await becomesOneCall((m) => apply(m, target.build(m), m.number(0.3)));
  });
  test("a residual before the activation, in either order", async () => {
    for (const swapped of [false, true]) await becomesOneCall((m) => {
      const y = target.build(m), shape = Object.values(interpretOnce(target.build)).flatMap((t) => [...t.dims]);
      const residual = target.fixedSize ? m.fixed(...shape) : m.input(...shape);
      return m.add("Relu", [m.add("Add", swapped ? [residual, y] : [y, residual])]);
    });
  });
});
function interpretOnce(build: Build): Record<string, Tensor> {
  const { bytes, feeds } = bytesOf(build, 17);
  return interpret(readModel(bytes, operators).graph, feeds);
}

const activations: Readonly<Record<string, (m: Model, x: string) => string>> = {
  Relu: (m, x) => m.add("Relu", [x]),
  "Relu as a maximum": (m, x) => m.add("Max", [x, 0]),
  Relu6: (m, x) => m.add("Clip", [x, 0, 6]),
  "Clip as a minimum and a maximum": (m, x) => m.add("Max", [-1, m.add("Min", [x, 0.5])]),
  LeakyRelu: (m, x) => m.add("LeakyRelu", [x], { alpha: float(0.2) }),
  "LeakyRelu as a maximum": (m, x) => m.add("Max", [x, m.add("Mul", [0.2, x])]),
  PRelu: (m, x) => m.add("PRelu", [x, m.positive(4, 1, 1)]),
  Sigmoid: (m, x) => m.add("Sigmoid", [x]),
  Tanh: (m, x) => m.add("Tanh", [x]),
  Elu: (m, x) => m.add("Elu", [x]),
  HardSigmoid: (m, x) => m.add("HardSigmoid", [x], { alpha: float(1 / 6), beta: float(0.5) }),
  "HardSigmoid spelled out": (m, x) => m.add("Div", [m.add("Clip", [m.add("Add", [3, x]), 0, 6]), 6]),
  HardSwish: (m, x) => m.add("HardSwish", [x]),
  "HardSwish spelled out": (m, x) => m.add("Div", [m.add("Mul", [m.add("Clip", [m.add("Add", [x, 3]), 0, 6]), x]), 6]),
  "HardSwish by HardSigmoid": (m, x) => m.add("Mul", [m.add("HardSigmoid", [x], { alpha: float(1 / 6), beta: float(0.5) }), x]),
  "HardSwish times a sixth": (m, x) => m.add("Mul", [x, m.add("Mul", [0.16666667, m.add("Clip", [m.add("Add", [3, x]), 0, 6])])]),
  SiLU: (m, x) => m.add("Mul", [x, m.add("Sigmoid", [x])]),
  "SiLU, commuted": (m, x) => m.add("Mul", [m.add("Sigmoid", [x]), x]),
  "SiLU by exponentials": (m, x) => m.add("Div", [x, m.add("Add", [1, m.add("Exp", [m.add("Neg", [x])])])]),
  "GELU by erf": (m, x) => m.add("Mul", [0.5, m.add("Mul", [x, m.add("Add", [1, m.add("Erf", [m.add("Div", [x, 1.4142135])])])])]),
  "GELU by erf, halved first": (m, x) => m.add("Mul", [m.add("Mul", [x, 0.5]), m.add("Add", [m.add("Erf", [m.add("Mul", [x, 0.70710677])]), 1])]),
  "GELU by tanh": (m, x) => m.add("Mul", [m.add("Mul", [0.5, x]), m.add("Add", [1, m.add("Tanh", [m.add("Mul", [0.7978846, m.add("Add", [x, m.add("Mul", [0.044715, m.add("Pow", [x, 3])])])])])])]),
  "GELU by tanh of products": (m, x) => m.add("Mul", [x, m.add("Mul", [0.5, m.add("Add", [m.add("Tanh", [m.add("Mul", [m.add("Add", [m.add("Mul", [m.add("Mul", [m.add("Mul", [x, x]), x]), 0.044715]), x]), 0.7978846])]), 1])])]),
  Mish: (m, x) => m.add("Mul", [m.add("Tanh", [m.add("Softplus", [x])]), x]),
  "Mish spelled out": (m, x) => m.add("Mul", [x, m.add("Tanh", [m.add("Log", [m.add("Add", [m.add("Exp", [x]), 1])])])]),
  Softplus: (m, x) => m.add("Softplus", [x]),
  "Softplus spelled out": (m, x) => m.add("Log", [m.add("Add", [1, m.add("Exp", [x])])]),
  Softsign: (m, x) => m.add("Div", [x, m.add("Add", [m.add("Abs", [x]), 1])]),
};
describe.each(Object.entries(activations))("%s", (_, apply) => {
  test("behind a convolution with BatchNormalization, and alone", async () => {
    await becomesOneCall((m) => apply(m, batchNorm(m, m.add("Conv", [m.input(1, 3, 5, 5), m.weight(4, 3, 3, 3)]), 4)));
    await becomesOneCall((m) => apply(m, m.input(2, 4, 3, 3)));
  });
});

const lastAxis = (m: Model): string => m.ints(-1);
const mean = (m: Model, x: string): string => m.add("ReduceMean", [x, lastAxis(m)]);
const rows = (m: Model): string => m.input(2, 5, 8);
const deviation = (m: Model, v: string): string => m.add("Sqrt", [m.add("Add", [1e-5, v])]);
const layerNorm = (m: Model, x: string): string => {
  const d = m.add("Sub", [x, mean(m, x)]);
  return m.add("Add", [m.add("Mul", [m.add("Div", [d, deviation(m, mean(m, m.add("Pow", [d, 2])))]), m.positive(8)]), m.weight(8)]);
};
const swapped = [0, 1, 3, 2];
const qkv = (m: Model): readonly [string, string, string] => [m.fixed(2, 2, 6, 4), m.fixed(2, 2, 7, 4), m.fixed(2, 2, 7, 5)];
const scores = (m: Model, q: string, k: string): string => m.add("MatMul", [q, m.add("Transpose", [k], { perm: swapped })]);
const attend = (m: Model, change: (s: string) => string = (s) => s): string => { const [q, k, v] = qkv(m); return m.add("MatMul", [m.add("Softmax", [change(scores(m, q, k))]), v]); };

const patterns: Readonly<Record<string, Build | readonly [opset: number, build: Build]>> = {
  "Pad into Conv": (m) => m.add("Conv", [m.add("Pad", [m.input(1, 3, 5, 5), m.ints(0, 0, 1, 2, 0, 0, 2, 1)]), m.weight(4, 3, 3, 3)]),
  "Pad into AveragePool": (m) => m.add("AveragePool", [m.add("Pad", [m.input(1, 3, 5, 5), m.ints(0, 0, 1, 1, 0, 0, 1, 1)]), ], { kernel_shape: [3, 3], count_include_pad: 1 }),
  "Pad into Conv, opset 7": [7, (m) => m.add("Conv", [m.add("Pad", [m.input(1, 3, 5, 5)], { pads: [0, 0, 1, 1, 0, 0, 1, 1], mode: "constant" }), m.weight(4, 3, 3, 3)])],
  "LayerNorm by power": (m) => layerNorm(m, rows(m)),
  "LayerNorm by product, times a reciprocal": (m) => {
    const x = rows(m), d = m.add("Sub", [x, mean(m, x)]);
    return m.add("Add", [m.weight(8), m.add("Mul", [m.positive(8), m.add("Mul", [d, m.add("Reciprocal", [deviation(m, mean(m, m.add("Mul", [d, d])))])])])]);
  },
  "LayerNorm without scale": (m) => { const x = rows(m), d = m.add("Sub", [x, mean(m, x)]); return m.add("Div", [d, deviation(m, mean(m, m.add("Mul", [d, d])))]); },
  "LayerNorm as an operator": (m) => m.add("LayerNormalization", [rows(m), m.positive(8), m.weight(8)]),
  "RMSNorm by power": (m) => { const x = rows(m); return m.add("Mul", [m.positive(8), m.add("Div", [x, deviation(m, mean(m, m.add("Pow", [x, 2])))])]); },
  "RMSNorm times a reciprocal": (m) => { const x = rows(m); return m.add("Mul", [m.add("Mul", [x, m.add("Div", [1, deviation(m, mean(m, m.add("Mul", [x, x])))])]), m.positive(8)]); },
  "SkipLayerNorm": (m) => { const x = rows(m); return layerNorm(m, m.add("Add", [x, m.fixed(2, 5, 8)])); },
  "SkipLayerNorm with a bias": (m) => layerNorm(m, m.add("Add", [m.fixed(2, 5, 8), m.add("Add", [m.fixed(2, 5, 8), m.weight(8)])])),
  "Softmax with scale and mask": (m) => m.add("Softmax", [m.add("Add", [m.fixed(2, 1, 8), m.add("Mul", [m.fixed(2, 5, 8), 0.3])])]),
  "attention": (m) => attend(m),
  "attention, scores divided": (m) => attend(m, (s) => m.add("Div", [s, 2])),
  "attention, scores multiplied and masked": (m) => attend(m, (s) => m.add("Add", [m.weight(6, 7), m.add("Mul", [0.5, s])])),
  "attention, mask fed": (m) => attend(m, (s) => m.add("Add", [m.add("Mul", [s, 0.5]), m.fixed(2, 1, 6, 7)])),
  "attention, query scaled": (m) => { const [q, k, v] = qkv(m); return m.add("MatMul", [m.add("Softmax", [scores(m, m.add("Mul", [q, 0.5]), k)]), v]); },
  "attention, both scaled": (m) => { const [q, k, v] = qkv(m); return m.add("MatMul", [m.add("Softmax", [scores(m, m.add("Mul", [q, 0.7]), m.add("Mul", [k, 0.7]))]), v]); },
  "attention, keys scaled behind their transposition": (m) => { const [q, k, v] = qkv(m); return m.add("MatMul", [m.add("Softmax", [m.add("MatMul", [m.add("Div", [q, 1.5]), m.add("Div", [m.add("Transpose", [k], { perm: swapped }), 1.5])])]), v]); },
  "attention, masked, then scaled": (m) => attend(m, (s) => m.add("Mul", [m.add("Add", [s, m.weight(6, 7)]), 0.5])),
  "attention, two masks": (m) => attend(m, (s) => m.add("Add", [m.add("Add", [m.add("Mul", [s, 0.5]), m.weight(6, 7)]), m.fixed(2, 1, 1, 7)])),
  "attention, masked by choice": (m) => attend(m, (s) => m.add("Where", [m.bools([6, 7], (i) => i % 7 > Math.floor(i / 7)), -1e9, m.add("Mul", [s, 0.5])])),
  "attention, allowed by choice": (m) => attend(m, (s) => m.add("Where", [m.bools([6, 7], (i) => i % 7 <= Math.floor(i / 7)), m.add("Div", [s, 2]), -Infinity])),
  "attention with Dropout": (m) => { const [q, k, v] = qkv(m); return m.add("MatMul", [m.add("Dropout", [m.add("Softmax", [scores(m, q, k)])]), v]); },
  "attention with fewer key heads": (m) => {
    const q = m.fixed(1, 4, 6, 4), repeated = (x: string): string => m.add("Reshape", [m.add("Expand", [m.add("Unsqueeze", [x, m.ints(2)]), m.ints(1, 2, 2, 7, 4)]), m.ints(1, 4, 7, 4)]);
    return m.add("MatMul", [m.add("Softmax", [scores(m, q, repeated(m.fixed(1, 2, 7, 4)))]), repeated(m.fixed(1, 2, 7, 4))]);
  },
  "a chain with a reduction at its end": (m) => m.add("ReduceMean", [m.add("Abs", [m.add("Sub", [rows(m), 0.5])]), lastAxis(m)]),
  "a chain with a reduction at its start": (m) => m.add("Sqrt", [m.add("Add", [m.add("ReduceMean", [rows(m), lastAxis(m)], {}), 2])]),
  "a chain around a reduction": (m) => { const x = m.add("Relu", [rows(m)]); return m.add("Mul", [x, m.add("Sigmoid", [m.add("ReduceMax", [x, lastAxis(m)])])]); },
  "a chain of broadcasts": (m) => m.add("Relu", [m.add("Add", [m.add("Mul", [m.input(2, 5, 1), m.weight(8)]), m.fixed(5, 8)])]),
  "a chain around movement": (m) => m.add("Relu", [m.add("Reshape", [m.add("Transpose", [m.add("Add", [m.fixed(2, 3, 4), 1])], { perm: [1, 0, 2] }), m.ints(3, 8)])]),
};
describe("one call:", () => {
  test.each(Object.entries(patterns))("%s", (_, pattern) => (typeof pattern === "function" ? becomesOneCall(pattern, patternOpset) : becomesOneCall(pattern[1], pattern[0])));
});
/** ReduceMean with its axes as an input. */
const patternOpset = 18;

const cleaned: Readonly<Record<string, readonly [calls: number, build: Build]>> = {
  "Transpose there and back": [1, (m) => m.add("Relu", [m.add("Transpose", [m.add("Transpose", [m.input(2, 3, 4)], { perm: [2, 0, 1] })], { perm: [1, 2, 0] })])],
  "Reshape of Reshape": [1, (m) => m.add("Relu", [m.add("Reshape", [m.add("Reshape", [m.fixed(2, 3, 4), m.ints(6, 4)]), m.ints(4, 6)])])],
  "Cast to float and back, Identity, Dropout": [1, (m) => m.add("Relu", [m.add("Dropout", [m.add("Identity", [m.add("Cast", [m.input(2, 3)], { to: 1 })])])])],
  "Cast to a wider type and back": [1, (m) => m.add("Relu", [m.add("Cast", [m.add("Cast", [m.input(2, 3)], { to: 11 })], { to: 1 })])],
  "Slice of everything": [1, (m) => m.add("Relu", [m.add("Slice", [m.input(2, 3), m.ints(0), m.ints(100), m.ints(1)])])],
  "Slice of Slice": [1, (m) => m.add("Relu", [m.add("Slice", [m.add("Slice", [m.fixed(9, 4), m.ints(1), m.ints(8), m.ints(0)]), m.ints(1), m.ints(3), m.ints(0)])])],
  "Concat of one": [1, (m) => m.add("Relu", [m.add("Concat", [m.input(2, 3)], { axis: 1 })])],
  "Split and the same Concat": [1, (m) => m.add("Relu", [m.add("Concat", m.split(m.input(2, 6)), { axis: -1 })])],
  "Split and Concat the other way round, which copies": [2, (m) => m.add("Concat", [...m.split(m.add("Relu", [m.input(2, 6)]))].reverse(), { axis: 1 })],
  "common subexpressions": [1, (m) => { const x = m.input(2, 6), w = m.weight(6, 6), y = (): string => m.add("MatMul", [x, w]); return m.add("Add", [y(), y()]); }],
  "constants folded": [1, (m) => m.add("Add", [m.input(2, 6), m.add("Mul", [m.add("Exp", [m.weight(6)]), m.weight(6)])])],
  "dead code": [1, (m) => { const x = m.input(2, 6); m.add("MatMul", [x, m.weight(6, 6)]); return m.add("Relu", [x]); }],
};
describe("clean-up leaves what is needed:", () => {
  test.each(Object.entries(cleaned))("%s", (_, [calls, build]) => becomesOneCall(build, patternOpset, calls));
});

test("a wrong result, and a second call, are seen", async () => {
  await expect(becomesOneCall((m) => m.add("ReduceMax", [m.add("MatMul", [m.add("Softmax", [m.input(2, 5, 8)]), m.weight(8, 8)])], { axes: [0] }))).rejects.toThrow(/expected/);
});
