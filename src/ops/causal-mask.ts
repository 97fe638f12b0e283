/** Constant masks that say no more than that queries do not see the keys behind them: attention needs none in memory. */
import { sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";

/** Added to a score, it leaves nothing of it beside any other that float32 can hold. */
const hides = -1e30;

/**
 * How far the position of the first query lies behind the first key, where the mask adds 0 to the scores of keys up to
 * each query's position and hides all others, and every query sees a key; undefined for other masks. With
 * `onlyInfinite`, keys must be hidden by -∞: a finite number hides only beside keys that are seen.
 */
export function causalOffset(tensor: Tensor | undefined, onlyInfinite: boolean): number | undefined {
  if (!tensor || tensor.dims.length < 2 || sizeOf(tensor.dims.slice(0, -2)) !== 1 || tensor.dtype === "string" || tensor.dtype === "bool") return undefined;
  const [queries = 0, keys = 0] = tensor.dims.slice(-2), offset = keys - queries, values = toNumbers(tensor);
  if (queries < 2 || offset < 0) return undefined;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? NaN, seen = i % keys <= Math.floor(i / keys) + offset;
    if (seen ? value !== 0 : !(value === -Infinity || (!onlyInfinite && value <= hides))) return undefined;
  }
  return offset;
}
