/** Gate and up as one kernel: at awkward sizes, with dear and cheap epilogues, against the reference and onnxruntime; and how many calls are left. */
import { describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { randomFrom } from "./support/random.ts";
import { compareWays, f32 } from "./support/three-ways.ts";

const random = randomFrom(11);
const noise = (...dims: readonly number[]): Tensor => f32(dims, ...Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.normal()));
const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, inputs, outputs, attributes });

const product = (biased: boolean, name: string): readonly NodeSpec[] =>
  biased ? [node("MatMul", ["z", name], [`${name}p`]), node("Add", [`${name}b`, `${name}p`], [`${name}r`])] : [node("MatMul", ["z", name], [`${name}r`])];
/** What meets what, from results `gr`, `ur` and, where there is a third, `cr`. */
const ends: Readonly<Record<string, readonly NodeSpec[]>> = {
  SwiGLU: [node("Sigmoid", ["gr"], ["gs"]), node("Mul", ["gr", "gs"], ["ga"]), node("Mul", ["ga", "ur"], ["y"])],
  bilinear: [node("Mul", ["gr", "ur"], ["y"])],
  maxout: [node("Max", ["gr", "ur", "cr"], ["y"])],
  gates: [node("Sigmoid", ["gr"], ["ga"]), node("Tanh", ["cr"], ["ca"]), node("Mul", ["ga", "ca"], ["m"]), node("Add", ["m", "ur"], ["y"])],
};
interface Sizes { readonly k: number; readonly n: number; readonly biased?: boolean; readonly dims?: readonly (number | string)[] }
const model = (end: string, { k, n, biased = false, dims = ["b", "s", k] }: Sizes): ModelSpec => {
  const names = ends[end]?.some((e) => e.inputs.includes("cr")) ? ["g", "u", "c"] : ["g", "u"];
  return {
    opset: 17, inputs: { x: { dtype: "float32", dims } }, outputs: { y: undefined },
    initializers: Object.fromEntries(names.flatMap((w) => [[w, noise(k, n)], [`${w}b`, noise(n)]])),
    nodes: [node("Neg", ["x"], ["z"]), ...names.flatMap((w) => product(biased, w)), ...ends[end] ?? []],
  };
};
const rows = (k: number): readonly { readonly x: Tensor }[] => [[1, 1], [1, 3], [2, 2], [1, 7], [3, 15]].map((dims) => ({ x: noise(...dims, k) }));

describe.each(Object.keys(ends))("%s", (end) => {
  test.each([{ k: 1, n: 1 }, { k: 3, n: 5, biased: true }, { k: 16, n: 8 }, { k: 7, n: 16 }, { k: 5, n: 33, biased: true }, { k: 4, n: 40, biased: true }])("of $k by $n is right", async (sizes) => {
    expect(await compareWays(model(end, sizes), rows(sizes.k))).toBeUndefined();
  });
  test("is one call behind its input's", () => {
    const bytes = modelBytes(model(end, { k: 8, n: 24, biased: true }));
    expect(compileModel(bytes).report.nodes.compiled).toBe(2);
    expect(compileModel(bytes, { fusionSwitches: { named: { "merge-gated-products": false } } }).report.nodes.compiled).toBeGreaterThan(2);
  });
});

test.each([[1, 6], [4, 6], [5, 6], [37, 6]])("known rows %s", async (...dims) => {
  for (const end of ["SwiGLU", "bilinear"]) expect(await compareWays(model(end, { k: 6, n: 20, biased: true, dims }), [{ x: noise(...dims) }])).toBeUndefined();
});
test("wider than a strip", async () => {
  expect(await compareWays(model("SwiGLU", { k: 3, n: 2051, dims: ["n", 3] }), [{ x: noise(1, 3) }, { x: noise(6, 3) }])).toBeUndefined();
});
