/** How far F(4x4,3x3) in float32 is from the exact convolution, for a layer's own weights. */
import { toNumbers, type Tensor } from "../../core/tensor.ts";
import { packTensor } from "../../memory/pack.ts";

/**
 * The largest error of a 4x4 tile computed this way in float32, over the largest output, for a layer's own weights (as
 * far as a sample of its filters shows) and inputs between -1 and 1.
 */
export function winogradError(weights: Tensor): number {
  const [m = 0, c = 0] = weights.dims, sample = [0, m >> 1, m - 1].filter((f, i, all) => f >= 0 && all.indexOf(f) === i);
  const all = toNumbers(weights), size = c * 9;
  const w = Float32Array.from({ length: sample.length * size }, (_, i) => all[(sample[Math.floor(i / size)] ?? 0) * size + (i % size)] ?? 0);
  const dims = [sample.length, c, 3, 3];
  const packed = packTensor({ dtype: "float32", dims, data: w }, { kind: "winograd", tile: 4, m: sample.length, c, nr: 1 }).data as Float32Array;
  let state = 1;
  const next = (): number => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.fround(state / 2 ** 31 - 1); };
  const inputs = Float32Array.from({ length: c * 36 }, next);
  const transformed = new Float32Array(c * 36);
  for (let i = 0; i < c; i++) transformed.set(transformTile(inputs.subarray(i * 36, i * 36 + 36)), i * 36);
  let worst = 0, largest = 0;
  for (const f of sample.keys()) {
    const products = new Float32Array(36);
    for (let xi = 0; xi < 36; xi++) {
      let sum = 0;
      for (let i = 0; i < c; i++) sum = Math.fround(sum + Math.fround((transformed[i * 36 + xi] ?? 0) * (packed[(f * 36 + xi) * c + i] ?? 0)));
      products[xi] = sum;
    }
    const tile = transformOutput(products);
    for (let y = 0; y < 4; y++) for (let x = 0; x < 4; x++) {
      let sum = 0;
      for (let i = 0, at = f * c * 9; i < c; i++) for (let row = 0, from = i * 36 + y * 6 + x; row < 3; row++, from += 6) for (let k = 0; k < 3; k++) sum += (inputs[from + k] ?? 0) * (w[at++] ?? 0);
      worst = Math.max(worst, Math.abs(sum - (tile[y * 4 + x] ?? 0)));
      largest = Math.max(largest, Math.abs(sum));
    }
  }
  return largest === 0 ? 0 : worst / largest;
}

const inputMatrix = [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]] as const;
const outputMatrix = [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]] as const;

/** L·x·Lᵀ in float32, for a 6x6 x. */
function sandwich(matrix: readonly (readonly number[])[], x: Float32Array): Float32Array {
  const n = matrix.length, half = new Float32Array(n * 6), out = new Float32Array(n * n);
  // Each sum in the order of its terms, rounded after every product and addition.
  const sum = (row: readonly number[], from: Float32Array, at: number, step: number): number => {
    let total = 0;
    for (let k = 0; k < 6; k++, at += step) total = Math.fround(total + Math.fround((row[k] ?? 0) * (from[at] ?? 0)));
    return total;
  };
  matrix.forEach((row, i) => { for (let j = 0; j < 6; j++) half[i * 6 + j] = sum(row, x, j, 6); });
  matrix.forEach((row, j) => { for (let i = 0; i < n; i++) out[i * n + j] = sum(row, half, i * 6, 1); });
  return out;
}
const transformTile = (x: Float32Array): Float32Array => sandwich(inputMatrix, x);
const transformOutput = (x: Float32Array): Float32Array => sandwich(outputMatrix, x);
