/**
 * Passes and rules on whole models: the rewritten graph gives what the original gives, by the reference interpreter,
 * and the count of nodes is accounted for to the last one.
 */
import { describe, expect, test } from "vitest";
import { present } from "../src/core/assert.ts";
import { toNumbers, type Tensor } from "../src/core/tensor.ts";
import type { Graph } from "../src/graph/graph.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { countNodes, Ledger } from "../src/passes/ledger.ts";
import { simplify } from "../src/passes/simplify.ts";
import { interpret } from "../src/reference/interpret.ts";
import { applyRules, type ApplyResult } from "../src/rewrite/driver.ts";
import { rules } from "../src/rules/index.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { modelBytes } from "./support/model-spec.ts";
import { randomModel } from "./support/random-graph.ts";

interface Rewritten extends ApplyResult { readonly ledger: Ledger }
function rewrite(graph: Graph, symbolic: boolean): Rewritten {
  const ledger = new Ledger();
  simplify(graph, ledger, { symbolic });
  verifyGraph(graph);
  const applied = applyRules(graph, rules, { verify: verifyGraph });
  simplify(graph, ledger, { symbolic });
  verifyGraph(graph);
  return { ...applied, ledger };
}

/** Rules that must fire in a model, and how often. */
const fires: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  "light-resnet50": { "fold-batch-norm-into-conv": 53 },
  "bert-toy": { "recognise-layer-normalization": 12, "recognise-gelu": 6, "recognise-attention": 5 },
  "ppocr4-rec": { "recognise-attention": 2, "recognise-layer-normalization": 5, "recognise-hard-swish": 28, "recognise-silu": 7, "fold-batch-norm-into-conv": 6, "fold-mul-into-conv": 28, "fold-add-into-conv": 28 },
  "ppocr4-det": { "recognise-hard-swish": 24, "fold-batch-norm-into-conv": 2, "fold-batch-norm-into-conv-transpose": 1, "fold-mul-into-conv": 28, "fold-add-into-conv": 28, "fold-add-into-conv-transpose": 2 },
  "ppocr2-cls": { "fold-batch-norm-into-conv": 35, "recognise-hard-swish": 18 },
  "yolox-nano": { "recognise-silu": 104 },
  gtcrn: { "fold-batch-norm-into-conv-transpose": 11, "recognise-layer-normalization": 4 },
  "aidreams-kv": { "recognise-rms-normalization": 9, "recognise-attention": 4, "recognise-silu": 4 },
  "aidreams-kv-dynint8": { "recognise-rms-normalization": 9, "recognise-attention": 4, "recognise-silu": 4 },
  "oww-hello-deepa": { "recognise-layer-normalization": 2 },
  "mlsd-tiny-320": { "pad-into-conv": 3 },
};
const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());

describe.each(ids)("%s", (id) => {
  const model = loadCase(id);
  test.each([true, false])("is rewritten to an equal graph, sizes by name: %s", (symbolic) => {
    const { graph } = readModel(model.bytes, operators);
    const before = countNodes(graph), outputs = graph.outputs.map((v) => v.name);
    const { sites, ledger, nodesSaved } = rewrite(graph, symbolic);
    expect(before - countNodes(graph)).toBe(ledger.nodes + nodesSaved);
    expect(graph.outputs.map((v) => v.name)).toEqual(outputs);
    const fired = sites.filter((s) => s.outcome === "fired");
    for (const [rule, times] of Object.entries(fires[id] ?? {})) expect([rule, fired.filter((s) => s.name === rule).length]).toEqual([rule, times]);
    if (!symbolic && model.bytes.length > 2e6) return;
    const results = interpret(graph, model.feeds);
    for (const [name, expected] of Object.entries(model.expected))
      expect(difference(present(results[name], name), expected, model.tolerance), name).toBeUndefined();
  });
});

describe("random models", () => {
  const seeds = Array.from({ length: 150 }, (_, i) => i + 1);
  /** The largest difference relative to the output's largest magnitude. */
  const distance = (a: Tensor, b: Tensor): number => {
    if (a.dtype !== b.dtype || a.dims.join() !== b.dims.join()) return Infinity;
    const x = Array.from(toNumbers(a)), y = Array.from(toNumbers(b));
    const most = Math.max(1e-3, ...x.map(Math.abs));
    return Math.max(0, ...x.map((v, i) => (Object.is(v, y[i]) ? 0 : Math.abs(v - (y[i] ?? NaN)) / most)));
  };
  test.each(seeds)("seed %i keeps its results", (seed) => {
    const { spec, feeds } = randomModel(seed, 5 + (seed % 36));
    const read = (): Graph => readModel(modelBytes(spec), operators).graph;
    const original = interpret(read(), feeds), graph = read();
    rewrite(graph, seed % 2 === 0);
    const results = interpret(graph, feeds);
    for (const [name, expected] of Object.entries(original)) expect(distance(expected, present(results[name], name)), name).toBeLessThan(1e-4);
  });
});
