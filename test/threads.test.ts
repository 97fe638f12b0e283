/** Threads: the same bits as one thread, on real models and random ones; sessions apart; failures and ends. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import type { Artifact } from "../src/artifact/artifact.ts";
import { encodeFunction, encodeHead, encodeModule, FunctionBuilder, concatenate, type ModuleSpec } from "../src/backends/wasm/assembler.ts";
import { instanceOf } from "../src/backends/wasm/load.ts";
import { instructionSet } from "../src/backends/wasm/opcodes.ts";
import { packParts } from "../src/backends/wasm/splice.ts";
import { protocolFunctions, variable, variables, writeWork, Writer } from "../src/backends/wasm/thread-protocol.ts";
import { compileModel } from "../src/compiler/compile.ts";
import { control } from "../src/memory/control.ts";
import { bytesOf, type Tensor as CoreTensor } from "../src/core/tensor.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { startThreads } from "../src/runtime/threads.ts";
import { caseIds, loadCase } from "./support/cases.ts";
import { finelySplit } from "./support/finely-split.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { randomModel } from "./support/random-graph.ts";

const open: Session[] = [];
afterEach(() => { for (const s of open.splice(0)) s.dispose(); });
async function session(artifact: Uint8Array, threads: number): Promise<Session> {
  const s = await load(artifact, { threads });
  open.push(s);
  return s;
}

type Results = Readonly<Record<string, unknown>>;
const bits = (t: unknown): string => (t instanceof Tensor && t.type !== "string" ? Buffer.from(bytesOf(t.unpacked())).toString("base64") : JSON.stringify(t));
const bitsOf = (results: Results): Readonly<Record<string, string>> => Object.fromEntries(Object.entries(results).map(([name, t]) => [name, bits(t)]));

test.skipIf(caseIds().length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());
describe.each(caseIds())("%s", (id) => {
  test("with two and three threads", { timeout: 120_000 }, async () => {
    const { bytes, feeds } = loadCase(id);
    const { artifact } = compileModel(bytes);
    const given = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, new Tensor(t.dtype, t.data, t.dims)]));
    const expected = bitsOf(await (await session(artifact, 1)).run(given));
    for (const threads of [2, 3]) {
      const s = await session(artifact, threads);
      for (let run = 0; run < 5; run++) expect(bitsOf(await s.run(given))).toEqual(expected);
    }
  });
});

/** The same bits from one thread and from three, run after run. */
async function expectSame(artifact: Uint8Array, feeds: Readonly<Record<string, CoreTensor>>, runs: number, what: string): Promise<void> {
  const given = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, Tensor.of(t)]));
  const expected = bitsOf(await (await session(artifact, 1)).run(given));
  const s = await session(artifact, 3);
  for (let run = 0; run < runs; run++) expect(bitsOf(await s.run(given)), what).toEqual(expected);
  for (const x of open.splice(0)) x.dispose();
}

describe("every loop split, however small", () => {
  test("random models", { timeout: 300_000 }, async () => {
    for (const seed of [...Array.from({ length: 25 }, (_, i) => i + 1), 102]) {
      const { spec, feeds } = randomModel(seed, 12);
      await expectSame(finelySplit(modelBytes(spec)), feeds, 10, `seed ${seed}`);
    }
  });
  test.each(["LSTM", "GRU", "RNN"])("%s in both directions", async (type) => {
    const gates = { LSTM: 4, GRU: 3, RNN: 1 }[type] ?? 1, hidden = 12, random = (dims: readonly number[]): CoreTensor => ({ dtype: "float32", dims, data: Float32Array.from({ length: dims.reduce((n, d) => n * d, 1) }, (_, i) => Math.sin(i * 1.7) / 3) });
    const recurrent: ModelSpec = {
      opset: 14, inputs: { x: { dtype: "float32", dims: ["T", 2, 8] } }, outputs: { y: { dtype: "float32", dims: ["T", 2, 2, hidden] }, h: undefined },
      initializers: { w: random([2, gates * hidden, 8]), r: random([2, gates * hidden, hidden]), b: random([2, 2 * gates * hidden]) },
      nodes: [{ type, inputs: ["x", "w", "r", "b"], outputs: ["y", "h"], attributes: { hidden_size: hidden, direction: "bidirectional" } }],
    };
    const artifact = finelySplit(modelBytes(recurrent)), session = await load(artifact, { threads: 2 });
    expect(session.threads).toBe(2);
    session.dispose();
    await expectSame(artifact, { x: random([9, 2, 8]) }, 20, type);
  });
  test.skipIf(caseIds().length === 0).each(["bert-toy", "blazeface-front", "micro-kws-qdq", "silero-vad-v5"])("%s, a hundred runs", { timeout: 300_000 }, async (id) => {
    const { bytes, feeds } = loadCase(id);
    await expectSame(finelySplit(bytes), feeds, 100, id);
  });
});

const wide: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: ["N", 512] } }, outputs: { y: { dtype: "float32", dims: ["N", 512] } },
  initializers: { w: { dtype: "float32", dims: [512, 512], data: Float32Array.from({ length: 512 * 512 }, (_, i) => Math.sin(i)) } },
  nodes: [{ type: "MatMul", name: "product", inputs: ["x", "w"], outputs: ["p"] }, { type: "Softmax", name: "softmax", inputs: ["p"], outputs: ["y"] }],
};
const rows = (n: number): Tensor => new Tensor("float32", Float32Array.from({ length: n * 512 }, (_, i) => Math.cos(i)), [n, 512]);

