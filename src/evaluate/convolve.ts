/** Convolution and transposed convolution of plain number arrays, accumulated in float64. */
import { at, type Geometry } from "./window.ts";

export interface Channels {
  readonly batch: number;
  readonly groups: number;
  /** Input channels a group. */
  readonly inputs: number;
  /** Output channels a group. */
  readonly outputs: number;
}

interface Loops { readonly id: number; readonly ih: number; readonly iw: number; readonly od: number; readonly oh: number; readonly ow: number; readonly taps: readonly Tap[] }
interface Tap { readonly index: number; readonly d: number; readonly h: number; readonly w: number }

function loops(g: Geometry): Loops {
  const [kd, kh, kw] = [at(g.kernel, 0), at(g.kernel, 1), at(g.kernel, 2)];
  const taps: Tap[] = [];
  for (let d = 0; d < kd; d++) for (let h = 0; h < kh; h++) for (let w = 0; w < kw; w++) {
    taps.push({
      index: (d * kh + h) * kw + w,
      d: d * at(g.dilations, 0) - at(g.padsBegin, 0), h: h * at(g.dilations, 1) - at(g.padsBegin, 1), w: w * at(g.dilations, 2) - at(g.padsBegin, 2),
    });
  }
  return { id: at(g.input, 0), ih: at(g.input, 1), iw: at(g.input, 2), od: at(g.output, 0), oh: at(g.output, 1), ow: at(g.output, 2), taps };
}

/** y[n, g·M + m, o] = Σ x[n, g·C + c, o·stride − pad + k·dilation] · w[g·M + m, c, k]; padding adds nothing. */
export function convolve(x: ArrayLike<number>, w: ArrayLike<number>, c: Channels, geometry: Geometry): Float64Array {
  const g = flattened(geometry), { id, ih, iw, od, oh, ow, taps } = loops(g);
  const [sd, sh, sw] = [at(g.strides, 0), at(g.strides, 1), at(g.strides, 2)];
  const inputSize = id * ih * iw, outputSize = od * oh * ow;
  const y = new Float64Array(c.batch * c.groups * c.outputs * outputSize), weights = new Float64Array(channelsAtOnce);
  for (let n = 0; n < c.batch; n++) for (let m = 0; m < c.groups * c.outputs; m++) for (let i = 0; i < c.inputs; i += channelsAtOnce) {
    const group = Math.floor(m / c.outputs), channels = Math.min(channelsAtOnce, c.inputs - i);
    const from = (n * c.groups * c.inputs + group * c.inputs + i) * inputSize;
    const to = (n * c.groups * c.outputs + m) * outputSize;
    for (const tap of taps) {
      for (let j = 0; j < channels; j++) weights[j] = w[(m * c.inputs + i + j) * taps.length + tap.index] ?? 0;
      const [first, last] = within(iw, ow, sw, tap.w);
      for (let a = 0; a < od; a++) {
        const d = a * sd + tap.d;
        if (d < 0 || d >= id) continue;
        for (let b = 0; b < oh; b++) {
          const h = b * sh + tap.h;
          if (h < 0 || h >= ih) continue;
          const source = from + (d * ih + h) * iw + tap.w, target = to + (a * oh + b) * ow;
          addRow(y, target + first, last - first, x, source + first * sw, sw, inputSize, weights, channels);
        }
      }
    }
  }
  return y;
}

const channelsAtOnce = 4;

/** y[to + o] += Σ_c weights[c] · x[from + o·stride + c·plane] over the first `channels` weights. */
function addRow(y: Float64Array, to: number, count: number, x: ArrayLike<number>, from: number, stride: number, plane: number, weights: Float64Array, channels: number): void {
  const w0 = weights[0] ?? 0, w1 = weights[1] ?? 0, w2 = weights[2] ?? 0, w3 = weights[3] ?? 0;
  if (channels === channelsAtOnce) {
    for (let o = 0, i = from; o < count; o++, i += stride)
      y[to + o] = (y[to + o] ?? 0) + w0 * (x[i] ?? 0) + w1 * (x[i + plane] ?? 0) + w2 * (x[i + 2 * plane] ?? 0) + w3 * (x[i + 3 * plane] ?? 0);
    return;
  }
  for (let c = 0; c < channels; c++) {
    const weight = weights[c] ?? 0;
    for (let o = 0, i = from + c * plane; o < count; o++, i += stride) y[to + o] = (y[to + o] ?? 0) + weight * (x[i] ?? 0);
  }
}

/** A convolution of single elements sees each plane as one row. */
function flattened(g: Geometry): Geometry {
  const plain = [g.kernel, g.strides].every((list) => list.every((v) => v === 1)) && [...g.padsBegin, ...g.padsEnd].every((p) => p === 0);
  const size = g.input.reduce((a, b) => a * b, 1);
  return plain ? { ...g, input: [1, 1, size], output: [1, 1, size] } : g;
}

/** Outputs o in [first, last) have 0 ≤ o·stride + offset < size. */
function within(size: number, outputs: number, stride: number, offset: number): [number, number] {
  const first = Math.max(0, Math.ceil(-offset / stride));
  const last = Math.min(outputs, Math.floor((size - 1 - offset) / stride) + 1);
  return [first, last];
}

/** y[n, g·M + m, i·stride − pad + k·dilation] += x[n, g·C + c, i] · w[g·C + c, m, k]. */
export function convolveTransposed(x: ArrayLike<number>, w: ArrayLike<number>, c: Channels, g: Geometry): Float64Array {
  const { id, ih, iw, od, oh, ow, taps } = loops(g);
  const [sd, sh, sw] = [at(g.strides, 0), at(g.strides, 1), at(g.strides, 2)];
  const inputSize = id * ih * iw, outputSize = od * oh * ow;
  const y = new Float64Array(c.batch * c.groups * c.outputs * outputSize);
  for (let n = 0; n < c.batch; n++) for (let i = 0; i < c.groups * c.inputs; i++) for (let m = 0; m < c.outputs; m++) {
    const group = Math.floor(i / c.inputs);
    const from = (n * c.groups * c.inputs + i) * inputSize;
    const to = (n * c.groups * c.outputs + group * c.outputs + m) * outputSize;
    for (const tap of taps) {
      const weight = w[(i * c.outputs + m) * taps.length + tap.index] ?? 0;
      for (let a = 0; a < id; a++) for (let b = 0; b < ih; b++) for (let e = 0; e < iw; e++) {
        const d = a * sd + tap.d, h = b * sh + tap.h, l = e * sw + tap.w;
        if (d < 0 || d >= od || h < 0 || h >= oh || l < 0 || l >= ow) continue;
        const target = to + (d * oh + h) * ow + l;
        y[target] = (y[target] ?? 0) + weight * (x[from + (a * ih + b) * iw + e] ?? 0);
      }
    }
  }
  return y;
}
