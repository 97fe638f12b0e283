import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { DiagnosticError } from "../core/diagnostic.ts";
import { ArrivingArtifact } from "./arriving.ts";
import { writeArtifact, type ArtifactParts } from "./artifact.ts";
import { BufferedSource, MemorySource, type ByteSource } from "./byte-source.ts";
import { checksum, Checksum } from "./checksum.ts";

const weights = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7) % 251);
const parts: ArtifactParts = {
  manifest: {
    tool: "onnxfuse 0", options: {}, model: "m", metadata: {}, modelChecksum: 1, inputs: [], outputs: [],
    memory: { table: 64, sizes: [], slots: 0, fixedEnd: 2048, arena: [], weightBytes: 1024 }, buffers: [], steps: [],
    weights: [{ at: 64, bytes: 1000, source: { dtype: "uint8", dims: [1000], offset: 0, length: 1000 } }],
  },
  code: Uint8Array.of(0, 97, 115, 109), relaxation: Uint8Array.of(7), weights, report: { sites: ["a", "b"] },
};
const bytes = writeArtifact(parts);

/** Comes in pieces of at most `most` bytes, by way of a buffer of `buffer` bytes. */
function trickle(file: Uint8Array, most: number, buffer: number, length?: number): ByteSource {
  let at = 0;
  return new BufferedSource(async (into) => {
    const piece = file.subarray(at, at + Math.min(most, into.length));
    into.set(piece);
    at += piece.length;
    return piece.length;
  }, length, buffer);
}
async function readThrough(source: ByteSource, take = false): Promise<Uint8Array> {
  const artifact = await ArrivingArtifact.open(source), out = new Uint8Array(1000);
  if (take) out.set(await artifact.weights.take(0, 1000));
  else {
    await artifact.weights.fill(0, out.subarray(0, 300));
    await artifact.weights.fill(317, out.subarray(317));
  }
  await artifact.end();
  return out;
}
const codeOf = (source: ByteSource): Promise<string> => readThrough(source).then(() => "read", (e: unknown) => (e instanceof DiagnosticError ? e.code : String(e)));

describe("checksum in pieces", () => {
  it("is that of the whole", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat(40)), (all, cuts) => {
      const sum = new Checksum();
      let at = 0;
      for (const cut of cuts) { sum.update(all.subarray(at, at + cut)); at = Math.min(at + cut, all.length); }
      expect(sum.update(all.subarray(at)).take()).toBe(checksum(all));
      expect(sum.update(all).take()).toBe(checksum(all));
    }), { seed: 2 });
  });
  it("is that of bytes that do not fit into the module's memory at once", () => {
    const all = Uint8Array.from({ length: 200_003 }, (_, i) => i * 7 + (i >> 8)), sum = new Checksum();
    for (let at = 0; at < all.length; at += 65_521) sum.update(all.subarray(at, at + 65_521));
    expect(sum.take()).toBe(checksum(all));
    expect(checksum(all)).toBe(2505693880);
  });
});

describe("an artifact as it comes in", () => {
  it("gives its weights in order, however it is cut", async () => {
    const between = weights.slice().fill(0, 300, 317);
    for (const [most, buffer] of [[1, 64], [7, 100], [64, 256], [1000, 512], [1e6, 1 << 18]] as const) {
      expect(await readThrough(trickle(bytes, most, buffer))).toEqual(between);
      expect(await readThrough(trickle(bytes, most, buffer, bytes.length), true)).toEqual(weights);
    }
    expect(await readThrough(new MemorySource(bytes), true)).toEqual(weights);
    // Node's Buffers too, whose slices share memory.
    expect(await readThrough(new MemorySource(Buffer.from(bytes)))).toEqual(between);
  });

  it("refuses every truncation, every changed byte and anything appended", async () => {
    const sources = (file: Uint8Array): ByteSource[] => [new MemorySource(file), trickle(file, 100, 128), trickle(file, 1e6, 4096, file.length)];
    for (let n = 0; n < bytes.length; n += n < 200 ? 1 : 13) for (const s of sources(bytes.slice(0, n))) expect(await codeOf(s)).toMatch(/^OF600[12]$/);
    for (let i = 0; i < bytes.length; i++) {
      const changed = bytes.slice();
      changed[i] = (changed[i] ?? 0) ^ 0x10;
      for (const s of sources(changed)) expect(await codeOf(s)).toMatch(/^OF600[123]$/);
    }
    for (const s of sources(Uint8Array.from([...bytes, 0]))) expect(await codeOf(s)).toBe("OF6002");
    for (const s of sources(bytes)) expect(await codeOf(s)).toBe("read");
  });

  it("refuses weights that go back or past the end", async () => {
    const artifact = await ArrivingArtifact.open(new MemorySource(bytes));
    await artifact.weights.take(100, 100);
    await expect(artifact.weights.take(150, 100)).rejects.toThrow(/OF6004.*overlap/);
    await expect(artifact.weights.take(950, 100)).rejects.toThrow(/OF6004.*outside/);
  });
});
