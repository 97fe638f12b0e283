import { describe, expect, it } from "vitest";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { difference } from "../../test/support/graph-builder.ts";
import { judge, type JudgedCase } from "../../test/support/onnxruntime-check.ts";
import { operatorDifference, perturbed, runOperator, type OperatorCase } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { RotaryEmbedding } from "./rotary-embedding.ts";

const integers = (dims: readonly number[], values: readonly number[]): Tensor => fromNumbers("int64", dims, values);

function standard(seed: number): OperatorCase {
  const random = randomFrom(seed), [batch, heads, sequence, half] = [1 + random.int(2), 1 + random.int(3), 1 + random.int(4), 1 + random.int(5)];
  const turned = 2 * half, depth = turned + random.int(2) * random.int(6), merged = random.int(2) === 0, positions = random.int(2) === 0, rows = 9;
  const cache = (): Tensor => randomTensor(positions ? [rows, half] : [batch, sequence, half], random);
  return {
    op: RotaryEmbedding,
    attributes: { interleaved: random.int(2), ...(merged ? { num_heads: heads } : {}), ...(depth === turned ? {} : { rotary_embedding_dim: turned }) },
    inputs: [
      merged ? { tensor: randomTensor([batch, sequence, heads * depth], random), shape: ["b", "s", heads * depth] } : { tensor: randomTensor([batch, heads, sequence, depth], random) },
      { tensor: cache() }, { tensor: cache() },
      positions ? { tensor: integers([batch, sequence], Array.from({ length: batch * sequence }, () => random.int(rows))), ...(merged ? { shape: ["b", "s"] } : {}) } : undefined,
    ],
  };
}

it.each(Array.from({ length: 40 }, (_, i) => i))("RotaryEmbedding equals its evaluation, seed %i", (seed) => {
  expect(operatorDifference(standard(seed))).toBeLessThan(1e-6);
});
it("sees one wrong element", () => {
  const { expected: [e], actual: [a] } = runOperator(standard(3));
  expect(e && a && difference(perturbed(a, 1e-3), e)).toBeGreaterThan(1e-6);
});

describe("com.microsoft", () => {
  const random = randomFrom(5), of = (...dims: number[]): Tensor => randomTensor(dims, random);
  const rotary = (x: Tensor, positions: Tensor, width: number, attributes: JudgedCase["attributes"]): JudgedCase =>
    ({ type: "RotaryEmbedding", outputs: [["float32", x.dims.length]], inputs: [{ tensor: x }, { tensor: positions }, { tensor: of(11, width), constant: true }, { tensor: of(11, width), constant: true }], attributes: attributes ?? {} });
  it.each<readonly [string, JudgedCase]>([
    ["merged heads", rotary(of(2, 3, 24), integers([2, 3], [0, 4, 2, 9, 10, 1]), 4, {})],
    ["one position for the first token", rotary(of(2, 3, 24), integers([1], [5]), 4, {})],
    ["heads apart, interleaved", rotary(of(2, 3, 4, 8), integers([2, 4], [0, 1, 2, 3, 4, 5, 6, 7]), 4, { interleaved: 1 })],
    ["part of a head", rotary(of(1, 3, 20), integers([1], [0]), 3, { num_heads: 2, rotary_embedding_dim: 6 })],
    ["a scale, which is not used", rotary(of(1, 2, 8), integers([1], [1]), 4, { scale: { float: 2 } })],
  ])("%s, as onnxruntime", async (_, c) => { expect(await judge(c)).toBeUndefined(); });
});
