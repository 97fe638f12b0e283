/** Evaluation of com.microsoft's operators around texts: MurmurHash3 (Appleby's x86_32 form), NGramRepeatBlock, DynamicTimeWarping. */
import { dtypes } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { bytesOf, fromNumbers, stringsOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf } from "./read-attribute.ts";

const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));
const scramble = (k: number): number => Math.imul(rotate(Math.imul(k, 0xcc9e2d51), 15), 0x1b873593);

/** The hash of bytes, as an unsigned number. */
function murmur3(bytes: Uint8Array, seed: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), whole = bytes.length & ~3;
  let h = seed | 0;
  for (let i = 0; i < whole; i += 4) h = (Math.imul(rotate(h ^ scramble(view.getInt32(i, true)), 13), 5) + 0xe6546b64) | 0;
  let tail = 0;
  for (let i = bytes.length - 1; i >= whole; i--) tail = (tail << 8) | (bytes[i] ?? 0);
  if (bytes.length > whole) h ^= scramble(tail);
  h ^= bytes.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The bytes of each element, as they lie in memory. */
function bytesOfEach(x: Tensor): readonly Uint8Array[] {
  const bytes = bytesOf(x), { size } = dtypes[x.dtype];
  return Array.from({ length: bytes.length / size }, (_, i) => bytes.slice(i * size, (i + 1) * size));
}

export const MurmurHash3: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), seed = numberOf(attributes, "seed"), text = new TextEncoder();
  const keys = x.dtype === "string" ? stringsOf(x).map((s) => text.encode(s)) : bytesOfEach(x);
  return [fromNumbers(numberOf(attributes, "positive") ? "uint32" : "int32", x.dims, keys.map((bytes) => murmur3(bytes, seed)))];
};

/** Scores of tokens that would end an n-gram that the row already has become −∞. */
export const NGramRepeatBlock: Evaluate = (inputs, attributes) => {
  const ids = input(inputs, 0), scores = input(inputs, 1), n = numberOf(attributes, "ngram_size");
  const tokens = toNumbers(ids), out = Array.from(toNumbers(scores)), length = ids.dims[1] ?? 0, vocabulary = scores.dims[1] ?? 0;
  for (let row = 0; row < (ids.dims[0] ?? 0); row++) for (let i = 0; i + n <= length; i++) {
    const repeats = Array.from({ length: n - 1 }, (_, k) => k).every((k) => tokens[row * length + i + k] === tokens[row * length + length - n + 1 + k]);
    if (repeats) out[row * vocabulary + (tokens[row * length + i + n - 1] ?? 0)] = -Infinity;
  }
  return [fromNumbers(scores.dtype, scores.dims, out)];
};

/** The cheapest path from the first to the last element of a matrix of costs, by steps of one row, one column or both. */
export const DynamicTimeWarping: Evaluate = (inputs) => {
  const x = input(inputs, 0), costs = toNumbers(x), columns = x.dims[x.dims.length - 1] ?? 0, rows = x.dims[x.dims.length - 2] ?? 0, wide = columns + 1;
  const total = new Float64Array((rows + 1) * wide).fill(Infinity), step = new Int8Array(total.length).fill(-1);
  total[0] = 0;
  for (let j = 1; j <= columns; j++) for (let i = 1; i <= rows; i++) {
    const at = i * wide + j, both = total[at - wide - 1] ?? 0, down = total[at - wide] ?? 0, across = total[at - 1] ?? 0;
    const [least, taken] = both < down && both < across ? [both, 0] : down < both && down < across ? [down, 1] : [across, 2];
    total[at] = (costs[(i - 1) * columns + j - 1] ?? 0) + least;
    step[at] = taken;
  }
  const path: [number, number][] = [];
  for (let i = rows, j = columns; i > 0 || j > 0;) {
    path.unshift([i - 1, j - 1]);
    const taken = i === 0 ? 2 : j === 0 ? 1 : step[i * wide + j];
    if (taken !== 2) i--;
    if (taken !== 1) j--;
  }
  return [fromNumbers("int32", [2, path.length], [...path.map((p) => p[0]), ...path.map((p) => p[1])])];
};
