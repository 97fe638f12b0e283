/** A constant times a constant times a value is one constant times it. */
import { isFloat } from "../core/dtype.ts";
import { broadcastShapes, isStatic } from "../core/dim.ts";
import { byteLength, rowMajorStrides, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Mul, Neg } from "../ops/index.ts";
import { commuted, constant, value, type ConstantValue } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { oneChannel } from "./channel-map.ts";
import { roundOnce } from "./folded-tensor.ts";

/** A first factor below it may leave little of a value's bits, which a second one above 1 shows. */
const smallFactor = 2 ** -10;
/** A first factor above it may take a value to infinity, which a second one below 1 would have kept finite. */
const largeFactor = 2 ** 10;

/** A factor of more bytes is not stored once more where others read it as it is: in a kernel, a multiplication costs less. */
const largestCopy = 4096;
const isShared = (c: ConstantValue): boolean => byteLength(c.constant) > largestCopy && (c.uses.length > 1 || c.resultOf.length > 0);

/** The product, with the broadcast shape of both, which is no larger than the larger one. */
function product(a: Tensor, b: Tensor): Tensor | Refusal {
  const dims = broadcastShapes(a.dims, b.dims);
  if (!dims || !isStatic(dims) || sizeOf(dims) > Math.max(sizeOf(a.dims), sizeOf(b.dims)))
    return refuse("larger-constant", `a constant of [${a.dims.join(", ")}] times one of [${b.dims.join(", ")}] is larger than both`, "leave them apart");
  const values = new Float64Array(sizeOf(dims)), strides = rowMajorStrides(dims);
  const reader = (t: Tensor): ((index: number) => number) => {
    const numbers = toNumbers(t), own = rowMajorStrides(t.dims), offset = dims.length - t.dims.length;
    return (index) => numbers[t.dims.reduce((at, size, d) => at + (size === 1 ? 0 : (Math.floor(index / (strides[d + offset] ?? 1)) % size) * (own[d] ?? 0)), 0)] ?? NaN;
  };
  const x = reader(a), y = reader(b);
  for (let i = 0; i < values.length; i++) {
    const p = x(i), q = y(i), both = p * q;
    if (Math.abs(p) < smallFactor && Math.abs(q) > 1) return refuse("precision-loss", `the factor ${p} takes small values where the factor ${q} cannot bring them back from`, "leave them apart");
    if ((Math.abs(p) > largeFactor && Math.abs(q) < 1) || (Math.abs(p) > 1 && q === 0)) return refuse("precision-loss", `the factor ${p} takes large values to infinity, times ${q}`, "leave them apart");
    if (both === 0 && p !== 0 && q !== 0) return refuse("precision-loss", `the product of the factors ${p} and ${q} is too small`, "leave them apart");
    values[i] = both;
  }
  return roundOnce("the product of the factors", a.dtype, dims, values, oneChannel);
}

const scaled = (first: readonly number[], second: readonly number[], dims: readonly number[] = []) => (): ReturnType<GraphBuilder["build"]> => {
  const b = new GraphBuilder(), factor = (values: readonly number[], shape: readonly number[]): Value => b.numbers(values, values.length === 1 ? [] : shape);
  return b.build(b.add(Mul, [b.add(Mul, [b.input("x", ["n", 2, 3]), factor(first, dims)]), factor(second, [second.length])]));
};

export const mergeFactors = defineRule({
  name: "merge-factors",
  doc: "A value times a constant times a constant becomes the value times their product, where that is no larger than the larger of the two.",
  stage: "merge",
  match: commuted(Mul, [commuted(Mul, [value("x"), constant("first")]), constant("second")]),
  where: [
    ({ x }) => isFloat(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "only floats are merged"),
    ({ first, second }) => {
      const shared = [first, second].find(isShared);
      return shared === undefined || refuse("shared-weight", `'${shared.name}' has ${byteLength(shared.constant)} bytes, more than ${largestCopy}, and others read it too`, "none: the product would have to be stored beside it");
    },
    ({ first, second }) => { const made = product(first.constant, second.constant); return isRefusal(made) ? made : true; },
  ],
  numerics: reassociates(),
  rewrite({ x, first, second }, edit) {
    const made = product(first.constant, second.constant);
    return isRefusal(made) ? made : edit.insert(Mul, [x, edit.constant(made, `${edit.root.name}_factor`)]);
  },
  example: scaled([0.1], [0.2]),
  examples: [scaled([0.1], [1, -2, 0.3]), scaled([0.1, -3], [0.7], [2, 1]), scaled([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, -2, 0.3], [2, 3])],
  refuses: {
    "larger-constant": scaled([2, 3], [1, 2, 3], [2, 1]),
    "not-finite": scaled([Infinity], [2]),
    "precision-loss": scaled([1e-6], [1e6]),
    "dtype"() {
      const b = new GraphBuilder();
      return b.build(b.add(Mul, [b.add(Mul, [b.input("x", [2], "int32"), b.scalar(2, "int32")]), b.scalar(3, "int32")]));
    },
    "shared-weight"() {
      const b = new GraphBuilder(), large = b.numbers(Array.from({ length: 2048 }, (_, i) => i - 7), [2048]);
      return b.build(b.add(Mul, [b.add(Mul, [b.input("x", [1, 2048]), b.scalar(0.1)]), large]), b.add(Mul, [b.input("y", [1, 2048]), large]));
    },
    "interior-value-used"() {
      const b = new GraphBuilder(), half = b.add(Mul, [b.input("x", [2]), b.scalar(0.3)]);
      return b.build(b.add(Mul, [half, b.scalar(0.7)]), b.add(Neg, [half]));
    },
  },
});
