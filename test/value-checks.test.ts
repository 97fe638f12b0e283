/** Values that kernels rely on: what is out of range stops the run by name, everywhere and every time; what is in range runs. */
import { describe, expect, test } from "vitest";
import { readArtifact } from "../src/artifact/artifact.ts";
import { compileModel } from "../src/compiler/compile.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { load } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { bool, compareWays, f32, i64, runSession, type Tensors } from "./support/three-ways.ts";

const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: NodeSpec["attributes"] = {}): NodeSpec => ({ type, inputs, outputs, attributes, name: `the_${type}` });
const f = (...dims: (number | string)[]): ModelSpec["inputs"][string] => ({ dtype: "float32", dims });
const n = (...dims: (number | string)[]): ModelSpec["inputs"][string] => ({ dtype: "int64", dims });
const x = f32([3, 2], 1, 2, 3, 4, 5, 6);

/** The diagnostic that stops a run; undefined where it ends well. */
async function refusal(spec: ModelSpec, feeds: Tensors): Promise<string | undefined> {
  const session = await load(compileModel(modelBytes(spec)).artifact);
  try {
    await runSession(session, feeds);
    return undefined;
  } catch (error) {
    if (error instanceof DiagnosticError) return error.message;
    throw error;
  } finally {
    session.dispose();
  }
}

const gather: ModelSpec = { opset: 18, inputs: { x: f("N", 2), i: n("K") }, outputs: { y: f("K", 2) }, initializers: {}, nodes: [node("Gather", ["x", "i"], ["y"])] };
const cases: Readonly<Record<string, { readonly spec: ModelSpec; readonly good: readonly Tensor[]; readonly bad: readonly (readonly [Tensor, RegExp])[] }>> = {
  Gather: {
    spec: gather, good: [i64([3], 0, 2, -3), i64([0])],
    bad: [[i64([3], 0, 3, 1), /OF7014.*'i' holds the index 3.*axis of 3.*the_Gather/], [i64([2], -4, 0), /OF7014.*index -4/], [i64([1], 2 ** 40), /OF7014.*index 1099511627776/], [i64([1], -(2 ** 31)), /OF7014.*index -2147483648/]],
  },
  GatherElements: {
    spec: { ...gather, inputs: { x: f("N", 2), i: n("K", 2) }, nodes: [node("GatherElements", ["x", "i"], ["y"], { axis: 0 })] }, good: [i64([2, 2], 0, 2, -3, 1)],
    bad: [[i64([1, 2], 0, 3), /OF7014.*index 3.*axis of 3/]],
  },
  "GatherND, with an axis for each place": {
    spec: { ...gather, inputs: { x: f("N", 2), i: n("K", 2) }, outputs: { y: f("K") }, nodes: [node("GatherND", ["x", "i"], ["y"])] }, good: [i64([2, 2], 2, 1, -3, -2)],
    bad: [[i64([1, 2], 1, 2), /OF7014.*index 2.*axis of 2/], [i64([1, 2], 3, 1), /OF7014.*index 3.*axis of 3/]],
  },
  "indices that are computed": {
    spec: { ...gather, nodes: [node("Add", ["i", "i"], ["twice"]), node("Gather", ["x", "twice"], ["z"]), node("Relu", ["z"], ["y"])] }, good: [i64([2], 1, 0)],
    bad: [[i64([2], 0, 2), /OF7014.*'twice' holds the index 4/]],
  },
};

test("integers are not divided by 0", async () => {
  for (const type of ["Div", "Mod"]) {
    const spec: ModelSpec = { opset: 18, inputs: { a: n("N"), b: n("N") }, outputs: { y: n("N") }, initializers: {}, nodes: [node(type, ["a", "b"], ["y"])] };
    expect(await compareWays(spec, [{ a: i64([3], 7, -7, 7), b: i64([3], 2, 2, -2) }], { onnxruntime: type === "Div" })).toBeUndefined();
    expect(await refusal(spec, { a: i64([3], 7, -7, 7), b: i64([3], 2, 0, -2) })).toMatch(/OF7014.*'b' divides integers and holds a 0/);
    expect(await refusal(spec, { a: i64([0]), b: i64([0]) })).toBeUndefined();
  }
});

