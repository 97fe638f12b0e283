import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../../test/support/graph-builder.ts";
import { fromNumbers, sameTensor, type Tensor } from "../core/tensor.ts";
import { interpret } from "../reference/interpret.ts";
import { ConcatFromSequence, SequenceAt, SequenceConstruct, SequenceEmpty, SequenceErase, SequenceInsert, SequenceLength } from "./sequence.ts";

const row = (...values: number[]): Tensor => fromNumbers("float32", [values.length], values);
const at = (b: GraphBuilder, position: number) => b.constant(fromNumbers("int64", [], [position]));

describe("sequences of tensors of one shape", () => {
  it("are built, read and joined in order", () => {
    const b = new GraphBuilder();
    const x = b.input("x", [2]), y = b.input("y", [2]);
    const built = b.node(SequenceConstruct, [x, x]);
    const inserted = b.node(SequenceInsert, [built, y, at(b, 1)]);
    const rest = b.node(SequenceErase, [inserted, at(b, -1)]);
    const graph = b.outputs(
      b.node(SequenceAt, [rest, at(b, -1)]), b.node(SequenceLength, [inserted]),
      b.node(ConcatFromSequence, [inserted], { axis: 0 }), b.node(ConcatFromSequence, [inserted], { axis: 1, new_axis: 1 }),
    );
    const results = Object.values(interpret(graph, { x: row(1, 2), y: row(3, 4) }));
    const expected = [row(3, 4), fromNumbers("int64", [], [3]), row(1, 2, 3, 4, 1, 2), fromNumbers("float32", [2, 3], [1, 3, 1, 2, 4, 2])];
    expect(results.map((r, i) => expected[i] !== undefined && sameTensor(r, expected[i]))).toEqual([true, true, true, true]);
  });
  it("may begin empty", () => {
    const b = new GraphBuilder();
    const sequence = b.node(SequenceInsert, [b.node(SequenceEmpty, []), b.input("x", [3])]);
    const graph = b.outputs(b.node(SequenceAt, [sequence, at(b, 0)]));
    expect(Object.values(interpret(graph, { x: row(1, 2, 3) }))).toEqual([row(1, 2, 3)]);
  });
  it("refuse a tensor of another shape, with a code", () => {
    const b = new GraphBuilder();
    expect(() => b.node(SequenceConstruct, [b.input("x", [2]), b.input("y", [3])])).toThrow(/OF3015/);
  });
});
