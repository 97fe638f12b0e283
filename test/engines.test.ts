/**
 * Right on every engine: the real models, small models of fusions and a part of the standard's node tests, compiled here, run by the built runtime
 * in this Node and in the newest one (test/newest-node), on one and two threads, with and without relaxed SIMD. In the
 * small ones every parallel loop is split, however small. Chromium has a test of its own.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { isTensor, type Datum } from "../src/core/datum.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { fromNumbers, sameTensor, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { leftOut, outside } from "./conformance/exclusions.ts";
import { nodeCaseMismatch } from "./conformance/tolerance.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { mismatch, runCompiled } from "./support/differential.ts";
import { finelySplit } from "./support/finely-split.ts";
import { compileOptions, feedOptions, fusionCases, isRandom, randomFeeds, refused, toleranceOf, type FusionCase } from "./support/fusion-cases.ts";
import { loadNodeCase, nodeCaseNames } from "./support/node-cases.ts";
import type { Job, Outcome, Ran, Way } from "./support/run-jobs.ts";
import { modelBytes } from "./support/model-spec.ts";
import { sevenBitConv, sevenBitMatMul, type SevenBitModel } from "./support/seven-bit-models.ts";
import { fromWire, wires } from "./support/wire.ts";

/** The newest Node's executable, where the package for this platform is installed. */
function newestNode(): string | undefined {
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const folders = createRequire(resolve("test/newest-node/package.json")).resolve.paths(name) ?? [];
  return folders.map((f) => join(f, name, "bin", process.platform === "win32" ? "node.exe" : "node")).find((f) => existsSync(f));
}

interface EngineCase { readonly name: string; readonly command: readonly string[]; readonly newest: boolean }
const newest = newestNode();
const engines: readonly EngineCase[] = [
  { name: `Node ${process.versions.node}`, command: [process.execPath, "--import", "tsx"], newest: false },
  ...(newest === undefined ? [] : [{ name: "the newest Node", command: [newest], newest: true }]),
];

const ids = caseIds();
const allWays: readonly Way[] = (["simd", "relaxed-simd"] as const).flatMap((engine) => [1, 2].map((threads) => ({ engine, threads })));
const crossWays: readonly Way[] = [{ engine: "simd", threads: 2 }, { engine: "relaxed-simd", threads: 1 }];
/** Every so manieth node test. */
const step = 5;

const onlyTensors = (data: Readonly<Record<string, Datum>>): data is Readonly<Record<string, Tensor>> => Object.values(data).every(isTensor);
const folder = mkdtempSync(join(tmpdir(), "onnxfuse-engines-"));
const jobs: Job[] = [], mismatches = new Map<string, (results: Readonly<Record<string, Tensor>>) => string | undefined>();

function add(name: string, artifact: Uint8Array, feeds: Readonly<Record<string, Tensor>>, ways: readonly Way[], compare: (name: string, actual: Tensor | undefined) => string | undefined, outputs: readonly string[]): void {
  const file = join(folder, `${jobs.length}.om`);
  writeFileSync(file, artifact);
  jobs.push({ name, artifact: file, feeds: wires(feeds), ways });
  mismatches.set(name, (results) => outputs.map((o) => { const wrong = compare(o, results[o]); return wrong && `'${o}': ${wrong}`; }).find((w) => w !== undefined));
}

function addModel(id: string): void {
  const { bytes, feeds, expected, tolerance } = loadCase(id);
  const compare = (name: string, actual: Tensor | undefined): string | undefined => { const e = expected[name]; return actual && e ? difference(actual, e, tolerance) : "no such result"; };
  add(id, compileModel(bytes, { strip: true }).artifact, feeds, allWays, compare, Object.keys(expected));
}

/** Where engines differ most: products of bytes, finely split too. */
function addSevenBits({ name, spec, x }: SevenBitModel): void {
  const bytes = modelBytes(spec), feeds = { x }, expected = interpret(readModel(bytes, operators).graph, feeds);
  const compare = (output: string, actual: Tensor | undefined): string | undefined => { const e = expected[output]; return actual && e && sameTensor(actual, e) ? undefined : "other elements"; };
  add(name, compileModel(bytes).artifact, feeds, allWays, compare, ["y"]);
  add(`${name}, finely split`, finelySplit(bytes), feeds, allWays, compare, ["y"]);
}
const sevenBits = [sevenBitMatMul(1, 64, 40), sevenBitMatMul(37, 96, 21), sevenBitConv(32, 9, 1), sevenBitConv(16, 14, 3)];

