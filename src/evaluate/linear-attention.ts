/**
 * LinearAttention by its recurrence, in float64. Of each key head a state [key depth, value depth] decays, takes in the
 * outer product of key and value (or of key and what value is off from what the state holds), and is read by queries.
 */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { numberOf, stringOf } from "./read-attribute.ts";
import { at } from "./window.ts";

export const LinearAttention: Evaluate = ([query, key, value, pastState, decay, beta], attributes) => {
  const q = present(query, "query"), k = present(key, "key"), v = present(value, "value"), [batch = 0, tokens = 0, hidden = 0] = q.dims;
  const heads = numberOf(attributes, "q_num_heads"), states = numberOf(attributes, "kv_num_heads"), depth = hidden / heads, width = at(v.dims, 2) / states, keyHeads = at(k.dims, 2) / depth;
  const rule = stringOf(attributes, "update_rule", "gated_delta"), corrects = rule.endsWith("delta"), scale = numberOf(attributes, "scale", 0) || 1 / Math.sqrt(depth);
  const [qs, ks, vs] = [q, k, v].map(toNumbers), gates = rule.startsWith("gated") && decay ? toNumbers(decay) : undefined, rates = corrects && beta ? toNumbers(beta) : undefined;
  const gateWidth = decay ? at(decay.dims, 2) : 1, rateWidth = beta ? at(beta.dims, 2) : 1;
  const state = pastState ? Float64Array.from(toNumbers(pastState)) : new Float64Array(batch * states * depth * width), results = Math.max(heads, states), y = new Float64Array(batch * tokens * results * width);
  for (let b = 0; b < batch; b++) for (let h = 0; h < states; h++) {
    const own = state.subarray((b * states + h) * depth * width, (b * states + h + 1) * depth * width), keyHead = Math.floor(h / (states / keyHeads));
    for (let t = 0; t < tokens; t++) {
      const row = b * tokens + t, keyAt = (i: number): number => ks?.[(row * keyHeads + keyHead) * depth + i] ?? 0;
      const rate = rates ? rates[row * rateWidth + (rateWidth === 1 ? 0 : h)] ?? 0 : 1;
      if (gates) for (let i = 0; i < depth; i++) {
        const g = Math.exp(gates[row * gateWidth + (gateWidth === states ? h : h * depth + i)] ?? 0);
        for (let j = 0; j < width; j++) own[i * width + j] = (own[i * width + j] ?? 0) * g;
      }
      for (let j = 0; j < width; j++) {
        let held = 0;
        if (corrects) for (let i = 0; i < depth; i++) held += (own[i * width + j] ?? 0) * keyAt(i);
        const written = rate * ((vs?.[(row * states + h) * width + j] ?? 0) - held);
        for (let i = 0; i < depth; i++) own[i * width + j] = (own[i * width + j] ?? 0) + keyAt(i) * written;
      }
      for (let r = 0; r < results / states; r++) {
        const result = h * (results / states) + r, from = Math.floor(result / (results / heads));
        for (let j = 0; j < width; j++) {
          let read = 0;
          for (let i = 0; i < depth; i++) read += (qs?.[(row * heads + from) * depth + i] ?? 0) * (own[i * width + j] ?? 0);
          y[(row * results + result) * width + j] = read * scale;
        }
      }
    }
  }
  return [fromNumbers(q.dtype, [batch, tokens, results * width], y), fromNumbers(pastState?.dtype ?? q.dtype, [batch, states, depth, width], state)];
};
