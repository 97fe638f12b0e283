/** A generated case: an operator with its inputs, and how near results must be. */
import type { OracleCase } from "../test/support/operator-oracle.ts";
import type { Draw } from "./draw.ts";

/** Relative to the element, and absolute, for float32; other widths scale with their precision. */
export interface Tolerance { readonly relative: number; readonly absolute: number }
export const exact: Tolerance = { relative: 0, absolute: 0 };
/** A few roundings of the element: float16 and bfloat16 that are gathered in float32 and rounded once, or at every step. */
export const roundings: Tolerance = { relative: 2e-7, absolute: 0 };
/** Sums of short fractions, in any order. */
export const close: Tolerance = { relative: 1e-5, absolute: 1e-5 };
/** exp, erf and the like: onnxruntime's vectorised forms are off by a few ulp of their largest values. */
export const functions: Tolerance = { relative: 1e-5, absolute: 2e-6 };

export interface FuzzCase extends OracleCase { readonly tolerance: Tolerance }
export type Generator = (draw: Draw) => FuzzCase;