describe.each(Object.entries(cases))("%s", (_, { spec, good, bad }) => {
  test("runs what is in range", async () => expect(await compareWays(spec, good.map((i) => ({ x, i })))).toBeUndefined());
  test("stops at what is not", async () => { for (const [i, message] of bad) expect(await refusal(spec, { x, i })).toMatch(message); });
});

test("a session goes on after it has refused", async () => {
  const session = await load(compileModel(modelBytes(gather)).artifact);
  for (let k = 0; k < 3; k++) {
    await expect(runSession(session, { x, i: i64([2], 0, 7) })).rejects.toThrow(/OF7014/);
    expect((await runSession(session, { x, i: i64([1], 2) }))["y"]?.data).toEqual(Float32Array.of(5, 6));
    expect((await runSession(session, { x: f32([1, 2], 8, 9), i: i64([1], 0) }))["y"]?.data).toEqual(Float32Array.of(8, 9));
  }
  session.dispose();
});

test("branches and loops look at their own", async () => {
  const branch: ModelSpec = { ...gather, inputs: { ...gather.inputs, c: { dtype: "bool", dims: [] } }, nodes: [node("If", ["c"], ["y"], {
    then_branch: { ...gather, inputs: {}, outputs: { a: f("K", 2) }, nodes: [node("Gather", ["x", "i"], ["a"])] },
    else_branch: { ...gather, inputs: {}, outputs: { b: f("N", 2) }, nodes: [node("Neg", ["x"], ["b"])] },
  })] };
  expect(await refusal(branch, { x, i: i64([1], 5), c: bool(true) })).toMatch(/OF7014.*index 5/);
  expect(await refusal(branch, { x, i: i64([1], 5), c: bool(false) })).toBeUndefined();
  const loop: ModelSpec = { ...gather, inputs: { x: f("N", 2), M: n() }, outputs: { y: f(2) }, initializers: { start: f32([2], 0, 0) }, nodes: [node("Loop", ["M", "", "start"], ["y"], {
    body: { ...gather, inputs: { k: n(), go: { dtype: "bool", dims: [] }, s: f(2) }, outputs: { go2: { dtype: "bool", dims: [] }, t: f(2) }, nodes: [node("Gather", ["x", "k"], ["row"]), node("Add", ["s", "row"], ["t"]), node("Identity", ["go"], ["go2"])] },
  })] };
  expect(await refusal(loop, { x, M: i64([], 3) })).toBeUndefined();
  expect(await refusal(loop, { x, M: i64([], 4) })).toMatch(/OF7014.*index 3/);
});

test("what is known to be in range is not looked at", () => {
  const checks = (spec: ModelSpec): number => (JSON.stringify(readArtifact(compileModel(modelBytes(spec)).artifact).manifest.steps).match(/"check":/g) ?? []).length;
  expect(checks(gather)).toBe(1);
  expect(checks({ ...gather, nodes: [node("Gather", ["x", "i"], ["a"]), node("Neg", ["x"], ["m"]), node("Gather", ["m", "i"], ["b"]), node("Add", ["a", "b"], ["y"])] })).toBe(1);
  expect(checks({ ...gather, inputs: { x: f(3, 2) }, outputs: { y: f(2, 2) }, initializers: { i: i64([2], 0, -3) } })).toBe(0);
  expect(checks({ ...gather, inputs: { x: f("N", 2) }, outputs: { y: f(1, 2, 2) }, nodes: [node("ArgMax", ["x"], ["i"], { axis: 0 }), node("Gather", ["x", "i"], ["y"])] })).toBe(0);
});
