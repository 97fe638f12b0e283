/** Pooling over windows and over whole planes, by its definition. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { numberOf, numbersOf } from "./read-attribute.ts";
import { at, windows, type Geometry } from "./window.ts";

/** Calls `visit` for every output element with the flat input indices its window covers, and the window's starts. */
function eachWindow(x: Tensor, g: Geometry, visit: (output: number, covered: readonly number[], start: readonly number[]) => void): void {
  const planes = at(x.dims, 0) * at(x.dims, 1);
  const [id, ih, iw] = [at(g.input, 0), at(g.input, 1), at(g.input, 2)];
  let output = 0;
  for (let p = 0; p < planes; p++) for (let a = 0; a < at(g.output, 0); a++) for (let b = 0; b < at(g.output, 1); b++) for (let c = 0; c < at(g.output, 2); c++) {
    const start = [a, b, c].map((o, d) => o * at(g.strides, d) - at(g.padsBegin, d));
    const covered: number[] = [];
    for (let i = 0; i < at(g.kernel, 0); i++) for (let j = 0; j < at(g.kernel, 1); j++) for (let k = 0; k < at(g.kernel, 2); k++) {
      const d = at(start, 0) + i * at(g.dilations, 0), h = at(start, 1) + j * at(g.dilations, 1), w = at(start, 2) + k * at(g.dilations, 2);
      if (d >= 0 && d < id && h >= 0 && h < ih && w >= 0 && w < iw) covered.push(((p * id + d) * ih + h) * iw + w);
    }
    visit(output++, covered, start);
  }
}

const pooled = (x: Tensor, g: Geometry): number[] => [...x.dims.slice(0, 2), ...g.output.slice(3 - g.rank)];

function lowest(t: Tensor): number {
  switch (t.dtype) {
    case "int8": return -128;
    case "uint8": return 0;
    default: return -Infinity;
  }
}

export const MaxPool: Evaluate = ([X], attributes) => {
  const x = present(X, "X"), values = toNumbers(x);
  const g = windows(x.dims.slice(2), present(numbersOf(attributes, "kernel_shape"), "kernel_shape"), attributes);
  const dims = pooled(x, g), plane = sizeOf(x.dims.slice(2));
  const columnMajor = numberOf(attributes, "storage_order") === 1;
  const y = new Float64Array(sizeOf(dims)), indices = new Float64Array(y.length);
  eachWindow(x, g, (o, covered) => {
    let best = lowest(x), index = 0;
    for (const i of covered) {
      const v = values[i] ?? 0;
      if (v > best || (Number.isNaN(v) && !Number.isNaN(best)) || i === covered[0]) [best, index] = [v, i];
    }
    y[o] = best;
    indices[o] = columnMajor ? Math.floor(index / plane) * plane + columnMajorIndex(index % plane, g.input) : index;
  });
  return [fromNumbers(x.dtype, dims, y), fromNumbers("int64", dims, indices)];
};

/** A row-major index within a plane as a column-major one. */
function columnMajorIndex(flat: number, sizes: readonly number[]): number {
  let rest = flat, index = 0;
  const position: number[] = [];
  for (let d = sizes.length - 1; d >= 0; d--) { position.unshift(rest % at(sizes, d)); rest = Math.floor(rest / at(sizes, d)); }
  for (let d = sizes.length - 1; d >= 0; d--) index = index * at(sizes, d) + at(position, d);
  return index;
}

export const AveragePool: Evaluate = ([X], attributes) => {
  const x = present(X, "X"), values = toNumbers(x);
  const g = windows(x.dims.slice(2), present(numbersOf(attributes, "kernel_shape"), "kernel_shape"), attributes);
  const withPadding = numberOf(attributes, "count_include_pad") !== 0;
  const dims = pooled(x, g), y = new Float64Array(sizeOf(dims));
  eachWindow(x, g, (o, covered, start) => {
    const count = withPadding ? start.reduce((n, s, d) => n * tapsWithin(s, d, g), 1) : covered.length;
    y[o] = covered.reduce((sum, i) => sum + (values[i] ?? 0), 0) / count;
  });
  return [fromNumbers(x.dtype, dims, y)];
};

/** Taps of a window that lie in the padded input: all but those that ceil_mode lets hang over its end. */
function tapsWithin(start: number, d: number, g: Geometry): number {
  const end = at(g.input, d) + at(g.padsEnd, d);
  let n = 0;
  for (let k = 0; k < at(g.kernel, d); k++) if (start + k * at(g.dilations, d) < end) n++;
  return n;
}

export const LpPool: Evaluate = ([X], attributes) => {
  const x = present(X, "X"), values = toNumbers(x), p = numberOf(attributes, "p");
  const g = windows(x.dims.slice(2), present(numbersOf(attributes, "kernel_shape"), "kernel_shape"), attributes);
  const dims = pooled(x, g), y = new Float64Array(sizeOf(dims));
  eachWindow(x, g, (o, covered) => { y[o] = norm(covered.map((i) => values[i] ?? 0), p); });
  return [fromNumbers(x.dtype, dims, y)];
};

const norm = (values: readonly number[], p: number): number => values.reduce((sum, v) => sum + Math.abs(v) ** p, 0) ** (1 / p);

function overPlanes(X: Tensor | undefined, reduce: (plane: readonly number[]) => number): readonly Tensor[] {
  const x = present(X, "X"), values = toNumbers(x), size = sizeOf(x.dims.slice(2));
  const planes = at(x.dims, 0) * at(x.dims, 1);
  const y = Float64Array.from({ length: planes }, (_, i) => reduce(Array.from({ length: size }, (_, j) => values[i * size + j] ?? 0)));
  return [fromNumbers(x.dtype, x.dims.map((d, i) => (i < 2 ? d : 1)), y)];
}

export const GlobalAveragePool: Evaluate = ([X]) => overPlanes(X, (plane) => plane.reduce((a, b) => a + b, 0) / plane.length);
export const GlobalMaxPool: Evaluate = ([X]) => overPlanes(X, (plane) => plane.reduce((a, b) => Math.max(a, b), -Infinity));
export const GlobalLpPool: Evaluate = ([X], attributes) => overPlanes(X, (plane) => norm(plane, numberOf(attributes, "p")));
