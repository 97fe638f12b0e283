/** Compares what two kernels compute, as their structures say it: whether it is the same but for the buffers. */
import { dimEqual, shapeEqual } from "../core/dim.ts";
import type { Buffer, Expr } from "./expr.ts";
import { samePairs, sameTypes, type Comparison } from "./same-loops.ts";
import type { Activation, AttentionStructure, ConvStructure, EpilogueStore, MatMulStructure, PooledOutput, QuantizedMatrix, RecurrenceStructure, Structure } from "./structure.ts";

/** Whether two structures are the same, as far as `by` has not found otherwise for their buffers, axes and expressions. */
export function sameStructures(by: Comparison, a: Structure, b: Structure): boolean {
  switch (a.kind) {
    case "matmul": return b.kind === "matmul" && sameProducts(by, a, b);
    case "conv": return b.kind === "conv" && sameConvolutions(by, a, b);
    case "attention": return b.kind === "attention" && sameAttentions(by, a, b);
    case "recurrence": return b.kind === "recurrence" && sameRecurrences(by, a, b);
  }
}

type Accumulator = MatMulStructure["accumulator"];
const identical = <T>(a: T, b: T): boolean => a === b;
const sameAccumulators = (a: Accumulator, b: Accumulator): boolean => a.name === b.name && sameTypes(a.type, b.type);
/** Both are there and the same, or neither is there. */
const either = <T>(a: T | undefined, b: T | undefined, same: (a: T, b: T) => boolean): boolean => (a === undefined || b === undefined ? a === b : same(a, b));

function sameStores(by: Comparison, a: readonly EpilogueStore[], b: readonly EpilogueStore[]): boolean {
  const expressions = (x: Expr, y: Expr): boolean => by.expressions(x, y);
  return samePairs(a, b, (x, y) => by.buffers(x.buffer, y.buffer) && samePairs(x.indices, y.indices, expressions) && expressions(x.value, y.value));
}

function sameProducts(by: Comparison, a: MatMulStructure, b: MatMulStructure): boolean {
  return samePairs([...a.batch, a.m, a.n, a.k], [...b.batch, b.m, b.n, b.k], (x, y) => by.axes(x, y))
    && by.expressions(a.a, b.a) && by.expressions(a.b, b.b) && either(a.quantized, b.quantized, (x, y) => sameQuantized(by, x, y)) && sameAccumulators(a.accumulator, b.accumulator)
    && samePairs(a.others, b.others, (x, y) => by.expressions(x.b, y.b) && sameAccumulators(x.accumulator, y.accumulator)) && sameStores(by, a.stores, b.stores);
}
const sameQuantized = (by: Comparison, a: QuantizedMatrix, b: QuantizedMatrix): boolean =>
  by.buffers(a.weight, b.weight) && by.buffers(a.scales, b.scales) && either(a.zeros, b.zeros, by.buffers) && a.block === b.block && a.transposed === b.transposed;

function sameConvolutions(by: Comparison, a: ConvStructure, b: ConvStructure): boolean {
  const axes = (s: ConvStructure) => [s.batch, s.group, s.channel, s.inputChannel, ...s.output, ...s.kernel];
  return a.output.length === b.output.length && samePairs(axes(a), axes(b), (x, y) => by.axes(x, y))
    && samePairs(a.strides, b.strides, identical) && samePairs(a.dilations, b.dilations, identical) && shapeEqual(a.padsBegin, b.padsBegin) && a.transposed === b.transposed
    && by.buffers(a.input, b.input) && by.buffers(a.weight, b.weight) && either(a.inputFrom, b.inputFrom, (x, y) => sameConvolutions(by, x, y))
    && either(a.zeroPoints, b.zeroPoints, (x, y) => by.expressions(x.input, y.input) && by.expressions(x.weight, y.weight))
    && sameAccumulators(a.accumulator, b.accumulator) && sameStores(by, a.stores, b.stores) && either(a.pooled, b.pooled, (x, y) => samePools(by, x, y));
}
function samePools(by: Comparison, a: PooledOutput, b: PooledOutput): boolean {
  const axes = (s: PooledOutput) => [s.batch, s.channel, ...s.output];
  return a.reduce === b.reduce && either(a.divisor, b.divisor, identical) && samePairs(a.windows, b.windows, (x, y) => x.taps === y.taps && x.stride === y.stride && x.pad === y.pad)
    && samePairs(axes(a), axes(b), (x, y) => by.axes(x, y)) && sameAccumulators(a.accumulator, b.accumulator) && sameStores(by, a.stores, b.stores);
}

function sameAttentions(by: Comparison, a: AttentionStructure, b: AttentionStructure): boolean {
  const axes = (s: AttentionStructure) => [s.batch, s.head, s.query, s.key, s.dim, s.valueDim];
  const expressions = (x: Expr, y: Expr): boolean => by.expressions(x, y);
  return samePairs(axes(a), axes(b), (x, y) => by.axes(x, y))
    && samePairs([a.q, a.k, a.v, a.score], [b.q, b.k, b.v, b.score], expressions)
    && either(a.keysFrom, b.keysFrom, expressions) && either(a.keysTo, b.keysTo, expressions) && either(a.sink, b.sink, expressions)
    && a.emptyRows === b.emptyRows && sameAccumulators(a.dot, b.dot) && sameAccumulators(a.accumulator, b.accumulator) && sameStores(by, a.stores, b.stores);
}

function sameRecurrences(by: Comparison, a: RecurrenceStructure, b: RecurrenceStructure): boolean {
  const buffers = ({ x, w, r, b: bias, sequenceLengths, initialH, initialC, peepholes, y, yH, yC }: RecurrenceStructure): readonly (Buffer | undefined)[] => [x, w, r, bias, sequenceLengths, initialH, initialC, peepholes, y, yH, yC];
  const theirs = buffers(b);
  return a.cell === b.cell && samePairs(a.directions, b.directions, identical) && shapeEqual([a.sequence, a.batch, a.inputSize, a.hidden], [b.sequence, b.batch, b.inputSize, b.hidden])
    && samePairs(a.activations, b.activations, (x, y) => samePairs(x, y, sameActivations)) && dimEqual(a.clip ?? -1, b.clip ?? -1)
    && a.linearBeforeReset === b.linearBeforeReset && a.inputForget === b.inputForget && buffers(a).every((x, i) => either(x, theirs[i], by.buffers));
}
function sameActivations(a: Activation, b: Activation): boolean {
  const parameters = (x: Activation) => [x.kind, "alpha" in x ? x.alpha : 0, "beta" in x ? x.beta : 0];
  return samePairs(parameters(a), parameters(b), identical);
}
