/**
 * Evaluation of Resize, separably: each axis of the result reads a few positions of the input with weights. Coordinates
 * are computed in float32, as runtimes do, since floor and round decide by their last bit.
 */
import { invariant } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { numericData, rowMajorStrides, setNumber, sizeOf, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { input, normalAxis, pick } from "./map-elements.ts";
import { integersOf, numberOf, numbersOf, stringOf } from "./read-attribute.ts";

const f = Math.fround;

interface AxisResize {
  readonly size: number;
  readonly result: number;
  readonly scale: number;
  readonly roi: readonly [number, number];
  /** The scale is given, and the result rounded down: corners are aligned with those of size · scale. */
  readonly scaled: boolean;
}
interface Tap { readonly index: number; readonly weight: number }

/** Sizes and scales of every axis, from `scales` or `sizes` over all axes or the listed ones. */
export function resizedAxes(dims: readonly number[], roi: readonly number[] | undefined, scales: readonly number[] | undefined, sizes: readonly number[] | undefined, attributes: EvaluateAttributes): AxisResize[] {
  const axes = (numbersOf(attributes, "axes") ?? dims.map((_, i) => i)).map((a) => normalAxis(a, dims.length));
  const policy = stringOf(attributes, "keep_aspect_ratio_policy", "stretch");
  const ratios = sizes && axes.map((a, i) => f((sizes[i] ?? 0) / (dims[a] ?? 1)));
  const common = ratios && policy !== "stretch" ? (policy === "not_larger" ? Math.min(...ratios) : Math.max(...ratios)) : undefined;
  return dims.map((size, axis): AxisResize => {
    const i = axes.indexOf(axis);
    if (i < 0) return { size, result: size, scale: 1, roi: [0, 1], scaled: false };
    const box = [roi?.[i] ?? 0, roi?.[i + axes.length] ?? 1] as const;
    if (sizes && common !== undefined) return { size, result: Math.floor(f(common * size) + 0.5), scale: common, roi: box, scaled: false };
    if (sizes) return { size, result: sizes[i] ?? 0, scale: ratios?.[i] ?? 1, roi: box, scaled: false };
    const scale = f(scales?.[i] ?? 1);
    return { size, result: Math.floor(f(scale * size)), scale, roi: box, scaled: true };
  });
}

/** The input coordinate of result index i. */
function coordinate(mode: string, i: number, { size, result, scale, roi: [start, end], scaled }: AxisResize): number {
  switch (mode) {
    case "asymmetric": return f(i / scale);
    case "half_pixel": return f(f((i + 0.5) / scale) - 0.5);
    case "pytorch_half_pixel": return result > 1 ? f(f((i + 0.5) / scale) - 0.5) : 0;
    case "tf_half_pixel_for_nn": return f((i + 0.5) / scale);
    case "align_corners": return result === 1 ? 0 : f(f(i * (size - 1)) / f((scaled ? f(scale * size) : result) - 1));
    case "half_pixel_symmetric": {
      const adjustment = f(result / f(scale * size));
      const offset = f(f(size / 2) * f(1 - adjustment));
      return f(f(offset + f((i + 0.5) / scale)) - 0.5);
    }
    case "tf_crop_and_resize": {
      const first = f(f(start) * (size - 1)), span = f(f(end) - f(start));
      return result > 1 ? f(first + f(f(f(i * span) * (size - 1)) / (result - 1))) : f(f(0.5 * f(f(start) + f(end))) * (size - 1));
    }
    default: return invariant(false, `coordinate mode ${mode}`) as never;
  }
}

function nearestIndex(mode: string, x: number, shrinks: boolean): number {
  switch (mode) {
    case "floor": return Math.floor(x);
    case "ceil": return Math.ceil(x);
    case "round_prefer_floor": return Math.ceil(x - 0.5);
    case "round_prefer_ceil": return Math.floor(x + 0.5);
    case "simple": return shrinks ? Math.ceil(x) : Math.trunc(x);
    default: return invariant(false, `nearest mode ${mode}`) as never;
  }
}

/** The cubic convolution kernel at distance t. */
function cubic(t: number, a: number): number {
  const d = Math.abs(t);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}
const triangle = (t: number): number => Math.max(0, 1 - Math.abs(t));

/** The positions and weights for coordinate x; those past the ends read the edge, or with exclude_outside nothing. */
function interpolate(x: number, axis: AxisResize, attributes: EvaluateAttributes): Tap[] {
  const a = numberOf(attributes, "cubic_coeff_a", -0.75), linear = stringOf(attributes, "mode", "nearest") === "linear";
  const kernel = linear ? triangle : (t: number): number => cubic(t, a);
  const stretch = numberOf(attributes, "antialias", 0) !== 0 ? Math.min(axis.scale, 1) : 1;
  const reach = Math.ceil((linear ? 1 : 2) / stretch), floor = Math.floor(x);
  let taps: Tap[] = [];
  for (let k = -reach; k <= reach; k++) taps.push({ index: floor + k, weight: kernel((floor + k - x) * stretch) });
  taps = taps.filter((t) => t.weight !== 0);
  const inside = (t: Tap): boolean => t.index >= 0 && t.index < axis.size;
  if (numberOf(attributes, "exclude_outside", 0) !== 0) taps = taps.filter(inside);
  const total = taps.reduce((s, t) => s + t.weight, 0);
  return taps.map((t) => ({ index: Math.min(Math.max(t.index, 0), axis.size - 1), weight: t.weight / total }));
}

export const Resize: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), [, roi, scales, sizes] = inputs;
  const given = scales && sizeOf(scales.dims) > 0 ? Array.from(toNumbers(scales)) : undefined;
  const axes = resizedAxes(x.dims, roi && Array.from(toNumbers(roi)), given, given ? undefined : sizes && integersOf(sizes), attributes);
  const transform = stringOf(attributes, "coordinate_transformation_mode", "half_pixel"), mode = stringOf(attributes, "mode", "nearest");
  const nearest = stringOf(attributes, "nearest_mode", "round_prefer_floor"), crop = transform === "tf_crop_and_resize";
  const dims = axes.map((a) => a.result), wrong = dims.find((d) => !(d >= 0));
  if (wrong !== undefined) fail("OF7014", `Resize: its result would have the size ${wrong}`, { hint: "check the scales and sizes that are fed" });
  const tapsAt = (axis: AxisResize, i: number): Tap[] | undefined => {
    if (axis.scale === 1 && axis.size === axis.result && !crop) return [{ index: i, weight: 1 }];
    const at = coordinate(transform, i, axis);
    if (crop && (at < 0 || at > axis.size - 1)) return undefined;
    if (mode === "nearest") return [{ index: Math.min(Math.max(nearestIndex(nearest, at, axis.scale < 1), 0), axis.size - 1), weight: 1 }];
    return interpolate(mode === "linear" && numberOf(attributes, "antialias", 0) === 0 ? Math.min(Math.max(at, 0), axis.size - 1) : at, axis, attributes);
  };
  if (mode === "nearest" && !crop) return [pick(x, dims, sources(dims, rowMajorStrides(x.dims), (d, i) => { const axis = axes[d]; return (axis && tapsAt(axis, i)?.[0]?.index) ?? 0; }))];
  const result = zeros(x.dtype, dims), tables = axes.map((axis) => Array.from({ length: axis.result }, (_, i) => tapsAt(axis, i)));
  return [weighted(x, result, tables, numberOf(attributes, "extrapolation_value", 0))];
};

