/** Elements of fewer than 8 bits as they lie in files and at the API: several a byte, the first in the lowest bits. In memory each has a byte of its own. */
import { allocate, bitsOf, byteSize, type DType, type TypedArray } from "./dtype.ts";

/** Whether several elements share a byte in files. */
export const isPacked = (dtype: DType): boolean => dtype !== "string" && bitsOf(dtype) < 8;

/** Bytes that `count` elements take in a file. */
export const packedBytes = (dtype: DType, count: number): number => (isPacked(dtype) ? Math.ceil((count * bitsOf(dtype)) / 8) : count * byteSize(dtype));

/** Element i lies in byte `i >> byte`, at its place `i & place` there. */
const packing = (dtype: DType): { bits: number; byte: number; place: number } => {
  const bits = bitsOf(dtype);
  return { bits, byte: 3 - Math.log2(bits), place: 8 / bits - 1 };
};

/** Elements of one byte each, put together. */
export function packElements(dtype: DType, elements: TypedArray): Uint8Array {
  const { bits, byte, place } = packing(dtype), mask = (1 << bits) - 1;
  const out = new Uint8Array(packedBytes(dtype, elements.length));
  for (let i = 0; i < elements.length; i++) out[i >> byte] = (out[i >> byte] ?? 0) | ((Number(elements[i]) & mask) << ((i & place) * bits));
  return out;
}

/** `count` elements, one byte each, signed ones with their sign extended. */
export function unpackElements(dtype: DType, packed: ArrayLike<number>, count: number): TypedArray {
  const { bits, byte, place } = packing(dtype), mask = (1 << bits) - 1;
  const out = allocate(dtype, count), extend = out instanceof Int8Array ? 32 - bits : 0;
  for (let i = 0; i < count; i++) {
    const raw = ((packed[i >> byte] ?? 0) >> ((i & place) * bits)) & mask;
    out[i] = (raw << extend) >> extend;
  }
  return out;
}
