import { setFlagsFromString } from "node:v8";
import { expect, it } from "vitest";
import { modelBytes } from "../../test/support/model-spec.ts";
import { sevenBitConv, sevenBitMatMul } from "../../test/support/seven-bit-models.ts";
import { readArtifact, writeArtifact } from "../artifact/artifact.ts";
import { compileModel } from "../compiler/compile.ts";
import { takeApart } from "../profile/apart.ts";
import { load, type LoadOptions } from "./load.ts";
import { Tensor } from "./tensor.ts";

// Node 20 has relaxed SIMD on trial, and its quick code for the dot product of bytes is wrong.
setFlagsFromString("--experimental-wasm-relaxed-simd");
setFlagsFromString("--no-liftoff");

const models = [sevenBitMatMul(5, 32, 21), sevenBitConv(16, 5, 1)].map((m) => ({ ...m, artifact: compileModel(modelBytes(m.spec)).artifact }));
async function resultOf(artifact: Uint8Array, x: Tensor, options: LoadOptions): Promise<unknown> {
  const session = await load(artifact, options);
  try {
    return (await session.run({ x }))["y"]?.data;
  } finally {
    session.dispose();
  }
}

it("weights are quads for code for relaxed SIMD alone, on one and two threads, and when a program is taken apart", async () => {
  for (const { artifact, x: data } of models) {
    const x = Tensor.of(data), expected = await resultOf(artifact, x, { engine: "simd" });
    expect(await resultOf(artifact, x, { engine: "relaxed-simd" })).toEqual(expected);
    expect(await resultOf(artifact, x, { engine: "relaxed-simd", threads: 2 })).toEqual(expected);
    const apart = takeApart(readArtifact(artifact)).artifact;
    expect(await resultOf(apart, x, {})).toEqual(expected);
    await expect(load(apart, { engine: "simd" })).rejects.toThrow("cannot run the artifact's code");
  }
});
it("an artifact whose panels cannot be quads is refused", () => {
  const [model] = models, artifact = readArtifact(model?.artifact ?? new Uint8Array()), { code: _, ...manifest } = artifact.manifest;
  const written = (quads: number): Uint8Array => writeArtifact({ manifest: { ...manifest, weights: manifest.weights.map((w) => (w.quads ? { ...w, quads } : w)) }, code: artifact.section(1), relaxation: artifact.section(2), weights: artifact.weights });
  expect(() => readArtifact(written(8 * 32))).not.toThrow();
  for (const quads of [0, 8, 33, 1024]) expect(() => readArtifact(written(quads))).toThrow("panels are not of quads");
});
