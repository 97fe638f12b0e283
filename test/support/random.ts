/** A small seeded generator (mulberry32), so that every test input can be made again from its seed. */
import { sizeOf, type Tensor } from "../../src/core/tensor.ts";

export interface Random {
  /** Uniform in [0, 1). */
  (): number;
  int(below: number): number;
  pick<T>(from: readonly T[]): T;
  normal(): number;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (below: number): number => Math.floor(next() * below);
  return Object.assign(next, {
    int,
    pick: <T>(from: readonly T[]): T => { const x = from[int(from.length)]; if (x === undefined) throw new Error("nothing to pick"); return x; },
    normal: (): number => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  });
}

/** Normal float32 values times `scale`. */
export function randomTensor(dims: readonly number[], random: Random, scale = 1): Tensor {
  return { dtype: "float32", dims, data: Float32Array.from({ length: sizeOf(dims) }, () => random.normal() * scale) };
}
