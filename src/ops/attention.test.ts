import { expect, it } from "vitest";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { Attention } from "./attention.ts";

function attentionCase(seed: number): OperatorCase {
  const random = randomFrom(seed), keyHeads = 1 + random.int(2), heads = keyHeads * (1 + random.int(2)), merged = random.int(2) === 0;
  const [batch, queries, now, past, depth, width] = [1 + random.int(2), 1 + random.int(3), 3 + random.int(3), random.int(2) * 2, 1 + random.int(4), 1 + random.int(4)];
  const keys = now + past, sizes = (count: number, length: number, last: number): number[] => (merged ? [batch, length, count * last] : [batch, count, length, last]);
  const of = (count: number, length: number, last: number, name: string): OperatorInput =>
    ({ tensor: randomTensor(sizes(count, length, last), random), shape: merged ? ["b", name, count * last] : ["b", count, name, last] });
  const cache = (last: number): OperatorInput | undefined => (past ? { tensor: randomTensor([batch, keyHeads, past, last], random), shape: ["b", keyHeads, "p", last] } : undefined);
  const maskDims = random.pick([[queries, keys], [1, heads, queries, keys], [batch, 1, queries, keys], [1, 1, 1, keys]]);
  const mask = random.int(2) ? { tensor: random.int(2) ? randomTensor(maskDims, random) : visible(maskDims, seed) } : undefined;
  return {
    op: Attention, outputs: 1 + random.int(4),
    attributes: {
      ...(merged ? { q_num_heads: heads, kv_num_heads: keyHeads } : {}), is_causal: random.int(2), qk_matmul_output_mode: random.int(4),
      ...(random.int(2) ? { softcap: 0.7 } : {}), ...(random.int(2) ? { scale: 0.4 } : {}),
    },
    inputs: [of(heads, queries, depth, "s"), of(keyHeads, now, depth, "t"), of(keyHeads, now, width, "t"), mask, cache(depth), cache(width)],
  };
}

/** A bool mask that hides some keys, never the first, so that no row is hidden whole. */
function visible(dims: readonly number[], seed: number): OperatorInput["tensor"] {
  const t = randomIntegers("bool", dims, 0, 1, randomFrom(seed)), last = dims.at(-1) ?? 1;
  return { ...t, data: Uint8Array.from({ length: t.data.length }, (_, i) => (i % last === 0 ? 1 : Number(t.data[i]))) };
}

it.each(Array.from({ length: 60 }, (_, i) => i))("Attention equals its evaluation in parts, seed %i", (seed) => {
  expect(operatorDifference(attentionCase(seed))).toBeLessThan(2e-5);
});

it("sees one wrong element", () => {
  const { expected, actual } = runOperator(attentionCase(2));
  const [e] = expected, [a] = actual;
  expect(e && a && difference(perturbed(a, 1e-2), e)).toBeGreaterThan(2e-5);
});