test("a thousand runs, of changing sizes", { timeout: 120_000 }, async () => {
  const { artifact } = compileModel(modelBytes(wide));
  const one = await session(artifact, 1), two = await session(artifact, 2);
  const sizes = [64, 1, 130, 7], expected = await Promise.all(sizes.map(async (n) => bitsOf(await one.run({ x: rows(n) }))));
  for (let run = 0; run < 1000; run++) {
    const at = Math.floor(run / 20) % sizes.length, n = sizes[at] ?? 1;
    expect(bitsOf(await two.run({ x: rows(n) }))).toEqual(expected[at]);
  }
  expect(expected[0]).not.toEqual(expected[2]);
});

test("sessions with threads of their own do not disturb each other", async () => {
  const { artifact } = compileModel(modelBytes(wide));
  const sessions = [await session(artifact, 2), await session(artifact, 3)];
  const [a, b] = await Promise.all(sessions.map((s) => s.run({ x: rows(96) })));
  expect(bitsOf(a ?? {})).toEqual(bitsOf(b ?? {}));
  sessions[0]?.dispose();
  expect(bitsOf(await sessions[1]?.run({ x: rows(96) }) ?? {})).toEqual(bitsOf(a ?? {}));
  expect(sessions.map((s) => s.threads)).toEqual([2, 3]);
});

test("without work for two there is one thread, and a warning", async () => {
  const small: ModelSpec = { opset: 17, inputs: { x: { dtype: "float32", dims: [8] } }, outputs: { y: { dtype: "float32", dims: [8] } }, initializers: {}, nodes: [{ type: "Relu", name: "r", inputs: ["x"], outputs: ["y"] }] };
  const s = await session(compileModel(modelBytes(small)).artifact, 2);
  expect(s.threads).toBe(1);
  expect(s.warnings.map((w) => w.code)).toEqual(["OF7040"]);
  await expect(load(compileModel(modelBytes(small)).artifact, { threads: 0 })).rejects.toThrow("OF7022");
});

/** Segment 0: chunks enough to wake a thread, of which the first takes one and leaves the rest to the other, which traps unless the word at 128 is 0. */
function trapping(): { readonly artifact: Artifact; readonly code: Uint8Array } {
  const set = instructionSet(), protocol = protocolFunctions(set, 0), all = [...protocol];
  const add = (name: string, params: readonly "i32"[], write: (w: Writer) => void): number => {
    const f = new FunctionBuilder(name, { params, results: [] }, set);
    write(new Writer(f, 0));
    return all.push(f) - 1;
  };
  const segment = add("segment", ["i32"], (w) => {
    const { f } = w;
    f.constant("i32", 0); f.setGlobal(variable.limit);
    for (const n of [32, 1, 1, 1]) f.constant("i32", n);
    f.get(0); w.call("begin");
    w.forever(() => {
      w.call("take");
      w.when(() => {
        f.get(0); f.constant("i32", 0); f.memory("i32.load", 128); f.op("i32.and");
        w.when(() => f.op("unreachable"));
        w.call("finish");
        f.get(0); f.branch("br_if", 1);
      });
    });
    f.get(0); w.call("barrier");
  });
  const run = add("run_0", [], (w) => {
    for (const word of [control.job, control.taken, control.done]) w.store(word, 0);
    w.f.constant("i32", 0); w.f.setGlobal(variable.opened);
    w.f.constant("i32", 0); w.f.call(segment); w.call("close");
  });
  const work = add("work", ["i32"], (w) => writeWork(w, () => { w.f.get(0); w.f.call(segment); }));
  const spec: ModuleSpec = { functions: all, memoryPages: 1, sharedPages: 65536, globals: variables, exports: [{ name: "run_0", function: run }, { name: "work", function: work }] };
  const code = encodeModule({ functions: [], memoryPages: 1, exports: [] });
  const parts = packParts({ head: encodeHead(spec), tail: concatenate(all.map(encodeFunction)), functions: all.length, kernels: { from: 0, to: 0 } });
  const manifest = { code: [{ target: "wasm", section: 0, threads: 1 }], memory: { fixedEnd: 256 } } as unknown as Artifact["manifest"];
  return { artifact: { manifest, section: () => parts, weights: new Uint8Array(), report: () => undefined, sections: [] }, code };
}

test("a trap in another thread comes out as an error and leaves the threads usable", { timeout: 30_000 }, async () => {
  const { artifact, code } = trapping();
  const { threads } = await startThreads(artifact, code, { threads: 2 }, (bytes) => WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>), instanceOf);
  if (!threads) throw new Error("no threads");
  const words = new Int32Array(threads.instance.memory.buffer), run = threads.instance.segment(0);
  words[control.message / 4] = 192;
  run();
  words[32] = 1;
  for (let i = 0; i < 3; i++) expect(run).toThrow(/unreachable/);
  words[32] = 0;
  run();
  expect(words[control.joined / 4]).toBe(0);
  threads.end();
});

test("threads keep no process alive, disposed or not", { timeout: 120_000 }, async () => {
  const script = `
    const { load, Tensor } = await import("./src/runtime/index.ts");
    const { readFileSync } = await import("node:fs");
    const s = await load(new Uint8Array(readFileSync(process.argv[1])), { threads: 3 });
    const { y } = await s.run({ x: new Tensor("float32", new Float32Array(64 * 512), [64, 512]) });
    if (process.argv[2] === "dispose") s.dispose();
    console.log(s.threads, y.data.length);`;
  const folder = mkdtempSync(join(tmpdir(), "onnxfuse-threads-"));
  try {
    writeFileSync(`${folder}/m.om`, compileModel(modelBytes(wide)).artifact);
    for (const how of ["dispose", "leave"]) {
      const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script, `${folder}/m.om`, how], { cwd: resolve("."), timeout: 50_000 });
      expect(stdout.trim()).toBe("3 32768");
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
