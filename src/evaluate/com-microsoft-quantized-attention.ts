/** QAttention (com.microsoft): attention whose projection multiplies 8-bit integers. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { attendProjected } from "./com-microsoft-attention.ts";
import { MatMulIntegerToFloat } from "./com-microsoft-integer-products.ts";

export const QAttention: Evaluate = ([input, weight, bias, inputScale, weightScale, mask, inputZero, weightZero, past], attributes) => {
  const all = present(MatMulIntegerToFloat([input, weight, inputScale, weightScale, inputZero, weightZero, bias], {}, { outputCount: 1 })[0], "projection");
  return attendProjected(all, present(bias, "bias"), { mask, past, bias: undefined }, attributes);
};
