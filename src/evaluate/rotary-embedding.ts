/** RotaryEmbedding, standard and com.microsoft, by their definitions: pairs of elements turned by the angle of a position. */
import { present } from "../core/assert.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

interface Rotation {
  /** Sizes of [batch, heads, sequence, depth]. */
  readonly sizes: readonly [batch: number, heads: number, sequence: number, depth: number];
  /** Where an element lies in the input. */
  readonly offset: (b: number, h: number, s: number, d: number) => number;
  /** The row of the caches for a token. */
  readonly row: (b: number, s: number) => number;
  /** Elements that are turned, from the first on. */
  readonly turned: number;
  readonly interleaved: boolean;
}

/** Turns each pair (x1, x2) to (x1·cos − x2·sin, x1·sin + x2·cos); pairs are neighbours, or lie half of the turned part apart. */
function rotate(x: Tensor, cos: Tensor, sin: Tensor, { sizes: [batch, heads, sequence, depth], offset, row, turned, interleaved }: Rotation): Tensor {
  const values = toNumbers(x), cosines = toNumbers(cos), sines = toNumbers(sin), half = turned / 2, width = at(cos.dims, cos.dims.length - 1);
  const y = Float64Array.from(values);
  for (let b = 0; b < batch; b++) for (let h = 0; h < heads; h++) for (let s = 0; s < sequence; s++) {
    const from = depth === 0 ? 0 : row(b, s) * width;
    for (let i = 0; i < half; i++) {
      const first = offset(b, h, s, interleaved ? 2 * i : i), second = offset(b, h, s, interleaved ? 2 * i + 1 : i + half);
      const x1 = values[first] ?? 0, x2 = values[second] ?? 0, c = cosines[from + i] ?? 0, n = sines[from + i] ?? 0;
      y[first] = x1 * c - x2 * n;
      y[second] = x1 * n + x2 * c;
    }
  }
  return fromNumbers(x.dtype, x.dims, y);
}

/** The layout of [batch, heads, sequence, depth], or of [batch, sequence, heads · depth]. */
function layoutOf(x: Tensor, headsOf: (hidden: number) => number): Pick<Rotation, "sizes" | "offset"> {
  if (x.dims.length === 4) {
    const sizes = [at(x.dims, 0), at(x.dims, 1), at(x.dims, 2), at(x.dims, 3)] as const, [, heads, sequence, depth] = sizes;
    return { sizes, offset: (b, h, s, d) => ((b * heads + h) * sequence + s) * depth + d };
  }
  const batch = at(x.dims, 0), sequence = at(x.dims, 1), hidden = at(x.dims, 2), heads = headsOf(hidden), depth = hidden / heads;
  return { sizes: [batch, heads, sequence, depth], offset: (b, h, s, d) => (b * sequence + s) * hidden + h * depth + d };
}

const isInterleaved = (attributes: EvaluateAttributes): boolean => numberOf(attributes, "interleaved", 0) !== 0;

export const RotaryEmbedding: Evaluate = ([X, cosCache, sinCache, positionIds], attributes) => {
  const x = present(X, "X"), cos = present(cosCache, "cos_cache"), sin = present(sinCache, "sin_cache");
  const layout = layoutOf(x, () => numberOf(attributes, "num_heads", 0)), [, , sequence, depth] = layout.sizes;
  const positions = positionIds && toNumbers(positionIds);
  const row = (b: number, s: number): number => (positions ? positions[b * sequence + s] ?? 0 : b * sequence + s);
  return [rotate(x, cos, sin, { ...layout, row, turned: numberOf(attributes, "rotary_embedding_dim", 0) || depth, interleaved: isInterleaved(attributes) })];
};

/** One position is that of the first token of every row. */
export const MicrosoftRotaryEmbedding: Evaluate = ([X, positionIds, cosCache, sinCache], attributes) => {
  const x = present(X, "input"), cos = present(cosCache, "cos_cache"), positions = toNumbers(present(positionIds, "position_ids"));
  const width = at(cos.dims, 1), layout = layoutOf(x, (hidden) => numberOf(attributes, "num_heads", 0) || hidden / (2 * width));
  const [, , sequence] = layout.sizes, single = positionIds?.dims.length === 1;
  const row = (b: number, s: number): number => (single ? (positions[0] ?? 0) + s : positions[b * sequence + s] ?? 0);
  const turned = numberOf(attributes, "rotary_embedding_dim", 0) || 2 * width;
  return [rotate(x, cos, present(sinCache, "sin_cache"), { ...layout, row, turned, interleaved: isInterleaved(attributes) })];
};
