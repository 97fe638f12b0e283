/**
 * Unique as the runtime runs it: elements and slices are found again in a map, so that it takes time in proportion to its
 * input (and to sorting what is distinct). The results are those of the naive evaluation: 0 and -0 are one, NaNs too.
 */
import { isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toBigInts, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { copier, input, normalAxis } from "./map-elements.ts";
import { numberOf } from "./read-attribute.ts";

type Values = ArrayLike<number | bigint | string>;
const valuesOf = (x: Tensor): Values => (x.dtype === "string" ? (x.data as readonly string[]) : isFloat(x.dtype) ? toNumbers(x) : toBigInts(x));

/** Numbers and text in their order, NaN last. */
function ascending(u: number | bigint | string, v: number | bigint | string): number {
  if (Number.isNaN(u) || Number.isNaN(v)) return Number(Number.isNaN(u)) - Number(Number.isNaN(v));
  return u === v ? 0 : u < v ? -1 : 1;
}

export const Unique: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), sorted = numberOf(attributes, "sorted", 1) !== 0, flat = attributes.axis === undefined;
  const dims = flat ? [sizeOf(x.dims)] : x.dims, axis = flat ? 0 : normalAxis(numberOf(attributes, "axis"), dims.length);
  const size = dims[axis] ?? 0, inner = sizeOf(dims.slice(axis + 1)), outer = sizeOf(dims.slice(0, axis)), width = outer * inner;
  const values = valuesOf(x), place = (i: number, p: number): number => (Math.floor(p / inner) * size + i) * inner + (p % inner);
  /** What tells slices apart: the element where a slice has one, else its elements, each with its length where it is text. */
  const keyOf = (i: number): number | bigint | string => {
    if (width === 1) return values[place(i, 0)] ?? 0;
    let key = "";
    for (let p = 0; p < width; p++) { const v = values[place(i, p)] ?? 0; key += typeof v === "string" ? `${v.length}:${v}` : `${String(v === 0 ? 0 : v)},`; }
    return key;
  };
  const groups = new Map<number | bigint | string, number>(), first: number[] = [], counts: number[] = [], group = new Int32Array(size);
  for (let i = 0; i < size; i++) {
    const key = keyOf(i), known = groups.get(key), g = known ?? first.length;
    if (known === undefined) { groups.set(key, g); first.push(i); counts.push(0); }
    group[i] = g;
    counts[g] = (counts[g] ?? 0) + 1;
  }
  const compare = (a: number, b: number): number => {
    for (let p = 0; p < width; p++) {
      const u = values[place(a, p)] ?? 0, v = values[place(b, p)] ?? 0;
      const d = ascending(u, v);
      if (d !== 0) return d;
    }
    return 0;
  };
  const order = first.map((_, g) => g);
  if (sorted) order.sort((a, b) => compare(first[a] ?? 0, first[b] ?? 0));
  const rank = new Int32Array(order.length);
  order.forEach((g, r) => { rank[g] = r; });
  const y = zeros(x.dtype, dims.map((d, i) => (i === axis ? order.length : d))), copy = copier(x, y);
  order.forEach((g, r) => { for (let p = 0; p < width; p++) copy(place(first[g] ?? 0, p), (Math.floor(p / inner) * order.length + r) * inner + (p % inner)); });
  const ints = (list: ArrayLike<number>): Tensor => fromNumbers("int64", [list.length], list);
  return [y, ints(order.map((g) => first[g] ?? 0)), ints(Int32Array.from(group, (g) => rank[g] ?? 0)), ints(order.map((g) => counts[g] ?? 0))];
};