/**
 * Flat source positions where each axis reads one position. Their memory is taken before anything else, so that a
 * result that no memory has is refused at once.
 */
function sources(dims: readonly number[], strides: readonly number[], indexAt: (axis: number, i: number) => number): Uint32Array {
  const positions = new Uint32Array(sizeOf(dims));
  let block = 1;
  for (let d = dims.length - 1; d >= 0 && positions.length > 0; d--) {
    const size = dims[d] ?? 1;
    for (let k = size - 1; k >= 0; k--) {
      const from = indexAt(d, k) * (strides[d] ?? 0);
      for (let j = 0; j < block; j++) positions[k * block + j] = (positions[j] ?? 0) + from;
    }
    block *= size;
  }
  return positions;
}

/** Σ of products of weights; `outside` where an axis reads nothing. */
function weighted(x: Tensor, into: Tensor, tables: readonly (Tap[] | undefined)[][], outside: number): Tensor {
  const { dims } = into, values = toNumbers(x), strides = rowMajorStrides(x.dims), own = rowMajorStrides(dims), data = numericData(into);
  const element = (i: number): number => {
    let taps: Tap[] = [{ index: 0, weight: 1 }];
    for (let d = 0; d < dims.length; d++) {
      const along = tables[d]?.[Math.floor(i / (own[d] ?? 1)) % (dims[d] ?? 1)];
      if (!along) return outside;
      taps = taps.flatMap((t) => along.map((u) => ({ index: t.index + u.index * (strides[d] ?? 0), weight: t.weight * u.weight })));
    }
    return taps.reduce((s, t) => s + t.weight * (values[t.index] ?? 0), 0);
  };
  for (let i = 0; i < data.length; i++) setNumber(data, into.dtype, i, element(i));
  return into;
}
