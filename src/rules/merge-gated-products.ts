/**
 * Products of one input with matrices of one shape, whose results meet again element by element (gate and up of SwiGLU
 * and GEGLU, maxout, highway gates), are one product with several results: its kernel has them all at hand when what
 * follows is computed, so that none goes through memory. TensorRT-LLM's and xFormers' fused gated MLP.
 */
import { shapeEqual, type Dim } from "../core/dim.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Gelu, Gemm, MatMul, Mul, Relu, Sigmoid, SiblingMatMul, Softmax, Swish, Tanh } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { anyOf, constant, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";
import { meet } from "./meeting.ts";
import { storesFloat32 } from "./normalisation.ts";

/** As many results as a kernel may store. */
export const mostProducts = 4;
/** Matrices of so many elements are read from memory, which takes the time; in 8 bits they stay so only in a product of their own. */
export const largeProduct = 2 ** 21;

/** The sizes of a product's constant matrix, [K, N]; undefined for what is not plainly a product by one. */
function matrixShape({ op: own, inputs, attributes, outputs }: Node): readonly Dim[] | undefined {
  const [, weight, bias] = inputs;
  if (!weight || !isConstant(weight) || weight.type.shape.length !== 2 || outputs.length !== 1) return undefined;
  if (own === MatMul) return weight.type.shape;
  if (own !== Gemm || attributes["transA"] || attributes["alpha"] !== 1 || (bias && attributes["beta"] !== 1)) return undefined;
  // A matrix that has to be transposed is copied: nobody else may read it.
  if (attributes["transB"]) return weight.uses.length === 1 ? [...weight.type.shape].reverse() : undefined;
  return weight.type.shape;
}

/** The products of `root`'s input that meet its own result, `root` first; none where another one comes first. */
function meeting(root: Node): readonly Node[] {
  const [x] = root.inputs, shape = matrixShape(root), dtype = root.inputs[1]?.type.dtype;
  if (!x || isConstant(x) || !shape) return [];
  const all = [...new Set(x.uses.filter((u) => u.index === 0).map((u) => u.node))];
  const alike = all.filter((n) => n.graph === root.graph && n.inputs[1]?.type.dtype === dtype && shapeEqual(matrixShape(n) ?? [], shape));
  if (alike.length < 2 || alike[0] !== root) return meetsLater(alike, root);
  return together(root, alike.slice(1));
}
/** Where the first of them meets nobody, a later one may. */
function meetsLater(alike: readonly Node[], root: Node): readonly Node[] {
  const at = alike.indexOf(root);
  return at > 0 && alike.slice(0, at).every((n) => !together(n, [root]).length) ? together(root, alike.slice(at + 1)) : [];
}
function together(root: Node, others: readonly Node[]): readonly Node[] {
  const found = others.filter((n) => meet(root.outputs[0], n.outputs[0])).slice(0, mostProducts - 1);
  return found.length > 0 ? [root, ...found] : [];
}

function transposed({ dtype, dims: [rows = 0, columns = 0], ...t }: Tensor): Tensor {
  const from = toNumbers({ dtype, dims: [rows, columns], ...t });
  return fromNumbers(dtype, [columns, rows], Array.from({ length: rows * columns }, (_, i) => from[(i % rows) * columns + Math.floor(i / rows)] ?? 0));
}

