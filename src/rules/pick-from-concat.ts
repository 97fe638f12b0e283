/** A Slice or Split that takes apart what a Concat has just joined reads the operand itself. */
import { dimAdd, dimEqual, isStatic, type Dim } from "../core/dim.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Concat, Relu, Slice, Split } from "../ops/index.ts";
import { anyOf, anything, constant, op, optionalInput, parameter, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Editor, type Replacements } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

interface Match {
  readonly concat: Node; readonly split: Node | undefined;
  readonly starts: ConstantValue | undefined; readonly ends: ConstantValue | undefined; readonly axes: ConstantValue | undefined; readonly steps: ConstantValue | undefined;
}
const joined = op(Concat, [], { as: "concat", rest: true, shared: true });
const pattern = anyOf(
  op(Slice, [joined, parameter("starts"), parameter("ends"), parameter("axes"), optionalInput(constant("steps"))]),
  op(Split, [joined, optionalInput(anything())], { as: "split", shared: true }),
) as Pattern<Match>;

const axisOf = (node: Node, rank: number): number => (Number(node.attributes["axis"]) + rank) % rank;
/** Sizes of the operands along the joined axis. */
function sizesOf(concat: Node): { readonly axis: number; readonly sizes: readonly Dim[] } {
  const axis = axisOf(concat, concat.outputs[0]?.type.shape.length ?? 1);
  return { axis, sizes: concat.inputs.map((v) => v?.type.shape[axis] ?? 0) };
}
const across = (node: Node): Refusal => refuse("crosses-operands", `'${node.name}' takes elements of several operands, or it is not known of which`, "none: they would have to be joined again");
const otherAxis = (node: Node, axis: number): Refusal => refuse("axes", `'${node.name}' does not take its part along axis ${axis}, where the operands are joined`, "none: each operand would have to be cut by itself");

/** The operands of which the parts are all. */
function partsOf(split: Node, concat: Node): Replacements | Refusal {
  const { axis, sizes } = sizesOf(concat), rank = concat.outputs[0]?.type.shape.length ?? 1;
  if (axisOf(split, rank) !== axis) return otherAxis(split, axis);
  const out = new Map<Value, Value>();
  let start: Dim = 0;
  for (const part of split.outputs) {
    let before: Dim = 0;
    const own = concat.inputs.find((v, i) => {
      const fits = dimEqual(before, start) && dimEqual(sizes[i] ?? 0, part.type.shape[axis] ?? 0);
      before = dimAdd(before, sizes[i] ?? 0);
      return v !== undefined && fits;
    });
    if (!own) return across(split);
    out.set(part, own);
    start = dimAdd(start, part.type.shape[axis] ?? 0);
  }
  return out;
}

/** The operand that a Slice reads alone, or a Slice of it. */
function sliceOf({ concat, starts, ends, axes, steps }: Match, edit: Editor): Value | Refusal {
  const { axis, sizes } = sizesOf(concat), rank = concat.outputs[0]?.type.shape.length ?? 1, slice = edit.root;
  const [one, ...more] = Array.from(axes ? toNumbers(axes.constant) : []);
  if (one === undefined || more.length > 0 || (one + rank) % rank !== axis) return otherAxis(slice, axis);
  if (!isStatic(sizes)) return across(slice);
  const total = sizes.reduce((n, s) => n + s, 0), step = steps ? toNumbers(steps.constant)[0] ?? 1 : 1;
  const within = (x: number): number => Math.min(total, Math.max(0, x < 0 ? x + total : x));
  const from = within(starts ? toNumbers(starts.constant)[0] ?? 0 : 0), to = within(ends ? toNumbers(ends.constant)[0] ?? 0 : 0);
  let before = 0;
  for (const [i, size] of sizes.entries()) {
    const own = concat.inputs[i];
    if (own && step > 0 && from < to && from >= before && to <= before + size) {
      if (step === 1 && from === before && to === before + size) return own;
      const at = (x: number): Value => edit.constant(fromNumbers("int64", [1], [x]), `${slice.name}_part`);
      return edit.insert(Slice, [own, at(from - before), at(to - before), at(axis), at(step)]);
    }
    before += size;
  }
  return across(slice);
}

const build = (end: (b: GraphBuilder, joined: Value) => readonly Value[], axis = 1) => () => {
  const b = new GraphBuilder(), x = b.add(Relu, [b.input("x", ["n", 4, 5])]), z = b.add(Relu, [b.input("z", ["n", 4, 5])]);
  return b.build(...end(b, b.add(Concat, [x, z], { axis })).map((v) => b.add(Relu, [v])));
};
const slice = (from: number, to: number, axis = 1, step = 1) => (b: GraphBuilder, y: Value): readonly Value[] => [b.add(Slice, [y, b.int64(from), b.int64(to), b.int64(axis), b.int64(step)])];
const split = (sizes: readonly number[], axis = 1) => (b: GraphBuilder, y: Value): readonly Value[] => b.addAll(Split, [y, b.int64(...sizes)], { axis }, sizes.length);

export const pickFromConcat = defineRule({
  name: "pick-from-concat",
  doc: "A Slice or Split along the axis of a Concat, whose parts are operands or lie within one, reads the operands: what is not read elsewhere is not joined at all.",
  match: pattern,
  numerics: exact,
  rewrite: (m, edit) => (m.split ? partsOf(m.split, m.concat) : sliceOf(m, edit)),
  example: build(split([4, 4])),
  examples: [
    build(slice(4, 8)),
    build(slice(-3, 100)),
    build(slice(1, 4, 1, 2)),
    build((b, y) => [y, ...slice(0, 4)(b, y)]),
    build(split([5, 5], 2), -1),
  ],
  refuses: {
    "crosses-operands": build(slice(3, 6)),
    axes: build(split([2, 3], 2)),
  },
});
