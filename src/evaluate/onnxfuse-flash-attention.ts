/** Scaled dot-product attention: softmax(cap(scale · q·kᵀ) + bias, filled, + mask, at least `least`, hidden) · v, in float64, as the unfused operators define it. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { broadcastSources } from "../core/strided.ts";
import { numberOf, stringOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** Sizes of [batch, heads, rows, columns], leading ones missing. */
const four = (t: Tensor): number[] => [...new Array<number>(4 - t.dims.length).fill(1), ...t.dims];

export const FlashAttention: Evaluate = ([Q, K, V, mask, bias, choice, offset, limit, sink], attributes) => {
  const q = present(Q, "Q"), k = present(K, "K"), v = present(V, "V");
  const [batch = 1, heads = 1, queries = 1, depth = 1] = four(q), [, keyHeads = 1, keys = 1] = four(k), width = at(four(v), 3);
  const qs = toNumbers(q), ks = toNumbers(k), vs = toNumbers(v);
  const over = (t: Tensor | undefined): ((score: number) => number) | undefined => {
    if (!t) return undefined;
    const values = toNumbers(t), from = broadcastSources(t.dims, [batch, heads, queries, keys]);
    return (score) => values[from[score] ?? 0] ?? 0;
  };
  const masked = over(mask), biased = over(bias), chosen = over(choice);
  const scale = numberOf(attributes, "scale"), last = stringOf(attributes, "scale_position", "post") === "last";
  const fill = numberOf(attributes, "fill", 0), fillWhere = numberOf(attributes, "fill_where", 1);
  const softcap = numberOf(attributes, "softcap", 0), causal = numberOf(attributes, "causal", 0) !== 0, window = numberOf(attributes, "window", 0);
  const perBatch = (t: Tensor | undefined, missing: number): ((b: number) => number) => {
    const values = t && toNumbers(t);
    return (b) => (values ? values[values.length === 1 ? 0 : b] ?? 0 : missing);
  };
  const offsetOf = perBatch(offset, 0), limitOf = perBatch(limit, Infinity), sinks = sink && toNumbers(sink);
  const sees = (b: number, s: number, t: number): boolean => {
    const position = s + offsetOf(b);
    return !(causal && t > position) && !(window > 0 && t <= position - window) && t < limitOf(b);
  };
  const least = numberOf(attributes, "least", -Infinity), emptyRows = stringOf(attributes, "empty_rows", "nan");
  /** Scores are rounded where the operators would: a row filled with -1e9 takes no part of a mask in float32. */
  const round = q.dtype === "float64" ? (x: number): number => x : Math.fround;
  const scoreOf = (dot: number, i: number): number => {
    const scaled = round(last ? dot : dot * scale), capped = softcap > 0 ? round(softcap * Math.tanh(scaled / softcap)) : scaled;
    const own = round(capped + (biased?.(i) ?? 0));
    const score = round((chosen && chosen(i) === fillWhere ? fill : own) + (masked?.(i) ?? 0));
    const whole = last ? round(score * scale) : score;
    return whole < least ? round(least) : whole;
  };
  const y = new Float64Array(batch * heads * queries * width);
  for (let b = 0; b < batch; b++) for (let h = 0; h < heads; h++) {
    const head = b * keyHeads + Math.floor(h / (heads / keyHeads));
    for (let s = 0; s < queries; s++) {
      const row = (b * heads + h) * queries + s;
      const scores = Float64Array.from({ length: keys }, (_, t) => {
        let dot = 0;
        for (let d = 0; d < depth; d++) dot += (qs[row * depth + d] ?? 0) * (ks[(head * keys + t) * depth + d] ?? 0);
        return sees(b, s, t) ? scoreOf(dot, row * keys + t) : -Infinity;
      });
      const most = scores.reduce((a, c) => Math.max(a, c), sinks?.[h] ?? -Infinity);
      const weights = scores.map((x) => Math.exp(x - most));
      const total = weights.reduce((a, c) => a + c, sinks ? Math.exp((sinks[h] ?? 0) - most) : 0);
      const hidden = emptyRows === "hidden" && scores.every((x) => x === -Infinity);
      const shares = weights.map((w) => (hidden || (emptyRows === "undefined" && Number.isNaN(w / total)) ? 0 : w / total));
      for (let t = 0; t < keys; t++) for (let e = 0; e < width; e++)
        y[row * width + e] = (y[row * width + e] ?? 0) + (shares[t] ?? 0) * (vs[(head * keys + t) * width + e] ?? 0);
    }
  }
  return [fromNumbers(q.dtype, [...q.dims.slice(0, -1), width], y)];
};
