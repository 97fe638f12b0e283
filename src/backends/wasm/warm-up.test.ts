import { describe, expect, it } from "vitest";
import { readArtifact } from "../../artifact/artifact.ts";
import { compileModel } from "../../compiler/compile.ts";
import { modelBytes, type ModelSpec } from "../../../test/support/model-spec.ts";
import { randomFrom, randomTensor } from "../../../test/support/random.ts";
import { codeFor } from "./load.ts";

const random = randomFrom(3);
/** Convolutions of three kinds, a normalisation and a matrix product, of a known batch or any. */
const spec = (batch: number | string): ModelSpec => ({
  opset: 20, inputs: { x: { dtype: "float32", dims: [batch, 16, 40, 40] } }, outputs: { y: { dtype: "float32", dims: [batch, 48] } },
  initializers: { w: randomTensor([16, 16, 3, 3], random, 0.1), d: randomTensor([16, 1, 3, 3], random, 0.1), p: randomTensor([64, 16, 1, 1], random, 0.1), m: randomTensor([64, 48], random, 0.1) },
  nodes: [
    { type: "Conv", inputs: ["x", "w"], outputs: ["a"], attributes: { kernel_shape: [3, 3], pads: [1, 1, 1, 1] } },
    { type: "Conv", inputs: ["a", "d"], outputs: ["b"], attributes: { kernel_shape: [3, 3], group: 16 } },
    { type: "Conv", inputs: ["b", "p"], outputs: ["c"], attributes: { kernel_shape: [1, 1] } },
    { type: "Softmax", inputs: ["c"], outputs: ["s"], attributes: { axis: 3 } },
    { type: "GlobalAveragePool", inputs: ["s"], outputs: ["g"] },
    { type: "Flatten", inputs: ["g"], outputs: ["f"], attributes: { axis: 1 } },
    { type: "MatMul", inputs: ["f", "m"], outputs: ["y"] },
  ],
});

async function instanceFor(model: ModelSpec) {
  const { instance } = await WebAssembly.instantiate(codeFor(readArtifact(compileModel(modelBytes(model)).artifact)).code as Uint8Array<ArrayBuffer>, {});
  const { memory, ...functions } = instance.exports as { readonly memory: WebAssembly.Memory } & Readonly<Record<string, () => void>>;
  return { memory: new Uint8Array(memory.buffer), functions };
}

describe("warm_up", () => {
  it.each([["with sizes that are known", 16], ["with a size that is not", "n"]] as const)("calls kernels %s and touches nothing", async (_, batch) => {
    const { memory, functions } = await instanceFor(spec(batch));
    memory.fill(0x3d);
    const before = memory.slice();
    functions["warm_up"]?.();
    expect(functions["warm_up"]).toBeDefined();
    expect(Buffer.compare(memory, before)).toBe(0);
  });
  it("runs do touch memory", async () => {
    const { memory, functions } = await instanceFor(spec(16));
    memory.fill(1);
    const before = memory.slice();
    functions["run_0"]?.();
    expect(Buffer.compare(memory, before)).not.toBe(0);
  });
  it("is left out where nothing computes long", async () => {
    const { functions } = await instanceFor({ opset: 20, inputs: { x: { dtype: "float32", dims: [3] } }, outputs: { y: { dtype: "float32", dims: [3] } }, initializers: {}, nodes: [{ type: "Exp", inputs: ["x"], outputs: ["y"] }] });
    expect(Object.keys(functions)).toEqual(["run_0"]);
  });
});
