import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { convBnRelu } from "../../test/support/article-models.ts";
import { commandLines } from "../../test/support/command-line.ts";
import { modelBytes } from "../../test/support/model-spec.ts";
import { readArtifact } from "../artifact/artifact.ts";
import { Tensor, type Session } from "../runtime/index.ts";
import { choicesFrom, tune, variants, variantsFor, type Measurements } from "./tune.ts";

const { run, write } = commandLines();
const { spec } = convBnRelu("conv1d");
const feedsFor = (session: Session): Record<string, Tensor> => Object.fromEntries(session.inputs.map(({ name, dims }) => [name, new Tensor("float32", new Float32Array(dims.reduce<number>((n, d) => n * Number(d), 1)), dims.map(Number))]));
const alone = variantsFor(1).map(([name]) => name);
const quiet = { rounds: 1, threads: 1, known: {}, onMeasured: () => undefined, stopped: () => false };

describe("choices from measurements", () => {
  const measured: Measurements = { "2x16": { a: [100, 80], b: [100, 99], c: [100, 120] }, direct: { a: [100, 70] }, "no strips": { b: [100, 101] } };
  it("are the quickest of what gains clearly, and nothing else", () => {
    expect(choicesFrom(measured)).toEqual({ a: variants["direct"] });
    expect(choicesFrom({ ...measured, "2x16": { ...measured["2x16"], b: [100, 90] } })).toEqual({ a: variants["direct"], b: variants["2x16"] });
    expect(choicesFrom({})).toEqual({});
  });
});

describe("tune", () => {
  it("measures kernels that a variant changes, once, and hands out what it has after each", async () => {
    const handed: Measurements[] = [];
    const choices = await tune(modelBytes(spec), {}, feedsFor, { ...quiet, onMeasured: (all) => handed.push(all) });
    expect(handed.map((m) => Object.keys(m))).toEqual(alone.map((_, i) => alone.slice(0, i + 1)));
    const last = handed[handed.length - 1] ?? {};
    expect(Object.keys(last["2x16"] ?? {})).toEqual([expect.stringMatching(/^conv/)]);
    // One dimension has no Winograd form, and a Relu is not costly.
    expect(last["direct"]).toEqual({});
    expect(last["no strips"]).toEqual({});
    expect(choices).toEqual(choicesFrom(last));
  });
  it("measures what threads share as well, with threads, and loops that two variants have in common once", async () => {
    const x = { dtype: "float32" as const, dims: [2000, 32] }, w = { dtype: "float32" as const, dims: [32, 64], data: Float32Array.from({ length: 32 * 64 }, (_, i) => Math.sin(i)) };
    const product = modelBytes({ opset: 17, inputs: { x }, outputs: { y: { dtype: "float32", dims: [2000, 64] } }, initializers: { w }, nodes: [{ type: "MatMul", inputs: ["x", "w"], outputs: ["y"] }] });
    let last: Measurements = {};
    const note = { rounds: 2, onMeasured: (all: Measurements) => { last = all; } };
    await tune(product, {}, feedsFor, { ...quiet, ...note, threads: 2 });
    const measured = Object.entries(last).flatMap(([name, kernels]) => (Object.keys(kernels).length > 0 ? [name] : []));
    expect(Object.keys(last)).toEqual(Object.keys(variants));
    // A product has no Winograd form and no costly epilogue: of those variants the loops are known.
    expect(measured).toEqual(["2x16", "outer split", "outer split, 2x16"]);
    await tune(product, {}, feedsFor, { ...quiet, ...note });
    expect(Object.keys(last)).toEqual(alone);
  });
  it("stops between rounds, and goes on with what is known", async () => {
    const handed: Measurements[] = [];
    expect(await tune(modelBytes(spec), {}, feedsFor, { ...quiet, onMeasured: (all) => handed.push(all), stopped: () => handed.length === 2 })).toBeUndefined();
    expect(handed).toHaveLength(2);
    const known = { ...handed[1], "2x16": { x: [10, 1] as const } };
    const rest: Measurements[] = [];
    expect(await tune(modelBytes(spec), {}, feedsFor, { ...quiet, known, onMeasured: (all) => rest.push(all) })).toMatchObject({ x: variants["2x16"] });
    expect(rest).toHaveLength(alone.length - 2);
  });
});

describe("onnxfuse tune", () => {
  it("writes choices that --choices reads, and an artifact that records them", async () => {
    write("m.onnx", spec);
    const done = await run("tune m.onnx --rounds 2 --output tuned.om");
    expect(done).toMatchObject({ code: 0, error: "" });
    const file = JSON.parse(readFileSync("m.choices.json", "utf8")) as { measured: Measurements; choices: Record<string, unknown> };
    expect(file.choices).toEqual(choicesFrom(file.measured));
    expect(readArtifact(readFileSync("tuned.om")).manifest.options["choices"] ?? {}).toEqual(file.choices);
    await run("compile m.onnx --choices m.choices.json --output again.om");
    expect(readFileSync("again.om")).toEqual(readFileSync("tuned.om"));
  });
  it("goes on with a file that is not complete, and refuses others", async () => {
    write("m.onnx", spec);
    await run("tune m.onnx --rounds 1");
    const file = JSON.parse(readFileSync("m.choices.json", "utf8")) as { measured: Record<string, unknown>; choices?: unknown };
    delete file.choices;
    delete file.measured["direct"];
    writeFileSync("m.choices.json", JSON.stringify(file));
    expect((await run("compile m.onnx --choices m.choices.json")).error).toMatch(/OF1020/);
    expect((await run("tune m.onnx --rounds 1")).error).toMatch(/going on with m.choices.json: 4 of 5/);
    expect((await run("tune m.onnx --rounds 1 --no-fusion")).error).toMatch(/OF1021/);
    writeFileSync("m.choices.json", "{}");
    expect((await run("compile m.onnx --choices m.choices.json --output x.om")).error).toMatch(/OF1020/);
    expect(existsSync("x.om")).toBe(false);
  });
  it("keeps what is measured when it is interrupted", async () => {
    write("m.onnx", convBnRelu("conv").spec);
    const work = run("tune m.onnx --rounds 3");
    const waiting = setInterval(() => { if (existsSync("m.choices.json")) { clearInterval(waiting); process.emit("SIGINT"); } }, 1);
    const done = await work;
    clearInterval(waiting);
    expect(done).toMatchObject({ code: 130, out: "" });
    expect(done.error).toMatch(/interrupted; [1-4] of 5 variants/);
    expect(existsSync("m.om")).toBe(false);
    expect(await run("tune m.onnx --rounds 1")).toMatchObject({ code: 0 });
  });
});
