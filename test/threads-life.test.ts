/**
 * Sessions with threads over their lives: states, kept results, results into given arrays, runs that fail, more threads
 * than cores, many sessions at once, loads that fail, and places where no worker can be started.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { finelySplit } from "./support/finely-split.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const open: Session[] = [];
afterEach(() => { for (const s of open.splice(0)) s.dispose(); });
async function session(artifact: Uint8Array | string, threads: number): Promise<Session> {
  const s = await load(artifact, { threads });
  open.push(s);
  expect(s.threads).toBe(threads);
  return s;
}

const float = (dims: readonly (number | string)[]) => ({ dtype: "float32" as const, dims });
const wave = (dims: readonly number[], phase = 0): Tensor => new Tensor("float32", Float32Array.from({ length: dims.reduce((n, d) => n * d, 1) }, (_, i) => Math.sin(i * 1.3 + phase)), dims);
const values = (t: Tensor | undefined): unknown[] => [...(t?.dims ?? []), ...(t?.data ?? [])];

/** A cache of keys that grows by what is fed, and a product with all of it. */
const cache: ModelSpec = {
  opset: 17, inputs: { x: float([2, "N", 16]), past: float([2, "P", 16]) }, outputs: { y: undefined, present: undefined },
  initializers: { w: { dtype: "float32", dims: [16, 16], data: Float32Array.from({ length: 256 }, (_, i) => Math.cos(i)) } },
  nodes: [
    { type: "MatMul", inputs: ["x", "w"], outputs: ["k"] },
    { type: "Concat", inputs: ["past", "k"], outputs: ["present"], attributes: { axis: 1 } },
    { type: "Transpose", inputs: ["present"], outputs: ["t"], attributes: { perm: [0, 2, 1] } },
    { type: "MatMul", inputs: ["x", "t"], outputs: ["scores"] },
    { type: "Softmax", inputs: ["scores"], outputs: ["y"] },
  ],
};
/** A row's sums by a matrix, of any number of rows. */
const rows: ModelSpec = {
  opset: 17, inputs: { x: float(["N", 64]) }, outputs: { y: float(["N", 64]), z: float(["N", 64]) },
  initializers: { w: { dtype: "float32", dims: [64, 64], data: Float32Array.from({ length: 4096 }, (_, i) => Math.cos(i)) } },
  nodes: [{ type: "MatMul", inputs: ["x", "w"], outputs: ["y"] }, { type: "Softmax", inputs: ["y"], outputs: ["z"] }],
};

describe.each([2, 3, 7])("%i threads", (threads) => {
  test("carry states that grow, begin anew and go on from what was saved", async () => {
    const states = finelySplit(modelBytes(cache), { states: { past: "present" } }), plain = await session(finelySplit(modelBytes(cache)), 1), s = await session(states, threads);
    let past = new Tensor("float32", new Float32Array(0), [2, 0, 16]);
    const step = async (n: number, phase: number): Promise<void> => {
      const x = wave([2, n, 16], phase), { y } = await s.run({ x }), expected = await plain.run({ x, past });
      expect(values(y)).toEqual(values(expected["y"]));
      past = expected["present"] ?? past;
    };
    for (const [i, n] of [5, 1, 1, 40, 1, 2, 1, 130, 1, 1].entries()) await step(n, i);
    const saved = await s.state();
    expect(values(saved["past"])).toEqual(values(past));
    await s.reset();
    past = new Tensor("float32", new Float32Array(0), [2, 0, 16]);
    for (const n of [3, 1]) await step(n, n);
    const x = wave([2, 1, 16], 9), from = saved["past"] ?? past;
    expect(values((await s.run({ x, past: from }))["y"])).toEqual(values((await plain.run({ x, past: from }))["y"]));
  });

  test("write results into given arrays, shared ones too, and keep others", async () => {
    const artifact = finelySplit(modelBytes(rows)), one = await session(artifact, 1), s = await session(artifact, threads);
    const shared = new Tensor("float32", new Float32Array(new SharedArrayBuffer(4 * 37 * 64)), [37, 64]);
    for (let run = 0; run < 30; run++) {
      const x = wave([37, 64], run), expected = await one.run({ x });
      const { y, z } = await s.run({ x }, { into: { z: shared }, keep: ["y"] });
      expect(z).toBe(shared);
      expect(values(shared)).toEqual(values(expected["z"]));
      expect(y && values(await one.run({ x: new Tensor("float32", await y.getData(), y.dims) }).then((r) => r["y"]))).toEqual(values((await s.run({ x: y ?? x }))["y"]));
      y?.dispose();
    }
  });

  test("are as good after a run that is refused, and end with runs waiting", async () => {
    const guarded: ModelSpec = {
      ...rows, inputs: { ...rows.inputs, i: { dtype: "int64", dims: [1] } }, outputs: { out: undefined },
      nodes: [...rows.nodes, { type: "Gather", inputs: ["z", "i"], outputs: ["out"], attributes: { axis: 1 } }],
    };
    const s = await session(finelySplit(modelBytes(guarded)), threads), at = (n: number): Tensor => new Tensor("int64", BigInt64Array.of(BigInt(n)), [1]), x = wave([50, 64]);
    const first = await s.run({ x, i: at(5) });
    for (let run = 0; run < 10; run++) {
      await expect(s.run({ x, i: at(64 + run) })).rejects.toThrow("OF7014");
      expect(values((await s.run({ x, i: at(5) }))["out"])).toEqual(values(first["out"]));
    }
    const waiting = Array.from({ length: 3 }, () => s.run({ x, i: at(5) }).then(() => "ran", String));
    s.dispose();
    s.dispose();
    expect(await Promise.all(waiting)).toEqual(new Array(3).fill(expect.stringMatching("OF7008")));
  });
});