type Part = (b: GraphBuilder, x: Value) => Value;
type Meeting = (b: GraphBuilder, results: readonly Value[]) => readonly Value[];
const product: Part = (b, x) => b.add(MatMul, [x, b.random([6, 5])]);
const gemm = (transB: number, bias: boolean): Part => (b, x) => b.add(Gemm, [x, b.random(transB ? [5, 6] : [6, 5]), bias ? b.random([5]) : undefined], { transB });
const swiGlu: Meeting = (b, [gate, up]) => (gate && up ? [b.add(Mul, [b.add(Swish, [gate]), up])] : []);
const build = (parts: readonly Part[], join: Meeting, dims: readonly (number | string)[] = ["n", 3, 6], dtype: "float32" | "float64" | "float16" = "float32") => () => {
  const b = new GraphBuilder(), x = b.input("x", dims, dtype);
  return b.build(...join(b, parts.map((p) => p(b, x))));
};
const huge: Part = (b, x) => b.add(MatMul, [x, b.constant({ dtype: "float32", dims: [6, largeProduct / 4], data: new Float32Array(6 * largeProduct / 4) })]);
const halfGemm: Part = (b, x) => b.add(Gemm, [x, b.random([6, 5], { dtype: "float16" }), b.random([5], { dtype: "float16" })]);
const wide: Part = (b, x) => b.add(MatMul, [x, b.random([6, 5], { dtype: "float64" })]);

export const mergeGatedProducts = defineRule({
  name: "merge-gated-products",
  doc: "MatMul and Gemm of one input with constant matrices of one shape, whose results meet in an element-wise operator, such as gate and up of SwiGLU, become one product whose kernel computes what follows from all sums at once.",
  stage: "merge",
  match: anyOf(op(MatMul, [value("x"), constant("weight")]), op(Gemm, [value("x"), constant("weight"), optionalInput(value("bias"))])),
  beside: (_, root) => meeting(root),
  where: [
    ({ x }) => storesFloat32.has(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: only float32 and narrower floats are multiplied in tiles"),
    ({ weight }) => sizeOf(weight.constant.dims) < largeProduct || refuse("large", `'${weight.name}' has ${sizeOf(weight.constant.dims)} elements`, `none: from ${largeProduct} on, reading them takes the time`),
    ({ x }, root) => x.type.dtype === "float32" || !meeting(root).some((n) => n.inputs[2]) || refuse("rounding", `'${x.name}' is ${x.type.dtype}, and Gemm rounds its sum with its bias once`, "none: a bias that is added apart would round twice"),
  ],
  numerics: reassociates(1e-5),
  rewrite(_, edit) {
    const nodes = meeting(edit.root), [x] = edit.root.inputs;
    const matrices = nodes.flatMap(({ inputs: [, weight], attributes, op: own }) =>
      (weight?.constant && own === Gemm && attributes["transB"] ? [edit.constant(transposed(weight.constant), `${weight.name}_transposed`)] : weight ? [weight] : []));
    const sums = edit.insert(SiblingMatMul, [x, ...matrices], {}, { outputCount: nodes.length }).producer?.node.outputs ?? [];
    return new Map(nodes.flatMap(({ inputs: [, , bias], outputs: [old], name }, i) => {
      const sum = sums[i];
      return old && sum ? [[old, bias ? edit.insert(Add, [sum, bias], {}, { name }) : sum] as const] : [];
    }));
  },
  example: build([product, product], swiGlu),
  examples: [
    build([gemm(1, true), gemm(0, true)], swiGlu, ["n", 6]),
    build([product, product, product], (b, [f, i, c]) => (f && i && c ? [b.add(Add, [b.add(Mul, [b.add(Sigmoid, [i]), b.add(Tanh, [c])]), b.add(Sigmoid, [f])])] : [])),
    build([(b, x) => b.add(Add, [product(b, x), b.random([5])]), product], (b, [gate, up]) => (gate && up ? [b.add(Mul, [b.add(Gelu, [gate]), up]), b.add(Relu, [up])] : []), [6]),
    build([(b, x) => b.add(Softmax, [product(b, x)]), product, product], (b, [alone, gate, up]) => (alone && gate && up ? [alone, b.add(Mul, [gate, up])] : [])),
  ],
  refuses: {
    large: build([huge, huge], (b, [gate, up]) => (gate && up ? [b.add(Mul, [gate, up])] : [])),
    rounding: build([halfGemm, halfGemm], swiGlu, ["n", 6], "float16"),
    dtype: build([wide, wide], (b, [gate, up]) => (gate && up ? [b.add(Mul, [gate, up])] : []), ["n", 3, 6], "float64"),
  },
});
