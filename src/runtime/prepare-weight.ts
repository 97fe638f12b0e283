/**
 * Weights that lie in memory otherwise than in the artifact: in another order, or widened. Loaded when a program has one.
 */
import type { DataJson } from "../artifact/manifest.ts";
import type { PackSpec } from "../core/pack-spec.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { widenFloat16 } from "../core/float16.ts";
import { numericData, type Tensor } from "../core/tensor.ts";
import { packedForm, packInto, packUniformInto } from "../memory/pack.ts";
import { readData } from "./constants.ts";
import { scale } from "./scale.ts";

/** Writes the packed form to where `memory` has room for so many bytes. */
export function packWeight(source: Tensor, pack: PackSpec, memory: (bytes: number) => Uint8Array): void {
  const { dtype, length } = packedForm(source, pack);
  packInto(viewBytes(dtype, memory(length * byteSize(dtype))), source, pack);
}

/** As `packWeight`, of elements that are all the one that `stored` holds. */
export function packFilled(from: DataJson, stored: Uint8Array, pack: PackSpec, memory: (bytes: number) => Uint8Array): void {
  const { dtype, length } = packedForm(from, pack);
  packUniformInto(viewBytes(dtype, memory(length * byteSize(dtype))), readData({ ...from, dims: [1] }, stored), () => readData(from, stored), pack);
}

/** int8 times scales, or float16 where there are none, as float32. */
export function widenWeight(source: Tensor, scales: Tensor | undefined, to: Float32Array): void {
  if (scales) scale(source, scales, to);
  else widenFloat16(numericData(source) as Uint16Array, to);
}
