/** What a quantised product's int32 sums are multiplied by is computed once, instead of for every result. */
import { GraphBuilder } from "../graph/build.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { QLinearConv, QLinearMatMul } from "../ops/index.ts";
import { anyOf, constant, op, oneElement, optionalInput, value, type ConstantValue, type Predicate } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";

const notOne: Predicate<ConstantValue> = { wants: "one number other than 1", holds: (c) => oneElement.holds(c) && toNumbers(c.constant)[0] !== 1 };

const conv = (scales: (b: GraphBuilder) => readonly Value[]) => () => {
  const b = new GraphBuilder(), [x, w, y] = scales(b), zero = b.scalar(3, "uint8");
  const weights = b.random([4, 2, 3, 3], { low: -99, high: 99, dtype: "int8" });
  return b.build(b.add(QLinearConv, [b.input("x", ["n", 2, 5, 6], "uint8"), x, zero, weights, w, b.scalar(0, "int8"), y, zero, b.random([4], { low: -500, high: 500, dtype: "int32" })]));
};

export const combineScales = defineRule({
  name: "combine-scales",
  doc: "The three constant scales of QLinearConv and QLinearMatMul become one factor for each channel, rounded as the operator rounds it; the other two become 1.",
  stage: "decompose",
  match: anyOf(
    op(QLinearConv, [value("x"), constant("xScale"), value("xZero"), value("w"), constant("wScale"), value("wZero"), constant("yScale", notOne), value("yZero"), optionalInput(value("bias"))], { as: "anchor" }),
    op(QLinearMatMul, [value("x"), constant("xScale"), value("xZero"), value("w"), constant("wScale"), value("wZero"), constant("yScale", notOne), value("yZero")], { as: "anchor" }),
  ),
  where: [
    ({ xScale, anchor }) => sizeOf(xScale.constant.dims) === 1 || refuse("per-axis", `'${anchor.name}' has a scale for each row of its left operand`, "give it one scale"),
    ({ xScale, wScale, yScale, anchor }) => [xScale, wScale, yScale].every((s) => s.constant.dtype === "float32") || refuse("scale-type", `'${anchor.name}' has scales of ${xScale.constant.dtype}`, "store them as float32"),
  ],
  numerics: exact,
  rewrite({ x, xScale, xZero, w, wScale, wZero, yScale, yZero, bias, anchor }, edit) {
    const of = toNumbers(xScale.constant)[0] ?? 1, to = toNumbers(yScale.constant)[0] ?? 1;
    const combined = fromNumbers("float32", wScale.constant.dims, Array.from(toNumbers(wScale.constant), (s) => Math.fround(Math.fround(of * s) / to)));
    const one = edit.constant(fromNumbers("float32", [], [1]), "one");
    const inputs = [x, one, xZero, w, edit.constant(combined, `${anchor.name}_factor`), wZero, one, yZero];
    return edit.insert(anchor.op, bias ? [...inputs, bias] : inputs, anchor.attributes, { name: anchor.name });
  },
  example: conv((b) => [b.scalar(0.013), b.scalar(0.021), b.scalar(0.37)]),
  examples: [conv((b) => [b.scalar(0.013), b.random([4], { low: 0.01, high: 0.1 }), b.numbers([0.37])]), () => {
    const b = new GraphBuilder(), zero = b.scalar(100, "uint8");
    return b.build(b.add(QLinearMatMul, [b.input("x", ["n", 6], "uint8"), b.scalar(0.03), zero, b.random([6, 5], { low: -99, high: 99, dtype: "int8" }), b.random([5], { low: 0.01, high: 0.1 }), b.scalar(1, "int8"), b.scalar(0.2), zero]));
  }],
  refuses: {
    "per-axis": () => {
      const b = new GraphBuilder(), zero = b.scalar(100, "uint8");
      const sum = b.input("x", [2, 6], "uint8");
      return b.build(b.add(QLinearMatMul, [sum, b.numbers([0.1, 0.2]), zero, b.input("w", [6, 3], "uint8"), b.scalar(0.1), zero, b.scalar(0.2), zero]));
    },
  },
});
