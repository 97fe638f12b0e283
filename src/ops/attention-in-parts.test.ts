import { expect, it } from "vitest";
import { fromNumbers } from "../core/tensor.ts";
import type { OpDef } from "../graph/op.ts";
import { difference } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { FlashAttention } from "./flash-attention.ts";

/** The operator as one that has no kernel: it is said by its parts. */
function composite(): OpDef {
  const { lower: _, anchor: __, ...rest } = FlashAttention;
  return rest;
}

function attentionCase(op: OpDef, seed: number): OperatorCase {
  const random = randomFrom(seed), keyHeads = 1 + random.int(2), heads = keyHeads * (1 + random.int(2)), some = (): boolean => random.int(2) === 0;
  const [batch, queries, keys, depth, width] = [1 + random.int(2), 1 + random.int(10), 1 + random.int(6), 1 + random.int(4), 1 + random.int(4)];
  const of = (...dims: number[]): OperatorInput => ({ tensor: randomTensor(dims, random) });
  const over = (): number[] => random.pick([[queries, keys], [heads, 1, keys], [batch, 1, queries, keys], [1, heads, 1, keys], [1]]);
  const integers = (values: readonly number[]): OperatorInput => ({ tensor: fromNumbers("int64", [values.length], values) });
  const chooses = some();
  return {
    op, attributes: {
      scale: 0.6, scale_position: random.pick(["pre", "post"]), softcap: some() ? 0 : 0.8, causal: random.int(2), window: some() ? 0 : 1 + random.int(4),
      ...(chooses ? { fill: random.pick([-1e9, -Infinity]), fill_where: random.int(2) } : {}), ...(some() ? {} : { least: -0.5 }), empty_rows: random.pick(["nan", "hidden", "undefined"]),
    },
    inputs: [
      of(batch, heads, queries, depth), of(batch, keyHeads, keys, depth), of(batch, keyHeads, keys, width),
      some() ? of(...over()) : undefined, some() ? of(...over()) : undefined, chooses ? { tensor: randomIntegers("bool", over(), 0, 1, random) } : undefined,
      some() ? integers(Array.from({ length: random.pick([1, batch]) }, () => random.int(5) - 1)) : undefined,
      some() ? integers(Array.from({ length: batch }, () => 1 + random.int(keys))) : undefined, some() ? of(heads) : undefined,
    ],
  };
}

it.each(Array.from({ length: 40 }, (_, i) => i))("FlashAttention equals its evaluation, whole and in parts, seed %i", (seed) => {
  expect(operatorDifference(attentionCase(FlashAttention, seed))).toBeLessThan(1e-5);
  expect(operatorDifference(attentionCase(composite(), seed))).toBeLessThan(1e-5);
});
it("sees one wrong element", () => {
  const { expected: [e], actual: [a] } = runOperator(attentionCase(composite(), 1));
  expect(e && a && difference(perturbed(a, 1e-2), e)).toBeGreaterThan(1e-5);
});
