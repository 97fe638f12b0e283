import { describe, expect, it } from "vitest";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { readModel } from "../onnx/read.ts";
import { interpret } from "../reference/interpret.ts";
import { operators } from "./index.ts";
import { judge, modelOf, type JudgedCase, type JudgedInput } from "../../test/support/onnxruntime-check.ts";
import { runCompiled, mismatch } from "../../test/support/differential.ts";
import { runOnnxruntime } from "../../test/support/onnxruntime.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";

const random = randomFrom(21);
const of = (...dims: number[]): JudgedInput => ({ tensor: randomTensor(dims, random) });
const ints = (dims: readonly number[], ...values: number[]): JudgedInput => ({ tensor: fromNumbers("int32", dims, values) });
const symbolic = (input: JudgedInput, ...dims: (number | string)[]): JudgedInput => ({ ...input, dims });
const float = (rank: number): readonly ["float32", number] => ["float32", rank];

const multiHead = (inputs: JudgedCase["inputs"], attributes: JudgedCase["attributes"] = {}, outputs: JudgedCase["outputs"] = [float(3)]): JudgedCase =>
  ({ type: "MultiHeadAttention", inputs, attributes: { num_heads: 2, ...attributes }, outputs });
const attention = (inputs: JudgedCase["inputs"], attributes: JudgedCase["attributes"] = {}, outputs: JudgedCase["outputs"] = [float(3)]): JudgedCase =>
  ({ type: "Attention", inputs: inputs.map((x, i) => (i === 1 || i === 2 ? x && { ...x, constant: true } : x)), attributes: { num_heads: 2, ...attributes }, outputs });

const zeros = (...dims: number[]): Tensor => fromNumbers("int32", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => Number(i % 3 !== 2)));
const with3 = [float(3), float(4), float(4)];

describe("MultiHeadAttention as onnxruntime", () => {
  it.each<readonly [string, JudgedCase]>([
    ["plain", multiHead([of(2, 3, 8), of(2, 5, 8), of(2, 5, 12)])],
    ["symbolic sizes", multiHead([symbolic(of(2, 3, 8), "b", "s", 8), symbolic(of(2, 5, 8), "b", "t", 8), symbolic(of(2, 5, 12), "b", "t", 12)])],
    ["a bias, a scale", multiHead([of(1, 9, 8), of(1, 9, 8), of(1, 9, 8), of(24)], { scale: { float: 0.3 } })],
    ["lengths", multiHead([of(2, 3, 8), of(2, 5, 8), of(2, 5, 8), undefined, ints([2], 3, 5)])],
    ["keys hidden for each of the batch", multiHead([of(2, 3, 8), of(2, 6, 8), of(2, 6, 8), undefined, { tensor: zeros(2, 6) }])],
    ["keys hidden for each query", multiHead([of(2, 3, 8), of(2, 6, 8), of(2, 6, 8), undefined, { tensor: zeros(2, 3, 6) }])],
    ["added to the scores", multiHead([of(2, 3, 8), of(2, 6, 8), of(2, 6, 8), undefined, { tensor: zeros(2, 6) }, of(1, 2, 3, 6)])],
    ["unidirectional", multiHead([of(1, 10, 8), of(1, 10, 8), of(1, 10, 8)], { unidirectional: 1 })],
    ["a cache", multiHead([of(2, 1, 8), of(2, 1, 8), of(2, 1, 8), of(24), undefined, undefined, of(2, 2, 4, 4), of(2, 2, 4, 4)], {}, with3)],
    ["a cache, unidirectional", multiHead([of(1, 3, 8), of(1, 3, 8), of(1, 3, 8), undefined, undefined, undefined, of(1, 2, 4, 4), of(1, 2, 4, 4)], { unidirectional: 1 }, with3)],
    ["a cache of symbolic length", multiHead([of(2, 1, 8), of(2, 1, 8), of(2, 1, 8), undefined, undefined, undefined, symbolic(of(2, 2, 4, 4), 2, 2, "p", 4), symbolic(of(2, 2, 4, 4), 2, 2, "p", 4)], {}, with3)],
    ["keys of another sequence, heads apart", multiHead([of(1, 3, 8), of(1, 2, 5, 4), of(1, 2, 5, 4)])],
  ])("%s", async (_, c) => { expect(await judge(c)).toBeUndefined(); });

  /** Parts [batch, sequence, heads · depth] packed to [batch, sequence, heads, parts, depth]. */
  const packed = (...parts: readonly Tensor[]): JudgedInput => {
    const [batch = 1, sequence = 1] = parts[0]?.dims ?? [], dims = [batch, sequence, 2, parts.length, 4];
    return { tensor: { dtype: "float32", dims, data: Float32Array.from({ length: batch * sequence * 8 * parts.length }, (_, i) => Number(parts[Math.floor(i / 4) % parts.length]?.data[Math.floor(i / (4 * parts.length)) * 4 + (i % 4)])) } };
  };
  it.each([2, 3])("%i parts packed, which onnxruntime does not run, are those parts", async (count) => {
    const parts = Array.from({ length: 3 }, () => randomTensor([2, 3, 8], random)), plain = modelOf(multiHead(parts.map((tensor) => ({ tensor }))));
    const { bytes, feeds } = modelOf(multiHead(count === 3 ? [packed(...parts)] : [{ tensor: parts[0] ?? zeros(1) }, packed(...parts.slice(1))]));
    const expected = await runOnnxruntime(plain.bytes, plain.feeds);
    expect(mismatch(await runCompiled(bytes, feeds, true), expected)).toBeUndefined();
    expect(mismatch(interpret(readModel(bytes, operators).graph, feeds), expected)).toBeUndefined();
  });
});

