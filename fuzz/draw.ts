/** Choices of a generator: from a seed, so that any case can be made again, or from fast-check, which then finds a smaller one. */
import fc, { type GeneratorValue } from "fast-check";
import { randomFrom } from "../test/support/random.ts";

export interface Draw {
  /** From 0 to below. */
  int(below: number): number;
  pick<T>(from: readonly T[]): T;
  /** True once in `of` draws. */
  once(of: number): boolean;
}

const drawBy = (int: (below: number) => number): Draw => ({
  int,
  pick: <T>(from: readonly T[]): T => from[int(from.length)] as T,
  once: (of) => int(of) === of - 1,
});

export function drawFromSeed(seed: number): Draw {
  const random = randomFrom(seed);
  return drawBy((below) => random.int(below));
}
/** Case i of a seed. */
export const drawOfCase = (seed: number, i: number): Draw => drawFromSeed((Math.imul(seed, 0x9e3779b1) ^ Math.imul(i + 1, 0x85ebca6b)) >>> 0);
/** Smaller choices are those that come first. */
export const drawFromGenerator = (g: GeneratorValue): Draw => drawBy((below) => (below <= 1 ? 0 : g(fc.nat, { max: below - 1 })));
