/**
 * What is stored and then read row by row, such as a residual sum and its normalisation, is one kernel: right at awkward
 * sizes and in every type, with the same bits in threads, and in fewer calls than where the sum cannot be shared.
 */
import { describe, expect, test } from "vitest";
import { compile } from "../src/api/index.ts";
import { compileModel } from "../src/compiler/compile.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { load } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { randomFrom } from "./support/random.ts";
import { compareWays, f32, i64, runSession } from "./support/three-ways.ts";

const random = randomFrom(23);
const noise = (...dims: readonly number[]): Tensor => ({ dtype: "float32", dims, data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.normal()) });
const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, inputs, outputs, attributes });
const sum = node("Add", ["x", "r"], ["v"]);

interface Case { readonly nodes: readonly NodeSpec[]; readonly outputs: readonly string[]; readonly calls: number }
const cases: Readonly<Record<string, Case>> = {
  "layer normalisation": { nodes: [sum, node("LayerNormalization", ["v", "g", "c"], ["y"], { axis: -1 })], outputs: ["y", "v"], calls: 1 },
  "layer normalisation of the last two axes": { nodes: [sum, node("LayerNormalization", ["v", "g"], ["y"], { axis: -2 })], outputs: ["y", "v"], calls: 1 },
  "root mean square": { nodes: [sum, node("Mul", ["v", "v"], ["q"]), node("ReduceMean", ["q", "axes"], ["m"]), node("Add", ["m", "e"], ["w"]), node("Sqrt", ["w"], ["d"]), node("Div", ["v", "d"], ["n"]), node("Mul", ["n", "g"], ["y"])], outputs: ["y", "v"], calls: 1 },
  "a difference from the mean, and its root mean square": { nodes: [node("ReduceMean", ["x", "axes"], ["u"]), node("Sub", ["x", "u"], ["v"]), node("Mul", ["v", "v"], ["q"]), node("ReduceMean", ["q", "axes"], ["m"]), node("Add", ["m", "e"], ["w"]), node("Sqrt", ["w"], ["d"]), node("Div", ["v", "d"], ["n"]), node("Mul", ["n", "r"], ["y"])], outputs: ["y", "v"], calls: 1 },
  softmax: { nodes: [sum, node("Softmax", ["v"], ["y"])], outputs: ["y", "v"], calls: 1 },
  "a sum with a bias, normalised, and added again": { nodes: [node("Add", ["x", "c"], ["p"]), node("Add", ["p", "r"], ["v"]), node("LayerNormalization", ["v", "g", "c"], ["l"]), node("Relu", ["l"], ["a"]), node("Add", ["a", "v"], ["y"])], outputs: ["y", "v"], calls: 1 },
  "a sum that only the normalisation reads": { nodes: [sum, node("LayerNormalization", ["v", "g", "c"], ["l"]), node("Relu", ["l"], ["y"])], outputs: ["y"], calls: 1 },
  "scores with a mask": { nodes: [node("Mul", ["x", "r"], ["p"]), node("Add", ["p", "c"], ["v"]), node("Softmax", ["v"], ["y"])], outputs: ["y"], calls: 1 },
  "a dear function of what is normalised": { nodes: [node("Sigmoid", ["x"], ["s"]), node("Mul", ["s", "r"], ["v"]), node("LayerNormalization", ["v", "g"], ["l"]), node("Add", ["l", "x"], ["y"])], outputs: ["y"], calls: 1 },
  "a row's statistic beside it": { nodes: [sum, node("ReduceMax", ["v", "axes"], ["y"])], outputs: ["y", "v"], calls: 1 },
};
const model = ({ nodes, outputs }: Case, h: number, dims: readonly (number | string)[] = ["b", "s", h]): ModelSpec => ({
  opset: 18, inputs: { x: { dtype: "float32", dims }, r: { dtype: "float32", dims } }, outputs: Object.fromEntries(outputs.map((o) => [o, undefined])),
  initializers: { g: noise(h), c: noise(h), e: f32([], 1e-5), axes: i64([1], -1) }, nodes,
});
const feed = (...dims: readonly number[]): Record<string, Tensor> => ({ x: noise(...dims), r: noise(...dims) });

describe.each(Object.entries(cases))("%s", (_, c) => {
  test.each([1, 3, 8, 33])("in rows of %i", async (h) => {
    expect(await compareWays(model(c, h), [[1, 1], [2, 3], [1, 9], [4, 1]].map((d) => feed(...d, h)))).toBeUndefined();
  });
  test("with known sizes", async () => {
    for (const dims of [[1, 1, 12], [5, 1, 7], [1, 6, 16]] as const) expect(await compareWays(model(c, dims[2], dims), [feed(...dims)])).toBeUndefined();
  });
  test("no elements", async () => {
    expect(await compareWays(model(c, 4), [feed(0, 2, 4)], { onnxruntime: false })).toBeUndefined();
  });
  test("takes as many calls as it should", () => {
    expect(compileModel(modelBytes(model(c, 24))).report.nodes.compiled).toBe(c.calls);
  });
  test("has the same bits in threads", async () => {
    const { artifact } = await compile(modelBytes(model(c, 320)));
    const one = await load(artifact), two = await load(artifact, { threads: 2 });
    try {
      for (const f of [feed(1, 200, 320), feed(40, 5, 320)]) expect(await runSession(two, f)).toEqual(await runSession(one, f));
    } finally {
      one.dispose();
      two.dispose();
    }
  });
});
