/** Matrix products of dequantised operands: where their scales must lie, and whether int32 holds their sums. */
import type { DType } from "../core/dtype.ts";
import type { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { DequantizeLinear, MatMul } from "../ops/index.ts";
import type { Verdict } from "../rewrite/rule.ts";
import { allOf, eightBits, floatScale, knownSize, oneScale, quantizedType, scaleAlong, sumFits, zeroPointTensor, type Dequantized, type DequantizedSecond } from "./quantized-operands.ts";

export type ProductOperands = Dequantized & DequantizedSecond;

/** Refuses what MatMulInteger and QLinearMatMul cannot say. `columns`: the axis of W that becomes the result's last. */
export const productOperands = (m: ProductOperands, columns: number): Verdict => allOf(
  () => eightBits(m.xNode), () => eightBits(m.wNode), () => floatScale(m.xNode, m.xScale), () => floatScale(m.wNode, m.wScale),
  () => oneScale(m.xNode, m.xScale), () => scaleAlong(m.wNode, m.wScale, columns));

/** Refuses where int32 sums might wrap. `columns` as above; the other of the last two axes is summed over. */
export function productFits(anchor: Node, m: ProductOperands, columns: number): Verdict {
  const rank = m.w.type.shape.length, last = knownSize(m.w, rank - 1) ?? 1, above = rank > 1 ? (knownSize(m.w, rank - 2) ?? 1) : 1;
  const summed = rank === 1 ? 0 : columns === rank - 1 ? rank - 2 : rank - 1;
  const columnOf = (i: number): number => (rank === 1 ? 0 : columns === rank - 1 ? Math.floor(i / (last * above)) * last + (i % last) : Math.floor(i / last));
  return sumFits(anchor, {
    x: m.x, w: m.w, wZero: zeroPointTensor(m.wZero, m.wScale, quantizedType(m.wNode)),
    terms: knownSize(m.w, summed) ?? knownSize(m.x, m.x.type.shape.length - 1), channelOf: columnOf,
  });
}

export interface ProductCase {
  readonly x?: DType; readonly w?: DType; readonly perColumn?: boolean; readonly axis?: number; readonly wZero?: readonly number[]; readonly scaleType?: DType;
  readonly depth?: number; readonly stack?: boolean; readonly activation?: boolean; readonly xScales?: number;
}
/** A product for examples; scales are powers of two, so that float32 computes it exactly. */
export function productOf(b: GraphBuilder, c: ProductCase, product = (x: Value, w: Value): Value => b.add(MatMul, [x, w], {}, "product")): Value {
  const x = c.x ?? "uint8", w = c.w ?? "int8", float = c.scaleType ?? "float32", depth = c.depth ?? 6;
  const several = c.xScales ?? 0;
  const scale = several ? b.numbers(Array.from({ length: several }, () => 0.5), [several], float) : b.scalar(0.5, float);
  const left = b.add(DequantizeLinear, [b.input("x", c.stack ? [2, "n", depth] : ["n", depth], x), scale, several ? undefined : b.scalar(x === "uint8" ? 3 : -2, x)], { axis: -1 });
  const integers = c.activation ? b.input("w", ["k", 3], w) : b.random(c.stack ? [2, depth, 3] : [depth, 3], { low: w === "int8" ? -99 : 0, high: 99, dtype: w });
  const wScale = c.perColumn ? b.numbers([1 / 64, 1 / 32, 1 / 16], [3], float) : b.scalar(1 / 64, float);
  const wZero = c.perColumn ? b.numbers(c.wZero ?? [0, 0, 0], [3], w) : b.scalar(c.wZero?.[0] ?? 0, w);
  return product(left, b.add(DequantizeLinear, [integers, wScale, wZero], { axis: c.axis ?? (c.stack ? 2 : 1) }));
}
