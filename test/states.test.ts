/** States: sessions that carry values from run to run give what feeding them back gives, in memory that does not grow with every step. */
import { describe, expect, test } from "vitest";
import { parseStates } from "../src/cli/options/states.ts";
import { compileModel } from "../src/compiler/compile.ts";
import { readArtifact } from "../src/artifact/artifact.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { caseIds, loadCase } from "./support/cases.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

/** Token by token: keys of two heads, `past` rows and `n` new ones, and a sum over all of them. */
const cache: ModelSpec = {
  opset: 17,
  inputs: { x: { dtype: "float32", dims: ["B", 2, "N", 4] }, past: { dtype: "float32", dims: ["B", 2, "P", 4] } },
  outputs: { y: { dtype: "float32", dims: ["B", 2, 1, 4] }, present: undefined },
  initializers: { two: { dtype: "float32", dims: [], data: Float32Array.of(2) } },
  nodes: [
    { type: "Mul", inputs: ["x", "two"], outputs: ["scaled"] },
    { type: "Concat", inputs: ["past", "scaled"], outputs: ["present"], attributes: { axis: 2 } },
    { type: "ReduceSum", inputs: ["present", "axes"], outputs: ["y"], attributes: { keepdims: 1 } },
  ],
};
const cacheBytes = (): Uint8Array => modelBytes({ ...cache, initializers: { ...cache.initializers, axes: { dtype: "int64", dims: [1], data: BigInt64Array.of(2n) } } });
const rows = (n: number, from: number, batch = 1): Tensor => new Tensor("float32", Float32Array.from({ length: batch * 8 * n }, (_, i) => Math.sin(from + i)), [batch, 2, n, 4]);
const empty = (batch = 1): Tensor => new Tensor("float32", new Float32Array(0), [batch, 2, 0, 4]);
const values = (t: Tensor | undefined): unknown[] => [...(t?.dims ?? []), ...(t?.data ?? [])];

/** The same steps by a session that carries `past`, and by one that is fed it. */
async function steps(session: Session, plain: Session, sizes: readonly number[], batch = 1, start = empty(batch)): Promise<Tensor> {
  let past = start;
  for (const [i, n] of sizes.entries()) {
    const x = rows(n, 100 * i, batch), { y } = await session.run({ x }), expected = await plain.run({ x, past });
    expect(values(y)).toEqual(values(expected["y"]));
    past = expected["present"] ?? past;
  }
  return past;
}

describe("a value that grows", () => {
  const pair = async (): Promise<[Session, Session]> => [await load(compileModel(cacheBytes(), { states: { past: "present" } }).artifact), await load(compileModel(cacheBytes()).artifact)];

  test("is enlarged in place, through several rooms", async () => {
    const { artifact } = compileModel(cacheBytes(), { states: { past: "present" } });
    expect(readArtifact(artifact).manifest.states).toMatchObject([{ input: "past", output: "present", grows: { axis: 2 } }]);
    const [session, plain] = await pair();
    const past = await steps(session, plain, [3, 1, 1, 1, 2, 9, 1, 40, 1, 0, 1]);
    expect(values((await session.state())["past"])).toEqual(values(past));
    expect(session.states).toEqual([{ input: "past", output: "present" }]);
  });

  test("begins anew after reset, with another batch, and from what is fed", async () => {
    const [session, plain] = await pair();
    await steps(session, plain, [5, 1]);
    await session.reset();
    expect(await session.state()).toEqual({});
    const past = await steps(session, plain, [2, 2, 1], 3);
    const { past: saved } = await session.state();
    expect(values(saved)).toEqual(values(past));
    await session.reset();
    await steps(session, plain, [7]);
    const x = rows(1, 5, 3), { y } = await session.run({ x, past: saved ?? empty() });
    const expected = await plain.run({ x, past });
    expect(values(y)).toEqual(values(expected["y"]));
    await steps(session, plain, [1, 1, 6], 3, expected["present"] ?? past);
  });

  test("is given when asked for, and not otherwise", async () => {
    const [session] = await pair();
    expect(Object.keys(await session.run({ x: rows(1, 0) }))).toEqual(["y"]);
    const { present, ...others } = await session.run({ x: rows(2, 0) }, { outputs: ["present"] });
    expect([present?.dims, others]).toEqual([[1, 2, 3, 4], {}]);
  });

  test("stays what it was where a run is refused", async () => {
    const [session, plain] = await pair();
    const past = await steps(session, plain, [3]);
    await expect(session.run({ x: rows(1, 0, 2) })).rejects.toThrow("OF7005");
    expect(values((await session.state())["past"])).toEqual(values(past));
    await steps(session, plain, [1, 1], 1, past);
  });

  test("is the same with two threads", async () => {
    const { artifact } = compileModel(cacheBytes(), { states: { past: "present" } });
    const session = await load(artifact, { threads: 2 }), plain = await load(compileModel(cacheBytes()).artifact);
    await steps(session, plain, [3, 1, 200, 1, 1]);
    session.dispose();
  });
});

