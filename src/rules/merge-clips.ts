/** Bounds of bounds: Clip and Relu in a row are one Clip, or one Relu. */
import { isFloat } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Clip, Neg, Relu } from "../ops/index.ts";
import { anyOf, constant, numberIn, op, optionalInput, value, type ConstantValue } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Editor } from "../rewrite/rule.ts";

interface Bounds { readonly low: number; readonly high: number }
const positive: Bounds = { low: 0, high: Infinity };
const boundsOf = (low: ConstantValue | undefined, high: ConstantValue | undefined): Bounds =>
  ({ low: low ? numberIn(low) : -Infinity, high: high ? numberIn(high) : Infinity });
/** What clipping to `a` and then to `b` comes to; of equal bounds the first stays, as a comparison would have it. */
function compose(a: Bounds, b: Bounds): Bounds {
  const high = a.high < b.low ? b.low : a.high;
  return { low: a.low < b.low ? b.low : a.low, high: b.high < high ? b.high : high };
}
function bounded(x: Value, { low, high }: Bounds, edit: Editor): Value {
  if (Object.is(low, 0) && high === Infinity) return edit.insert(Relu, [x]);
  const limit = (bound: number, hint: string): Value => edit.constant(fromNumbers(x.type.dtype, [], [bound]), `${edit.root.name}_${hint}`);
  return edit.insert(Clip, [x, low === -Infinity ? undefined : limit(low, "min"), high === Infinity ? undefined : limit(high, "max")]);
}
const build = (first: (b: GraphBuilder, x: Value) => Value, second: (b: GraphBuilder, x: Value) => Value) => () => {
  const b = new GraphBuilder();
  return b.build(second(b, first(b, b.input("x", ["n", 9]))));
};
const clip = (low?: number, high?: number) => (b: GraphBuilder, x: Value): Value => b.add(Clip, [x, low, high]);
const relu = (b: GraphBuilder, x: Value): Value => b.add(Relu, [x]);

export const mergeClips = defineRule({
  name: "merge-clips",
  gePass: "ClipFusionRule0",
  doc: "Clip or Relu after Clip or Relu becomes one of them, with bounds combined in their order.",
  stage: "recognise",
  match: anyOf(
    op(Clip, [op(Clip, [value("x"), optionalInput(constant("low1")), optionalInput(constant("high1"))]), optionalInput(constant("low2")), optionalInput(constant("high2"))]),
    op(Clip, [op(Relu, [value("x")]), optionalInput(constant("low2")), optionalInput(constant("high2"))]),
    op(Relu, [op(Clip, [value("x"), optionalInput(constant("low1")), optionalInput(constant("high1"))])]),
  ),
  where: [
    ({ x }) => isFloat(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: only floats are merged"),
    ({ low1, low2, high1, high2 }) => {
      const bad = [low1, low2, high1, high2].find((c) => c && Number.isNaN(numberIn(c)));
      return bad ? refuse("not-finite", `the bound '${bad.name}' is NaN`, "use a number") : true;
    },
  ],
  numerics: exact,
  rewrite({ x, low1, high1, low2, high2 }, edit) {
    const inner = edit.root.inputs[0]?.producer?.node.op === Relu ? positive : boundsOf(low1, high1);
    return bounded(x, compose(inner, edit.root.op === Relu ? positive : boundsOf(low2, high2)), edit);
  },
  example: build(relu, clip(-1, 6)),
  examples: [
    build(clip(-2, 1), clip(-1, 3)), build(clip(3, 1), clip(0, 0.5)), build(clip(undefined, -2), clip(-1)),
    build(clip(-1), relu), build(clip(-5, 1), relu), build(clip(-0, 2), clip(0, 2)), build(clip(), clip(0)),
  ],
  refuses: {
    "not-finite": build(clip(NaN), clip(0)),
    "graph-output"() {
      const b = new GraphBuilder();
      const y = relu(b, b.input("x", [3]));
      return b.build(clip(-1, 6)(b, y), y);
    },
    "interior-value-used"() {
      const b = new GraphBuilder();
      const y = relu(b, b.input("x", [3]));
      return b.build(clip(-1, 6)(b, y), b.add(Neg, [y]));
    },
    "not-constant"() {
      const b = new GraphBuilder();
      return b.build(b.add(Clip, [relu(b, b.input("x", [3])), b.input("low", [])]));
    },
  },
});
