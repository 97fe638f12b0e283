/** `run(…, { into })`: results written to the caller's arrays, bit for bit what new ones hold, or nothing at all. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const float = (dims: readonly (number | string)[]) => ({ dtype: "float32" as const, dims });
const sessionOf = (spec: ModelSpec): Promise<Session> => load(compileModel(modelBytes(spec)).artifact);
const codeOf = (run: () => Promise<unknown>): Promise<string> => run().then(() => "ran", (e: unknown) => (e instanceof DiagnosticError ? e.code : String(e)));

/** y = x + 1 and z = -x, of any size. */
const two: ModelSpec = {
  opset: 20, inputs: { x: float(["n", 3]) }, outputs: { y: float(["n", 3]), z: float(["n", 3]) }, initializers: { one: { dtype: "float32", dims: [], data: Float32Array.of(1) } },
  nodes: [{ type: "Add", inputs: ["x", "one"], outputs: ["y"] }, { type: "Neg", inputs: ["x"], outputs: ["z"] }],
};
const x = new Tensor("float32", Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);
const room = (): Tensor => new Tensor("float32", new Float32Array(6).fill(9), [2, 3]);

describe("results into given tensors", () => {
  it("are those of a plain run, in the caller's memory", async () => {
    const session = await sessionOf(two), plain = await session.run({ x });
    const y = room(), memory = y.data;
    const results = await session.run({ x }, { into: { y } });
    expect(results["y"]).toBe(y);
    expect(y.data).toBe(memory);
    expect(memory).toEqual(plain["y"]?.data);
    expect(results["z"]?.data).toEqual(plain["z"]?.data);
    const part = new Float32Array(20), other = { type: "float32", data: part.subarray(7, 13), dims: [2, 3] };
    const only = await session.run({ x }, { outputs: [], into: { z: other } });
    expect(Object.keys(only)).toEqual(["z"]);
    expect([...part]).toEqual([0, 0, 0, 0, 0, 0, 0, -1, -2, -3, -4, -5, -6, 0, 0, 0, 0, 0, 0, 0]);
  });

  it("may be fed in the same run", async () => {
    const session = await sessionOf(two), state = new Tensor("float32", Float32Array.of(1, 2, 3), [1, 3]);
    for (let i = 0; i < 3; i++) await session.run({ x: state }, { into: { y: state } });
    expect(state.data).toEqual(Float32Array.of(4, 5, 6));
  });

  it("take every layout and narrow types", async () => {
    const conv: ModelSpec = {
      opset: 21, inputs: { x: float([1, 2, 3, 5]) }, outputs: { y: float([1, 4, 3, 5]), q: { dtype: "int4", dims: [1, 4, 3, 5] } },
      initializers: { w: { dtype: "float32", dims: [4, 2, 1, 1], data: Float32Array.from({ length: 8 }, (_, i) => i - 3.5) }, s: { dtype: "float32", dims: [], data: Float32Array.of(2) }, p: { dtype: "int4", dims: [], data: Int8Array.of(1) } },
      nodes: [{ type: "Conv", inputs: ["x", "w"], outputs: ["y"] }, { type: "QuantizeLinear", inputs: ["y", "s", "p"], outputs: ["q"] }],
    };
    const session = await sessionOf(conv), feeds = { x: new Tensor("float32", Float32Array.from({ length: 30 }, (_, i) => Math.sin(i)), [1, 2, 3, 5]) };
    const plain = await session.run(feeds);
    const y = new Tensor("float32", new Float32Array(60), [1, 4, 3, 5]), q = new Tensor("int4", new Uint8Array(30), [1, 4, 3, 5]);
    await session.run(feeds, { into: { y, q } });
    expect(y.data).toEqual(plain["y"]?.data);
    expect(q.data).toEqual(plain["q"]?.data);
    expect(new Set(q.data as Uint8Array).size).toBeGreaterThan(3);
  });

  it("are refused where they cannot take the result, and then nothing is written", async () => {
    const session = await sessionOf(two), run = (into: Record<string, unknown>, more = {}): Promise<string> => codeOf(() => session.run({ x }, { into: into as never, ...more }));
    const y = room();
    expect(await run({ y, Z: room() })).toBe("OF7007");
    expect(await run({ y, z: new Tensor("float64", new Float64Array(6), [2, 3]) })).toBe("OF7003");
    expect(await run({ y, z: { type: "float32", data: new Float64Array(6), dims: [2, 3] } })).toBe("OF7003");
    expect(await run({ y, z: new Tensor("float32", new Float32Array(6), [3, 2]) })).toBe("OF7004");
    expect(await run({ y, z: { type: "float32", data: new Float32Array(5), dims: [2, 3] } })).toBe("OF7006");
    const detached = room();
    structuredClone(null, { transfer: [(detached.data as Float32Array).buffer as ArrayBuffer] });
    expect(await run({ y, z: detached })).toBe("OF7006");
    expect(await run({ y, z: { type: "float32", data: [1, 2, 3, 4, 5, 6], dims: [2, 3] } })).toBe("OF7023");
    expect(await run({ y, z: 7 })).toBe("OF7023");
    expect(await run({ y, z: y })).toBe("OF7023");
    const shared = new Float32Array(11);
    expect(await run({ y: { type: "float32", data: shared.subarray(0, 6), dims: [2, 3] }, z: { type: "float32", data: shared.subarray(5), dims: [2, 3] } })).toBe("OF7023");
    expect(await run({ y }, { keep: ["y"] })).toBe("OF7023");
    const { z: kept } = await session.run({ x }, { keep: ["z"] });
    expect(await run({ y, z: kept })).toBe("OF7023");
    expect(await codeOf(() => session.run({ x }, { into: 3 as never }))).toBe("OF7022");
    expect([...(y.data as Float32Array)]).toEqual([9, 9, 9, 9, 9, 9]);
    expect(await run({ y, z: room() })).toBe("ran");
    expect([...(y.data as Float32Array)]).toEqual([2, 3, 4, 5, 6, 7]);
  });

  it("are refused for strings, which have no memory", async () => {
    const session = await sessionOf({ opset: 20, inputs: { x: { dtype: "string", dims: [1] } }, outputs: { y: { dtype: "string", dims: [1] } }, initializers: {}, nodes: [{ type: "Identity", inputs: ["x"], outputs: ["y"] }] });
    expect(await codeOf(() => session.run({ x: ["a"] }, { into: { y: new Tensor("string", ["b"], [1]) } }))).toBe("OF7023");
  });
});
