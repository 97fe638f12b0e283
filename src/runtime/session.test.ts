import { describe, expect, it } from "vitest";
import { Tensor as OrtTensor } from "onnxruntime-common";
import { writeArtifact } from "../artifact/artifact.ts";
import type { Manifest, StepJson } from "../artifact/manifest.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { encodeModule, FunctionBuilder, type WasmFunction } from "../backends/wasm/assembler.ts";
import { instructionSet } from "../backends/wasm/opcodes.ts";
import { load } from "./load.ts";
import { Tensor } from "./tensor.ts";

const table = 64;

/** A segment that sets y[i] = x[i] + w for table slots [n, x, y] of int32, with the weight w at 128. */
function addWeight(name: string, n: number, x: number, y: number): WasmFunction {
  const f = new FunctionBuilder(name, { params: [], results: [] }, instructionSet());
  const i = f.local("i32"), end = f.local("i32");
  const slot = (k: number): void => { f.constant("i32", 0); f.memory("i32.load", table + 4 * k); };
  slot(n); f.constant("i32", 4); f.op("i32.mul"); f.setLocal(end);
  f.begin("block"); f.begin("loop");
  f.get(i); f.get(end); f.op("i32.ge_s"); f.branch("br_if", 1);
  f.get(i); slot(y); f.op("i32.add");
  f.get(i); slot(x); f.op("i32.add"); f.memory("i32.load", 0);
  f.constant("i32", 0); f.memory("i32.load", 128); f.op("i32.add");
  f.memory("i32.store", 0);
  f.get(i); f.constant("i32", 4); f.op("i32.add"); f.setLocal(i);
  f.branch("br", 0); f.end(); f.end();
  return f;
}

const weight = { at: 128, bytes: 4 };
function artifact(more: Partial<Manifest> = {}, functions = [addWeight("run_0", 0, 1, 2)]): Uint8Array {
  const manifest: Omit<Manifest, "code"> = {
    tool: "test", options: {}, model: "m", metadata: { stride: "4" }, modelChecksum: 0,
    inputs: [{ name: "x", dtype: "int32", dims: ["N"], buffer: 0 }],
    outputs: [{ name: "y", dtype: "int32", dims: ["N"], buffer: 1 }],
    memory: { table, sizes: ["N"], slots: 3, fixedEnd: 192, weightBytes: 64, arena: [
      { bytes: ["*", 4, "N"], first: -1, last: 0, at: { slot: 1 } }, { bytes: ["*", 4, "N"], first: 0, last: 1, at: { slot: 2 } },
    ] },
    buffers: [{ name: "x", dtype: "int32", dims: ["N"], at: { slot: 1 } }, { name: "y", dtype: "int32", dims: ["N"], at: { slot: 2 } }],
    steps: [{ run: 0, calls: [["add", "Add"]] }],
    weights: [{ ...weight, source: { dtype: "int32", dims: [1], offset: 0, length: 4 } }],
    ...more,
  };
  const code = encodeModule({ functions, memoryPages: 1, exports: functions.map((f, i) => ({ name: f.name, function: i })) });
  return writeArtifact({ manifest, code, relaxation: new Uint8Array(), weights: new Uint8Array(Int32Array.of(10, 0, 0, 0).buffer) });
}
const ints = (...values: number[]): Tensor => new Tensor("int32", Int32Array.from(values), [values.length]);
const codeOf = async (run: () => Promise<unknown>): Promise<string> => run().then(() => "ran", (e: unknown) => (e instanceof DiagnosticError ? e.code : String(e)));

