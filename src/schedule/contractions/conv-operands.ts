/** What a convolution multiplies: float32, or 8-bit integers as pairs of int16. */
import { sizeOf, type Tensor } from "../../core/tensor.ts";
import { constant, i32, type Buffer } from "../../kernel/expr.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import type { KernelBuilder } from "../builder.ts";
import { knownZeroPoints, packedDtype } from "./integer.ts";
import type { TileKind } from "./tile.ts";

/** How elements are multiplied, and what is taken from the weights when they are packed. */
export interface Operands { readonly kind: TileKind; readonly subtract: number | readonly number[] }

/** Undefined for types that have no tile, and for integer weights that are not constant. */
export function operandsOf(b: KernelBuilder, s: ConvStructure): Operands | undefined {
  const weight = b.context.weight(s.weight);
  if (s.accumulator.type.scalar === "f32") return s.zeroPoints ? undefined : { kind: { kind: "float" }, subtract: 0 };
  const bytes = (dtype: string): boolean => dtype === "int8" || dtype === "uint8";
  if (s.accumulator.type.scalar !== "i32" || !bytes(s.input.dtype) || !bytes(s.weight.dtype) || !weight) return undefined;
  const subtract = knownZeroPoints(b, s.zeroPoints?.weight ?? constant(0, i32), new Set([s.group, s.channel]), Number(s.group.extent) * Number(s.channel.extent));
  return subtract === undefined ? undefined : { kind: { kind: "pairs", b: packedDtype(b, weight, subtract) }, subtract };
}

/**
 * Whether the zeros of padding, and of tiles past the image, may be multiplied by a convolution's weights: what lies
 * outside the image adds nothing, and 0 · ∞ would be NaN. Weights that only running tells are read by loops that ask
 * where the image ends.
 */
export function weightsAreFinite(b: KernelBuilder, buffer: Buffer): boolean {
  const weight = b.context.weight(buffer);
  return !weight || b.context.contents(weight, hasFiniteElements) !== false;
}

function hasFiniteElements({ data, dims }: Tensor): boolean {
  if (!(data instanceof Float32Array)) return true;
  for (const x of new Uint32Array(data.buffer, data.byteOffset, sizeOf(dims))) if ((x & 0x7f800000) === 0x7f800000) return false;
  return true;
}
