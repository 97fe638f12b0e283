/** Joined siblings compiled: fewer calls and no copies, and the same results at awkward sizes, against the reference and onnxruntime. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { randomFrom } from "./support/random.ts";
import { compareWays, f32, i64 } from "./support/three-ways.ts";

const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, inputs, outputs, attributes });
const random = randomFrom(3);
const noise = (...dims: readonly number[]): Tensor => f32(dims, ...Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.normal()));
const named = (count: number, make: (i: number) => readonly [string, Tensor][]): Record<string, Tensor> => Object.fromEntries(Array.from({ length: count }, (_, i) => make(i)).flat());
const each = (count: number, make: (i: number) => readonly NodeSpec[]): readonly NodeSpec[] => Array.from({ length: count }, (_, i) => make(i)).flat();
const outputs = (count: number): ModelSpec["outputs"] => Object.fromEntries(Array.from({ length: count }, (_, i) => [`y${i}`, undefined]));
const f = (...dims: (number | string)[]): ModelSpec["inputs"][string] => ({ dtype: "float32", dims });

interface Case { readonly model: ModelSpec; readonly joined: number; readonly apart: number; readonly feeds: readonly Readonly<Record<string, Tensor>>[] }
const widths = [5, 1, 17];
const pools = (from: (i: number) => string) => (i: number): NodeSpec => node(i % 2 ? "AveragePool" : "MaxPool", [from(i)], [`y${i}`], { kernel_shape: [2, 2], strides: [1, 1] });
const convolutions = (window: number, attributes: NodeSpec["attributes"], channels: number): ModelSpec => ({
  opset: 17, inputs: { x: f("n", 3, "h", "w") }, outputs: outputs(3),
  initializers: { first: noise(channels, 3, 1, 1), ...named(3, (i) => [[`w${i}`, noise(widths[i] ?? 1, channels, window, window)], [`b${i}`, noise(widths[i] ?? 1)]]) },
  nodes: [node("Conv", ["x", "first"], ["z"]), ...each(3, (i) => [node("Conv", i === 1 ? ["z", "w1"] : ["z", `w${i}`, `b${i}`], [`c${i}`], attributes), node("LeakyRelu", [`c${i}`], [`a${i}`]), pools((k) => `a${k}`)(i)])],
});
const images = [f32([1, 3, 5, 7], ...noise(1, 3, 5, 7).data as Float32Array), noise(2, 3, 2, 9), noise(1, 3, 16, 16)].map((x) => ({ x }));

const cases: Readonly<Record<string, Case>> = {
  "query, key and value": {
    joined: 3, apart: 5, feeds: [noise(1, 1, 6), noise(2, 7, 6), noise(3, 33, 6)].map((x) => ({ x })),
    model: {
      opset: 17, inputs: { x: f("b", "s", 6) }, outputs: outputs(1),
      initializers: { shape: i64([4], 0, 0, 2, 4), flat: i64([3], 0, 0, 8), ...named(3, (i) => [[`w${i}`, noise(6, 8)], [`b${i}`, noise(8)]]), o: noise(8, 5) },
      nodes: [
        ...each(3, (i) => [node("MatMul", ["x", `w${i}`], [`m${i}`]), node("Add", i === 2 ? [`m${i}`, `b${i}`] : [`b${i}`, `m${i}`], [`p${i}`]), node("Reshape", [`p${i}`, "shape"], [`r${i}`]), node("Transpose", [`r${i}`], [`t${i}`], { perm: i === 1 ? [0, 2, 3, 1] : [0, 2, 1, 3] })]),
        node("MatMul", ["t0", "t1"], ["s"]), node("Softmax", ["s"], ["p"]), node("MatMul", ["p", "t2"], ["c"]),
        node("Transpose", ["c"], ["ct"], { perm: [0, 2, 1, 3] }), node("Reshape", ["ct", "flat"], ["cf"]), node("MatMul", ["cf", "o"], ["y0"]),
      ],
    },
  },
  "heads of different widths": {
    joined: 4, apart: 6, feeds: [noise(1, 6), noise(13, 6)].map((x) => ({ x })),
    model: {
      opset: 17, inputs: { x: f("n", 6) }, outputs: outputs(3), initializers: named(3, (i) => [[`w${i}`, noise(6, widths[i] ?? 1)], [`b${i}`, noise(widths[i] ?? 1)]]),
      nodes: each(3, (i) => [node("Gemm", i === 1 ? ["x", "w1"] : ["x", `w${i}`, `b${i}`], [`g${i}`]), node("Tanh", [`g${i}`], [`t${i}`]), node("Softmax", [`t${i}`], [`y${i}`])]),
    },
  },
  "dynamically quantised products": {
    joined: 5, apart: 7, feeds: [noise(1, 6), noise(13, 6)].map((x) => ({ x })),
    model: {
      opset: 17, inputs: { x: f("n", 6) }, outputs: outputs(3),
      initializers: named(3, (i) => [[`w${i}`, fromNumbers("int8", [6, widths[i] ?? 1], Array.from({ length: 6 * (widths[i] ?? 1) }, () => Math.floor(random() * 200) - 100))], [`s${i}`, f32([], 0.01 + 0.01 * i)], [`z${i}`, fromNumbers("int8", [], [i - 1])], [`b${i}`, noise(widths[i] ?? 1)]]),
      nodes: [node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]), ...each(3, (i) => [
        node("MatMulInteger", ["q", `w${i}`, "qz", `z${i}`], [`m${i}`]), node("Cast", [`m${i}`], [`c${i}`], { to: 1 }), node("Mul", ["qs", `s${i}`], [`u${i}`]), node("Mul", [`c${i}`, `u${i}`], [`p${i}`]),
        node("Add", [`p${i}`, `b${i}`], [`a${i}`]), node("Softmax", [`a${i}`], [`y${i}`]),
      ])],
    },
  },
  "MatMulNBits": {
    joined: 4, apart: 6, feeds: [noise(1, 40), noise(13, 40)].map((x) => ({ x })),
    model: {
      opset: 17, inputs: { x: f("n", 40) }, outputs: outputs(3),
      initializers: named(3, (i) => {
        const n = [16, 3, 9][i] ?? 1, bytes = (...dims: readonly number[]): Tensor => fromNumbers("uint8", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => Math.floor(random() * 256)));
        return [[`w${i}`, bytes(n, 3, 8)], [`s${i}`, f32([n * 3], ...Array.from({ length: n * 3 }, () => 0.01 + 0.02 * random()))], [`z${i}`, bytes(n * 2)], [`b${i}`, noise(n)]];
      }),
      nodes: each(3, (i) => [
        { ...node("MatMulNBits", ["x", `w${i}`, `s${i}`, ...(i === 1 ? [] : [`z${i}`]), ...(i === 2 ? ["", "b2"] : [])], [`m${i}`], { K: 40, N: [16, 3, 9][i] ?? 1, bits: 4, block_size: 16 }), domain: "com.microsoft" },
        node("Softmax", [`m${i}`], [`y${i}`]),
      ]),
    },
  },
  "1x1 convolutions": { joined: 5, apart: 7, feeds: images, model: convolutions(1, {}, 4) },
  "3x3 convolutions": { joined: 5, apart: 7, feeds: images, model: convolutions(3, { pads: [1, 1, 1, 1] }, 4) },
  "3x3 convolutions of many channels": { joined: 5, apart: 7, feeds: images, model: convolutions(3, { pads: [1, 1, 1, 1], strides: [1, 1] }, 16) },
};
const off = { named: { "merge-sibling-products": false, "merge-sibling-convolutions": false } };

describe.each(Object.entries(cases))("%s", (_, { model, joined, apart, feeds }) => {
  test("is right", async () => expect(await compareWays(model, feeds)).toBeUndefined());
  test("takes fewer calls", () => {
    const inputShapes = { x: feeds[1]?.["x"]?.dims ?? [] };
    expect(compileModel(modelBytes(model), { inputShapes }).report.nodes.compiled).toBe(joined);
    expect(compileModel(modelBytes(model), { inputShapes, fusionSwitches: off }).report.nodes.compiled).toBe(apart);
  });
});
