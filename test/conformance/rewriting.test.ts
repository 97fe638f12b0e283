/**
 * Passes and rules on the standard's node tests and on 224 models that a well-known optimiser is tested with: whatever
 * is rewritten gives what the original gives, by the reference interpreter.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { evaluateDim } from "../../src/core/dim.ts";
import { isFloat } from "../../src/core/dtype.ts";
import { isSequence, isTensor, type Datum } from "../../src/core/datum.ts";
import { fromNumbers, sizeOf, toNumbers } from "../../src/core/tensor.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { readModel } from "../../src/onnx/read.ts";
import { operators } from "../../src/ops/index.ts";
import { countNodes, Ledger } from "../../src/passes/ledger.ts";
import { simplify } from "../../src/passes/simplify.ts";
import { interpretData } from "../../src/reference/interpret.ts";
import { applyRules } from "../../src/rewrite/driver.ts";
import { rules } from "../../src/rules/index.ts";
import { loadNodeCase, nodeCaseNames, unpackedArchive } from "../support/node-cases.ts";
import { randomFrom } from "../support/random.ts";

/** The model's graph, or undefined where reading refuses it. */
function read(bytes: Uint8Array): Graph | undefined {
  try {
    return readModel(bytes, operators).graph;
  } catch (e) {
    if (e instanceof DiagnosticError) return undefined;
    throw e;
  }
}
/** Returns whether anything was changed. */
function rewrite(graph: Graph): boolean {
  const ledger = new Ledger(), before = countNodes(graph);
  simplify(graph, ledger);
  const { nodesSaved, rewrites } = applyRules(graph, rules, { verify: verifyGraph });
  simplify(graph, ledger);
  verifyGraph(graph);
  expect(before - countNodes(graph)).toBe(ledger.nodes + nodesSaved);
  return rewrites > 0 || ledger.entries.length > 0;
}
/** Results, or undefined where the model itself cannot be run on these inputs. */
function results(graph: Graph, feeds: Readonly<Record<string, Datum>>): Record<string, Datum> | undefined {
  try { return interpretData(graph, feeds); } catch { return undefined; }
}
function same(name: string, a: Datum, b: Datum | undefined): void {
  if (a === null || !isTensor(a)) {
    expect([name, a === null, b === null || b === undefined]).toEqual([name, a === null, a === null]);
    if (a !== null && b && isSequence(a) && isSequence(b)) { expect(b.length).toBe(a.length); a.forEach((x, i) => same(`${name}[${i}]`, x, b[i])); }
    return;
  }
  if (!b || !isTensor(b)) { expect.fail(`${name} is no tensor any more`); return; }
  expect([name, b.dtype, b.dims]).toEqual([name, a.dtype, a.dims]);
  if (a.dtype === "string") { expect([...b.data]).toEqual([...a.data]); return; }
  const x = toNumbers(a), y = toNumbers(b), within = a.dtype === "float16" || a.dtype === "bfloat16" ? 1e-2 : 1e-4;
  let most = 1e-3;
  for (let i = 0; i < x.length; i++) most = Number.isFinite(x[i]) ? Math.max(most, Math.abs(x[i] ?? 0)) : most;
  for (let i = 0; i < x.length; i++) {
    const p = x[i] ?? NaN, q = y[i] ?? NaN;
    if (!Object.is(p, q) && p !== q && !(Math.abs(p - q) <= within * most)) expect.fail(`${name}: element ${i}: ${p} became ${q}`);
  }
}

const names = nodeCaseNames();
test.skipIf(names.length > 0)("set ONNXFUSE_TEST_DATA to run the conformance models", ({ skip }) => skip());

describe.skipIf(names.length === 0)("node tests of the standard", () => {
  test.each(names)("%s", (name) => {
    const { bytes, dataSets } = loadNodeCase(name);
    const original = read(bytes), graph = read(bytes);
    if (!original || !graph) return;
    if (!rewrite(graph) || graph.nodes.some((n) => n.op.deterministic === false)) return;
    for (const { feeds } of dataSets()) {
      const before = results(original, feeds);
      if (before) for (const [k, t] of Object.entries(interpretData(graph, feeds))) same(k, before[k] ?? null, t);
    }
  });
});

const folder = unpackedArchive(/^fusion-cases\.tar\.xz$/);
const models = folder === undefined ? [] : readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".onnx")).sort();
describe.skipIf(models.length === 0)("models made for fusion", () => {
  test.each(models)("%s", (file) => {
    const bytes = readFileSync(join(folder ?? "", file));
    const original = read(bytes), graph = read(bytes);
    if (!original || !graph) return;
    if (!rewrite(graph)) return;
    const random = randomFrom(11);
    for (const size of [2, 1]) {
      const feeds = Object.fromEntries(original.inputs.filter((v) => !v.default && v.type.dtype !== "string").map((v) => {
        const dims = v.type.shape.map((d) => evaluateDim(d, () => size));
        return [v.name, fromNumbers(v.type.dtype, dims, Array.from({ length: sizeOf(dims) }, () => (isFloat(v.type.dtype) ? random.normal() : random.int(2))))];
      }));
      const before = results(original, feeds);
      if (before) for (const [k, t] of Object.entries(interpretData(graph, feeds))) same(k, before[k] ?? null, t);
    }
  });
  test("a difference is seen", () => {
    const t = fromNumbers("float32", [2], [1, 2]);
    same("y", t, t);
    expect(() => same("y", t, fromNumbers("float32", [2], [1, 2.01]))).toThrow(/became/);
    expect(() => same("y", t, fromNumbers("float32", [1, 2], [1, 2]))).toThrow();
    expect(() => same("y", t, fromNumbers("float32", [2], [1, NaN]))).toThrow(/became/);
  });
});
