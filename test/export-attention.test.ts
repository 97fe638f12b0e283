/** Attention of every kind, optimised and written back as ONNX: onnxruntime still gives what the original gives. */
import { expect, it } from "vitest";
import { optimise } from "../src/api/index.ts";
import { fromNumbers } from "../src/core/tensor.ts";
import { mismatch } from "./support/differential.ts";
import { modelOf, type JudgedCase, type JudgedInput } from "./support/onnxruntime-check.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const random = randomFrom(2), of = (...dims: number[]): JudgedInput => ({ tensor: randomTensor(dims, random) });
const weight = (...dims: number[]): JudgedInput => ({ ...of(...dims), constant: true });
const ints = (...values: number[]): JudgedInput => ({ tensor: fromNumbers("int32", [values.length], values) });
const floats = (...ranks: number[]): JudgedCase["outputs"] => ranks.map((rank) => ["float32", rank] as const);
const shared = { num_heads: 4, kv_num_heads: 2 };

it.each<readonly [string, JudgedCase]>([
  ["grouped queries behind a cache", { type: "GroupQueryAttention", outputs: floats(3, 4, 4), attributes: shared, inputs: [of(1, 1, 64), of(1, 1, 32), of(1, 1, 32), of(1, 2, 6, 16), of(1, 2, 6, 16), ints(6), { ...ints(7), constant: true }] }],
  ["a window and sinks", { type: "GroupQueryAttention", outputs: floats(3, 4, 4), attributes: { ...shared, local_window_size: 3 }, inputs: [of(1, 5, 64), of(1, 5, 32), of(1, 5, 32), undefined, undefined, ints(4), { ...ints(5), constant: true }, undefined, undefined, undefined, undefined, of(4)] }],
  ["many heads with lengths", { type: "MultiHeadAttention", outputs: floats(3), attributes: { num_heads: 2, unidirectional: 1 }, inputs: [of(2, 3, 8), of(2, 3, 8), of(2, 3, 8), of(24), ints(3, 2)] }],
  ["packed projections", { type: "Attention", outputs: floats(3, 5), attributes: { num_heads: 2 }, inputs: [of(2, 2, 6), weight(6, 24), weight(24), undefined, of(2, 2, 2, 3, 4)] }],
  ["the standard's, causal, capped", { type: "Attention", domain: "", outputs: floats(4), attributes: { is_causal: 1, softcap: { float: 2 } }, inputs: [of(2, 4, 3, 8), of(2, 2, 3, 8), of(2, 2, 3, 8)] }],
])("%s", async (_, c) => {
  const { bytes, feeds } = modelOf(c), expected = await runOnnxruntime(bytes, feeds), found = await runOnnxruntime(optimise(bytes).model, feeds);
  expect(mismatch(found, expected)).toBeUndefined();
  const moved = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, name === "x0" ? randomTensor(t.dims, random) : t]));
  expect(mismatch(await runOnnxruntime(optimise(bytes).model, moved), expected)).toBeDefined();
});
