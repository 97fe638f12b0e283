import { expect, it } from "vitest";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { judge, modelOf, type JudgedCase, type JudgedInput } from "../../test/support/onnxruntime-check.ts";
import { mismatch, runCompiled } from "../../test/support/differential.ts";
import { randomIntegers } from "../../test/support/operator-check.ts";
import { runOnnxruntime } from "../../test/support/onnxruntime.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";

const random = randomFrom(31);
const fixed = (tensor: Tensor): JudgedInput => ({ tensor, constant: true });
const scalar = (dtype: "float32" | "uint8" | "int8", value: number): JudgedInput => fixed(fromNumbers(dtype, [], [value]));
const float = (rank: number): readonly ["float32", number] => ["float32", rank];

interface Given { readonly batch?: number; readonly sequence?: number; readonly mask?: Tensor; readonly past?: number; readonly perColumn?: boolean; readonly heads?: number }
function quantized({ batch = 2, sequence = 5, mask, past, perColumn = false, heads = 2 }: Given, attributes: JudgedCase["attributes"] = {}): JudgedCase {
  const columns = perColumn ? [24] : [], count = perColumn ? 24 : 1;
  return {
    type: "QAttention", attributes: { num_heads: heads, ...attributes }, outputs: past === undefined ? [float(3)] : [float(3), float(5)],
    inputs: [
      { tensor: randomIntegers("uint8", [batch, sequence, 6], 0, 255, random) }, fixed(randomIntegers("int8", [6, 24], -100, 100, random)), fixed(randomTensor([24], random)),
      scalar("float32", 0.02), fixed(fromNumbers("float32", columns, Array.from({ length: count }, () => 0.01 + 0.02 * random()))), mask && { tensor: mask },
      scalar("uint8", 120), fixed(fromNumbers("int8", columns, new Array<number>(count).fill(3))), past === undefined ? undefined : { tensor: randomTensor([2, batch, heads, past, 4], random) },
    ],
  };
}

it.each<readonly [string, JudgedCase]>([
  ["plain", quantized({})],
  ["a scale a column", quantized({ perColumn: true })],
  ["unidirectional", quantized({ sequence: 9 }, { unidirectional: 1 })],
  ["lengths", quantized({ mask: fromNumbers("int32", [2], [2, 4]) })],
  ["a cache", quantized({ past: 3 }, { unidirectional: 1 })],
])("QAttention as onnxruntime: %s", async (_, c) => { expect(await judge(c)).toBeUndefined(); });

it("sees another zero point", async () => {
  const c = quantized({}), { bytes, feeds } = modelOf(c), other = modelOf({ ...c, inputs: c.inputs.map((x, i) => (i === 6 ? scalar("uint8", 90) : x)) }).bytes;
  expect(mismatch(await runCompiled(other, feeds, true), await runOnnxruntime(bytes, feeds))).toBeDefined();
});
