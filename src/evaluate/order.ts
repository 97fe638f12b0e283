/** Evaluation of operators that order or accumulate along an axis. */
import { fail } from "../core/diagnostic.ts";
import { isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toBigInts, toNumbers, zeros, type Tensor } from "../core/tensor.ts";
import { copier, input, normalAxis, pick, wrapped } from "./map-elements.ts";
import { integersOf, numberOf } from "./read-attribute.ts";

/** Flat positions of each line along `axis`: line l's element k is at start(l) + k·inner. */
interface Lines { readonly count: number; readonly size: number; readonly inner: number; start(line: number): number }
function linesOf(dims: readonly number[], axis: number): Lines {
  const size = dims[axis] ?? 1, inner = sizeOf(dims.slice(axis + 1)), count = sizeOf(dims.slice(0, axis)) * inner;
  return { count, size, inner, start: (line) => Math.floor(line / inner) * size * inner + (line % inner) };
}
const comparable = (t: Tensor): ArrayLike<number | bigint> => (isFloat(t.dtype) ? toNumbers(t) : toBigInts(t));
/** Orders a before b when greater; NaN is greater than everything. */
function descending(a: number | bigint, b: number | bigint): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a));
  return a > b ? -1 : a < b ? 1 : 0;
}

/** Equal elements keep their order; the result is always sorted. */
export const TopK: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), k = integersOf(input(inputs, 1))[0] ?? 0;
  const axis = normalAxis(numberOf(attributes, "axis", -1), x.dims.length), largest = numberOf(attributes, "largest", 1) !== 0;
  if (!(k >= 0 && k <= (x.dims[axis] ?? 1))) fail("OF7014", `TopK has a k of ${k} for an axis of ${x.dims[axis] ?? 1}`, { hint: "check the k that is fed" });
  const lines = linesOf(x.dims, axis), values = comparable(x), dims = x.dims.map((d, i) => (i === axis ? k : d));
  const out = linesOf(dims, axis), sources = new Int32Array(sizeOf(dims)), indices = new Float64Array(sizeOf(dims));
  for (let line = 0; line < lines.count; line++) {
    const start = lines.start(line), at = (i: number): number | bigint => values[start + i * lines.inner] ?? 0;
    const order = Array.from({ length: lines.size }, (_, i) => i).sort((i, j) => (largest ? descending(at(i), at(j)) : -descending(at(i), at(j))) || i - j);
    for (let r = 0; r < k; r++) {
      const i = order[r] ?? 0, target = out.start(line) + r * out.inner;
      sources[target] = start + i * lines.inner;
      indices[target] = i;
    }
  }
  return [pick(x, dims, sources), fromNumbers("int64", dims, indices)];
};

const extreme = (sign: 1 | -1): Evaluate => (inputs, attributes) => {
  const x = input(inputs, 0), axis = normalAxis(numberOf(attributes, "axis", 0), x.dims.length);
  const last = numberOf(attributes, "select_last_index", 0) !== 0, keep = numberOf(attributes, "keepdims", 1) !== 0;
  const lines = linesOf(x.dims, axis), values = comparable(x);
  const dims = keep ? x.dims.map((d, i) => (i === axis ? 1 : d)) : x.dims.filter((_, i) => i !== axis);
  return [fromNumbers("int64", dims, Float64Array.from({ length: lines.count }, (_, line) => {
    let best = 0;
    const at = (i: number): number | bigint => values[lines.start(line) + i * lines.inner] ?? 0;
    for (let i = 1; i < lines.size; i++) {
      const order = beats(at(i), at(best), sign);
      if (order > 0 || (order === 0 && last)) best = i;
    }
    return best;
  }))];
};
/** Positive when a is further out than b, 0 when equal; NaN is further out than every number. */
function beats(a: number | bigint, b: number | bigint, sign: 1 | -1): number {
  const p = Number.isNaN(a), q = Number.isNaN(b);
  if (p || q) return Number(p) - Number(q);
  return a === b ? 0 : (sign > 0 ? a > b : a < b) ? 1 : -1;
}
export const ArgMax: Evaluate = extreme(1);
export const ArgMin: Evaluate = extreme(-1);

