/** Greedy CTC decoding: the likeliest class at every position, repeats joined, blanks left out. */
import type { Tensor } from "../src/runtime/index.ts";

/** Text and mean confidence of a [1, positions, classes] result. Class 0 is blank, then the keys, then a space. */
export function decodeText(scores: Tensor, keys: readonly string[]): { readonly text: string; readonly confidence: number } {
  const [, positions = 0, classes = 0] = scores.dims;
  const data = scores.data as Float32Array;
  let text = "", sum = 0, count = 0, before = 0;
  for (let p = 0; p < positions; p++) {
    let best = 0;
    for (let c = 1; c < classes; c++) if ((data[p * classes + c] ?? 0) > (data[p * classes + best] ?? 0)) best = c;
    if (best !== 0 && best !== before) {
      text += keys[best - 1] ?? " ";
      sum += data[p * classes + best] ?? 0;
      count++;
    }
    before = best;
  }
  return { text: text.trim(), confidence: count === 0 ? 0 : sum / count };
}
