/** com.microsoft's biases of attention by relative position: T5's buckets, and WavLM's gates, which are compiled as the operators they are made of. */
import { dimExactDiv, formatShape } from "../core/dim.ts";
import * as evaluate from "../evaluate/com-microsoft-position-bias.ts";
import { defineOp, int, required } from "../graph/op.ts";
import { Sigmoid } from "./activation.ts";
import { Add, Mul, Sub } from "./arithmetic.ts";
import { elementsOf } from "./element-values.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { headsApart } from "./heads.ts";
import { MatMul } from "./matmul.ts";
import { ReduceSum } from "./reduce.ts";
import { Slice } from "./slice.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;

export const RelativePositionBias = defineOp({
  ...common, type: "RelativePositionBias", evaluate: evaluate.RelativePositionBias,
  inputs: { bias_table: "required", query_length: "required", key_length: "required" }, attributes: { is_bidirectional: int(0), max_distance: required("int") },
  infer({ bias_table, query_length, key_length }, _, context) {
    checkType(context, bias_table, "bias_table", "float");
    if (bias_table.shape.length !== 2) context.fail("OF3010", `bias_table needs rank 2, got ${formatShape(bias_table.shape)}`);
    const length = (of: typeof query_length, name: string) => elementsOf(of)?.[0] ?? context.fresh(name);
    return [{ dtype: bias_table.dtype, shape: [1, bias_table.shape[1] ?? 1, length(query_length, "queries"), length(key_length, "keys")] }];
  },
});

/** rel_pos · (g·(r·a − 1) + 2), where the gates g and r of a query are sigmoids of sums over the halves of a projection. */
export const GatedRelativePositionBias = defineOp({
  ...common, type: "GatedRelativePositionBias", evaluate: evaluate.GatedRelativePositionBias,
  inputs: { query_layer: "required", query_bias: "required", rel_pos: "required", weight: "required", bias: "required", eco_a: "required", token_offset: "optional" }, attributes: { num_heads: required("int") },
  infer({ query_layer, rel_pos, weight, token_offset }, { num_heads }, context) {
    checkType(context, query_layer, "query_layer", "float");
    if (token_offset) context.fail("OF3012", "queries without padding (token_offset) are not supported", "export the model with padded sequences");
    if (query_layer.shape.length !== 3 || rel_pos.shape.length !== 4 || weight.shape.length !== 2) context.fail("OF3010", `needs query_layer of rank 3, rel_pos of rank 4 and weight of rank 2, got ${formatShape(query_layer.shape)}, ${formatShape(rel_pos.shape)} and ${formatShape(weight.shape)}`);
    if (dimExactDiv(query_layer.shape[2] ?? 1, num_heads) === undefined) context.fail("OF3011", `${formatShape(query_layer.shape)} does not divide into ${num_heads} heads`);
    const width = weight.shape[1];
    if (typeof width === "number" && width % 2 !== 0) context.fail("OF3011", `the gates need an even number of columns, got ${width}`);
    return [{ dtype: query_layer.dtype, shape: [query_layer.shape[0] ?? 1, num_heads, query_layer.shape[1] ?? 1, rel_pos.shape[3] ?? 1] }];
  },
  expand({ inputs: [query, queryBias, positions, weight, bias, eco], inputTypes: [q, , , w], outputs }, { num_heads }) {
    const width = w?.shape[1];
    if (!q || typeof width !== "number") return undefined;
    const to = new Expansion(), one = scalarOf(q.dtype, 1), two = scalarOf(q.dtype, 2);
    const projected = to.add(Add, [to.add(MatMul, [headsApart(to, to.add(Add, [query, queryBias]), num_heads), weight]), bias]);
    const gate = (part: number): string => to.add(Sigmoid, [to.add(ReduceSum, [to.add(Slice, [projected, listOf((part * width) / 2), listOf(((part + 1) * width) / 2), listOf(3)]), listOf(3)], { keepdims: 1 })]);
    const factor = to.add(Add, [to.add(Mul, [gate(0), to.add(Sub, [to.add(Mul, [gate(1), eco]), one])]), two]);
    to.add(Mul, [factor, positions], {}, outputs[0]);
    return to.nodes;
  },
});
