/** Evaluation of window functions and mel weights, by ONNX's formulas in float64. */
import { dtypeFromOnnx } from "../core/dtype.ts";
import { fail } from "../core/diagnostic.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { integersOf, numberOf } from "./read-attribute.ts";

/** A window from its value at an angle of its period. */
const windowOf = (value: (angle: number) => number): Evaluate => (inputs, attributes) => {
  const size = integersOf(input(inputs, 0))[0] ?? 0;
  const period = numberOf(attributes, "periodic", 1) !== 0 ? size : size - 1;
  const dtype = dtypeFromOnnx(numberOf(attributes, "output_datatype", 1)) ?? "float32";
  return [fromNumbers(dtype, [size], Float64Array.from({ length: size }, (_, i) => value((2 * Math.PI * i) / period)))];
};
export const HannWindow: Evaluate = windowOf((a) => 0.5 - 0.5 * Math.cos(a));
export const HammingWindow: Evaluate = windowOf((a) => 25 / 46 - (21 / 46) * Math.cos(a));
export const BlackmanWindow: Evaluate = windowOf((a) => 0.42 - 0.5 * Math.cos(a) + 0.08 * Math.cos(2 * a));

/** Triangles over the bins of a spectrum, equally wide on the mel scale; each peaks at 1. */
export const MelWeightMatrix: Evaluate = (inputs, attributes) => {
  const [bands = 0, length = 0, rate = 1, low = 0, high = 0] = [0, 1, 2, 3, 4].map((i) => Number(toNumbers(input(inputs, i))[0] ?? 0));
  if (bands < 0 || length < 0) fail("OF7014", `MelWeightMatrix has ${bands} bands for a length of ${length}`, { hint: "check the values that are fed" });
  const bins = Math.floor(length / 2) + 1;
  const mel = (hertz: number): number => 2595 * Math.log10(1 + hertz / 700);
  const step = (mel(high) - mel(low)) / (bands + 2);
  const edges = Array.from({ length: bands + 2 }, (_, i) => Math.floor(((length + 1) * 700 * (10 ** ((i * step + mel(low)) / 2595) - 1)) / rate));
  if (edges.some((e) => !(e >= 0 && e < bins))) fail("OF7014", `MelWeightMatrix has a band outside the ${bins} bins of its spectrum`, { hint: "upper_edge_hertz must be at most half the sample rate" });
  const out = new Float64Array(bins * bands);
  for (let band = 0; band < bands; band++) {
    const [left = 0, centre = 0, right = 0] = edges.slice(band, band + 3);
    if (centre === left) out[centre * bands + band] = 1;
    else for (let bin = left; bin <= centre; bin++) out[bin * bands + band] = (bin - left) / (centre - left);
    for (let bin = centre; bin < right; bin++) out[bin * bands + band] = (right - bin) / (right - centre);
  }
  return [fromNumbers(dtypeFromOnnx(numberOf(attributes, "output_datatype", 1)) ?? "float32", [bins, bands], out)];
};
