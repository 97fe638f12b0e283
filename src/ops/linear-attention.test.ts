import { describe, expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { judge, type JudgedCase, type JudgedInput } from "../../test/support/onnxruntime-check.ts";
import { operatorDifference, perturbed, runOperator, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { LinearAttention } from "./linear-attention.ts";

const rules = ["linear", "gated", "delta", "gated_delta"] as const;

function linearCase(seed: number): OperatorCase {
  const random = randomFrom(seed), keyHeads = 1 + random.int(2), heads = keyHeads * (1 + random.int(2)), rule = random.pick(rules);
  const [batch, tokens, depth, width] = [1 + random.int(2), random.int(5), 1 + random.int(6), 1 + random.int(9)];
  const of = (...dims: number[]): OperatorInput => ({ tensor: randomTensor(dims, random, 0.5) });
  const open = (last: number): OperatorInput => ({ ...of(batch, tokens, last), shape: ["b", "t", last] });
  return {
    op: LinearAttention, outputs: 1 + random.int(2),
    attributes: { q_num_heads: heads, kv_num_heads: keyHeads, update_rule: rule, ...(random.int(2) ? { scale: 0.3 } : {}) },
    inputs: [
      open(heads * depth), open(keyHeads * depth), open(keyHeads * width), random.int(2) ? { ...of(batch, keyHeads, depth, width), shape: ["b", keyHeads, depth, width] } : undefined,
      rule.startsWith("gated") ? open(random.int(2) ? keyHeads : keyHeads * depth) : undefined, rule.endsWith("delta") ? open(random.int(2) ? 1 : keyHeads) : undefined,
    ],
  };
}
it.each(Array.from({ length: 40 }, (_, i) => i))("LinearAttention equals its evaluation, seed %i", (seed) => {
  expect(operatorDifference(linearCase(seed))).toBeLessThan(1e-5);
});
it("sees one wrong element", () => {
  const { expected: [e], actual: [a] } = runOperator(linearCase(3));
  expect(e && a && difference(perturbed(a, 1e-2), e)).toBeGreaterThan(1e-5);
});

describe("as onnxruntime", () => {
  const random = randomFrom(4), of = (...dims: number[]): JudgedInput => ({ tensor: randomTensor(dims, random, 0.5) });
  const both: JudgedCase["outputs"] = [["float32", 3], ["float32", 4]], states: JudgedCase["outputs"] = [["float32", 3], ["float32", 3]];
  const linear = (heads: number, states: number, attributes: NonNullable<JudgedCase["attributes"]>, inputs: JudgedCase["inputs"]): JudgedCase =>
    ({ type: "LinearAttention", outputs: both, inputs, attributes: { q_num_heads: heads, kv_num_heads: states, ...attributes } });
  it.each<readonly [string, JudgedCase]>([
    ["gated delta", linear(2, 2, {}, [of(2, 5, 16), of(2, 5, 16), of(2, 5, 24), of(2, 2, 8, 12), of(2, 5, 2), of(2, 5, 2)])],
    ["linear, shared states", linear(4, 2, { update_rule: "linear" }, [of(1, 3, 32), of(1, 3, 16), of(1, 3, 16), of(1, 2, 8, 8)])],
    ["gated, fewer query heads than states", linear(2, 4, { update_rule: "gated" }, [of(1, 3, 16), of(1, 3, 16), of(1, 3, 32), of(1, 4, 8, 8), of(1, 3, 4)])],
    ["one token, delta", linear(2, 2, { update_rule: "delta", scale: { float: 1 } }, [of(1, 1, 16), of(1, 1, 16), of(1, 1, 16), of(1, 2, 8, 8), undefined, of(1, 1, 2)])],
    ["a causal convolution", { type: "CausalConvWithState", outputs: states, inputs: [of(2, 4, 6), of(4, 1, 4), of(4), of(2, 4, 3)], attributes: { activation: "silu" } }],
    ["a causal convolution that begins", { type: "CausalConvWithState", outputs: states, inputs: [of(1, 4, 2), of(4, 1, 4)] }],
  ])("%s", async (_, c) => { expect(await judge(c)).toBeUndefined(); });
});
