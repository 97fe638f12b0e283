/** What values must be for kernels that rely on it: indices within their axes, divisors that are not 0. Shared by the runtime and the interpreter of programs. */
import { fail } from "./diagnostic.ts";

export interface ValueCheck {
  /** The least and the largest element, one for each of `sizes` (or one for all); the least above the largest where there are none. */
  readonly low: ArrayLike<bigint>;
  readonly high: ArrayLike<bigint>;
  /** Sizes of the axes that the elements index, from either end; none where they divide. */
  readonly sizes: readonly number[];
  readonly node: string;
  readonly value: string;
}

/** Fails with OF7014 where the elements are not what they must be. */
export function checkValues({ low, high, sizes, node, value }: ValueCheck): void {
  if (sizes.length === 0 && low[0] === 0n) fail("OF7014", `'${value}' divides integers and holds a 0`, { place: { node, value }, hint: "check the values that are fed" });
  sizes.forEach((size, i) => {
    const least = low[i] ?? 0n, most = high[i] ?? 0n;
    if (least > most || (least >= -size && most < size)) return;
    fail("OF7014", `'${value}' holds the index ${least < -size ? least : most}, which lies outside an axis of ${size} elements`, { place: { node, value }, hint: "check the indices that are fed" });
  });
}

/** Bounds of no elements: what cells hold before anything has been computed. */
export const noElements = { low: 2n ** 63n - 1n, high: -(2n ** 63n) } as const;
