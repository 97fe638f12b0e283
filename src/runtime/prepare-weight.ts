/**
 * Weights that lie in memory otherwise than in the artifact: in another order, or widened. Loaded when a program has one.
 */
import type { PackSpec } from "../core/pack-spec.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { widenFloat16 } from "../core/float16.ts";
import { numericData, type Tensor } from "../core/tensor.ts";
import { packedForm, packInto, packUniformInto } from "../memory/pack.ts";
export { toQuads } from "../memory/quads.ts";
import { scale } from "./scale.ts";

/** Writes the packed form to where `memory` has room for so many bytes. */
export function packWeight(source: Tensor, pack: PackSpec, memory: (bytes: number) => Uint8Array): void {
  const { dtype, length } = packedForm(source, pack);
  packInto(viewBytes(dtype, memory(length * byteSize(dtype))), source, pack);
}

/** As `packWeight`, of a tensor whose elements are all that of `one`; `whole` makes it where that is needed. */
export function packFilled(one: Tensor, dims: readonly number[], whole: () => Tensor, pack: PackSpec, memory: (bytes: number) => Uint8Array): void {
  const { dtype, length } = packedForm({ dtype: one.dtype, dims }, pack);
  packUniformInto(viewBytes(dtype, memory(length * byteSize(dtype))), one, whole, pack);
}

/** int8 times scales, or float16 where there are none, as float32. */
export function widenWeight(source: Tensor, scales: Tensor | undefined, to: Float32Array): void {
  if (scales) scale(source, scales, to);
  else widenFloat16(numericData(source) as Uint16Array, to);
}
