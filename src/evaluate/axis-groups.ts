/** Which elements a reduction puts together. */
import { rowMajorStrides, sizeOf } from "../core/tensor.ts";
import { at } from "./window.ts";

/** Element (g, e) of group g is at `starts[g] + steps[e]`; both in row-major order of the axes kept and reduced. */
export interface AxisGroups { readonly starts: readonly number[]; readonly steps: readonly number[] }

/** Axes counted from the front. */
export const positiveAxes = (axes: readonly number[], rank: number): number[] => axes.map((a) => (a < 0 ? a + rank : a));

/** The groups of a reduction over `axes` (not negative). */
export function axisGroups(dims: readonly number[], axes: readonly number[]): AxisGroups {
  const strides = rowMajorStrides(dims), reduced = new Set(axes);
  const offsets = (keep: boolean): number[] => {
    const own = dims.map((_, d) => d).filter((d) => reduced.has(d) !== keep);
    return Array.from({ length: sizeOf(own.map((d) => at(dims, d))) }, (_, flat) => {
      let rest = flat, offset = 0;
      for (const d of [...own].reverse()) {
        offset += (rest % at(dims, d)) * at(strides, d);
        rest = Math.floor(rest / at(dims, d));
      }
      return offset;
    });
  };
  return { starts: offsets(true), steps: offsets(false) };
}

/** The elements of one group. */
export const groupOf = (values: ArrayLike<number>, { starts, steps }: AxisGroups, g: number): Float64Array => {
  const start = at(starts, g);
  return Float64Array.from(steps, (s) => values[start + s] ?? 0);
};
