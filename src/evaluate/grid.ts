/**
 * Evaluation of AffineGrid and GridSample over any number of spatial axes. GridSample's coordinates are computed in the
 * grid's own precision, as runtimes do, since rounding and reflection decide by their last bit. With border padding every
 * pixel read is clamped, not the coordinate: so PyTorch and onnxruntime have it, for cubic sampling too.
 */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, rowMajorStrides, sizeOf, toNumbers } from "../core/tensor.ts";
import { input, pick } from "./map-elements.ts";
import { integersOf, numberOf, stringOf } from "./read-attribute.ts";

/** Position of pixel i of n between −1 and 1: centres of the corner pixels, or their outer edges. */
const pixelPosition = (i: number, n: number, corners: boolean): number => (corners ? (n === 1 ? -1 : -1 + (2 * i) / (n - 1)) : (2 * i + 1) / n - 1);

export const AffineGrid: Evaluate = (inputs, attributes) => {
  const theta = input(inputs, 0), values = toNumbers(theta), spatial = integersOf(input(inputs, 1)).slice(2), axes = spatial.length;
  const corners = numberOf(attributes, "align_corners", 0) !== 0, batch = theta.dims[0] ?? 1, strides = rowMajorStrides(spatial), plane = sizeOf(spatial);
  const out = new Float64Array(batch * plane * axes);
  for (let n = 0; n < batch; n++) for (let p = 0; p < plane; p++) {
    const position = spatial.map((size, d) => pixelPosition(Math.floor(p / (strides[d] ?? 1)) % size, size, corners)).reverse();
    for (let r = 0; r < axes; r++) {
      const row = (n * axes + r) * (axes + 1);
      out[(n * plane + p) * axes + r] = position.reduce((sum, x, d) => sum + x * (values[row + d] ?? 0), values[row + axes] ?? 0);
    }
  }
  return [fromNumbers(theta.dtype, [batch, ...spatial, axes], out)];
};

type Round = (x: number) => number;
interface Tap { readonly index: number; readonly weight: number }
interface Sampling { readonly mode: string; readonly padding: string; readonly corners: boolean; readonly f: Round }

/** A coordinate from −1…1 to pixels. */
function pixels(x: number, n: number, { corners, f }: Sampling): number {
  return corners ? f(f(f(x + 1) / 2) * (n - 1)) : f(f(f(f(x + 1) * n) - 1) / 2);
}

/** A coordinate outside low…high folded back at the borders. */
function reflected(x: number, low: number, high: number, f: Round): number {
  const range = high - low;
  if (range === 0) return low;
  const below = x < low, distance = f(below ? low - x : x - high), times = Math.trunc(f(distance / range)), rest = f(distance - f(times * range));
  return (times % 2 === 0) === below ? f(low + rest) : f(high - rest);
}

/** Where pixel i is read; −1 where nothing is. */
function pixelIndex(i: number, n: number, { padding, corners }: Sampling): number {
  if (i >= 0 && i < n) return i;
  if (padding === "zeros" || n === 0) return -1;
  if (padding === "border") return i < 0 ? 0 : n - 1;
  if (n === 1) return 0;
  const period = corners ? 2 * (n - 1) : 2 * n, m = ((i % period) + period) % period;
  return Math.min(m < n ? m : corners ? period - m : period - 1 - m, n - 1);
}

/** Keys' cubic convolution weights, a = −0.75. */
function cubicWeights(s: number): number[] {
  const a = -0.75, near = (t: number): number => ((a + 2) * t - (a + 3)) * t * t + 1, far = (t: number): number => ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return [far(s + 1), near(s), near(1 - s), far(2 - s)];
}

const toEven = (x: number): number => { const r = Math.round(x); return r - x === 0.5 && r % 2 !== 0 ? r - 1 : r; };

/** What is read along one axis for a coordinate of the grid. */
function tapsOf(coordinate: number, n: number, s: Sampling): Tap[] {
  let x = pixels(coordinate, n, s);
  if (s.mode === "nearest") x = toEven(x);
  const [low, high] = s.corners ? [0, n - 1] : [-0.5, n - 0.5];
  if (s.padding === "reflection" && (x < low || x > high)) x = reflected(x, low, high, s.f);
  const whole = (i: number): number => (Number.isNaN(i) ? 0 : Math.min(Math.max(Math.trunc(i), -(2 ** 31)), 2 ** 31 - 2));
  if (s.mode === "nearest") return [{ index: pixelIndex(whole(x), n, s), weight: 1 }];
  const floor = Math.floor(x), fraction = s.f(x - floor), first = whole(floor);
  const weights = s.mode === "linear" ? [1 - fraction, fraction] : cubicWeights(fraction), from = s.mode === "linear" ? first : first - 1;
  return weights.map((weight, k) => ({ index: pixelIndex(from + k, n, s), weight }));
}

export const GridSample: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), grid = input(inputs, 1), coordinates = toNumbers(grid);
  const [batch = 1, channels = 1] = x.dims, spatial = x.dims.slice(2), axes = spatial.length, strides = rowMajorStrides(spatial), plane = sizeOf(spatial);
  const dims = [batch, channels, ...grid.dims.slice(1, -1)], places = sizeOf(grid.dims.slice(1, -1));
  const sampling: Sampling = {
    mode: stringOf(attributes, "mode", "linear"), padding: stringOf(attributes, "padding_mode", "zeros"),
    corners: numberOf(attributes, "align_corners", 0) !== 0, f: grid.dtype === "float64" ? (v) => v : Math.fround,
  };
  /** Σ over the taps of all axes: flat positions in a plane, −1 for nothing. */
  const sources = (n: number, p: number): Tap[] => spatial.reduce<Tap[]>((list, size, d) => {
    const own = tapsOf(coordinates[(n * places + p) * axes + axes - 1 - d] ?? 0, size, sampling);
    return list.flatMap((t) => own.map((u) => ({ index: t.index < 0 || u.index < 0 ? -1 : t.index + u.index * (strides[d] ?? 1), weight: t.weight * u.weight })));
  }, [{ index: 0, weight: 1 }]);
  const found = Array.from({ length: batch * places }, (_, i) => sources(Math.floor(i / places), i % places));
  const each = <T>(of: (taps: readonly Tap[], base: number) => T): T[] => Array.from({ length: sizeOf(dims) }, (_, i) => {
    const p = i % places, c = Math.floor(i / places) % channels, n = Math.floor(i / (places * channels));
    return of(found[n * places + p] ?? [], (n * channels + c) * plane);
  });
  if (sampling.mode === "nearest") return [pick(x, dims, each(([t], base) => (t && t.index >= 0 ? base + t.index : -1)))];
  const values = toNumbers(x);
  return [fromNumbers(x.dtype, dims, each((taps, base) => taps.reduce((sum, t) => sum + t.weight * (t.index < 0 ? 0 : values[base + t.index] ?? 0), 0)))];
};
