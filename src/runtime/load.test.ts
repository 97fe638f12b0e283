import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compileModel } from "../compiler/compile.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import type { ArtifactSource } from "./open.ts";
import { load } from "./load.ts";
import { Tensor } from "./tensor.ts";

const random = randomFrom(5);
const size = 300;
/** Weights of every kind: stored as they are, packed, uniform, of a convolution by Winograd, a default that may be fed. */
const spec: ModelSpec = {
  opset: 20, inputs: { x: { dtype: "float32", dims: [1, 16, 32, 32] }, shift: { dtype: "float32", dims: [16, 1, 1] } }, outputs: { y: { dtype: "float32", dims: [1, size] } },
  initializers: {
    w: randomTensor([16, 16, 3, 3], random, 0.1), b: randomTensor([16], random, 1), shift: randomTensor([16, 1, 1], random, 1),
    m: randomTensor([16, size], random, 0.1), same: { dtype: "float32", dims: [size], data: new Float32Array(size).fill(0.5) },
  },
  nodes: [
    { type: "Conv", inputs: ["x", "w", "b"], outputs: ["c"], attributes: { kernel_shape: [3, 3], pads: [1, 1, 1, 1] } },
    { type: "Add", inputs: ["c", "shift"], outputs: ["a"] },
    { type: "GlobalAveragePool", inputs: ["a"], outputs: ["p"] },
    { type: "Flatten", inputs: ["p"], outputs: ["f"], attributes: { axis: 1 } },
    { type: "MatMul", inputs: ["f", "m"], outputs: ["d"] },
    { type: "Mul", inputs: ["d", "same"], outputs: ["y"] },
  ],
};
const { artifact } = compileModel(modelBytes(spec));
const outside = (["each", "combined"] as const).map((externalWeights) => compileModel(modelBytes(spec), { externalWeights }));
const x = new Tensor("float32", Float32Array.from({ length: 16 * 32 * 32 }, () => random.normal()), [1, 16, 32, 32]);
const run = async (source: ArtifactSource, options: Parameters<typeof load>[1] = {}): Promise<unknown> => (await (await load(source, options)).run({ x }))["y"]?.data;
const codeOf = (work: () => Promise<unknown>): Promise<string> => work().then(() => "ran", (e: unknown) => (e instanceof DiagnosticError ? e.code : String(e)));

let folder = "";
beforeAll(() => { folder = mkdtempSync(join(tmpdir(), "onnxfuse-load-")); writeFileSync(join(folder, "m.om"), artifact); });
afterAll(() => { rmSync(folder, { recursive: true }); });

describe("load", () => {
  it("gives the same session from bytes, a Response, a Blob, a path, a URL and an open file", async () => {
    const expected = await run(artifact), path = join(folder, "m.om");
    const whole = artifact as Uint8Array<ArrayBuffer>;
    const file = await open(path);
    for (const source of [new Response(whole), new Blob([whole]), path, pathToFileURL(path), pathToFileURL(path).href, file]) expect(await run(source)).toEqual(expected);
    expect((await file.stat()).size).toBe(artifact.length);
    await file.close();
  });

  it("holds nothing of the bytes that it was given", async () => {
    const bytes = artifact.slice(), session = await load(bytes), first = (await session.run({ x }))["y"]?.data;
    bytes.fill(255);
    expect((await session.run({ x }))["y"]?.data).toEqual(first);
    await session.run({ x, shift: new Tensor("float32", new Float32Array(16), [16, 1, 1]) });
    expect((await session.run({ x }))["y"]?.data).toEqual(first);
  });

  it("reads weights in files one after the other", async () => {
    const expected = await run(artifact);
    for (const { artifact: without, externalData = {} } of outside) {
      const files = Object.keys(externalData), asked: string[] = [];
      const read = async (f: string): Promise<Uint8Array | undefined> => { asked.push(f); return externalData[f]; };
      expect(await run(without, { externalData: read })).toEqual(expected);
      expect(asked.sort()).toEqual(files.sort());
      expect(await codeOf(() => load(without, { externalData: (f) => (f === files[files.length - 1] ? undefined : externalData[f]) }))).toBe("OF6006");
      expect(await codeOf(() => load(without, { externalData: (f) => externalData[f]?.map((b, i) => (i === 3 ? b ^ 1 : b)) }))).toBe("OF6007");
    }
  });

  it("refuses what is cut off or changed, from wherever it comes", async () => {
    const path = join(folder, "bad.om");
    for (const at of [40, 300, artifact.length - 3000, artifact.length - 1]) {
      const cut = artifact.slice(0, at), changed = artifact.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      for (const bad of [cut, changed]) {
        writeFileSync(path, bad);
        for (const source of [bad, new Response(bad), path]) expect(await codeOf(() => load(source))).toBe("OF6002");
      }
    }
    for (const source of [join(folder, "none.om"), folder, null as never, {} as never]) expect(await codeOf(() => load(source))).toBe("OF7011");
  });
});
