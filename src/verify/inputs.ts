/** Generated inputs: seeded, of several kinds, so that a difference shows that only some values bring out. */
import { bitsOf, isFloat, isInteger, type DType } from "../core/dtype.ts";
import type { ItemType } from "../core/container.ts";
import type { Datum } from "../core/datum.ts";
import { fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";

export type InputKind = "normal" | "negative" | "zeros" | "large" | "denormal" | "special" | "huge";
/** What models are verified with: `large` is around ±1e4, `special` has NaN and infinities among others. */
export const inputKinds: readonly InputKind[] = ["normal", "negative", "zeros", "large", "denormal", "special"];
/** What rules are proved with: also numbers whose products overflow. */
export const proofKinds: readonly InputKind[] = [...inputKinds, "huge"];

/** mulberry32: numbers in [0, 1). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A tensor of a kind. Integers are small and not negative, since they are often indices; bools are either. */
export function generateTensor(dtype: DType, dims: readonly number[], kind: InputKind, seed: number): Tensor {
  const random = generator(seed);
  if (dtype === "string") return { dtype, dims, data: Array.from({ length: sizeOf(dims) }, (_, i) => `s${i}`) };
  const values = Array.from({ length: sizeOf(dims) }, () => element(dtype, kind, random));
  if (kind === "special" && isFloat(dtype)) for (let i = 0; i < Math.max(Math.min(values.length, specials.length), values.length / 5); i++) values[Math.floor(random() * values.length)] = specials[i % specials.length] ?? 0;
  return fromNumbers(dtype, dims, values);
}

/** A value of a type: sequences of two items whose unknown sizes are 2, optionals that hold something, maps of two entries. */
export function generateDatum(type: ItemType, kind: InputKind, seed: number): Datum {
  const { dtype, shape, container } = type;
  if (!container) return generateTensor(dtype, (shape ?? [null]).map((d) => (typeof d === "number" ? d : 2)), kind, seed);
  switch (container.kind) {
    case "tensor": return generateDatum(container.item, kind, seed);
    case "optional": return generateDatum(container.item, kind, seed);
    case "sequence": return [generateDatum(container.item, kind, seed), generateDatum(container.item, kind, seed + 1)];
    case "map": {
      const { data } = generateTensor(container.item.dtype, [2], kind, seed);
      return new Map(Array.from(data as ArrayLike<string | number | bigint>, (value, i) => [container.key === "string" ? `s${i}` : BigInt(i), value]));
    }
  }
}

/** What a fifth of the elements of `special` tensors are, at random places. */
const specials: readonly number[] = [NaN, Infinity, -Infinity, -0, 0];

function element(dtype: DType, kind: InputKind, random: () => number): number {
  if (dtype === "bool") return kind === "zeros" ? 0 : Math.floor(random() * 2);
  if (isInteger(dtype)) return kind === "zeros" ? 0 : Math.floor(random() * (dtype === "uint8" || dtype === "int8" ? 100 : bitsOf(dtype) === 4 ? 8 : 2));
  if (!isFloat(dtype)) return 0;
  const bell = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  switch (kind) {
    case "normal": case "special": return bell;
    case "negative": return -Math.abs(bell);
    case "zeros": return random() < 0.5 ? 0 : -0;
    case "large": return random() < 0.5 ? Math.sign(bell) * 1e4 : bell * 1e4;
    case "denormal": return bell * 1e-40;
    case "huge": return bell * 1e30;
  }
}
