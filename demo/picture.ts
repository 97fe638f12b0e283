/** A picture as the recogniser takes it: 48 pixels high, three planes of (x / 255 - 0.5) / 0.5. */
import { PNG } from "pngjs";
import { Tensor } from "../src/runtime/index.ts";

const height = 48;

/** The model's input from a PNG file's bytes; the width keeps the picture's proportions. */
export function inputFrom(file: Buffer): Tensor {
  const picture = PNG.sync.read(file);
  const width = Math.max(1, Math.round((picture.width * height) / picture.height));
  const data = new Float32Array(3 * height * width);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) for (let c = 0; c < 3; c++) {
    // The network was trained on blue, green, red.
    const value = sample(picture, ((x + 0.5) * picture.width) / width - 0.5, ((y + 0.5) * picture.height) / height - 0.5, 2 - c);
    data[(c * height + y) * width + x] = (value / 255 - 0.5) / 0.5;
  }
  return new Tensor("float32", data, [1, 3, height, width]);
}

/** One channel between the pixels, bilinear; the border is repeated. */
function sample(picture: PNG, x: number, y: number, channel: number): number {
  const at = (column: number, row: number): number => {
    const i = Math.min(Math.max(column, 0), picture.width - 1), j = Math.min(Math.max(row, 0), picture.height - 1);
    return picture.data[(j * picture.width + i) * 4 + channel] ?? 0;
  };
  const left = Math.floor(x), top = Math.floor(y), u = x - left, v = y - top;
  return (at(left, top) * (1 - u) + at(left + 1, top) * u) * (1 - v) + (at(left, top + 1) * (1 - u) + at(left + 1, top + 1) * u) * v;
}
