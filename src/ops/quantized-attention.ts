/** com.microsoft's QAttention: Attention whose projection multiplies 8-bit integers. Compiled as that product and FlashAttention. */
import { dimAdd, dimExactDiv, formatDim, formatShape } from "../core/dim.ts";
import { QAttention as evaluate } from "../evaluate/com-microsoft-quantized-attention.ts";
import { defineOp, float, int, optional, required } from "../graph/op.ts";
import { Expansion } from "./expansion.ts";
import { checkLengthMask } from "./length-masks.ts";
import { inferMatrixProduct } from "./matrix-product.ts";
import { attendProjected } from "./microsoft-attention.ts";
import { scaledProduct } from "./microsoft-integer-products.ts";

export const QAttention = defineOp({
  type: "QAttention", domain: "com.microsoft", since: 1, evaluate, fusionKind: "opaque",
  inputs: {
    input: "required", weight: "required", bias: "required", input_scale: "required", weight_scale: "required",
    mask_index: "optional", input_zero_point: "optional", weight_zero_point: "optional", past: "optional",
  },
  attributes: { num_heads: required("int"), unidirectional: int(0), mask_filter_value: float(-10000), scale: optional("float"), do_rotary: int(0), past_present_share_buffer: int(0) },
  infer({ input, weight, bias, mask_index, past }, { num_heads, do_rotary, past_present_share_buffer }, context) {
    if (input.shape.length !== 3 || weight.shape.length !== 2) context.fail("OF3010", `needs an input of rank 3 and a weight of rank 2, got ${formatShape(input.shape)} and ${formatShape(weight.shape)}`);
    if (do_rotary || past_present_share_buffer) context.fail("OF3012", "do_rotary and past_present_share_buffer are not supported", "export the model without them");
    const [batch = 1, queries = 1, width = 1] = inferMatrixProduct(input, weight, context), hidden = dimExactDiv(width, 3);
    const depth = hidden === undefined ? undefined : dimExactDiv(hidden, num_heads);
    if (hidden === undefined || depth === undefined) return context.fail("OF3011", `${formatDim(width)} columns are not query, key and value of ${num_heads} heads`);
    checkLengthMask(mask_index, batch, context);
    return [{ dtype: bias.dtype, shape: [batch, queries, hidden] }, { dtype: bias.dtype, shape: [2, batch, num_heads, dimAdd(past?.shape[3] ?? 0, queries), depth] }];
  },
  expand({ inputs, inputTypes, outputs }, options) {
    const [input, weight, bias, inputScale, weightScale, mask, inputZero, weightZero, past] = inputs, hidden = Number(inputTypes[1]?.shape[1]) / 3;
    if (!Number.isInteger(hidden)) return undefined;
    const to = new Expansion(), all = scaledProduct(to, [input, inputScale, inputZero], [weight, weightScale, weightZero], bias, undefined);
    attendProjected(to, { all, sizes: [hidden, hidden, hidden], mask, maskType: inputTypes[5], past, scores: undefined, batch: inputTypes[0]?.shape[0] ?? 1, dtype: inputTypes[2]?.dtype ?? "float32", outputs }, options);
    return to.nodes;
  },
});