test("copies of narrow elements, shuffled, joined and cut, are shared by threads", async () => {
  const narrow = (dims: readonly number[]) => ({ dtype: "uint8" as const, dims });
  const moves: ModelSpec = {
    opset: 17, inputs: { x: narrow([1, 2, 58, 9, 7]), y: narrow([3, 50, 70]), z: narrow([3, 50, 33]) },
    outputs: { shuffled: undefined, joined: undefined, cut: undefined },
    initializers: { from: { dtype: "int64", dims: [2], data: BigInt64Array.of(1n, 3n) }, to: { dtype: "int64", dims: [2], data: BigInt64Array.of(49n, 70n) }, axes: { dtype: "int64", dims: [2], data: BigInt64Array.of(1n, 2n) } },
    nodes: [
      { type: "Transpose", inputs: ["x"], outputs: ["shuffled"], attributes: { perm: [0, 3, 4, 2, 1] } },
      { type: "Concat", inputs: ["y", "z", "y"], outputs: ["joined"], attributes: { axis: 2 } },
      { type: "Slice", inputs: ["y", "from", "to", "axes"], outputs: ["cut"] },
    ],
  };
  const artifact = finelySplit(modelBytes(moves)), bytes = (dims: readonly number[]): Tensor => new Tensor("uint8", Uint8Array.from({ length: dims.reduce((n, d) => n * d, 1) }, (_, i) => i * 37), dims);
  const feeds = { x: bytes([1, 2, 58, 9, 7]), y: bytes([3, 50, 70]), z: bytes([3, 50, 33]) }, expected = await (await session(artifact, 1)).run(feeds);
  const s = await session(artifact, 3);
  for (let run = 0; run < 20; run++) for (const [name, t] of Object.entries(await s.run(feeds))) expect(values(t), name).toEqual(values(expected[name]));
});

test("eight sessions of two to four threads at once", { timeout: 120_000 }, async () => {
  const artifact = compileModel(modelBytes(rows)).artifact, x = wave([300, 64]), expected = values((await (await session(artifact, 1)).run({ x }))["z"]);
  const all = await Promise.all(Array.from({ length: 8 }, (_, i) => session(artifact, 2 + (i % 3))));
  for (let run = 0; run < 10; run++) for (const r of await Promise.all(all.map((s) => s.run({ x })))) expect(values(r["z"])).toEqual(expected);
});

describe("in a process of its own", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "onnxfuse-threads-"));
    const { artifact } = compileModel(modelBytes(rows));
    writeFileSync(join(folder, "m.om"), artifact);
    writeFileSync(join(folder, "cut.om"), artifact.subarray(0, artifact.length - 100));
    writeFileSync(join(folder, "wrong.om"), artifact.map((b, i) => (i === artifact.length - 200 ? b ^ 1 : b)));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const node = async (script: string, ...options: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, [...options, "--import", "tsx", "--input-type=module", "-e", script, folder], { cwd: resolve("."), timeout: 60_000 })).stdout.trim();

  test("loads that fail leave no worker behind, and say why", { timeout: 120_000 }, async () => {
    const script = `
      import workers from "node:worker_threads";
      import { syncBuiltinESMExports } from "node:module";
      let alive = 0;
      workers.Worker = class extends workers.Worker { constructor(...given) { super(...given); alive++; this.on("exit", () => { alive--; }); } };
      syncBuiltinESMExports();
      const { load } = await import("./src/runtime/index.ts");
      const codes = [];
      for (const file of ["cut", "wrong", "m"]) codes.push(await load(process.argv[1] + "/" + file + ".om", { threads: 3 }).then((s) => s.threads, (e) => e.diagnostics[0].code));
      for (let i = 0; i < 100 && alive > 2; i++) await new Promise((done) => setTimeout(done, 20));
      console.log(JSON.stringify({ codes, alive }));`;
    expect(JSON.parse(await node(script))).toEqual({ codes: ["OF6002", "OF6002", 3], alive: 2 });
  });

  test("where no worker may be started there is one thread, and a warning", { timeout: 120_000 }, async () => {
    const script = `
      import workers from "node:worker_threads";
      import { syncBuiltinESMExports } from "node:module";
      workers.Worker = class { constructor() { throw new Error("Access to this API has been restricted"); } };
      syncBuiltinESMExports();
      const { load } = await import("./src/runtime/index.ts");
      const s = await load(process.argv[1] + "/m.om", { threads: 3 });
      console.log(JSON.stringify([s.threads, s.warnings.map((w) => w.code + " " + w.message)]));`;
    expect(JSON.parse(await node(script))).toEqual([1, [expect.stringMatching(/OF7040.*restricted/)]]);
  });
});
