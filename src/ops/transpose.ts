/** Transpose: permutes axes; without `perm` it reverses them. */
import { Transpose as evaluate } from "../evaluate/movement.ts";
import { defineOp, optional } from "../graph/op.ts";
import { movedElements, typeWith } from "./element-values.ts";
import { origin } from "./index-map.ts";

const order = (rank: number, perm: readonly number[] | undefined): readonly number[] => perm ?? Array.from({ length: rank }, (_, i) => rank - 1 - i);

export const Transpose = defineOp({
  type: "Transpose", domain: "", since: 1, evaluate,
  inputs: { data: "required" },
  attributes: { perm: optional("ints") },
  fusionKind: "injective",
  infer: ({ data }, { perm }, context) => {
    const rank = data.shape.length, p = order(rank, perm);
    if (p.length !== rank || [...p].sort((a, b) => a - b).some((v, i) => v !== i)) context.fail("OF3012", `perm [${p.join(", ")}] is no permutation of ${rank} axes`);
    return [typeWith(data.dtype, p.map((a) => data.shape[a] ?? 1), movedElements(evaluate, [data], [0], { perm: p }, 1)?.[0])];
  },
  lowerable: ({ data }) => data.dtype !== "string",
  lower: ({ data }, { perm }) => {
    const p = order(data.shape.length, perm);
    return [(...indices) => data.at(...p.map((_, axis) => indices[p.indexOf(axis)] ?? origin))];
  },
});
