/** A Slice of a Slice along other axes is one Slice. */
import { fromBigInts, toBigInts, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Neg, Slice } from "../ops/index.ts";
import { constant, op, optionalInput, value, type ConstantValue } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";

type Given = ConstantValue | undefined;

/** The axes of a Slice, counted from the front. */
function axesOf(starts: ConstantValue, axes: Given, rank: number): readonly number[] {
  const given = axes ? toBigInts(axes.constant).map(Number) : Array.from({ length: starts.constant.dims[0] ?? 0 }, (_, i) => i);
  return given.map((a) => (a < 0 ? a + rank : a));
}
const int64 = (values: readonly bigint[]): Tensor => fromBigInts("int64", [values.length], values);
const joined = (a: ConstantValue, b: ConstantValue): Tensor => int64([...toBigInts(a.constant), ...toBigInts(b.constant)]);
const stepsOf = (starts: ConstantValue, steps: Given): readonly bigint[] => (steps ? toBigInts(steps.constant) : toBigInts(starts.constant).map(() => 1n));

const sliced = (b: GraphBuilder, x: Value, start: number, end: number, axis: number, step?: number): Value =>
  b.add(Slice, [x, b.int64(start), b.int64(end), b.int64(axis), ...(step === undefined ? [] : [b.int64(step)])]);

export const mergeSlices = defineRule({
  name: "merge-slices",
  doc: "A Slice of a Slice along other axes becomes one Slice of all of them, as where a picture is taken apart into its even and odd rows and columns.",
  stage: "merge",
  match: op(Slice, [
    op(Slice, [value("x"), constant("starts1"), constant("ends1"), optionalInput(constant("axes1")), optionalInput(constant("steps1"))], { shared: true }),
    constant("starts2"), constant("ends2"), optionalInput(constant("axes2")), optionalInput(constant("steps2")),
  ]),
  where: [({ x, starts1, axes1, starts2, axes2 }) => {
    const rank = x.type.shape.length, first = axesOf(starts1, axes1, rank), twice = axesOf(starts2, axes2, rank).find((a) => first.includes(a));
    return twice === undefined || refuse("same-axis", `both slice axis ${twice} of '${x.name}'`, "slice it once");
  }],
  numerics: exact,
  rewrite({ x, starts1, ends1, axes1, steps1, starts2, ends2, axes2, steps2 }, edit) {
    const rank = x.type.shape.length, list = (tensor: Tensor, hint: string): Value => edit.constant(tensor, `${edit.root.name}_${hint}`);
    const axes = [...axesOf(starts1, axes1, rank), ...axesOf(starts2, axes2, rank)], steps = [...stepsOf(starts1, steps1), ...stepsOf(starts2, steps2)];
    return edit.insert(Slice, [
      x, list(joined(starts1, starts2), "starts"), list(joined(ends1, ends2), "ends"), list(int64(axes.map(BigInt)), "axes"),
      ...(steps.every((s) => s === 1n) ? [] : [list(int64(steps), "steps")]),
    ]);
  },
  example() {
    const b = new GraphBuilder(), rows = sliced(b, b.input("x", [1, 2, "h", 6]), 0, 99, 2, 2);
    return b.build(sliced(b, rows, 0, 99, 3, 2), sliced(b, rows, 1, 99, -1, 2));
  },
  examples: [() => {
    const b = new GraphBuilder(), x = b.input("x", [5, 4]);
    return b.build(sliced(b, b.add(Slice, [x, b.int64(1), b.int64(4)]), -1, -5, 1, -1));
  }],
  refuses: {
    "same-axis"() {
      const b = new GraphBuilder();
      return b.build(sliced(b, sliced(b, b.input("x", [8, 3]), 1, 7, 0), 1, 3, -2));
    },
    "not-constant"() {
      const b = new GraphBuilder();
      return b.build(b.add(Neg, [b.add(Slice, [sliced(b, b.input("x", [8, 3]), 1, 7, 0), b.input("start", [1], "int64"), b.int64(3), b.int64(1)])]));
    },
  },
});
