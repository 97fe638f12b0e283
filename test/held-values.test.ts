/** Strings, sequences, optionals and maps through the whole way: read, fused, compiled, run, verified, written. */
import { describe, expect, test } from "vitest";
import { compile, optimise } from "../src/api/index.ts";
import type { Container } from "../src/core/container.ts";
import { fromNumbers, tensor, type Tensor as CoreTensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { writeModel } from "../src/onnx/write.ts";
import { operators } from "../src/ops/index.ts";
import { load, Tensor, type Feed } from "../src/runtime/index.ts";
import { datumOf } from "../src/runtime/run-values.ts";
import { plain, run } from "./support/all-ways.ts";
import { held, modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const text = (dims: readonly number[], ...strings: string[]): CoreTensor => tensor("string", dims, strings);
const f32 = (...values: number[]): Tensor => new Tensor("float32", Float32Array.from(values));
const int = (value: number): CoreTensor => fromNumbers("int64", [], [value]);
const rows: Container = { kind: "sequence", item: { dtype: "float32", shape: [null] } };
const maybe: Container = { kind: "optional", item: { dtype: "float32", shape: [null] } };

describe("strings", () => {
  const spec: ModelSpec = {
    opset: 20, inputs: { x: { dtype: "string", dims: ["n"] }, i: { dtype: "int64", dims: [2] } }, overridable: ["suffix"],
    initializers: { suffix: text([1], "!"), words: text([3], "zero", "one", ""), flat: fromNumbers("int64", [1], [-1]) },
    outputs: { joined: undefined, picked: undefined, chosen: undefined, same: undefined, number: undefined },
    nodes: [
      { type: "StringConcat", inputs: ["x", "suffix"], outputs: ["joined"] },
      { type: "Gather", inputs: ["words", "i"], outputs: ["taken"] }, { type: "Concat", inputs: ["taken", "x"], outputs: ["both"], attributes: { axis: 0 } },
      { type: "Reshape", inputs: ["both", "flat"], outputs: ["picked"] }, { type: "Equal", inputs: ["x", "suffix"], outputs: ["eq"] },
      { type: "Where", inputs: ["eq", "suffix", "x"], outputs: ["chosen"] }, { type: "Identity", inputs: ["x"], outputs: ["same"] },
      { type: "Shape", inputs: ["both"], outputs: ["s"] }, { type: "Cast", inputs: ["s"], outputs: ["t"], attributes: { to: 8 } }, { type: "Cast", inputs: ["t"], outputs: ["number"], attributes: { to: 1 } },
    ],
  };
  const i = new Tensor("int64", [1, 0]);
  test("are fed, stored, moved, compared and given", async () => {
    const results = await run(spec, { x: new Tensor("string", ["é", "!"]), i });
    expect(Object.fromEntries(Object.entries(results).map(([k, v]) => [k, plain(v)]))).toEqual({ joined: ["é!", "!!"], picked: ["one", "zero", "é", "!"], chosen: ["é", "!"], same: ["é", "!"], number: [4] });
  });
  test("have defaults that can be fed over, run for run", async () => {
    const session = await load((await compile(modelBytes(spec))).artifact);
    const joined = async (feeds: Readonly<Record<string, Feed>>): Promise<unknown> => plain((await session.run({ x: ["a"], i, ...feeds })).joined);
    expect([await joined({}), await joined({ suffix: ["?"] }), await joined({})]).toEqual([["a!"], ["a?"], ["a!"]]);
    await expect(session.run({ x: f32(1), i })).rejects.toThrow(/OF7003/);
    session.dispose();
  });
  test("go through an If and a Loop", async () => {
    const branch = (value: string): ModelSpec => ({ opset: 20, inputs: {}, initializers: {}, outputs: { [`${value}_y`]: undefined }, nodes: [{ type: "Identity", inputs: [value], outputs: [`${value}_y`] }] });
    const flow: ModelSpec = {
      opset: 20, inputs: { c: { dtype: "bool", dims: [] }, x: { dtype: "string", dims: ["n"] } }, initializers: { other: text([1], "o"), m: int(3) }, outputs: { y: undefined, z: undefined, all: undefined },
      nodes: [
        { type: "If", inputs: ["c"], outputs: ["y"], attributes: { then_branch: branch("x"), else_branch: branch("other") } },
        { type: "Loop", inputs: ["m", "", "x"], outputs: ["z", "all"], attributes: { body: {
          opset: 20, initializers: {}, inputs: { it: { dtype: "int64", dims: [] }, go: { dtype: "bool", dims: [] }, s: { dtype: "string", dims: ["n"] } }, outputs: { go: undefined, t: undefined, s: undefined },
          nodes: [{ type: "StringConcat", inputs: ["s", "other"], outputs: ["t"] }],
        } } },
      ],
    };
    for (const c of [true, false]) {
      const { y, z, all } = await run(flow, { c: new Tensor("bool", [c], []), x: new Tensor("string", ["a", "b"]) });
      expect([plain(y), plain(z), plain(all)]).toEqual([c ? ["a", "b"] : ["o"], ["aooo", "booo"], ["a", "b", "ao", "bo", "aoo", "boo"]]);
    }
  });
});

describe("sequences, optionals and maps", () => {
  const spec: ModelSpec = {
    opset: 18, inputs: { xs: held(rows), o: held(maybe), p: { dtype: "int64", dims: [] } }, initializers: {}, outputs: { all: undefined, item: undefined, has: undefined, same: undefined, whole: undefined },
    nodes: [
      { type: "SequenceAt", inputs: ["xs", "p"], outputs: ["at"] }, { type: "Relu", inputs: ["at"], outputs: ["r"] }, { type: "Neg", inputs: ["r"], outputs: ["item"] },
      { type: "SequenceInsert", inputs: ["xs", "item"], outputs: ["all"] }, { type: "ConcatFromSequence", inputs: ["all"], outputs: ["whole"], attributes: { axis: 0 } },
      { type: "OptionalHasElement", inputs: ["o"], outputs: ["has"] }, { type: "Identity", inputs: ["o"], outputs: ["same"] },
    ],
  };
  const p = new Tensor("int64", [-1], []);
  test("are arrays and null at the border, and kernels compute their items", async () => {
    const full = await run(spec, { xs: [f32(1, 2), f32(-1, 3, 4)], o: f32(7), p });
    expect(Object.fromEntries(Object.entries(full).map(([k, v]) => [k, plain(v)]))).toEqual({ all: [[1, 2], [-1, 3, 4], [-0, -3, -4]], item: [-0, -3, -4], has: [1], same: [7], whole: [1, 2, -1, 3, 4, -0, -3, -4] });
    const empty = await run(spec, { xs: [f32(5)], o: null, p });
    expect([plain(empty["has"]), empty["same"]]).toEqual([[0], null]);
  });
  test("are checked when fed", async () => {
    const session = await load((await compile(modelBytes(spec))).artifact);
    expect(session.inputs[0]?.container).toEqual(rows);
    const refused = (feeds: Readonly<Record<string, Feed>>): Promise<unknown> => expect(session.run({ xs: [f32(1)], p, ...feeds })).rejects.toThrow(/OF7003/);
    await refused({ xs: f32(1) });
    await refused({ xs: [new Tensor("int32", [1])] });
    await refused({ xs: [new Tensor("float32", [1], [1, 1])] });
    await refused({ xs: [null] });
    await refused({ o: [f32(1)] });
    await refused({ p: [p] });
    await expect(session.run({ p })).rejects.toThrow(/OF7001/);
    await expect(session.run({ xs: [f32(1)], p: new Tensor("int64", [3], []) })).rejects.toThrow(/OF7014/);
    expect(plain((await session.run<{ item: Tensor }>({ xs: [f32(2)], p })).item)).toEqual([-2]);
    session.dispose();
  });
  test("are verified item by item", async () => {
    const { verification } = await compile(modelBytes(spec), { verify: true, verifyBudget: 5 });
    expect(Object.keys(verification?.runs[0]?.outputs ?? {})).toEqual(expect.arrayContaining(["all.length", "all[0]", "all[2]", "item", "has", "same", "whole"]));
  });
  test("grow in a loop, start absent, and are branches of an If", async () => {
    const flow: ModelSpec = {
      opset: 18, inputs: { x: { dtype: "float32", dims: ["n"] }, o: held({ kind: "optional", item: { dtype: "float32", container: rows } }), m: { dtype: "int64", dims: [] } }, initializers: {}, outputs: { stacked: undefined, count: undefined },
      nodes: [
        { type: "OptionalHasElement", inputs: ["o"], outputs: ["has"] },
        { type: "If", inputs: ["has"], outputs: ["start"], attributes: {
          then_branch: { opset: 18, inputs: {}, initializers: {}, outputs: { given: undefined }, nodes: [{ type: "OptionalGetElement", inputs: ["o"], outputs: ["given"] }] },
          else_branch: { opset: 18, inputs: {}, initializers: {}, outputs: { fresh: undefined }, nodes: [{ type: "SequenceEmpty", inputs: [], outputs: ["fresh"] }] },
        } },
        { type: "Loop", inputs: ["m", "", "start", "x"], outputs: ["grown", "last"], attributes: { body: {
          opset: 18, initializers: {}, inputs: { it: { dtype: "int64", dims: [] }, go: { dtype: "bool", dims: [] }, s: held(rows), v: { dtype: "float32", dims: ["n"] } }, outputs: { go: undefined, t: undefined, w: undefined },
          nodes: [{ type: "Add", inputs: ["v", "x"], outputs: ["w"] }, { type: "SequenceInsert", inputs: ["s", "w"], outputs: ["t"] }],
        } } },
        { type: "ConcatFromSequence", inputs: ["grown"], outputs: ["stacked"], attributes: { axis: 0 } }, { type: "SequenceLength", inputs: ["grown"], outputs: ["count"] },
      ],
    };
    const m = new Tensor("int64", [2], []), x = f32(1, 10);
    const fresh = await run(flow, { x, m, o: null }), given = await run(flow, { x, m, o: [f32(5)] });
    expect([plain(fresh["stacked"]), plain(fresh["count"])]).toEqual([[2, 20, 3, 30], [2n]]);
    expect([plain(given["stacked"]), plain(given["count"])]).toEqual([[5, 2, 20, 3, 30], [3n]]);
  });
  test("are maps that operators make and take", async () => {
    const map = (key: "string" | "int64", dtype: "float32" | "int64" | "string"): Container => ({ kind: "map", key, item: { dtype, shape: [] } });
    const labels = { strings: ["no", "yes"] }, domain = "ai.onnx.ml";
    const maps: ModelSpec = {
      opset: 17, inputs: { x: { dtype: "float32", dims: ["n", 2] }, words: held(map("string", "int64")), sparse: held(map("int64", "string")), whole: held(map("int64", "float32")) }, initializers: {},
      outputs: { zipped: undefined, counts: undefined, cast: undefined, texts: undefined, passed: undefined },
      nodes: [
        { type: "ZipMap", domain, inputs: ["x"], outputs: ["zipped"], attributes: { classlabels_strings: labels } },
        { type: "DictVectorizer", domain, inputs: ["words"], outputs: ["counts"], attributes: { string_vocabulary: { strings: ["a", "b"] } } },
        { type: "CastMap", domain, inputs: ["sparse"], outputs: ["cast"], attributes: { map_form: "SPARSE", max_map: 3 } },
        { type: "CastMap", domain, inputs: ["whole"], outputs: ["texts"], attributes: { cast_to: "TO_STRING" } },
        { type: "Identity", inputs: ["words"], outputs: ["passed"] },
      ],
    };
    const words = new Map([["b", 2n], ["c", 5n]]);
    const feeds = { x: new Tensor("float32", Float32Array.of(0.25, 0.75, 1, 0), [2, 2]), words, sparse: new Map([[1n, "2.5"]]), whole: new Map([[7n, 0.5], [-1n, 2]]) };
    const { zipped, counts, cast, texts, passed } = await run(maps, feeds);
    expect(zipped).toEqual([new Map([["no", 0.25], ["yes", 0.75]]), new Map([["no", 1], ["yes", 0]])]);
    expect([plain(counts), plain(cast), plain(texts), passed]).toEqual([[0n, 2n], [0, 2.5, 0], ["2.000000", "0.500000"], words]);
    expect(plain((await run(maps, { ...feeds, words: new Map() }))["counts"])).toEqual([0n, 0n]);
    const session = await load((await compile(modelBytes(maps))).artifact);
    await expect(session.run({ ...feeds, words: new Map([[1n, 1n]]) })).rejects.toThrow(/OF7003/);
    await expect(session.run({ ...feeds, sparse: new Map([[1, "x"]]) })).rejects.toThrow(/OF7014.*no number/);
    session.dispose();
  });
  test("are written so that onnxruntime gives the same", async () => {
    const inside: ModelSpec = {
      opset: 17, inputs: { x: { dtype: "float32", dims: [5] } }, initializers: { two: int(2), last: int(-1) }, outputs: { y: { dtype: "float32", dims: ["k"] }, z: { dtype: "float32", dims: [5] } },
      nodes: [
        { type: "SplitToSequence", inputs: ["x", "two"], outputs: ["parts"], attributes: { axis: 0 } }, { type: "SequenceAt", inputs: ["parts", "last"], outputs: ["y"] },
        { type: "SequenceMap", inputs: ["parts"], outputs: ["mapped"], attributes: { body: { opset: 17, initializers: {}, inputs: { e: { dtype: "float32", dims: ["k"] } }, outputs: { f: { dtype: "float32", dims: ["k"] } }, nodes: [{ type: "Neg", inputs: ["e"], outputs: ["f"] }] } } },
        { type: "ConcatFromSequence", inputs: ["mapped"], outputs: ["z"], attributes: { axis: 0 } },
      ],
    };
    const x = fromNumbers("float32", [5], [1, 2, 3, 4, 5]), expected = { y: fromNumbers("float32", [1], [5]), z: fromNumbers("float32", [5], [-1, -2, -3, -4, -5]) };
    expect(Object.fromEntries(Object.entries(await run(inside, { x: Tensor.of(x) })).map(([k, v]) => [k, datumOf(v)]))).toEqual(expected);
    const bytes = modelBytes(inside), { graph, info } = readModel(bytes, operators);
    expect(await runOnnxruntime(writeModel(graph, info), { x })).toEqual(expected);
    expect(await runOnnxruntime(optimise(bytes).model, { x })).toEqual(expected);
  });
  test("are refused where an operator takes tensors", () => {
    const only = (nodes: ModelSpec["nodes"], item: Container["item"] = { dtype: "float32", shape: [null] }): ModelSpec => ({ opset: 18, inputs: { xs: held({ kind: "sequence", item }) }, initializers: { p: int(0) }, outputs: { y: undefined }, nodes });
    expect(() => readModel(modelBytes(only([{ type: "Relu", inputs: ["xs"], outputs: ["y"] }])), operators)).toThrow(/OF3017/);
    expect(() => readModel(modelBytes({ ...only([{ type: "SequenceLength", inputs: ["xs"], outputs: ["y"] }]), outputs: { y: held(rows) } }), operators)).toThrow(/OF2033/);
  });
  test("of unknown rank take the shape that is given for their items", async () => {
    const open: Container = { kind: "sequence", item: { dtype: "float32" } };
    const bytes = modelBytes({
      opset: 17, inputs: { s: held(open), at: { dtype: "int64", dims: [] } }, outputs: { y: { dtype: "float32", dims: ["a", 2] } }, initializers: {},
      nodes: [{ type: "SequenceAt", inputs: ["s", "at"], outputs: ["x"] }, { type: "Relu", inputs: ["x"], outputs: ["y"] }],
    });
    expect((await compile(bytes)).report.warnings).toMatchObject([{ code: "OF2037", hint: expect.stringContaining("--input_shape") as string }]);
    expect((await compile(bytes, { inputShapes: { s: [undefined, 2] } })).report.warnings).toEqual([]);
    await expect(compile(bytes, { inputShapes: { at: [undefined] } })).rejects.toThrow(/OF2071/);
    const session = await load((await compile(bytes, { inputShapes: { s: [undefined, 2] } })).artifact);
    const pair = (...values: number[]): Tensor => new Tensor("float32", Float32Array.from(values), [values.length / 2, 2]);
    const { y } = await session.run<{ y: Tensor }>({ s: [pair(1, -2), pair(-3, 4, 5, -6)], at: Tensor.of(int(1)) });
    expect(y.dims).toEqual([2, 2]);
    expect(y.data).toEqual(Float32Array.of(0, 4, 5, 0));
    await expect(session.run({ s: [f32(1, 2)], at: Tensor.of(int(0)) })).rejects.toThrow(/OF7/);
    session.dispose();
  });
});
