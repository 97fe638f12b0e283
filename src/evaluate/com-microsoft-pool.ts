/** com.microsoft's maximum pools, by their definitions: channels last, and with a mask behind whose first zero a window's row ends. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { numbersOf } from "./read-attribute.ts";
import { at, windows } from "./window.ts";

export const NhwcMaxPool: Evaluate = ([X], attributes) => {
  const x = present(X, "x"), values = toNumbers(x), batch = at(x.dims, 0), channels = at(x.dims, x.dims.length - 1);
  const g = windows(x.dims.slice(1, -1), present(numbersOf(attributes, "kernel_shape"), "kernel_shape"), attributes), [id = 1, ih = 1, iw = 1] = g.input, [od = 1, oh = 1, ow = 1] = g.output;
  const dims = [batch, ...g.output.slice(3 - g.rank), channels], y = new Float64Array(sizeOf(dims)).fill(x.dtype === "int8" ? -128 : 0);
  const place = (o: number, k: number, d: number): number => o * at(g.strides, d) - at(g.padsBegin, d) + k * at(g.dilations, d);
  let to = 0;
  for (let n = 0; n < batch; n++) for (let a = 0; a < od; a++) for (let b = 0; b < oh; b++) for (let c = 0; c < ow; c++, to += channels) {
    for (let i = 0; i < at(g.kernel, 0); i++) for (let j = 0; j < at(g.kernel, 1); j++) for (let k = 0; k < at(g.kernel, 2); k++) {
      const d = place(a, i, 0), h = place(b, j, 1), w = place(c, k, 2);
      if (d < 0 || d >= id || h < 0 || h >= ih || w < 0 || w >= iw) continue;
      const from = (((n * id + d) * ih + h) * iw + w) * channels;
      for (let m = 0; m < channels; m++) y[to + m] = Math.max(y[to + m] ?? 0, values[from + m] ?? 0);
    }
  }
  return [fromNumbers(x.dtype, dims, y)];
};

/** float32's least number, which a window gives that sees nothing. */
const lowest = -3.4028234663852886e38;

/** Masks repeat along the channels of all images. In planes and volumes the mask of the first element is not looked at. */
export const MaxpoolWithMask: Evaluate = ([X, M], attributes) => {
  const x = present(X, "X"), m = present(M, "M"), values = toNumbers(x), mask = toNumbers(m), planes = at(x.dims, 0) * at(x.dims, 1), masks = at(m.dims, 0) * at(m.dims, 1), size = sizeOf(x.dims.slice(2));
  const g = windows(x.dims.slice(2), present(numbersOf(attributes, "kernel_shape"), "kernel_shape"), attributes), [, ih = 1, iw = 1] = g.input;
  const dims = [...x.dims.slice(0, 2), ...g.output.slice(3 - g.rank)], y = new Float64Array(sizeOf(dims));
  const range = (o: number, d: number): readonly [number, number] => { const from = o * at(g.strides, d) - at(g.padsBegin, d); return [Math.max(0, from), Math.min(from + at(g.kernel, d), at(g.input, d))]; };
  let to = 0;
  for (let p = 0; p < planes; p++) for (let a = 0; a < at(g.output, 0); a++) for (let b = 0; b < at(g.output, 1); b++) for (let c = 0; c < at(g.output, 2); c++) {
    const [d0, d1] = range(a, 0), [h0, h1] = range(b, 1), [w0, w1] = range(c, 2);
    let best = lowest;
    for (let d = d0; d < d1; d++) for (let h = h0; h < h1; h++) for (let w = w0; w < w1; w++) {
      const index = (d * ih + h) * iw + w, isSeen = (index === 0 && g.rank > 1) || mask[(p % masks) * size + index] !== 0, v = values[p * size + index] ?? 0;
      if (!isSeen) break;
      if (v > best) best = v;
    }
    y[to++] = best;
  }
  return [fromNumbers(x.dtype, dims, y)];
};