/** Small models of fusions, finely split, against their unfused builds, which fusion-cases.test.ts holds against onnxruntime. */
async function addFusionCase({ name, bytes }: FusionCase): Promise<void> {
  const { graph } = readModel(bytes, operators, compileOptions[name]), feeds = randomFeeds(graph, 7, feedOptions[name]), tolerance = toleranceOf(name, graph);
  if (isRandom(graph)) return;
  const expected = await runCompiled(bytes, feeds, false, compileOptions[name]);
  add(`fusion case ${name}`, finelySplit(bytes, compileOptions[name]), feeds, crossWays, (output, actual) => { const e = expected[output]; return actual && e ? mismatch({ [output]: actual }, { [output]: e }, tolerance) : "no such result"; }, Object.keys(expected));
}

function addNodeCase(name: string): void {
  const { bytes, dataSets } = loadNodeCase(name), [set] = dataSets();
  if (!set || !onlyTensors(set.feeds) || !onlyTensors(set.expected)) return;
  const { feeds, expected } = set;
  try {
    add(name, finelySplit(bytes), feeds, crossWays, (output, actual) => nodeCaseMismatch(actual, expected[output] ?? null), Object.keys(expected));
  } catch (e) {
    if (!(e instanceof DiagnosticError) || outside(e) === undefined) throw e;
  }
}

/** What is wrong with an outcome; undefined where nothing is. */
function wrongIn({ name, way, outputs, error }: Outcome): string | undefined {
  const results = Object.fromEntries(Object.entries(outputs ?? {}).map(([key, wire]) => [key, fromWire(wire)]));
  const wrong = error ?? mismatches.get(name)?.(results);
  return wrong && `${name}, ${way.engine}, ${way.threads} threads: ${wrong}`;
}

function runIn({ command: [executable = "", ...options] }: EngineCase): Ran & { readonly outcomes: readonly Outcome[] } {
  const given = join(folder, "jobs.json"), results = join(folder, "results");
  writeFileSync(given, JSON.stringify(jobs));
  execFileSync(executable, [...options, resolve("test/support/run-jobs.ts"), given, results], { stdio: ["ignore", "inherit", "inherit"] });
  const [ran, ...outcomes] = linesOf(readFileSync(results));
  return { ...(JSON.parse(ran ?? "") as Ran), outcomes: outcomes.map((line) => JSON.parse(line) as Outcome) };
}

function linesOf(bytes: Buffer): readonly string[] {
  const lines: string[] = [];
  for (let from = 0, to = bytes.indexOf(10); to >= 0; from = to + 1, to = bytes.indexOf(10, from)) lines.push(bytes.toString("utf8", from, to));
  return lines;
}

beforeAll(async () => {
  ids.forEach(addModel);
  if (ids.length > 0) sevenBits.forEach(addSevenBits);
  for (const c of fusionCases()) if (!(c.name in refused)) await addFusionCase(c);
  nodeCaseNames().filter((name, i) => i % step === 0 && leftOut[name] === undefined).forEach(addNodeCase);
}, 900_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }), 120_000);

test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run models and node tests on all engines", ({ skip }) => skip());
test.skipIf(newest !== undefined)("no newer Node is installed: npm ci --prefix test/newest-node, where npm has one for this platform", ({ skip }) => skip());

describe.skipIf(ids.length === 0).each(engines)("$name", (engine) => {
  test("gives the references on one and two threads, with every code it runs", { timeout: 900_000 }, () => {
    const { node, relaxed, outcomes } = runIn(engine);
    expect(outcomes.flatMap((o) => wrongIn(o) ?? [])).toEqual([]);
    const ran = outcomes.filter((o) => o.outputs);
    expect(new Set(ran.map((o) => o.name)).size).toBe(jobs.length);
    expect(jobs.length).toBeGreaterThan(ids.length + 200);
    expect(ran.filter((o) => ids.includes(o.name)).length).toBe(ids.length * (relaxed ? 4 : 2));
    expect(ran.filter((o) => o.threads === 2).length).toBeGreaterThan(100);
    if (engine.newest) expect([Number(node.split(".")[0]) >= 24, relaxed]).toEqual([true, true]);
  });
});

test.skipIf(ids.length === 0)("a result that is not the reference is seen", () => {
  const name = "micro-kws-qdq", way: Way = { engine: "simd", threads: 1 }, { expected } = loadCase(name);
  const outcome = (by: number): Outcome => ({ name, way, outputs: wires(Object.fromEntries(Object.entries(expected).map(([key, t]) => [key, fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (v) => v + by))]))) });
  expect(wrongIn(outcome(0))).toBeUndefined();
  expect(wrongIn(outcome(1))).toMatch(name);
  expect(wrongIn({ name, way, error: "trap" })).toMatch("trap");
});
