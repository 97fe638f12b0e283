import { describe, expect, it } from "vitest";
import type { Datum } from "../core/datum.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { GraphBuilder } from "../../test/support/graph-builder.ts";
import { interpretData } from "../reference/interpret.ts";
import { ConcatFromSequence, SequenceAt, SequenceConstruct, SequenceEmpty, SequenceErase, SequenceInsert, SequenceLength, SplitToSequence } from "./sequence.ts";

const row = (...values: number[]): Tensor => fromNumbers("float32", [values.length], values);
const results = (b: GraphBuilder, outputs: readonly Value[], feeds: Record<string, Datum>): readonly Datum[] => {
  b.graph.setOutputs(outputs);
  return Object.values(interpretData(b.graph, feeds));
};

describe("sequences of tensors", () => {
  it("take in tensors of different sizes, give them back and lose them", () => {
    const b = new GraphBuilder();
    const x = b.input("x", [2]), y = b.input("y", [3]);
    const one = b.node(SequenceConstruct, [x, y]);
    const two = b.node(SequenceInsert, [one, x]);
    const first = b.node(SequenceInsert, [two, y, b.constant(fromNumbers("int64", [], [0]))]);
    const at = (s: Value, i: number): Value => b.node(SequenceAt, [s, b.constant(fromNumbers("int64", [], [i]))]);
    const outputs = [at(first, 0), at(first, -1), b.node(SequenceLength, [first]), b.node(SequenceErase, [first, b.constant(fromNumbers("int64", [], [1]))])];
    expect(outputs[2]?.type.elements).toEqual([4]);
    expect(results(b, outputs, { x: row(1, 2), y: row(3, 4, 5) })).toEqual([row(3, 4, 5), row(1, 2), fromNumbers("int64", [], [4]), [row(3, 4, 5), row(3, 4, 5), row(1, 2)]]);
  });
  it("join along an axis whose sizes differ, and along a new one", () => {
    const b = new GraphBuilder(), x = b.input("x", [2]), y = b.input("y", [1]);
    const mixed = b.node(ConcatFromSequence, [b.node(SequenceConstruct, [x, y])], { axis: -1 });
    const stacked = b.node(ConcatFromSequence, [b.node(SequenceConstruct, [x, x])], { axis: 1, new_axis: 1 });
    expect(stacked.type.shape).toEqual([2, 2]);
    expect(results(b, [mixed, stacked], { x: row(1, 2), y: row(3) })).toEqual([row(1, 2, 3), fromNumbers("float32", [2, 2], [1, 1, 2, 2])]);
  });
  it("start empty and of any shape", () => {
    const b = new GraphBuilder(), x = b.input("x", [3]);
    const one = b.node(SequenceInsert, [b.node(SequenceEmpty, []), x]);
    expect(results(b, [b.node(ConcatFromSequence, [one], { axis: 0 })], { x: row(1, 2, 3) })).toEqual([row(1, 2, 3)]);
  });
  it("are the parts of a tensor", () => {
    const b = new GraphBuilder(), x = b.input("x", [3]);
    const size = b.constant(fromNumbers("int64", [], [2])), list = b.constant(fromNumbers("int64", [3], [0, 1, 2]));
    const each = b.node(SplitToSequence, [x], { keepdims: 0 }), even = b.node(SplitToSequence, [x, size]), listed = b.node(SplitToSequence, [x, list]);
    expect([each, even, listed].map((v) => v.type.container)).toEqual([
      { kind: "sequence", item: { dtype: "float32", shape: [] }, length: 3 },
      { kind: "sequence", item: { dtype: "float32", shape: [null] }, length: 2 },
      { kind: "sequence", item: { dtype: "float32", shape: [null] }, length: 3 },
    ]);
    const scalar = (v: number): Tensor => fromNumbers("float32", [], [v]);
    expect(results(b, [each, even, listed], { x: row(1, 2, 3) })).toEqual([[scalar(1), scalar(2), scalar(3)], [row(1, 2), row(3)], [row(), row(1), row(2, 3)]]);
  });
  it("refuse tensors of another type, positions outside, and joining nothing, with codes", () => {
    const b = new GraphBuilder(), x = b.input("x", [2]), n = b.input("n", [2], "int64"), p = b.input("p", [], "int64");
    expect(() => b.node(SequenceConstruct, [x, n])).toThrow(/OF3015/);
    expect(() => b.node(SequenceLength, [x])).toThrow(/OF3018/);
    expect(() => b.node(ConcatFromSequence, [b.node(SequenceEmpty, [])], { axis: 0 })).toThrow(/OF3012/);
    const one = b.node(SequenceConstruct, [x]), feeds = { x: row(1, 2), n: fromNumbers("int64", [2], [0, 0]) };
    const at = (node: Value, position: number): readonly Datum[] => results(b, [node], { ...feeds, p: fromNumbers("int64", [], [position]) });
    const item = b.node(SequenceAt, [one, p]);
    expect(at(item, -1)).toEqual([row(1, 2)]);
    expect(() => at(item, 1)).toThrow(/OF7014/);
  });
});
