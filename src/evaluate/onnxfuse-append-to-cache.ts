/** A cache [batch, heads, tokens, depth] of a given length: what each of the batch had so far, then new tokens, then zeros. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { at } from "./window.ts";

export const AppendToCache: Evaluate = ([now, before, total, past]) => {
  const given = present(now, "now"), [batch = 0, heads = 0, sequence = 0, depth = 0] = given.dims, values = toNumbers(given), filled = toNumbers(present(before, "before"));
  const longest = past ? at(past.dims, 2) : 0, length = Math.max(longest, toNumbers(present(total, "total"))[0] ?? 0), old = past && toNumbers(past);
  const y = new Float64Array(batch * heads * length * depth);
  for (let g = 0; g < batch * heads; g++) {
    const start = filled[Math.floor(g / heads)] ?? 0;
    for (let t = 0; t < length; t++) for (let d = 0; d < depth; d++) {
      const fresh = t - start;
      y[(g * length + t) * depth + d] = fresh < 0 ? (t < longest ? old?.[(g * longest + t) * depth + d] ?? 0 : 0) : fresh < sequence ? values[(g * sequence + fresh) * depth + d] ?? 0 : 0;
    }
  }
  return [fromNumbers(given.dtype, [batch, heads, length, depth], y)];
};
