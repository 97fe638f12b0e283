/**
 * Small models on which other tools' fusions fire, fail or must not fire: compiled with and without fusion, each gives
 * what onnxruntime gives with its optimiser off, in no more steps than onnxruntime's own optimiser leaves nodes.
 */
import { describe, expect, test } from "vitest";
import { compile } from "../src/api/index.ts";
import { isFloat } from "../src/core/dtype.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { load, Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { mismatch } from "./support/differential.ts";
import { compileOptions, feedOptions, fusionCases, isRandom, randomFeeds, refused, toleranceOf } from "./support/fusion-cases.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";

const constantResult = "a result known when compiling is written by a step of its own; onnxruntime counts no node for it";
const scaleMoved = "onnxruntime moves the scale behind the product, where what was finite may overflow";
const checksIndices = "indices that are read past a view are checked in a step of their own; onnxruntime's Gather checks them within";
const wholeRange = "the range of all elements must be known before the first is quantised: two passes, which onnxruntime's one operator makes too";
const repeatedSum = "the sum would be computed once in each pass over a row: dearer than storing it once";
const dropsCasts = "onnxruntime drops the casts, and with them their rounding to float16";
const dropout = "Dropout in training is random and runs in the host";
/** Cases named for a fusion that must not fire; in one of them another does, rightly. */
const mustNotFuse = /no_fusion|unfusable|invalid|badaxis|mismatch|negative_test|not_share|multiple_consumers/;
const rightly: Readonly<Record<string, readonly string[]>> = { "fusion/skip_layer_norm_format3_no_fusion_with_cast": ["recognise-layer-normalization"] };
/** Where more steps remain than onnxruntime leaves nodes, and why. */
const more: Readonly<Record<string, readonly [steps: number, why: string]>> = {
  "computation_reduction/gather/gather_matmul_batch_dim": [3, checksIndices],
  "computation_reduction/gather/gather_matmul_last_dim": [3, checksIndices],
  "computation_reduction/gather/gather_matmul_scalar_batch_dim": [3, checksIndices],
  "computation_reduction/gather/gather_matmul_scalar_second_last_dim": [3, checksIndices],
  "computation_reduction/gather/gather_matmul_second_last_dim": [3, checksIndices],
  "constant-subgraph": [1, constantResult],
  fuse_fp16_initializers_with_graph_outputs: [2, constantResult],
  "fusion/reshape_fusion_concat_subgraph_multiple_outputs": [2, constantResult],
  scalar_const_not_share: [3, constantResult],
  "fusion/bias_dropout_residual_fusion2": [3, dropout],
  "fusion/bias_dropout_residual_fusion_dim_is_param": [3, dropout],
  "fusion/bias_dropout_residual_fusion_mismatch": [3, dropout],
  "fusion/bias_dropout_residual_same_shape_fusion": [3, dropout],
  "fusion/bias_dropout_residual_same_shape_fusion_dim_is_param": [3, dropout],
  "fusion/conv_add_fp16": [4, dropsCasts],
  "fusion/dynamic_quantize_matmul_bias": [2, wholeRange],
  "fusion/dynamic_quantize_matmul_bias_b_no_zp": [2, wholeRange],
  "fusion/matmul_scale_double": [2, scaleMoved],
  "fusion/matmul_scale_in0_in1_out": [3, scaleMoved],
  "fusion/matmul_scale_reused_input_scale": [3, scaleMoved],
  "fusion/skip_layer_norm_no_beta": [2, repeatedSum],
};

const typesOf = (tensors: Readonly<Record<string, Tensor>>): Record<string, string> =>
  Object.fromEntries(Object.entries(tensors).map(([name, t]) => [name, `${t.dtype}[${t.dims}]`]));

interface Ran {
  readonly results: Record<string, Tensor>;
  readonly steps: number;
  /** Rules that fired. */
  readonly rules: readonly string[];
}
async function run(name: string, bytes: Uint8Array, feeds: Readonly<Record<string, Tensor>>, enableFusion: boolean): Promise<Ran> {
  const { artifact, report } = await compile(bytes, { ...compileOptions[name], enableFusion });
  const session = await load(artifact);
  try {
    const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, RuntimeTensor.of(t)])));
    const rules = report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => s.name);
    return { rules, results: Object.fromEntries(Object.entries(results).map(([k, t]) => [k, t.unpacked()])), steps: report.nodes.compiled };
  } finally {
    session.dispose();
  }
}

const cases = fusionCases();
test.skipIf(cases.length > 0)("set ONNXFUSE_TEST_DATA to run the fusion cases", ({ skip }) => skip());

describe.skipIf(cases.length === 0)("fusion cases", () => {
  test.each(cases)("$name", async ({ name, bytes, extended }) => {
    const refusal = refused[name];
    if (refusal) return void (await expect(compile(bytes)).rejects.toThrow(refusal[0]));
    const { graph } = readModel(bytes, operators, compileOptions[name]);
    const feeds = randomFeeds(graph, 7, feedOptions[name]);
    const expected = await runOnnxruntime(bytes, feeds);
    const fused = await run(name, bytes, feeds, true), unfused = await run(name, bytes, feeds, false);
    const tolerance = toleranceOf(name, graph);
    if (isRandom(graph)) {
      expect(typesOf(fused.results)).toEqual(typesOf(expected));
      expect(mismatch(fused.results, unfused.results, tolerance), "fused against unfused").toBeUndefined();
    } else {
      expect(mismatch(fused.results, expected, tolerance), "fused").toBeUndefined();
      expect(mismatch(unfused.results, expected, tolerance), "unfused").toBeUndefined();
    }
    expect(fused.steps).toBeLessThanOrEqual(unfused.steps);
    if (mustNotFuse.test(name)) expect(fused.rules).toEqual(rightly[name] ?? []);
    const exception = more[name];
    if (exception) expect([fused.steps, fused.steps > extended], exception[1]).toEqual([exception[0], true]);
    else expect(fused.steps).toBeLessThanOrEqual(extended);
  });

  test("every exception is a case", () => {
    const names = new Set(cases.map((c) => c.name));
    for (const table of [feedOptions, compileOptions, refused, more]) expect(Object.keys(table).filter((name) => !names.has(name))).toEqual([]);
  });

  test("a wrong result is seen", async () => {
    const { bytes } = cases.find((c) => c.name === "fusion/conv_relu") ?? expect.fail("no such case");
    const feeds = randomFeeds(readModel(bytes, operators).graph, 7);
    const { results } = await run("fusion/conv_relu", bytes, feeds, true);
    const other = Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, isFloat(t.dtype) ? randomFeeds(readModel(bytes, operators).graph, 8)[k] ?? t : t]));
    expect(mismatch(results, await runOnnxruntime(bytes, other))).toMatch(/is .*, not/);
  });
});