describe("session", () => {
  it("runs at any size, from bytes, a buffer or a Response", async () => {
    const bytes = artifact();
    for (const source of [bytes, bytes.slice().buffer as ArrayBuffer, new Response(bytes as Uint8Array<ArrayBuffer>)]) {
      const session = await load(source);
      for (const n of [3, 0, 100_000, 5]) {
        const x = Int32Array.from({ length: n }, (_, i) => i);
        const { y } = await session.run({ x: new Tensor("int32", x, [n]) });
        expect(y?.dims).toEqual([n]);
        expect(y?.type).toBe("int32");
        expect(y?.data).toEqual(x.map((v) => v + 10));
      }
      expect(session.inputs).toEqual([{ name: "x", dtype: "int32", dims: ["N"] }]);
      expect(session.metadata).toEqual({ stride: "4" });
    }
  });

  it("takes onnxruntime's tensors and plain objects", async () => {
    const session = await load(artifact());
    const { y } = await session.run({ x: new OrtTensor("int32", Int32Array.of(1), [1]) });
    expect(y?.data).toEqual(Int32Array.of(11));
    const { y: again } = await session.run({ x: { type: "int32", data: [5, 6], dims: [2] } });
    expect(again?.data).toEqual(Int32Array.of(15, 16));
  });

  it("keeps results in memory, to be fed back, without growing", async () => {
    const session = await load(artifact());
    let state: Tensor = ints(1, 2, 3);
    for (let i = 0; i < 100; i++) {
      const { y } = await session.run({ x: state }, { keep: ["y"] });
      if (!y) throw new Error("no y");
      expect(y.location).toBe("wasm");
      state.dispose();
      state = y;
    }
    expect(state.data).toEqual(Int32Array.of(1001, 1002, 1003));
    const before = session.memoryBytes;
    for (let i = 0; i < 10_000; i++) (await session.run({ x: state }, { keep: ["y"] }))["y"]?.dispose();
    expect(session.memoryBytes).toBe(before);
    const other = await load(artifact());
    expect((await other.run({ x: state }))["y"]?.data).toEqual(Int32Array.of(1011, 1012, 1013));
    session.dispose();
    expect(() => state.data).toThrow(/OF7012/);
    expect(await codeOf(() => session.run({ x: ints(1) }))).toBe("OF7008");
  });

  it("queues concurrent runs", async () => {
    const session = await load(artifact());
    const results = await Promise.all([1, 2, 3].map((n) => session.run({ x: ints(n) })));
    expect(results.map((r) => r["y"]?.data)).toEqual([Int32Array.of(11), Int32Array.of(12), Int32Array.of(13)]);
    const mixed = await Promise.all([codeOf(() => session.run({})), session.run({ x: ints(4) }).then((r) => r["y"]?.data)]);
    expect(mixed).toEqual(["OF7001", Int32Array.of(14)]);
  });

  it("refuses wrong feeds by code", async () => {
    const session = await load(artifact());
    expect(await codeOf(() => session.run({}))).toBe("OF7001");
    await expect(session.run({ X: ints(1), x: ints(1) })).rejects.toThrow(/OF7002.*did you mean 'x'/);
    expect(await codeOf(() => session.run({ x: new Tensor("float32", [1], [1]) }))).toBe("OF7003");
    expect(await codeOf(() => session.run({ x: 3 as never }))).toBe("OF7003");
    expect(await codeOf(() => session.run({ x: new Tensor("int32", [1], [1, 1]) }))).toBe("OF7004");
    expect(await codeOf(() => session.run({ x: { type: "int32", data: Int32Array.of(1), dims: [2] } }))).toBe("OF7006");
    expect(await codeOf(() => session.run({ x: { type: "int32", data: Int32Array.of(1), dims: [-1] } }))).toBe("OF7004");
    expect(await codeOf(() => session.run({ x: { type: "int32", data: Float32Array.of(1), dims: [1] } }))).toBe("OF7003");
    expect(await codeOf(() => session.run({ x: ints(1) }, { outputs: ["z"] }))).toBe("OF7007");
    expect(() => new Tensor("int32", [1, 2], [3])).toThrow(/OF7006/);
  });

  it("checks that symbols agree and expressions hold", async () => {
    const two = artifact({ inputs: [{ name: "x", dtype: "int32", dims: ["N"], buffer: 0 }, { name: "z", dtype: "int32", dims: ["N", ["*", 2, "N"]], buffer: 2 }], buffers: [
      { name: "x", dtype: "int32", dims: ["N"], at: { slot: 1 } }, { name: "y", dtype: "int32", dims: ["N"], at: { slot: 2 } }, { name: "z", dtype: "int32", dims: ["N", ["*", 2, "N"]], at: { slot: 3 } },
    ], memory: { table, sizes: ["N"], slots: 4, fixedEnd: 192, weightBytes: 64, arena: [1, 2, 3].map((slot) => ({ bytes: ["*", 8, "N", "N"] as const, first: 0, last: 1, at: { slot } })) } });
    const session = await load(two);
    const z = (...dims: number[]): Tensor => new Tensor("int32", new Int32Array(dims.reduce((a, b) => a * b, 1)), dims);
    expect((await session.run({ x: ints(1, 2), z: z(2, 4) }))["y"]?.data).toEqual(Int32Array.of(11, 12));
    expect(await codeOf(() => session.run({ x: ints(1, 2), z: z(3, 4) }))).toBe("OF7005");
    expect(await codeOf(() => session.run({ x: ints(1, 2), z: z(2, 3) }))).toBe("OF7004");
  });

  it("packs overridable initializers at load and when fed, and forgets what was fed", async () => {
    const bytes = artifact({
      inputs: [{ name: "x", dtype: "int32", dims: ["N"], buffer: 0 }, { name: "w", dtype: "int32", dims: [1], buffer: 2, default: { dtype: "int32", dims: [1], offset: 0, length: 4 } }],
      buffers: [{ name: "x", dtype: "int32", dims: ["N"], at: { slot: 1 } }, { name: "y", dtype: "int32", dims: ["N"], at: { slot: 2 } }, { name: "w", dtype: "int32", dims: [1], at: 128 }],
      weights: [{ ...weight, source: { input: "w" } }],
    });
    const session = await load(bytes);
    const y = async (w?: number): Promise<unknown> => (await session.run({ x: ints(1), ...(w === undefined ? {} : { w: ints(w) }) }))["y"]?.data;
    expect(await y()).toEqual(Int32Array.of(11));
    expect(await y(5)).toEqual(Int32Array.of(6));
    expect(await y()).toEqual(Int32Array.of(11));
  });

  it("runs branches by a condition and by a predicate, loops, and host operators whose results tell sizes", async () => {
    const scalar = (name: string, dtype: "bool" | "int64", at: number) => ({ name, dtype, dims: [], at });
    const fixed = { table, sizes: ["N", "M"], slots: 5, fixedEnd: 512, weightBytes: 64, arena: [
      { bytes: ["*", 4, "N"], first: -1, last: 9, at: { slot: 2 } }, { bytes: ["*", 4, "N"], first: 0, last: 9, at: { slot: 3 } }, { bytes: ["*", 8, "M"], first: 1, last: 9, at: { slot: 4 } },
    ] } as Manifest["memory"];
    const buffers: Manifest["buffers"] = [
      { name: "x", dtype: "int32", dims: ["N"], at: { slot: 2 } }, { name: "y", dtype: "int32", dims: ["N"], at: { slot: 3 } }, { name: "where", dtype: "int64", dims: [1, "M"], at: { slot: 4 } },
      scalar("flag", "bool", 256), scalar("count", "int64", 320), scalar("i", "int64", 384),
    ];
    const run: StepJson = { run: 0, calls: [["add", "Add"]] };
    const session = await load(artifact({
      memory: fixed, buffers,
      inputs: [{ name: "x", dtype: "int32", dims: ["N"], buffer: 0 }, { name: "flag", dtype: "bool", dims: [], buffer: 3 }, { name: "count", dtype: "int64", dims: [], buffer: 4 }],
      outputs: [{ name: "y", dtype: "int32", dims: ["N"], buffer: 1 }, { name: "where", dtype: "int64", dims: [1, "M"], buffer: 2 }],
      steps: [
        { host: "NonZero", domain: "", attributes: {}, inputs: [0], outputs: [2], label: "NonZero" },
        { if: 3, then: [{ loop: [run, { move: [[1, 0]] }], count: 4, condition: null, next: null, iteration: 5, carry: [], stack: [] }], else: [{ if: { predicate: ["%", "N", 2] }, then: [run], else: [] }] },
      ],
    }, [addWeight("run_0", 0, 2, 3)]));
    const call = async (x: number[], flag: number, count: bigint) => session.run({ x: ints(...x), flag: new Tensor("bool", [flag === 1], []), count: new Tensor("int64", [count], []) });
    const looped = await call([0, 1, 0, 2], 1, 3n);
    expect(looped["y"]?.data).toEqual(Int32Array.of(30, 31, 30, 32));
    expect(looped["where"]?.dims).toEqual([1, 2]);
    expect(looped["where"]?.data).toEqual(BigInt64Array.of(1n, 3n));
    const odd = await call([7, 8, 9], 0, 0n);
    expect(odd["y"]?.data).toEqual(Int32Array.of(17, 18, 19));
    expect(odd["where"]?.data).toEqual(BigInt64Array.of(0n, 1n, 2n));
    const steps: string[] = [];
    await session.run({ x: ints(1), flag: new Tensor("bool", [false], []), count: new Tensor("int64", [0], []) }, { onStep: (label, kind) => steps.push(`${kind} ${label}`) });
    expect(steps).toEqual(["host NonZero", "segment Add"]);
  });
});
