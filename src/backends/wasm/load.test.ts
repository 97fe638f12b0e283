import { setFlagsFromString } from "node:v8";
import { expect, it } from "vitest";
import { modelBytes } from "../../../test/support/model-spec.ts";
import { sevenBitMatMul } from "../../../test/support/seven-bit-models.ts";
import { readArtifact } from "../../artifact/artifact.ts";
import { compileModel } from "../../compiler/compile.ts";
import { codeFor, supports } from "./load.ts";

// Node 20 has relaxed SIMD on trial, and its quick code for the dot product of bytes is wrong.
setFlagsFromString("--experimental-wasm-relaxed-simd");
const right = Number(process.versions.node.split(".")[0]) >= 22;

it("an engine that multiplies bytes wrongly takes the way of others where weights would be quads", () => {
  const source = readArtifact(compileModel(modelBytes(sevenBitMatMul(5, 32, 21).spec)).artifact), { manifest } = source;
  expect(supports("relaxed-simd")).toBe(true);
  expect(manifest.weights.filter((w) => w.quads)).toHaveLength(1);
  expect(codeFor(source).relaxed).toBe(right);
  expect(codeFor({ ...source, manifest: { ...manifest, weights: manifest.weights.map(({ quads: _, ...w }) => w) } }).relaxed).toBe(true);
});
