/** Evaluation of com.microsoft's CropAndResize: boxes of images, in shares of their sizes, resized to one size (TensorFlow's crop_and_resize). */
import { fail } from "../core/diagnostic.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { integersOf, numberOf, stringOf } from "./read-attribute.ts";

/** Where the samples of an axis of `size` lie between two shares of it. */
const samples = (from: number, to: number, size: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => (count > 1 ? from * (size - 1) + (i * (to - from) * (size - 1)) / (count - 1) : 0.5 * (from + to) * (size - 1)));

export const CropAndResize: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), rois = toNumbers(input(inputs, 1)), images = integersOf(input(inputs, 2)), [rows = 0, columns = 0] = integersOf(input(inputs, 3));
  const [count = 0, channels = 0, height = 0, width = 0] = x.dims, values = toNumbers(x), outside = numberOf(attributes, "extrapolation_value"), isNearest = stringOf(attributes, "mode") === "nearest";
  const out = new Float64Array(images.length * channels * rows * columns);
  let at = 0;
  images.forEach((image, r) => {
    if (image < 0 || image >= count) fail("OF7014", `index ${image} lies outside an axis of ${count} elements`, { hint: "check the indices that are fed" });
    const [y1 = 0, x1 = 0, y2 = 0, x2 = 0] = [0, 1, 2, 3].map((k) => rois[4 * r + k] ?? 0), ys = samples(y1, y2, height, rows), xs = samples(x1, x2, width, columns);
    for (let c = 0; c < channels; c++) for (const y of ys) for (const px of xs) {
      const pixel = (i: number, j: number): number => values[((image * channels + c) * height + i) * width + j] ?? 0;
      out[at++] = y < 0 || y > height - 1 || px < 0 || px > width - 1 ? outside : isNearest ? pixel(roundAway(y), roundAway(px)) : bilinear(pixel, y, px);
    }
  });
  return [fromNumbers(x.dtype, [images.length, channels, rows, columns], out)];
};
const roundAway = (v: number): number => Math.floor(v + 0.5);
function bilinear(pixel: (i: number, j: number) => number, y: number, x: number): number {
  const [top, bottom, left, right] = [Math.floor(y), Math.ceil(y), Math.floor(x), Math.ceil(x)], dx = x - left, dy = y - top;
  const above = pixel(top, left) + (pixel(top, right) - pixel(top, left)) * dx, below = pixel(bottom, left) + (pixel(bottom, right) - pixel(bottom, left)) * dx;
  return above + (below - above) * dy;
}
