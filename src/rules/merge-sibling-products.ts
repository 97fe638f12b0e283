/** Products of one input with several constant matrices (query, key and value; parallel heads) are one product, their columns side by side. */
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Add, Cast, Concat, DequantizedMatMul, DynamicQuantizeLinear, Gemm, MatMul, MatMulInteger, Mul, Relu, Reshape, Sigmoid, Softmax, Transpose } from "../ops/index.ts";
import { anyOf, constant, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, exact } from "../rewrite/rule.ts";
import { siblingRule, type SiblingKind } from "./siblings.ts";

const ofMatMul: SiblingKind = { op: MatMul, weightAxis: () => 1, columnAxis: (n) => (n.outputs[0]?.type.shape.length ?? 1) - 1 };
const ofGemm: SiblingKind = {
  op: Gemm, weightAxis: (n) => (n.attributes["transB"] ? 0 : 1), columnAxis: () => 1, biasInput: 2,
  accepts: (n) => Number(n.attributes["beta"]) > 0,
};
const ofInteger: SiblingKind = { op: MatMulInteger, weightAxis: () => 1, columnAxis: ofMatMul.columnAxis, sharedInputs: [2], zeroInput: 3 };
const ofDequantized: SiblingKind = { op: DequantizedMatMul, weightAxis: (n) => (n.attributes["transB"] ? 0 : 1), columnAxis: ofMatMul.columnAxis, besideWeights: [2, 3] };
const kinds: ReadonlyMap<OpDef, SiblingKind> = new Map([ofMatMul, ofGemm, ofInteger, ofDequantized].map((kind) => [kind.op, kind]));
const matrix = constant("weight", { wants: "a matrix", holds: (w) => w.constant.dims.length === 2 });

type Branch = (b: GraphBuilder, x: Value) => Value;
const build = (branches: readonly Branch[], end: (b: GraphBuilder, results: readonly Value[]) => readonly Value[] = (b, r) => r.map((v) => b.add(Softmax, [v])), dims: readonly (number | string)[] = [2, "n", 6]) => () => {
  const b = new GraphBuilder(), x = b.input("x", dims);
  return b.build(...end(b, branches.map((branch) => branch(b, x))));
};
const product = (columns: number): Branch => (b, x) => b.add(MatMul, [x, b.random([6, columns])]);
const biased = (columns: number): Branch => (b, x) => b.add(Add, [b.random([columns]), product(columns)(b, x)]);
const activated = (columns: number): Branch => (b, x) => b.add(Relu, [biased(columns)(b, x)]);
const gemm = (columns: number, bias = true): Branch => (b, x) => b.add(Gemm, [x, b.random([columns, 6]), bias ? b.random([columns]) : undefined], { transB: 1, alpha: 0.5 });
/** A product with bytes in blocks of scales. */
const blocked = (columns: number, { transB = 1, block = 4, zeros = true } = {}): Branch => (b, x) => {
  const laid = (depth: number): readonly number[] => (transB ? [columns, depth] : [depth, columns]), blocks = laid(Math.ceil(6 / block));
  const weights = b.random(laid(6), { low: 0, high: 16, dtype: "uint8" });
  return b.add(DequantizedMatMul, [x, weights, b.random(blocks, { low: 0.01, high: 0.2 }), zeros ? b.random(blocks, { low: 0, high: 16, dtype: "uint8" }) : undefined], { block_size: block, transB });
};
const integers = (b: GraphBuilder, x: Value): readonly (Value | undefined)[] => b.addAll(DynamicQuantizeLinear, [x], {}, 3);
/** A product of what was quantised, its sums scaled. */
const dynamic = (columns: number, zero: number | undefined, perColumn: boolean) => (b: GraphBuilder, [x, scale, point]: readonly (Value | undefined)[]): Value => {
  const w = b.random([6, columns], { low: -99, high: 99, dtype: "int8" });
  const sums = b.add(Cast, [b.add(MatMulInteger, [x, w, point, zero === undefined ? undefined : b.scalar(zero, "int8")])], { to: 1 });
  return b.add(Add, [b.add(Mul, [sums, b.add(Mul, [scale, perColumn ? b.random([columns], { low: 0.01, high: 0.1 }) : b.scalar(0.03)])]), b.random([columns])]);
};
const dynamicProducts = () => {
  const b = new GraphBuilder(), quantised = integers(b, b.input("x", [2, "n", 6]));
  return b.build(...[dynamic(4, undefined, false), dynamic(3, 5, true), dynamic(1, -3, false)].map((of) => b.add(Softmax, [of(b, quantised)])));
};
const heads = (b: GraphBuilder, results: readonly Value[]): readonly Value[] => {
  const [q, k, v] = results.map((r) => b.add(Transpose, [b.add(Reshape, [r, b.int64(0, 0, 2, -1)])], { perm: [0, 2, 1, 3] }));
  return q && k && v ? [b.add(MatMul, [b.add(Softmax, [b.add(MatMul, [q, b.add(Transpose, [k], { perm: [0, 1, 3, 2] })])]), v])] : [];
};

export const mergeSiblingProducts = defineRule({
  name: "merge-sibling-products",
  doc: "MatMul, MatMulInteger, Gemm and products with matrices of few bits, in blocks or not, of one input with several constant matrices, such as query, key and value, become one whose columns lie side by side; each result is a view of its columns. Their biases and scales, also those known only when they run, and what follows all of them alike, are joined too.",
  stage: "merge",
  match: anyOf(op(MatMul, [value("x"), matrix]), op(DequantizedMatMul, [value("x"), matrix, constant("scales"), optionalInput(constant("blockZeros"))]), op(Gemm, [value("x"), matrix, optionalInput(value("bias"))]), op(MatMulInteger, [value("x"), matrix, optionalInput(value("zero")), optionalInput(value("zeros"))])),
  numerics: exact,
  ...siblingRule((root) => kinds.get(root.op) ?? ofMatMul),
  example: build([biased(4), biased(4), biased(4)], heads),
  examples: [
    build([product(3), biased(5)]),
    build([activated(4), (b, x) => b.add(Relu, [product(1)(b, x)]), activated(7)]),
    build([gemm(4), gemm(3, false)], undefined, ["n", 6]),
    build([product(3), product(4), (b, x) => b.add(Sigmoid, [product(2)(b, x)])]),
    build([(b, x) => b.add(Mul, [product(3)(b, x), 0.5]), (b, x) => b.add(Mul, [product(2)(b, x), b.random([2])])]),
    dynamicProducts,
    build([blocked(4), blocked(3), blocked(5)], undefined, [2, "n", 6]),
    build([blocked(3, { transB: 0, zeros: false }), (b, x) => b.add(Add, [blocked(1, { transB: 0, zeros: false })(b, x), b.random([1])])]),
    build([blocked(3), blocked(2, { block: 6 }), blocked(4, { zeros: false }), blocked(2)]),
  ],
  refuses: {
    "own-epilogue": build([product(4), product(4)], (b, [gate, up]) => (gate && up ? [b.add(Mul, [b.add(Sigmoid, [gate]), up])] : [])),
    "graph-output": build([product(4), product(4)], (_, results) => results),
    "placed-in-concat": build([product(4), product(3)], (b, [first, second]) => (first && second ? [b.add(Concat, [second, first, b.input("y", [2, "n", 1])], { axis: -1 })] : [])),
    "not-a-view": build([product(4), product(4)], (b, results) => results.map((r) => b.add(Softmax, [b.add(Reshape, [r, b.int64(2, -1)])]))),
  },
});