/** A mean that follows its input: of one size, and in another place than the input. */
const follower: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: [2, 3] }, mean: { dtype: "float32", dims: [2, 3] } },
  outputs: { y: { dtype: "float32", dims: [2, 3] }, next: { dtype: "float32", dims: [2, 3] } },
  initializers: { half: { dtype: "float32", dims: [], data: Float32Array.of(0.5) } },
  nodes: [{ type: "Add", inputs: ["x", "mean"], outputs: ["sum"] }, { type: "Mul", inputs: ["sum", "half"], outputs: ["next"] }, { type: "Sub", inputs: ["x", "next"], outputs: ["y"] }],
};

test("a value of one size begins as zeros and is carried", async () => {
  const session = await load(compileModel(modelBytes(follower), { states: { mean: "next" } }).artifact), plain = await load(compileModel(modelBytes(follower)).artifact);
  let mean = new Tensor("float32", new Float32Array(6), [2, 3]);
  for (let i = 0; i < 5; i++) {
    const x = new Tensor("float32", Float32Array.from({ length: 6 }, (_, k) => k * i), [2, 3]);
    const { y } = await session.run({ x }), expected = await plain.run({ x, mean });
    expect(values(y)).toEqual(values(expected["y"]));
    mean = expected["next"] ?? mean;
  }
  expect(values(mean).some((v) => v !== 0)).toBe(true);
});

test("states are named on the command line in pairs", () => {
  expect(parseStates(["past.*=present.*;h=hn", "c=cn"])).toEqual({ "past.*": "present.*", h: "hn", c: "cn" });
  expect(() => parseStates(["past"])).toThrow("OF1022");
});

test("states that cannot be are refused", () => {
  const compile = (states: Record<string, string>, spec = follower) => () => compileModel(modelBytes(spec), { states });
  expect(compile({ mean: "nxt" })).toThrow(/OF5005.*nxt/s);
  expect(compile({ "m*": "y" })).toThrow("OF5005");
  expect(compile({ "z*": "y*" })).toThrow("OF5005");
  expect(compile({ mean: "next", x: "next" })).toThrow("OF5005");
  expect(compile({ mean: "next" }, { ...follower, inputs: { ...follower.inputs, mean: { dtype: "float32", dims: [3] } } })).toThrow("OF5006");
});

describe.each(caseIds().filter((id) => id.startsWith("aidreams-kv")))("%s", (id) => {
  const { bytes, feeds } = loadCase(id), carried = Object.keys(feeds).filter((n) => n.startsWith("past"));
  const ids = (list: readonly number[]): Tensor => new Tensor("int64", BigInt64Array.from(list, BigInt), [1, list.length]);
  const largest = (t: Tensor | undefined): number => { const data = [...(t?.data ?? [])].map(Number), last = data.slice(-(t?.dims.at(-1) ?? 1)); return last.indexOf(Math.max(...last)); };

  test("the same tokens as with caches that are fed back, from a prompt to 80 tokens, in steady memory", async () => {
    const { artifact } = compileModel(bytes, { states: { "past_key_values.*": "present.*" } });
    const { states } = readArtifact(artifact).manifest;
    expect(states?.map((s) => s.input).sort()).toEqual([...carried].sort());
    expect(states?.every((s) => s.grows?.axis === 2)).toBe(true);
    const session = await load(artifact), plain = await load(compileModel(bytes).artifact);
    const fresh = (): Record<string, Tensor> => Object.fromEntries(carried.map((n) => [n, new Tensor("float32", new Float32Array(0), [1, 4, 0, 16])]));
    let memory = 0;
    for (let turn = 0; turn < 2; turn++) {
      await session.reset();
      let past = fresh(), given = ids([1, 40, 7, 300]);
      for (let step = 0; step < 80; step++) {
        const own = await session.run({ input_ids: given }), expected = await plain.run({ input_ids: given, ...past });
        const { logits } = expected;
        expect([...(own["logits"]?.data ?? [])]).toEqual([...(logits?.data ?? [])]);
        past = Object.fromEntries(carried.map((n) => [n, expected[n.replace("past_key_values", "present")] ?? ids([])]));
        given = ids([largest(logits)]);
      }
      if (turn === 0) memory = session.memoryBytes;
    }
    expect(session.memoryBytes).toBe(memory);
    const kept = await session.state();
    expect(kept[carried[0] ?? ""]?.dims).toEqual([1, 4, 83, 16]);
  });
});
