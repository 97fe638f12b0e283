/** Unsigned integers of 2, 4 or 8 bits that bytes hold along the last axis, the first in the lowest bits. */
import { toNumbers, type Tensor } from "../core/tensor.ts";

/** The element at `index` of row `row`, where a row has `rowBytes` bytes. */
export function packedAt(bytes: ArrayLike<number>, bits: number, rowBytes: number, row: number, index: number): number {
  const per = 8 / bits, byte = bytes[row * rowBytes + Math.floor(index / per)] ?? 0;
  return (byte >> ((index % per) * bits)) & (2 ** bits - 1);
}

/** Reads packed zero points, or ones that are numbers of their own (`packed` false). */
export function zeroPoints(of: Tensor | undefined, bits: number, perRow: number, packed: boolean, missing: number): (row: number, index: number) => number {
  if (!of) return () => missing;
  const values = toNumbers(of);
  return packed ? (row, index) => packedAt(values, bits, Math.ceil((perRow * bits) / 8), row, index) : (row, index) => values[row * perRow + index] ?? 0;
}