/** Folds each line along an axis, from the front or with `reverse` from the back; `exclusive` leaves an element's own value out. */
const cumulative = (first: number, float: (a: number, b: number) => number, integer: (a: bigint, b: bigint) => bigint): Evaluate => (inputs, attributes) => {
  const x = input(inputs, 0), axis = normalAxis(integersOf(input(inputs, 1))[0] ?? 0, x.dims.length);
  const exclusive = numberOf(attributes, "exclusive", 0) !== 0, reverse = numberOf(attributes, "reverse", 0) !== 0;
  const lines = linesOf(x.dims, axis);
  const fold = <T>(values: ArrayLike<T>, out: { [i: number]: T }, start: T, combine: (a: T, b: T) => T): void => {
    for (let line = 0; line < lines.count; line++) {
      let total = start;
      for (let i = 0; i < lines.size; i++) {
        const at = lines.start(line) + (reverse ? lines.size - 1 - i : i) * lines.inner, next = combine(total, values[at] ?? start);
        out[at] = exclusive ? total : next;
        total = next;
      }
    }
  };
  if (isFloat(x.dtype)) {
    const out = new Float64Array(sizeOf(x.dims));
    fold(toNumbers(x), out, first, float);
    return [fromNumbers(x.dtype, x.dims, out)];
  }
  const out = new Array<bigint>(sizeOf(x.dims)).fill(0n);
  fold(toBigInts(x), out, BigInt(first), integer);
  return [wrapped(x.dtype, x.dims, out)];
};
export const CumSum: Evaluate = cumulative(0, (a, b) => a + b, (a, b) => a + b);
export const CumProd: Evaluate = cumulative(1, (a, b) => a * b, (a, b) => a * b);

/** Distinct elements, or slices along `axis`: sorted (NaN last), or in order of appearance; with first positions, inverse and counts. NaNs are one, as numpy has it. */
export const Unique: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), sorted = numberOf(attributes, "sorted", 1) !== 0;
  const flat = attributes.axis === undefined;
  const dims = flat ? [sizeOf(x.dims)] : x.dims, axis = flat ? 0 : normalAxis(numberOf(attributes, "axis"), dims.length);
  const size = dims[axis] ?? 0, inner = sizeOf(dims.slice(axis + 1)), outer = sizeOf(dims.slice(0, axis));
  const values: ArrayLike<number | bigint | string> = x.dtype === "string" ? (x.data as readonly string[]) : comparable(x);
  const slice = (i: number): (number | bigint | string)[] =>
    Array.from({ length: outer * inner }, (_, p) => values[(Math.floor(p / inner) * size + i) * inner + (p % inner)] ?? 0);
  const compare = (a: number, b: number): number => {
    const p = slice(a), q = slice(b);
    for (let i = 0; i < p.length; i++) {
      const u = p[i] ?? 0, v = q[i] ?? 0, d = typeof u === "string" || typeof v === "string" ? Number(u > v) - Number(u < v) : descending(v, u);
      if (d !== 0) return d;
    }
    return 0;
  };
  const first: number[] = [], counts: number[] = [], group = new Array<number>(size).fill(0);
  for (let i = 0; i < size; i++) {
    const g = first.findIndex((f) => compare(f, i) === 0);
    group[i] = g < 0 ? first.length : g;
    if (g < 0) { first.push(i); counts.push(1); } else counts[g] = (counts[g] ?? 0) + 1;
  }
  const order = first.map((_, g) => g);
  if (sorted) order.sort((a, b) => compare(first[a] ?? 0, first[b] ?? 0));
  const rank = order.map(() => 0);
  order.forEach((g, r) => { rank[g] = r; });
  const out = dims.map((d, i) => (i === axis ? order.length : d)), y = zeros(x.dtype, out), copy = copier(x, y);
  order.forEach((g, r) => {
    for (let p = 0; p < outer * inner; p++)
      copy((Math.floor(p / inner) * size + (first[g] ?? 0)) * inner + (p % inner), (Math.floor(p / inner) * order.length + r) * inner + (p % inner));
  });
  const ints = (list: readonly number[]): Tensor => fromNumbers("int64", [list.length], list);
  return [y, ints(order.map((g) => first[g] ?? 0)), ints(group.map((g) => rank[g] ?? 0)), ints(order.map((g) => counts[g] ?? 0))];
};
