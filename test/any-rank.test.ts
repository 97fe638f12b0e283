/** Tensors whose rank only running tells: read, compiled, run on the host among kernels, written; by all executors alike. */
import { describe, expect, test } from "vitest";
import { compile, optimise } from "../src/api/index.ts";
import type { Container } from "../src/core/container.ts";
import { fromNumbers } from "../src/core/tensor.ts";
import { fuseModel } from "../src/compiler/compile.ts";
import { lowerProgram } from "../src/lower/program.ts";
import { load, Tensor, type Feed, type RunValue } from "../src/runtime/index.ts";
import { datumOf } from "../src/runtime/run-values.ts";
import { run } from "./support/all-ways.ts";
import { held, modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const f32 = (dims: readonly number[], ...values: number[]): Tensor => new Tensor("float32", Float32Array.from(values), dims);
const int = (value: number): Tensor => new Tensor("int64", [value], []);
const bool = (value: boolean): Tensor => new Tensor("bool", [value], []);
const stored = (dims: readonly number[], ...values: number[]) => fromNumbers("int64", dims, values);
/** Dims and elements. */
const shown = (v: RunValue | undefined): unknown => (v instanceof Tensor ? [v.dims, ...v.data] : Array.isArray(v) ? v.map(shown) : v);
const allShown = (results: Record<string, RunValue>): unknown => Object.fromEntries(Object.entries(results).map(([name, v]) => [name, shown(v)]));
const any: Container = { kind: "sequence", item: { dtype: "float32" } };
const node = (type: string, inputs: readonly string[], outputs: readonly string[], attributes: ModelSpec["nodes"][number]["attributes"] = {}) => ({ type, inputs, outputs, attributes });
const body = (inputs: ModelSpec["inputs"], outputs: readonly string[], nodes: ModelSpec["nodes"]): ModelSpec =>
  ({ opset: 18, inputs, initializers: {}, outputs: Object.fromEntries(outputs.map((o) => [o, undefined])), nodes });
const scalars = { it: { dtype: "int64" as const, dims: [] }, go: { dtype: "bool" as const, dims: [] } };
const graph = (inputs: ModelSpec["inputs"], outputs: readonly string[], nodes: ModelSpec["nodes"], initializers: ModelSpec["initializers"] = {}): ModelSpec => ({ ...body(inputs, outputs, nodes), initializers });

describe("sequences of tensors of different ranks", () => {
  const x = { dtype: "float32" as const, dims: ["n"] }, m = { dtype: "float32" as const, dims: ["n", 2] }, at = { dtype: "int64" as const, dims: [] };
  const mixed = graph({ x, m, at }, ["item", "shape", "size", "all", "fewer", "length", "flat", "sum"], [
    node("SequenceConstruct", ["x", "m", "x"], ["s"]), node("SequenceAt", ["s", "at"], ["one"]), node("Neg", ["one"], ["item"]), node("Shape", ["item"], ["shape"]), node("Size", ["item"], ["size"]),
    node("SequenceInsert", ["s", "item", "at"], ["all"]), node("SequenceErase", ["all", "at"], ["fewer"]), node("SequenceLength", ["fewer"], ["length"]),
    node("Reshape", ["item", "minus"], ["row"]), node("Relu", ["row"], ["positive"]), node("Add", ["positive", "row"], ["flat"]), node("ReduceSum", ["item"], ["sum"], { keepdims: 0 }),
  ], { minus: stored([1], -1) });
  const feeds = { x: f32([2], 1, -2), m: f32([2, 2], 3, -4, 5, -6) };
  test("take, give, insert and erase tensors of each", async () => {
    const first = await run(mixed, { ...feeds, at: int(0) }), second = await run(mixed, { ...feeds, at: int(1) });
    expect(allShown(first)).toMatchObject({ item: [[2], -1, 2], shape: [[1], 2n], size: [[], 2n], all: [[[2], -1, 2], [[2], 1, -2], [[2, 2], 3, -4, 5, -6], [[2], 1, -2]], fewer: [[[2], 1, -2], [[2, 2], 3, -4, 5, -6], [[2], 1, -2]], length: [[], 3n], sum: [[], 1] });
    expect(allShown(second)).toMatchObject({ item: [[2, 2], -3, 4, -5, 6], shape: [[2], 2n, 2n], size: [[], 4n], sum: [[], 2] });
    expect(shown(first["flat"])).toEqual([[2], -1, 4]);
  });
  test("what is after the rank is known again has kernels", async () => {
    expect((await compile(modelBytes(mixed))).report.warnings.map((w) => w.code)).toEqual(["OF2037"]);
    const { graph: fused, regions } = fuseModel(modelBytes(mixed), {}, true), { steps } = lowerProgram(fused.graph, regions);
    const computed = (kind: "call" | "host"): string[] => steps.flatMap((s) => (s.kind === kind ? s.origin.nodes : []));
    expect(computed("call").map((n) => n.split("_")[0])).toEqual(["Relu", "Add"]);
    expect(computed("host").map((n) => n.split("_")[0])).toEqual(expect.arrayContaining(["SequenceAt", "Neg", "Reshape"]));
  });
  test("are joined, split and mapped", async () => {
    const mapped = graph({ s: held(any), m }, ["joined", "stacked", "parts", "doubled"], [
      node("ConcatFromSequence", ["s"], ["joined"], { axis: 0 }), node("ConcatFromSequence", ["s"], ["stacked"], { axis: 0, new_axis: 1 }),
      node("SequenceAt", ["s", "zero"], ["first"]), node("SplitToSequence", ["first", "one"], ["parts"], { axis: 0 }),
      node("SequenceMap", ["s", "m"], ["doubled"], { body: { ...body({ e: { dtype: "float32", dims: [] }, w: m }, [], [node("Add", ["e", "e"], ["f"])]), outputs: { f: { dtype: "float32", dims: [] } } } }),
    ], { zero: stored([], 0), one: stored([], 1) });
    expect(allShown(await run(mapped, { m: f32([0, 2]), s: [f32([2, 1], 1, 2), f32([2, 1], 3, 4)] }))).toEqual({
      joined: [[4, 1], 1, 2, 3, 4], stacked: [[2, 2, 1], 1, 2, 3, 4], parts: [[[1, 1], 1], [[1, 1], 2]], doubled: [[[2, 1], 2, 4], [[2, 1], 6, 8]],
    });
    const session = await load((await compile(modelBytes(mapped))).artifact);
    await expect(session.run({ m: f32([0, 2]), s: [f32([1], 1), f32([1, 1], 2)] })).rejects.toThrow(/OF7014.*do not join/);
    session.dispose();
  });
  test("grow in a loop, are optional, and pass an If", async () => {
    const some = held({ kind: "optional", item: { dtype: "float32", container: any } });
    const flow = graph({ o: some, x, go: { dtype: "bool", dims: [] } }, ["grown", "last", "kept"], [
      node("OptionalHasElement", ["o"], ["has"]),
      node("If", ["has"], ["start"], { then_branch: body({}, ["given"], [node("OptionalGetElement", ["o"], ["given"])]), else_branch: body({}, ["fresh"], [node("SequenceEmpty", [], ["fresh"])]) }),
      node("Loop", ["three", "", "start", "x"], ["grown", "last"], { body: body({ ...scalars, s: held(any), v: x }, ["go", "t", "w"], [
        node("Unsqueeze", ["v", "zero"], ["w"]), node("SequenceInsert", ["s", "w"], ["t"]),
      ]) }),
      node("Optional", ["grown"], ["wrapped"]), node("If", ["go"], ["kept"], { then_branch: body({}, ["a"], [node("OptionalGetElement", ["wrapped"], ["a"])]), else_branch: body({}, ["b"], [node("SequenceConstruct", ["x"], ["b"])]) }),
    ], { three: stored([], 3), zero: stored([1], 0) });
    const grown = [[[1, 1], 7], [[1, 1, 1], 7], [[1, 1, 1, 1], 7]];
    expect(allShown(await run(flow, { o: null, x: f32([1], 7), go: bool(true) }))).toEqual({ grown, last: grown[2], kept: grown });
    expect(allShown(await run(flow, { o: [f32([], 5)], x: f32([1], 7), go: bool(false) }))).toEqual({ grown: [[[], 5], ...grown], last: grown[2], kept: [[[1], 7]] });
  });
  test("a position that does not exist is refused when running", async () => {
    const session = await load((await compile(modelBytes(mixed))).artifact);
    await expect(session.run({ ...feeds, at: int(3) })).rejects.toThrow(/OF7014/);
    session.dispose();
  });
});

describe("values of any rank", () => {
  const unused = ({ inputs: { w: _, ...inputs }, ...rest }: ModelSpec): ModelSpec => ({ ...rest, inputs });
  const c = { dtype: "bool" as const, dims: [] }, v = { dtype: "float32" as const, dims: [2, 3] };
  const either = graph({ c, v, w: { dtype: "float32", dims: ["k"] } }, ["y", "scaled", "both", "same"], [
    node("If", ["c"], ["y"], { then_branch: body({}, ["a"], [node("ReduceSum", ["v"], ["a"], { keepdims: 0 })]), else_branch: body({}, ["b"], [node("Identity", ["v"], ["b"])]) }),
    node("Mul", ["y", "v"], ["scaled"]), node("Add", ["y", "y"], ["both"]), node("Squeeze", ["y"], ["same"]),
  ]);
  const given: Readonly<Record<string, Feed>> = { v: f32([2, 3], 1, 2, 3, 4, 5, 6), w: f32([1], 1) };
  test("come from branches whose ranks differ", async () => {
    expect(allShown(await run(either, { ...given, c: bool(true) }))).toEqual({ y: [[], 21], scaled: [[2, 3], 21, 42, 63, 84, 105, 126], both: [[], 42], same: [[], 21] });
    expect(allShown(await run(either, { ...given, c: bool(false) }))).toEqual({ y: [[2, 3], 1, 2, 3, 4, 5, 6], scaled: [[2, 3], 1, 4, 9, 16, 25, 36], both: [[2, 3], 2, 4, 6, 8, 10, 12], same: [[2, 3], 1, 2, 3, 4, 5, 6] });
  });
  test("nothing that hangs on a rank is taken to do nothing", async () => {
    const odd = graph({ c, v }, ["z", "t", "m"], [
      node("If", ["c"], ["y"], { then_branch: body({}, ["a"], [node("ReduceSum", ["v"], ["a"], { keepdims: 0 })]), else_branch: body({}, ["b"], [node("Identity", ["v"], ["b"])]) }),
      node("Mul", ["y", "one"], ["m"]), node("Transpose", ["y"], ["u"]), node("Transpose", ["u"], ["z"]), node("Transpose", ["y"], ["t"]),
    ], { one: stored([1, 1], 1) });
    const floats: ModelSpec = { ...odd, initializers: { one: fromNumbers("float32", [1, 1], [1]) } };
    expect(allShown(await run(floats, { v: given["v"] ?? null, c: bool(true) }))).toEqual({ z: [[], 21], t: [[], 21], m: [[1, 1], 21] });
    expect(allShown(await run(floats, { v: given["v"] ?? null, c: bool(false) }))).toMatchObject({ z: [[2, 3], 1, 2, 3, 4, 5, 6], t: [[3, 2], 1, 4, 2, 5, 3, 6] });
  });
  test("an operator that takes them under no rank is refused when compiling, one that fits no value when running", async () => {
    const unfit = (last: ModelSpec["nodes"][number]): Uint8Array => modelBytes({ ...either, outputs: { r: undefined }, nodes: [...either.nodes.slice(0, 1), last] });
    await expect(compile(unfit(node("And", ["y", "y"], ["r"])))).rejects.toThrow(/OF30/);
    const session = await load((await compile(unfit(node("MatMul", ["y", "w"], ["r"])))).artifact);
    await expect(session.run({ ...given, c: bool(true) })).rejects.toThrow();
    session.dispose();
  });
  test("are given to other runtimes without a rank, and verified", async () => {
    for (const c of [true, false]) {
      const feeds = { v: fromNumbers("float32", [2, 3], [1, 2, 3, 4, 5, 6]), c: fromNumbers("bool", [], [Number(c)]) }, ours = await run(unused(either), { v: given["v"] ?? null, c: bool(c) });
      expect(await runOnnxruntime(optimise(modelBytes(unused(either))).model, feeds)).toEqual(Object.fromEntries(Object.entries(ours).map(([name, r]) => [name, datumOf(r)])));
    }
    expect((await compile(modelBytes(either), { verify: true, verifyBudget: 5 })).verification?.runs.length).toBeGreaterThan(0);
  });
});
