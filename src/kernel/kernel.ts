/** Kernels: what one call of the compiled program computes, and where buffers' elements lie. */
import type { Dim, SymbolicDim } from "../core/dim.ts";
import type { Buffer } from "./expr.ts";
import type { Split, Stmt } from "./stmt.ts";
import type { Structure } from "./structure.ts";

/**
 * Loops over buffers: one call of the compiled program. Every element of each output is written; inputs are only read
 * (an output may share memory with an input when `inPlace` names the pair).
 */
export interface Kernel {
  /** Readable and unique in a program, such as `conv_relu_12`. */
  readonly name: string;
  readonly inputs: readonly Buffer[];
  readonly outputs: readonly Buffer[];
  /** Working memory, live only during the call; its contents are undefined at the start. */
  readonly scratch: readonly Buffer[];
  /** Those of `scratch` that one part of the kernel leaves for another. The others are for the range of a split at hand: every thread has its own. */
  readonly shared?: readonly Buffer[];
  readonly body: Stmt;
  /** How scheduling may rebuild the loops; the body computes the same. Absent: the body is all there is. */
  readonly structure?: Structure;
  /** Output element i is written only after every read of input element i, so they may share memory. */
  readonly inPlace?: readonly { readonly input: Buffer; readonly output: Buffer }[];
  /** Another kernel that is the same but for the buffers of its lists, which are in the same order. */
  readonly like?: Kernel;
  /** The phases of a legal kernel that is done; they are this body's. */
  readonly phases?: readonly Phase[];
}

/** What threads do together before they wait for each other (phases.ts). */
export interface Phase {
  /** The statements; those of the split alone, over its `from` and `to`, where there is one. */
  readonly body: Stmt;
  readonly split?: PhaseSplit;
  /** Every buffer that is read or written, in order of appearance. */
  readonly touched: ReadonlySet<Buffer>;
  /** Every symbolic size that the body reads, in order of appearance. */
  readonly dims: readonly SymbolicDim[];
  /** A phase of another kernel that is the same but for its buffers, those it touches in the same order. */
  readonly like?: Phase;
}
export type PhaseSplit = Omit<Split, "body">;

/** Where a buffer's elements lie: element (i…) is at `offset` + Σ strides·i elements from the start of its storage. */
export interface Layout {
  readonly strides: readonly Dim[];
  readonly offset: Dim;
}

/** Row-major, starting at 0. */
export function rowMajor(shape: readonly Dim[], multiply: (a: Dim, b: Dim) => Dim): Layout {
  const strides: Dim[] = [];
  let size: Dim = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides.unshift(size);
    size = multiply(size, shape[d] ?? 1);
  }
  return { strides, offset: 0 };
}
