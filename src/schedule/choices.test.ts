import { describe, expect, it } from "vitest";
import { convBnRelu } from "../../test/support/article-models.ts";
import { difference } from "../../test/support/cases.ts";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { compile, DiagnosticError } from "../api/index.ts";
import { readArtifact } from "../artifact/artifact.ts";
import { allSteps } from "../kernel/segments.ts";
import { bytesOf, type Tensor as CoreTensor } from "../core/tensor.ts";
import { load, Tensor } from "../runtime/index.ts";
import { signatureOf, type Choices, type KernelChoice } from "./choices.ts";

const random = randomFrom(9);
const gelu = (rows: number): ModelSpec => ({
  opset: 20, inputs: { x: { dtype: "float32", dims: [rows, 24] } }, outputs: { y: { dtype: "float32", dims: [rows, 44] } }, initializers: { w: randomTensor([24, 44], random), b: randomTensor([44], random) },
  nodes: [{ type: "MatMul", name: "m", inputs: ["x", "w"], outputs: ["p"] }, { type: "Add", name: "a", inputs: ["p", "b"], outputs: ["s"] }, { type: "Gelu", name: "g", inputs: ["s"], outputs: ["y"] }],
});

async function compiled(spec: ModelSpec, choice?: KernelChoice) {
  const signatures = new Set<string>();
  const onStage = (stage: { readonly name: string; readonly program?: { readonly steps: Parameters<typeof allSteps>[0] } }): void => {
    if (stage.name !== "laid-out" || !stage.program) return;
    for (const s of allSteps(stage.program.steps)) { const found = s.kind === "call" ? signatureOf(s.kernel) : undefined; if (found !== undefined) signatures.add(found); }
  };
  await compile(modelBytes(spec), { onStage });
  const choices: Choices = Object.fromEntries([...signatures].map((s) => [s, choice ?? {}]));
  return { artifact: (await compile(modelBytes(spec), choice ? { choices } : {})).artifact, choices };
}
async function run(artifact: Uint8Array, x: CoreTensor): Promise<CoreTensor> {
  const { y } = await (await load(artifact)).run({ x: Tensor.of(x) });
  if (!y) throw new Error("no result");
  return y.unpacked();
}

describe("choices", () => {
  const all: readonly KernelChoice[] = [{ tile: "2x16" }, { strips: false }, { winograd: false }, { winograd: false, tile: "2x16", strips: false }, { split: "outer" }];
  it.each([1, 2, 3, 4, 5, 7, 9, 33])("of %i rows compute the same", async (rows) => {
    const spec = gelu(rows), x = randomTensor([rows, 24], random), expected = await run((await compiled(spec)).artifact, x);
    for (const choice of all) expect(difference(await run((await compiled(spec, choice)).artifact, x), expected, 1e-6), JSON.stringify(choice)).toBeUndefined();
  });
  it.each(["conv", "grouped", "conv1d", "transpose"] as const)("of a convolution (%s) compute the same, by other code", async (form) => {
    const { spec } = convBnRelu(form), dims = spec.inputs["x"]?.dims.map(Number) ?? [], x = randomTensor(dims, random), plain = await compiled(spec), expected = await run(plain.artifact, x);
    for (const choice of all) {
      const { artifact } = await compiled(spec, choice);
      expect(difference(await run(artifact, x), expected, 1e-4), JSON.stringify(choice)).toBeUndefined();
      if (choice.tile === "2x16" && (form !== "conv" || choice.winograd === false)) expect(readArtifact(artifact).section(1)).not.toEqual(readArtifact(plain.artifact).section(1));
    }
  });
  it("of what threads share compute the same bits, in pieces of whole rows", async () => {
    const spec: ModelSpec = {
      opset: 20, inputs: { x: { dtype: "float32", dims: [6007, 24] } }, outputs: { y: { dtype: "float32", dims: [6007, 44] } }, initializers: { w: randomTensor([24, 44], random) },
      nodes: [{ type: "MatMul", name: "m", inputs: ["x", "w"], outputs: ["y"] }],
    };
    const x = randomTensor([6007, 24], random), plain = await compiled(spec), outer = await compiled(spec, { split: "outer" });
    const bits = async (artifact: Uint8Array, threads: number): Promise<string> => {
      const session = await load(artifact, { threads }), { y } = await session.run({ x: Tensor.of(x) });
      expect(session.threads).toBe(threads);
      session.dispose();
      return y ? Buffer.from(bytesOf(y.unpacked())).toString("base64") : "none";
    };
    const expected = await bits(plain.artifact, 1);
    for (const { artifact } of [plain, outer]) for (const threads of [1, 2, 3]) expect(await bits(artifact, threads) === expected).toBe(true);
    expect(readArtifact(outer.artifact).section(1)).not.toEqual(readArtifact(plain.artifact).section(1));
  });
  it("are recorded, in one order, and refused where they are none", async () => {
    const { artifact, choices } = await compiled(gelu(4), { tile: "2x16", strips: false });
    expect(readArtifact(artifact).manifest.options["choices"]).toEqual(choices);
    const [key = ""] = Object.keys(choices);
    const other = await compile(modelBytes(gelu(4)), { choices: { [key]: { strips: false, tile: "2x16" } } });
    expect(readArtifact(other.artifact).section(1)).toEqual(readArtifact(artifact).section(1));
    await expect(compile(modelBytes(gelu(4)), { choices: { x: { tile: "3x3" } } as unknown as Choices })).rejects.toThrow(DiagnosticError);
  });
  it("know kernels by what they compute", async () => {
    const of = async (spec: ModelSpec): Promise<string[]> => Object.keys((await compiled(spec)).choices);
    expect(await of(gelu(4))).toEqual(await of(gelu(4)));
    expect(await of(gelu(4))).not.toEqual(await of(gelu(5)));
    expect(await of(convBnRelu("conv1d").spec)).not.toEqual(await of(convBnRelu("transpose").spec));
  });
});