describe("Attention as onnxruntime", () => {
  it.each<readonly [string, JudgedCase]>([
    ["plain", attention([of(2, 3, 6), of(6, 24), of(24)])],
    ["unidirectional, symbolic", attention([symbolic(of(2, 9, 6), "b", "s", 6), of(6, 24), of(24)], { unidirectional: 1 })],
    ["lengths", attention([of(2, 4, 6), of(6, 24), of(24), ints([2], 2, 4)])],
    ["ends and starts", attention([of(2, 4, 6), of(6, 24), of(24), ints([4], 3, 4, 1, 2)])],
    ["keys hidden", attention([of(2, 6, 6), of(6, 24), of(24), { tensor: zeros(2, 6) }])],
    ["keys hidden for each query", attention([of(2, 6, 6), of(6, 24), of(24), { tensor: zeros(2, 6, 6) }])],
    ["another size of values", attention([of(2, 4, 6), of(6, 20), of(20)], { qkv_hidden_sizes: [8, 8, 4] })],
    ["added to the scores", attention([of(2, 4, 6), of(6, 24), of(24), undefined, undefined, of(2, 2, 4, 4)])],
    ["a cache", attention([of(2, 2, 6), of(6, 24), of(24), undefined, of(2, 2, 2, 3, 4)], { unidirectional: 1 }, [float(3), float(5)])],
    ["a cache that begins", attention([of(2, 2, 6), of(6, 24), of(24)], {}, [float(3), float(5)])],
    ["a cache and hidden keys", attention([of(2, 2, 6), of(6, 24), of(24), { tensor: zeros(2, 5) }, of(2, 2, 2, 3, 4)], {}, [float(3), float(5)])],
  ])("%s", async (_, c) => { expect(await judge(c)).toBeUndefined(); });
  it("sees another number of heads", async () => {
    const c = attention([of(2, 3, 6), of(6, 24), of(24)]), { bytes, feeds } = modelOf(c);
    const other = modelOf({ ...c, attributes: { num_heads: 4 } }).bytes;
    expect(mismatch(await runCompiled(other, feeds, true), await runOnnxruntime(bytes, feeds))).toBeDefined();
  });
});
