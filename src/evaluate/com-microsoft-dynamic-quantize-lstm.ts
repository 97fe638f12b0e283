/**
 * DynamicQuantizeLSTM (com.microsoft), by its definition: an LSTM with weights of 8 bits, [directions, inputs, 4·hidden],
 * whose input as a whole, and whose state of all the batch before every step, are quantised to 8 bits first.
 */
import { present } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { DynamicQuantizeLinear } from "./quantize.ts";
import { stringOf, stringsOf } from "./read-attribute.ts";
import { LSTM } from "./recurrent.ts";
import { at } from "./window.ts";

/** What is left of the elements once they have been quantised. */
function throughBytes(x: Tensor): Tensor {
  const [q, scale, zero] = DynamicQuantizeLinear([x], {}, { outputCount: 3 }), s = toNumbers(present(scale, "scale"))[0] ?? 1, z = toNumbers(present(zero, "zero point"))[0] ?? 0;
  return fromNumbers("float64", x.dims, Array.from(toNumbers(present(q, "quantised")), (v) => (v - z) * s));
}

/** The weights of one direction as LSTM has them: [1, 4·hidden, inputs]. Scales and zero points are one, or one for each column. */
function weightsOf(w: Tensor, scale: Tensor, zero: Tensor, direction: number): Tensor {
  const values = toNumbers(w), [, inputs = 0, columns = 0] = w.dims, each = scale.dims.length === 2, s = toNumbers(scale), z = toNumbers(zero);
  const from = (t: ArrayLike<number>, per: boolean, column: number): number => t[per ? direction * columns + column : direction] ?? 0;
  return fromNumbers("float64", [1, columns, inputs], Float64Array.from({ length: columns * inputs }, (_, i) => {
    const column = Math.floor(i / inputs), row = i % inputs;
    return ((values[(direction * inputs + row) * columns + column] ?? 0) - from(z, zero.dims.length === 2, column)) * from(s, each, column);
  }));
}

const slice = (t: Tensor | undefined, direction: number): Tensor | undefined => {
  if (!t) return undefined;
  const size = t.dims.slice(1).reduce((a, b) => a * b, 1), values = toNumbers(t);
  return fromNumbers("float64", [1, ...t.dims.slice(1)], Float64Array.from({ length: size }, (_, i) => values[direction * size + i] ?? 0));
};

export const DynamicQuantizeLSTM: Evaluate = ([X, W, R, B, lengths, initialH, initialC, P, wScale, wZero, rScale, rZero], attributes) => {
  const x = present(X, "X"), w = present(W, "W"), r = present(R, "R"), [sequence = 0, batch = 0, width = 0] = x.dims, directions = at(w.dims, 0), hidden = at(r.dims, 1);
  const rows = toNumbers(throughBytes(x)), limits = lengths && toNumbers(lengths), names = stringsOf(attributes, "activations");
  const y = new Float64Array(sequence * directions * batch * hidden), lastH = new Float64Array(directions * batch * hidden), lastC = new Float64Array(lastH.length);
  for (let d = 0; d < directions; d++) {
    const weights = [weightsOf(w, present(wScale, "W_scale"), present(wZero, "W_zero_point"), d), weightsOf(r, present(rScale, "R_scale"), present(rZero, "R_zero_point"), d), slice(B, d)] as const;
    const own: EvaluateAttributes = { ...attributes, direction: "forward", layout: 0, activations: names?.slice(3 * d, 3 * d + 3) };
    const reverse = d === 1 || stringOf(attributes, "direction", "forward") === "reverse", start = (t: Tensor | undefined): Float64Array => Float64Array.from(toNumbers(slice(t, d) ?? fromNumbers("float64", [1, batch, hidden], new Float64Array(batch * hidden))));
    let h = start(initialH), c = start(initialC);
    for (let s = 0; s < sequence; s++) {
      const place = (n: number): number => { const steps = limits?.[n] ?? sequence; return s >= steps ? -1 : reverse ? steps - 1 - s : s; };
      const now = fromNumbers("float64", [1, batch, width], Float64Array.from({ length: batch * width }, (_, i) => { const n = Math.floor(i / width), t = place(n); return t < 0 ? 0 : rows[(t * batch + n) * width + (i % width)] ?? 0; }));
      const before = throughBytes(fromNumbers("float32", [1, batch, hidden], h)), [, nextH, nextC] = LSTM([now, ...weights, undefined, before, fromNumbers("float64", [1, batch, hidden], c), slice(P, d)], own, { outputCount: 3 });
      const newH = toNumbers(present(nextH, "Y_h")), newC = toNumbers(present(nextC, "Y_c")), goes = (i: number): boolean => place(Math.floor(i / hidden)) >= 0;
      h = h.map((v, i) => (goes(i) ? newH[i] ?? 0 : v));
      c = c.map((v, i) => (goes(i) ? newC[i] ?? 0 : v));
      for (let n = 0; n < batch; n++) if (place(n) >= 0) y.set(h.subarray(n * hidden, (n + 1) * hidden), ((place(n) * directions + d) * batch + n) * hidden);
    }
    lastH.set(h, d * batch * hidden);
    lastC.set(c, d * batch * hidden);
  }
  const state = [directions, batch, hidden];
  return [fromNumbers(x.dtype, [sequence, directions, batch, hidden], y), fromNumbers(x.dtype, state, lastH), fromNumbers(x.dtype, state, lastC)];
};
