/** Pieces of the graphs in the catalogue's tests. */
import type { Value } from "../../src/graph/graph.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import type { Attributes } from "../../src/graph/op.ts";
import * as op from "../../src/ops/index.ts";

/** A picture of `c` channels. */
export const picture = (b: GraphBuilder, c = 3, size = 6, name = "x"): Value => b.input(name, ["n", c, size, size]);
/** Rows of 8. */
export const rows = (b: GraphBuilder, name = "x"): Value => b.input(name, ["n", 5, 8]);

/** A 3x3 convolution that keeps the size, of `channels[0]` into `channels[1]`. */
export const conv3 = (b: GraphBuilder, x: Value = picture(b), [from, to]: readonly [number, number] = [3, 4], attributes: Attributes = { pads: [1, 1, 1, 1] }): Value =>
  b.add(op.Conv, [x, b.random([to, from, 3, 3]), b.random([to])], attributes);
export const conv1 = (b: GraphBuilder, x: Value, [from, to]: readonly [number, number], attributes: Attributes = {}): Value => b.add(op.Conv, [x, b.random([to, from, 1, 1]), b.random([to])], attributes);
export const deconv = (b: GraphBuilder, attributes: Attributes = { strides: [2, 2] }): Value => b.add(op.ConvTranspose, [picture(b, 4, 4), b.random([4, 4, 2, 2]), b.random([4])], attributes);
/** Inference, of `c` channels. */
export const norm = (b: GraphBuilder, y: Value, c = 4, attributes: Attributes = {}): Value =>
  b.add(op.BatchNormalization, [y, b.random([c]), b.random([c]), b.random([c]), b.random([c], { low: 0.5, high: 2 })], attributes);
/** One number for each of 4 channels. */
export const perChannel = (b: GraphBuilder, dims: readonly number[] = [4, 1, 1]): Value => b.random(dims, { low: 0.5, high: 2 });

export const matmul = (b: GraphBuilder, x: Value = rows(b), dims: readonly [number, number] = [8, 6]): Value => b.add(op.MatMul, [x, b.random(dims)]);
export const gemm = (b: GraphBuilder, attributes: Attributes = {}, bias = true): Value =>
  b.add(op.Gemm, [b.input("x", ["n", 5]), b.random(attributes["transB"] ? [4, 5] : [5, 4]), bias ? b.random([4]) : undefined], attributes);

export const relu = (b: GraphBuilder, x: Value): Value => b.add(op.Relu, [x]);
export const add = (b: GraphBuilder, x: Value | number, y: Value | number): Value => b.add(op.Add, [x, y]);
export const mul = (b: GraphBuilder, x: Value | number, y: Value | number): Value => b.add(op.Mul, [x, y]);
export const reshape = (b: GraphBuilder, x: Value, ...to: readonly number[]): Value => b.add(op.Reshape, [x, b.int64(...to)]);
export const transpose = (b: GraphBuilder, x: Value, ...perm: readonly number[]): Value => b.add(op.Transpose, [x], { perm });
export const slice = (b: GraphBuilder, x: Value, axis: number, from: number, to: number, step = 1): Value => b.add(op.Slice, [x, b.int64(from), b.int64(to), b.int64(axis), b.int64(step)]);
export const concat = (b: GraphBuilder, axis: number, ...parts: readonly Value[]): Value => b.add(op.Concat, parts, { axis });
export const split = (b: GraphBuilder, x: Value, axis: number, ...sizes: readonly number[]): readonly Value[] => b.addAll(op.Split, [x, b.int64(...sizes)], { axis }, sizes.length);
/** `parts` at an index that is there. */
export function part(parts: readonly Value[], i: number): Value {
  const v = parts[i];
  if (!v) throw new Error(`no part ${i}`);
  return v;
}
