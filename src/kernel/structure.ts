/**
 * What a naive kernel computes, said once in terms that scheduling can rebuild loops from. Element expressions are over
 * the structure's own axes; stores are the kernel's outputs with the accumulator as a local, so that bias, activation,
 * residual and requantisation are applied while it is still in a register.
 */
import type { Axis, Buffer, Expr, Type } from "./expr.ts";
import type { Dim } from "../core/dim.ts";
import type { Stmt } from "./stmt.ts";

/** One output of a structured kernel: `value` may read the accumulator local and any buffer. */
export interface EpilogueStore {
  readonly buffer: Buffer;
  readonly indices: readonly Expr[];
  readonly value: Expr;
}

interface Accumulator { readonly name: string; readonly type: Type }

/** acc[batch…, m, n] = Σ_k a·b. `a` is over (batch, m, k), `b` over (batch, k, n); both of the accumulator's type. */
export interface MatMulStructure {
  readonly kind: "matmul";
  readonly batch: readonly Axis[];
  readonly m: Axis;
  readonly n: Axis;
  readonly k: Axis;
  readonly a: Expr;
  readonly b: Expr;
  /** Where `b` is a matrix of integers, scaled in blocks: what it is computed from. */
  readonly quantized?: QuantizedMatrix;
  readonly accumulator: Accumulator;
  /** Further products of the same left operand, of the same sizes: the stores may read all accumulators. */
  readonly others?: readonly { readonly b: Expr; readonly accumulator: Accumulator }[];
  readonly stores: readonly EpilogueStore[];
}

/** b[k, n] = (weight[k, n] − zeros[k / block, n]) · scales[k / block, n]; `transposed`: all three have n first. */
export interface QuantizedMatrix {
  readonly weight: Buffer;
  readonly scales: Buffer;
  readonly zeros?: Buffer;
  readonly block: number;
  readonly transposed: boolean;
}

/**
 * Convolution, 1 to 3 spatial axes. acc[batch, group·C + channel, output…] = Σ input[batch, group·I + inputChannel, position…] · weight,
 * position = output·stride − pad + kernel·dilation; outside the input it reads `padValue`.
 * Transposed: position = (output + pad − kernel·dilation) / stride where that divides, else nothing is added; the weight is
 * [input channels, channels a group, kernel…].
 */
export interface ConvStructure {
  readonly kind: "conv";
  readonly batch: Axis;
  readonly group: Axis;
  /** Output channels within a group. */
  readonly channel: Axis;
  readonly output: readonly Axis[];
  readonly inputChannel: Axis;
  readonly kernel: readonly Axis[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly padsBegin: readonly Dim[];
  readonly transposed: boolean;
  /** [N, C, spatial…] */
  readonly input: Buffer;
  /** What computes `input`, by its one store: a depthwise convolution. Its rows are computed as they are read; nothing else reads them. */
  readonly inputFrom?: ConvStructure;
  /** [M, C / groups, kernel…]; transposed: [C, M / groups, kernel…] */
  readonly weight: Buffer;
  /** Subtracted from every input and weight element (integer convolution); padding then contributes nothing. */
  readonly zeroPoints?: { readonly input: Expr; readonly weight: Expr };
  readonly accumulator: Accumulator;
  /** Over (batch, group, channel, output…). */
  readonly stores: readonly EpilogueStore[];
  /** What pools what the one store writes, which nothing else reads. */
  readonly pooled?: PooledOutput;
}

/** Windows over one spatial axis: tap k of output o reads position o·stride − pad + k. */
export interface PoolWindow { readonly taps: number; readonly stride: number; readonly pad: number }

/** A pool over the two spatial axes of a convolution's result; outside it, a maximum reads −∞. */
export interface PooledOutput {
  readonly reduce: "max" | "add";
  /** What the reduction is divided by: an average. */
  readonly divisor?: number;
  readonly windows: readonly [PoolWindow, PoolWindow];
  readonly batch: Axis;
  readonly channel: Axis;
  readonly output: readonly [Axis, Axis];
  readonly accumulator: Accumulator;
  /** Over (batch, channel, output…). */
  readonly stores: readonly EpilogueStore[];
}

/** Rows whose weights are 0: those of scores that are all -∞, or all whose softmax is no number. */
export type EmptyRows = "hidden" | "undefined";

/**
 * Scaled dot-product attention with online softmax:
 * out[b, h, s, e] = Σ_t softmax_t(score(Σ_d q·k)) · v. `score` is over (batch, head, query, key) and the raw dot product local.
 */
export interface AttentionStructure {
  readonly kind: "attention";
  readonly batch: Axis;
  readonly head: Axis;
  readonly query: Axis;
  readonly key: Axis;
  readonly dim: Axis;
  readonly valueDim: Axis;
  readonly q: Expr;
  readonly k: Expr;
  readonly v: Expr;
  /** Local name of the dot product inside `score`. */
  readonly dot: Accumulator;
  readonly score: Expr;
  /** Bounds of the keys a query sees, `keysTo` exclusive, over (batch, query): neither falls as the query rises, and scores outside are -∞. */
  readonly keysFrom?: Expr;
  readonly keysTo?: Expr;
  /** A score, over (head), that takes part in the softmax and has no value. */
  readonly sink?: Expr;
  /** Which rows of weights are 0 where softmax gives NaN; absent: none. */
  readonly emptyRows?: EmptyRows;
  /** Over (batch, head, query, valueDim); reads the normalised sum as this local. */
  readonly accumulator: Accumulator;
  readonly stores: readonly EpilogueStore[];
}

export type Activation =
  | { readonly kind: "sigmoid" | "tanh" | "relu" | "softsign" | "softplus" }
  | { readonly kind: "affine" | "hard-sigmoid" | "scaled-tanh"; readonly alpha: number; readonly beta: number }
  | { readonly kind: "leaky-relu" | "thresholded-relu" | "elu"; readonly alpha: number };

/** One LSTM, GRU or RNN node, all its directions. Buffers are laid out as ONNX says for `layout` 0. */
export interface RecurrenceStructure {
  readonly kind: "recurrence";
  readonly cell: "lstm" | "gru" | "rnn";
  readonly directions: readonly ("forward" | "reverse")[];
  readonly sequence: Dim;
  readonly batch: Dim;
  readonly inputSize: Dim;
  readonly hidden: number;
  /** Gate activations, per direction as ONNX lists them (LSTM f g h, GRU f g, RNN f). */
  readonly activations: readonly (readonly Activation[])[];
  /** Limits what a gate's activation is given to ±clip; the cell state on its way out is not limited. */
  readonly clip?: number;
  readonly linearBeforeReset: boolean;
  readonly inputForget: boolean;
  readonly x: Buffer;
  readonly w: Buffer;
  readonly r: Buffer;
  readonly b?: Buffer;
  readonly sequenceLengths?: Buffer;
  readonly initialH?: Buffer;
  readonly initialC?: Buffer;
  readonly peepholes?: Buffer;
  readonly y?: Buffer;
  readonly yH?: Buffer;
  readonly yC?: Buffer;
}

export type Structure = MatMulStructure | ConvStructure | AttentionStructure | RecurrenceStructure;

/** Loops that are already what there is to say: running totals, stores at places that data names. */
export interface WholeLoops { readonly kind: "loops"; readonly body: Stmt; readonly scratch: readonly Buffer[] }
