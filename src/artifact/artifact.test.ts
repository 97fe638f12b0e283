import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { dimAdd, dimFloorDiv, dimMax, dimMin, dimMod, dimMul, dimSub, evaluateDim, symbol, type Dim } from "../core/dim.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { readArtifact, stripReport, writeArtifact, type ArtifactParts } from "./artifact.ts";
import { checksum } from "./checksum.ts";
import { dimToJson, evaluateDimJson } from "../core/dim-json.ts";

const parts: ArtifactParts = {
  manifest: {
    tool: "onnxfuse 0", options: {}, model: "m", metadata: {}, modelChecksum: 1,
    inputs: [{ name: "x", dtype: "float32", dims: ["N"], buffer: 0 }], outputs: [],
    memory: { table: 64, sizes: ["N"], slots: 2, fixedEnd: 192, arena: [], weightBytes: 64 },
    buffers: [{ name: "x", dtype: "float32", dims: ["N"], at: { slot: 1 } }],
    steps: [{ run: 0, calls: [["relu_0", "Relu"]] }],
    weights: [{ at: 128, bytes: 8, source: { dtype: "float32", dims: [2], offset: 0, length: 8 } }],
  },
  code: Uint8Array.of(0, 97, 115, 109),
  relaxation: Uint8Array.of(7),
  weights: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8),
  report: { sites: [] },
};
const codeOf = (bytes: Uint8Array): string => {
  try { readArtifact(bytes); } catch (e) { if (e instanceof DiagnosticError) return e.code; throw e; }
  return "read";
};

describe("checksum", () => {
  it("is XXH32", () => {
    const text = (s: string): number => checksum(new TextEncoder().encode(s));
    expect(text("")).toBe(0x02cc5d05);
    expect(text("a")).toBe(0x550d7456);
    expect(text("abc")).toBe(0x32d153ff);
    expect(text("Nobody inspects the spammish repetition")).toBe(0xe2293b2f);
  });
});

describe("artifact", () => {
  const bytes = writeArtifact(parts);

  it("reads what was written, without copying the weights", () => {
    const a = readArtifact(bytes);
    expect(a.manifest).toEqual({ ...parts.manifest, code: [{ target: "wasm", section: 1, relaxation: 2 }] });
    expect(a.weights.buffer).toBe(bytes.buffer);
    expect(a.weights.byteOffset % 64).toBe(0);
    expect(a.report()).toEqual({ sites: [] });
    expect(readArtifact(stripReport(bytes)).report()).toBeUndefined();
    expect(stripReport(bytes).byteLength).toBeLessThan(bytes.byteLength);
    expect(writeArtifact(parts)).toEqual(bytes);
  });

  it("reads a Node Buffer, which stays as it is", () => {
    const buffer = Buffer.from(bytes);
    readArtifact(buffer);
    expect(new Uint8Array(buffer)).toEqual(bytes);
    expect(codeOf(buffer)).toBe("read");
  });

  it("refuses every truncation, every changed byte and anything appended", () => {
    for (let n = 0; n < bytes.length; n++) expect(codeOf(bytes.slice(0, n))).toMatch(/^OF600[12]$/);
    for (let i = 0; i < bytes.length; i++) {
      const changed = bytes.slice();
      changed[i] = (changed[i] ?? 0) ^ 0x10;
      expect(codeOf(changed)).toMatch(/^OF600[123]$/);
    }
    expect(codeOf(Uint8Array.from([...bytes, 0]))).toBe("OF6002");
  });

  it("says what a foreign file is", () => {
    expect(() => readArtifact(new TextEncoder().encode("IMOD............"))).toThrow(/Huawei/);
    expect(() => readArtifact(Uint8Array.of(8, 7, 18, 4))).toThrow(/ONNX model/);
    expect(codeOf(new Uint8Array())).toBe("OF6001");
  });

  it("refuses manifests that point outside", () => {
    const weight = parts.manifest.weights[0];
    if (!weight) throw new Error();
    const withWeights = (w: unknown): Uint8Array => writeArtifact({ ...parts, manifest: { ...parts.manifest, weights: [w] as never } });
    expect(codeOf(withWeights({ ...weight, at: 190 }))).toBe("OF6004");
    expect(codeOf(withWeights({ ...weight, source: { dtype: "float32", dims: [2], offset: 4, length: 8 } }))).toBe("OF6004");
    expect(codeOf(withWeights({ ...weight, source: { input: "y" } }))).toBe("OF6004");
    expect(codeOf(writeArtifact({ ...parts, manifest: { ...parts.manifest, outputs: [{ name: "y", dtype: "float32", dims: [], buffer: 7 }] } }))).toBe("OF6004");
  });
});

describe("sizes as JSON", () => {
  const dim: fc.Arbitrary<Dim> = fc.letrec<{ dim: Dim }>((tie) => ({
    dim: fc.oneof(
      { depthSize: "small" },
      fc.integer({ min: -5, max: 9 }), fc.constantFrom("N", "H", "W").map(symbol),
      fc.tuple(fc.constantFrom(dimAdd, dimSub, dimMul, dimMin, dimMax), tie("dim"), tie("dim")).map(([f, a, b]) => f(a, b)),
      fc.tuple(fc.constantFrom(dimFloorDiv, dimMod), tie("dim"), fc.integer({ min: 1, max: 8 })).map(([f, a, b]) => f(a, b)),
    ),
  })).dim;
  it("evaluates as the algebra does", () => {
    fc.assert(fc.property(dim, fc.tuple(fc.nat(20), fc.nat(20), fc.nat(20)), (d, [n, h, w]) => {
      const values = new Map([["N", n], ["H", h], ["W", w]]);
      expect(evaluateDimJson(JSON.parse(JSON.stringify(dimToJson(d))), values)).toBe(evaluateDim(d, (s) => values.get(s) ?? 0) + 0);
    }), { seed: 1 });
  });
  it("is undefined while a symbol has no value", () => {
    expect(evaluateDimJson(dimToJson(dimAdd(symbol("N"), 1)), new Map())).toBeUndefined();
  });
});
