/** How weights are arranged for the kernels that read them; carried by programs and artifacts, done by memory/pack.ts. */
import type { DType } from "./dtype.ts";

/**
 * GEMM panels: source element (k, n) at offset + k·strideK + n·strideN (+ g·strideG), less `subtract` (one for all, or one for each column of each group); result [G][ceil(N/nr)][K/kStep][nr][kStep] with
 * zero fill past N and K. kStep is 1 for float, 2 for pairs of int8 or int16 (`as`).
 */
export interface PanelSpec {
  readonly kind: "panels";
  readonly groups: number;
  readonly k: number;
  readonly n: number;
  readonly nr: number;
  readonly kStep: number;
  readonly strideG: number;
  readonly strideK: readonly PackAxis[];
  readonly strideN: number;
  readonly as: DType;
  readonly subtract?: number | readonly number[];
  readonly offset?: number;
  /** Panels of pairs of int8 that an engine with relaxed SIMD holds as quads (memory/quads.ts). */
  readonly quads?: true;
}

/** How a packed weight is made from its source's row-major elements. Done at compile time, or at load for fed initializers. */
export type PackSpec =
  /** The source as it is. */
  | { readonly kind: "copy" }
  | PanelSpec
  /** Of panels that become quads, for each: 8 columns' sums, then the 8 least elements that quads are less. */
  | { readonly kind: "terms"; readonly of: PanelSpec }
  /**
   * Panels of 8 columns of 4-bit numbers: source element (k, n) at offset + k·strideK + n·strideN, less `middle`, from −8 to
   * 7 in two's complement; result [ceil(N/8)][ceil(K/2)][8] of uint8, the even k in the low half, 0 past N and K.
   */
  | { readonly kind: "nibbles"; readonly k: number; readonly n: number; readonly strideK: number; readonly strideN: number; readonly middle: number; readonly offset?: number }
  /** Any permutation: result shape and, per result axis, the source stride, from `offset` on. `as` and `subtract` as above. */
  | { readonly kind: "permute"; readonly shape: readonly number[]; readonly strides: readonly number[]; readonly as?: DType; readonly subtract?: number; readonly offset?: number }
  /** Winograd kernel transform of [M, C, 3, 3] into [ceil(M/nr)][36 or 16][C][nr], zero past M. */
  | { readonly kind: "winograd"; readonly tile: 2 | 4; readonly m: number; readonly c: number; readonly nr: number };
/** k runs over these axes, outermost first; an axis counts up to `padded` with zeros past `size`. */
export interface PackAxis { readonly size: number; readonly stride: number; readonly padded?: number }
